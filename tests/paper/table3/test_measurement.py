"""Table 3: the paper's rows at any size, what was measured of them, and what follows."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.config import Config, load_preset
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.errors import ConfigError, DataError, DragomanError, TrainingError
from dragoman.paper import sweep
from dragoman.paper.paper_values import TABLE_3
from dragoman.paper.sweep import Trial, TrialResult
from dragoman.paper.table3.measurement import (
    SMALL_BASE,
    count_paper_parameters,
    measure,
    scale_variations,
)
from dragoman.paper.table3.rendering import _axis_limit, draw, parameter_table, render, scores_table
from dragoman.paper.table3.results import Table3, VariationResult, check_findings, compare_rows
from dragoman.phrasebook import generate

TINY_BASE = Config.from_dict(
    {
        "tokenizer": {"vocabulary": 500},
        "data": {"max_length": 60, "row_length": 64},
        "model": {"encoder_layers": 3, "decoder_layers": 3, "d_model": 64, "d_ff": 128, "heads": 8},
        "training": {
            "steps": 300,
            "batch_tokens": 1024,
            "schedule": "cosine",
            "learning_rate": 0.004,
            "warmup_steps": 50,
            "clip_norm": 1.0,
            "validate_sentences": 100,
            "checkpoint_every": 100,
            "keep_checkpoints": 1,
            "average": 1,
            "log_every": 10,
        },
    }
)
"""A base for the phrasebook on a CPU: a third, two thirds and four thirds of 3 layers are whole."""

# --- the rows ---


def test_at_the_paper_s_size_the_rows_are_the_paper_s() -> None:
    rows = scale_variations(load_preset("base"))
    assert [row.paper for row in rows] == list(TABLE_3)
    for row in rows:
        assert row.change == row.paper.change
        expected = load_preset(row.paper.preset)
        assert row.config.model == expected.model
        assert row.config.training.label_smoothing == expected.training.label_smoothing
        assert row.config.training.steps == expected.training.steps
        if row.paper.row != "big":  # which also writes its checkpoints at other times
            assert row.config == expected


@pytest.mark.parametrize("base", [SMALL_BASE, TINY_BASE])
def test_every_row_exists_at_small_sizes(base: Config) -> None:
    rows = scale_variations(base)
    assert [row.paper for row in rows] == list(TABLE_3)
    assert len({row.name for row in rows}) == len(rows)
    assert len({row.config.to_toml() for row in rows}) == len(rows)


def test_the_values_are_in_proportion() -> None:
    assert [row.change for row in scale_variations(SMALL_BASE)] == [
        "",
        "1 head of 128",
        "4 heads of 32",
        "16 heads of 8",
        "32 heads of 4",
        "d_k 4",
        "d_k 8",
        "2 layers",
        "4 layers",
        "8 layers",
        "d_model 64",
        "d_model 256",
        "d_ff 256",
        "d_ff 1024",
        "dropout 0.0",
        "dropout 0.4",
        "smoothing 0.0",
        "smoothing 0.2",
        "learned positions",
        "6 layers, d_model 256, 16 heads",
    ]
    big = scale_variations(SMALL_BASE)[-1].config
    assert (big.model.d_ff, big.model.dropout, big.training.steps) == (1024, 0.4, 6000)


def test_a_row_that_cannot_be_or_is_the_base_is_left_out() -> None:
    settings = ["model.encoder_layers=4", "model.decoder_layers=4", "model.heads=4"]
    odd = Config().overridden([*settings, "model.dropout=0", "model.d_model=12", "model.d_ff=7"])
    assert [row.change for row in scale_variations(odd)] == [
        "",
        "2 heads of 6",
        "d_model 24",
        "d_ff 14",
        "smoothing 0.0",
        "smoothing 0.2",
        "learned positions",
        "4 layers, d_model 24, 8 heads",
    ]


@pytest.mark.slow
def test_parameters_are_counted_beside_the_paper_s() -> None:
    counts = {count.paper.preset: count for count in count_paper_parameters()}
    assert len(counts) == len(TABLE_3)
    assert counts["base"].parameters == 63_045_632
    for count in counts.values():
        if count.paper.parameters is not None:
            assert abs(count.parameters / 1e6 - count.paper.parameters) < 5
    text = parameter_table(list(counts.values())).to_text()
    assert "C     d_ff 4096                          88.24     90\n" in text


# --- what follows ---


def measured(
    preset: str, bleu: Sequence[float], perplexity: Sequence[float] = ()
) -> VariationResult:
    change = next(paper.change for paper in TABLE_3 if paper.preset == preset)
    perplexity = perplexity or [5.0 for _ in bleu]
    return VariationResult(preset, change, 1_000_000, 100, tuple(perplexity), tuple(bleu))


def table(*rows: VariationResult, seeds: int = 3) -> Table3:
    return Table3("corpus", Config(), tuple(range(1, seeds + 1)), rows)


BASE = measured("base", [30.0, 30.2, 30.4], [5.0, 5.1, 5.2])


def verdict(claim: str, *rows: VariationResult) -> str:
    return next(f.verdict for f in check_findings(table(*rows)) if f.claim == claim)


def test_a_difference_has_the_standard_error_of_both_rows() -> None:
    worse = measured("table3-a-heads-1", [29.0, 29.4])
    found = compare_rows(BASE, worse, "bleu")
    assert found.value == pytest.approx(1.0)
    assert found.error == pytest.approx(math.sqrt(0.04 / 3 + 0.08 / 2))
    assert BASE.deviation("bleu") == pytest.approx(0.2)
    assert BASE.mean("perplexity") == pytest.approx(5.1)


@pytest.mark.parametrize(
    ("bleu", "expected"),
    [
        ([29.7, 29.8, 29.9], "reproduced"),  # 0.4 below, 3.1 standard errors
        ([29.9, 30.0, 30.1], "within noise"),  # 0.2 below, 1.5
        ([30.3, 30.4, 30.5], "within noise"),  # 0.2 above
        ([30.5, 30.6, 30.7], "not reproduced"),  # 0.4 above
    ],
)
def test_a_verdict_goes_by_two_standard_errors(bleu: list[float], expected: str) -> None:
    row = measured("table3-a-heads-1", bleu)
    assert verdict("one head is worse", BASE, row) == expected


@pytest.mark.parametrize(
    ("bleu", "expected"),
    [
        ([30.2, 30.2, 30.2], "reproduced"),
        ([30.47, 30.48, 30.49], "reproduced"),  # surely 0.28 better: too little to matter
        ([28.0, 30.0, 32.0], "reproduced"),
        ([30.7, 30.8, 30.9], "not reproduced"),
        ([29.5, 29.6, 29.7], "not reproduced"),
    ],
)
def test_equal_is_within_noise_or_close(bleu: list[float], expected: str) -> None:
    row = measured("table3-e-learned", bleu)
    assert verdict("learned positions equal sinusoids", BASE, row) == expected


def test_smoothing_is_judged_by_both_figures() -> None:
    row = measured("table3-d-smoothing-0.0", [29.0, 29.1, 29.2], [4.5, 4.6, 4.7])
    found = {f.claim: f for f in check_findings(table(BASE, row))}
    hurts = found["label smoothing hurts perplexity"]
    assert hurts.measured is not None
    assert hurts.measured.value == pytest.approx(0.5)
    assert hurts.paper == pytest.approx(0.25)
    assert hurts.verdict == "reproduced"
    assert found["label smoothing helps BLEU"].verdict == "reproduced"


def test_bigger_is_judged_from_the_smallest_to_the_largest() -> None:
    small = measured("table3-c-layers-2", [28.0, 28.1, 28.2])
    large = measured("table3-c-layers-8", [30.0, 30.1, 30.2])
    found = next(
        f for f in check_findings(table(BASE, small, large)) if f.claim == "more layers are better"
    )
    assert found.rows == "8 layers − 2 layers"
    assert found.measured is not None
    assert found.measured.value == pytest.approx(2.0)
    assert found.paper == pytest.approx(1.8)
    assert found.verdict == "reproduced"


def test_one_seed_or_a_missing_row_gives_no_verdict() -> None:
    alone = measured("base", [30.0]), measured("table3-a-heads-1", [20.0])
    found = check_findings(table(*alone, seeds=1))
    assert {finding.verdict for finding in found} == {"no verdict"}
    assert found[0].measured is not None
    assert found[0].measured.value == 10.0
    assert found[1].measured is None


def test_the_paper_reproduces_itself() -> None:
    """Every claim is true of the paper's own numbers."""
    rows = [
        measured(p.preset, [p.bleu - 0.01, p.bleu + 0.01], [p.perplexity - 0.01, p.perplexity])
        for p in TABLE_3
    ]
    found = check_findings(table(*rows))
    assert len(found) == 11
    assert {finding.verdict for finding in found} == {"reproduced"}


# --- measuring ---


class Sweeps:
    """In place of training: a score that tells trials apart."""

    def __init__(self, failing: str = "nothing") -> None:
        self.trials: list[Trial] = []
        self.failing = failing

    def __call__(
        self, trials: Sequence[Trial], data: Path, out: Path, **options: Any
    ) -> list[TrialResult]:
        self.trials = list(trials)
        return [self._finished(trial, out) for trial in trials]

    def _finished(self, trial: Trial, out: Path) -> TrialResult:
        run, seed = out / trial.name, trial.config.training.seed
        if trial.name.startswith(self.failing):
            return TrialResult(trial.name, run, trial.config, failure="the sky fell")
        bleu, perplexity = 30.0 + seed, float(10 * trial.config.model.d_model + seed)
        return TrialResult(
            trial.name, run, trial.config, run, parameters=7, bleu=bleu, perplexity=perplexity
        )


def quiet(line: str) -> None:
    pass


def test_every_row_is_trained_once_a_seed_and_nothing_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sweeps = Sweeps()
    monkeypatch.setattr(sweep, "run_sweep", sweeps)
    found = measure(Path("corpus"), Path("out"), seeds=(1, 2), steps=90, print_message=quiet)
    assert len({trial.name for trial in sweeps.trials}) == len(sweeps.trials) == 2 * len(TABLE_3)
    for trial in sweeps.trials:
        training = trial.config.training
        assert training.steps == (270 if trial.name.startswith("big") else 90)
        assert training.validate_every > training.steps, "the best step would be chosen"
        assert training.average == training.keep_checkpoints == 1
        assert trial.name.endswith(f"-seed-{training.seed}")
    assert [row.paper for row in found.rows] == list(TABLE_3)
    assert found.rows[0].bleu == (31.0, 32.0)
    assert found.rows[0].perplexity == (1281.0, 1282.0)
    wide = found.row("table3-c-d_model-1024")
    assert wide is not None
    assert wide.perplexity == (2561.0, 2562.0)
    assert found.base.training.steps == 90


def test_some_rows_are_measured_with_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "run_sweep", Sweeps())
    found = measure(Path("corpus"), Path("out"), rows=("E",), print_message=quiet)
    assert [row.preset for row in found.rows] == ["base", "table3-e-learned"]


def test_a_row_that_failed_is_told_and_the_rest_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "run_sweep", Sweeps(failing="a-1-head-of-128-seed-2"))
    found = measure(Path("corpus"), Path("out"), rows=("A",), print_message=quiet)
    assert found.rows[1].bleu == (31.0, 33.0)
    assert "Failed: 1 head of 128, 1 of 3 (the sky fell)." in render(found)
    monkeypatch.setattr(sweep, "run_sweep", Sweeps(failing="a-1-head-of-128"))
    found = measure(Path("corpus"), Path("out"), rows=("A",), print_message=quiet)
    assert found.row("table3-a-heads-1") is None
    assert "1 head of 128 (failed)" in render(found)
    assert check_findings(found)[0].verdict == "no verdict"
    monkeypatch.setattr(sweep, "run_sweep", Sweeps(failing="base"))
    with pytest.raises(TrainingError, match=r"base model.* failed: the sky fell"):
        measure(Path("corpus"), Path("out"), print_message=quiet)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ConfigError, match="no seeds"):
        measure(Path("corpus"), Path("out"), seeds=(), print_message=quiet)
    blind = SMALL_BASE.overridden(["training.validate_sentences=0"])
    with pytest.raises(ConfigError, match="compares BLEU"):
        measure(Path("corpus"), Path("out"), base=blind, print_message=quiet)


@pytest.fixture(scope="module")
def phrasebook(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    directory = tmp_path_factory.mktemp("phrasebook")
    examples = list(generate("de", "train", 600))
    files = [directory / "train.en", directory / "train.de"]
    files[0].write_text("".join(f"{e.source}\n" for e in examples), encoding="utf-8")
    files[1].write_text("".join(f"{e.target}\n" for e in examples), encoding="utf-8")
    return prepare(open_parallel_corpus(files), directory / "data", TINY_BASE, workers=0)


@pytest.mark.thorough  # below the base is trained, if not its variant; test_sweep.py trains two
def test_the_tiny_base_trains_on_the_phrasebook(phrasebook: Prepared, tmp_path: Path) -> None:
    """For real, though not long."""
    base = TINY_BASE.overridden(["training.threads=1", "training.validate_sentences=3"])
    options: dict[str, Any] = {"base": base, "seeds": (1,), "steps": 3, "rows": ("E",)}
    found = measure(phrasebook.path, tmp_path, **options, print_message=quiet)
    assert [row.preset for row in found.rows] == ["base", "table3-e-learned"]
    first, learned = found.rows
    assert learned.parameters - first.parameters == 1024 * 64
    assert len(first.bleu) == len(learned.bleu) == 1
    assert 1 < first.mean("perplexity") < 1000
    assert measure(phrasebook.path, tmp_path, **options, print_message=quiet) == found


CARRIED = ("config.toml", "run.json", "metrics.jsonl", "model/card.json", "model/config.toml")


@pytest.mark.slow
def test_results_are_carried_in_small_files_and_only_what_is_missing_is_trained(
    phrasebook: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "far/there"
    base = TINY_BASE.overridden(["training.threads=1", "training.validate_sentences=3"])
    options: dict[str, Any] = {"base": base, "steps": 2, "print_message": quiet}
    found = measure(phrasebook.path, here, seeds=(1,), rows=("base",), **options)
    for name in ("base-seed-1.toml", *(f"base-seed-1/{file}" for file in CARRIED)):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(here / name, there / name)
    data = Path(shutil.copytree(phrasebook.path, tmp_path / "data"))
    started: list[str] = []
    failing = SimpleNamespace(poll=lambda: 1)

    def start(self: sweep._Sweep, trial: Trial) -> None:
        started.append(trial.name)
        (self.out / f"{trial.name}.log").write_text("not here")
        self.running[trial.name] = trial, failing  # type: ignore[assignment]

    monkeypatch.setattr(sweep._Sweep, "_start", start)
    again = measure(data, there, seeds=(1,), rows=("base",), **options)
    assert again == found
    assert not started
    more = measure(data, there, seeds=(1, 2), rows=("E",), jobs=2, **options)
    assert started == ["e-learned-positions-seed-1", "base-seed-2", "e-learned-positions-seed-2"]
    assert more.rows[0].bleu == found.rows[0].bleu
    assert more.rows[1].failure == "not here"


# --- shown and kept ---


@pytest.fixture
def whole() -> Table3:
    rows = [
        dataclasses.replace(
            measured(
                row.paper.preset,
                [row.paper.bleu + 12 + d for d in (-0.2, 0.0, 0.1)],
                [row.paper.perplexity + d for d in (-0.02, 0.0, 0.02)],
            ),
            change=row.change,
        )
        for row in scale_variations(SMALL_BASE)
    ]
    return dataclasses.replace(table(*rows), base=SMALL_BASE)


def test_a_table_survives_a_file(whole: Table3) -> None:
    text = json.dumps(whole.to_json())
    assert Table3.from_json(json.loads(text)) == whole
    with pytest.raises(DataError, match=r"not a Table 3 of this version; measure it again"):
        Table3.from_json({"rows": [{"colour": "red"}]})


def test_ours_is_printed_beside_the_paper_s(whole: Table3) -> None:
    text = render(whole)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith("Table 3 on corpus: 6 layers, d_model 128, d_ff 512, 8 heads, 2,000")
    assert "base 1.00 4.920 ±0.020 37.77 ±0.15 65 4.92 25.8" in lines
    assert "D dropout 0.4 dropout 0.2 1.00 4.950 ±0.020 37.47 ±0.15 -0.30 4.95 25.5 -0.3" in lines
    assert "dropout helps base − dropout 0.0 BLEU +1.20 +1.20 0.12 reproduced" in lines
    assert lines[-1].startswith("A difference below 2 standard errors is within noise")
    assert "<table>" in scores_table(whole).to_html()


@pytest.mark.slow
def test_it_is_drawn(whole: Table3, tmp_path: Path) -> None:
    for name in ("table3.png", "table3.svg"):
        assert draw(whole, tmp_path / name) == tmp_path / name
    picture = (tmp_path / "table3.svg").read_text(encoding="utf-8")
    for row in whole.rows[1:-1]:
        assert f"{row.paper.row}   {row.change}" in picture
    assert "the paper" in picture
    assert "2 standard errors" in picture
    one = table(measured("base", [30.0]), measured("big", [31.0]), seeds=1)
    draw(one, tmp_path / "one.png")
    with pytest.raises(DragomanError, match="a picture can be one of"):
        draw(whole, tmp_path / "table3.gif")


def test_one_value_far_out_does_not_press_the_others_together() -> None:
    assert _axis_limit([1.0, -2.0, -10.0]) == 3.0
    assert _axis_limit([1.0, -2.0, -4.0]) is None
    assert _axis_limit([0.0]) is None
