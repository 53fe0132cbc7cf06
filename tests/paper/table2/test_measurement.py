"""Table 2: fair recipes, the table from hand-made numbers, and a small real sweep."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from dragoman.bench.training.timing import DragomanTraining
from dragoman.config import Config, SearchConfig, load_preset, preset_names
from dragoman.data.prepare import Prepared
from dragoman.errors import ConfigError, ModelError
from dragoman.evaluation.bleu_by_length import Bucket
from dragoman.paper import sweep
from dragoman.paper.paper_values import TABLE_2
from dragoman.paper.table2 import measurement
from dragoman.paper.table2.measurement import (
    EvaluationSet,
    TrainingSpeed,
    TranslationScores,
    first_batches,
    measure_speed,
)
from dragoman.paper.table2.models import COMPARED_MODELS, ComparedModel, build_config
from dragoman.paper.table2.rendering import (
    _label_lines,
    describe_length_effect,
    draw,
    model_colours,
    render,
    text_tables,
)
from dragoman.paper.table2.results import Row, Table2

BY_NAME = {model.name: model for model in COMPARED_MODELS}
THERE = [c for c in COMPARED_MODELS if c.preset in preset_names()]
DATA = load_preset("phrasebook")


def config_of(name: str, data: Config = DATA, mean: float = 27.0) -> Config:
    return build_config(BY_NAME[name], data, vocabulary=2000, mean_length=mean)


def row(model: str, kept: float = 0.8, **changes: object) -> Row:
    """A model of BLEU 60 on short sentences that keeps a share of it on long ones."""
    family = BY_NAME[model].family
    long = 60 * kept
    buckets = (Bucket(3, 5, 200, 60.0, 58.0, 62.0), Bucket(16, 20, 100, long, long - 1, long + 1))
    plain = Row(
        model=model,
        preset=BY_NAME[model].preset,
        family=family,
        budget="parameters",
        size="2+2 × 120",
        parameters=1_010_000,
        active=1_010_000,
        learning_rate=0.004,
        steps=400,
        flops=4.5e12,
        tokens_per_second=8123.4,
        seconds=90.0,
        perplexity=2.345,
        bleu=55.678,
        by_length=buckets,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def table(*rows: Row) -> Table2:
    return Table2(
        data="corpus",
        pairs=60_000,
        test="test.en",
        sentences=300,
        parameters=1_000_000,
        steps=400,
        beam=4,
        length_penalty=0.6,
        signature="nrefs:1|tok:13a",
        device="CPU, 2 threads",
        speed="target tokens alone",
        rows=rows,
    )


# --- configs ---


def test_the_story_goes_from_no_context_to_the_transformer() -> None:
    assert len(COMPARED_MODELS) == 12
    assert [COMPARED_MODELS[0].preset, COMPARED_MODELS[-1].preset] == ["feed-forward", "base"]
    assert {c.name for c in COMPARED_MODELS if c.family == "fixed"} == {"RNN", "GRU", "LSTM"}
    assert {c.paper for c in COMPARED_MODELS if c.paper} <= {score.model for score in TABLE_2}


def test_the_transformer_is_the_datas_own() -> None:
    assert config_of("Transformer") == DATA
    other = DATA.updated({"model": {"norm": "pre"}, "training": {"learning_rate": 0.002}})
    assert config_of("Transformer", other) == other


@pytest.mark.parametrize("model", THERE, ids=lambda c: c.preset)
def test_everybody_sees_the_same_batches_with_the_same_regularisation(
    model: ComparedModel,
) -> None:
    data = DATA.updated({"model": {"dropout": 0.25}, "training": {"label_smoothing": 0.05}})
    made = build_config(model, data, vocabulary=1999)
    assert made.model.dropout == 0.25
    assert made.tokenizer.vocabulary == 1999
    assert (made.data, made.search) == (data.data, data.search)
    own = {"learning_rate": made.training.learning_rate, "clip_norm": made.training.clip_norm}
    assert replace(data.training, **own) == made.training
    preset = load_preset(model.preset).model
    for kind in ("architecture", "cell", "source_attention", "experts", "experts_used", "kernel"):
        assert getattr(made.model, kind) == getattr(preset, kind)


def test_layers_rate_and_width_stand_to_the_transformers_as_in_the_presets(tmp_path: Path) -> None:
    preset = tmp_path / "deep.toml"
    preset.write_text(
        "[model]\narchitecture = 'convs2s'\nencoder_layers = 12\ndecoder_layers = 3\n"
        "d_ff = 1024\ndropout = 0.3\n"
        "[training]\nschedule = 'constant'\nlearning_rate = 0.0007\nclip_norm = 0.1\n"
    )
    made = build_config(ComparedModel("deep", str(preset), "other"), DATA, vocabulary=2000)
    assert (made.model.encoder_layers, made.model.decoder_layers) == (4, 1)  # 6 become 2
    assert made.model.d_ff == DATA.model.d_ff // 2
    assert made.model.dropout == DATA.model.dropout
    base_peak = (512 * 4000) ** -0.5
    assert made.training.learning_rate == pytest.approx(0.004 * 0.0007 / base_peak)
    assert made.training.clip_norm == 0.1
    assert made.training.schedule == "cosine"  # the data's


@pytest.mark.skipif("restricted" not in preset_names(), reason="no restricted preset")
def test_a_window_shrinks_with_the_sentences() -> None:
    window = load_preset("restricted").model.window
    assert config_of("restricted self-attention").model.window == window
    assert config_of("restricted self-attention", mean=13.5).model.window == window // 2


# --- the table ---


def test_the_table_prints_what_was_measured_beside_the_papers_figures() -> None:
    rows = [
        row("LSTM", 0.3),
        row("mixture of experts", parameters=3_900_000, active=990_000),
        row("Transformer", 0.9),
    ]
    text = render(table(*rows))
    lines = {line.split("  ")[0]: line for line in text.split("\n")[2:5]}
    cells = lines["Transformer"].split()
    assert cells[1:4] == ["2+2", "×", "120"]
    assert cells[4:] == [
        "1.01M", "400", "4.50e+12", "8,123", "1.5", "0.004", "2.35", "55.68", "27.3", "3.3e+18",
    ]  # fmt: skip
    assert lines["LSTM"].endswith("55.68")  # the paper has no such row
    assert "0.99M of 3.90M" in lines["mixture of experts"]
    assert "26.03" in lines["mixture of experts"]
    assert "BLEU|nrefs:1|tok:13a" in text
    assert "same training FLOPs" not in text  # that round was not run


def test_a_speed_says_what_it_is_and_one_that_is_not_known_is_blank() -> None:
    unknown = row("LSTM", tokens_per_second=0.0)
    found = table(unknown, row("Transformer"))
    [grid, _] = text_tables(found)
    column = list(grid.header).index("tokens/s")
    assert [line[column] for line in grid.rows] == ["", "8,123"]
    assert "tokens/s on CPU, 2 threads: target tokens alone." in grid.note
    assert found.to_json()["speed"] == "target tokens alone"


def test_a_second_round_has_a_table_of_its_own() -> None:
    first, second = row("Transformer"), row("Transformer", budget="flops", steps=500)
    text = render(table(first, second))
    assert "same data: 400 steps each" in text
    assert "same training FLOPs" in text
    assert text.count("tokens/s on") == 1, "what holds for both is said once"


def test_bleu_by_length_has_the_sentences_in_its_head() -> None:
    grid = text_tables(table(row("LSTM", 0.5)))[-1]
    assert list(grid.header) == ["model", "3–5 (200)", "16–20 (100)"]
    assert list(map(tuple, grid.rows)) == [("LSTM", "60.0 ± 2.0", "30.0 ± 1.0")]


def test_a_failure_is_told_and_leaves_the_others_alone() -> None:
    broken = row("GNMT", failure="out of memory", by_length=(), bleu=0.0)
    found = table(broken, row("Transformer"))
    text = render(found)
    assert "GNMT: out of memory" in text
    assert [r.model for r in found.finished_rows("parameters")] == ["Transformer"]


def test_the_verdict_says_who_falls_faster_with_the_figures() -> None:
    text = describe_length_effect(table(row("LSTM", 0.3), row("LSTM + dot attention", 0.9)))
    assert "one fixed vector falls with length faster than attention does" in text
    assert "LSTM 30% (60.0 → 18.0)" in text
    assert "LSTM + dot attention 90% (60.0 → 54.0)" in text
    assert "From 3–5 to 16–20 words" in text


def test_the_verdict_can_be_the_other_one_or_none() -> None:
    less = describe_length_effect(table(row("LSTM", 0.9), row("LSTM + dot attention", 0.3)))
    assert "falls with length less than attention" in less
    alike = describe_length_effect(table(row("LSTM", 0.80), row("LSTM + dot attention", 0.81)))
    assert "fall alike" in alike
    assert "cannot be told" in describe_length_effect(table(row("Transformer")))
    zero = Bucket(3, 5, 90, 0.2, 0.1, 0.3)
    nothing = row("LSTM", by_length=(zero, zero))
    assert "cannot be told" in describe_length_effect(table(nothing, row("Transformer")))


def test_a_table_survives_json() -> None:
    found = table(row("LSTM"), row("Transformer", failure="killed", by_length=()))
    assert Table2.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_the_picture_is_drawn_and_an_empty_one_refused(tmp_path: Path) -> None:
    rows = [row(c.name, 0.5, bleu=40.0 + n) for n, c in enumerate(COMPARED_MODELS)]
    picture = draw(table(*rows, row("LSTM", budget="flops", flops=5e12)), tmp_path / "a.svg")
    drawn = picture.read_text(encoding="utf-8")
    assert all(drawn.count(f">{c.name}<") == 2 for c in COMPARED_MODELS)  # once in each panel
    with pytest.raises(ConfigError, match="no model to draw"):
        draw(table(row("LSTM", failure="killed")), tmp_path / "b.svg")


@pytest.mark.parametrize("bleu", [0.0, 50.0, 100.0])
def test_names_stand_apart_and_inside_the_picture(bleu: float) -> None:
    axes = Figure().subplots()
    axes.set_ylim(0, 100)
    _label_lines(axes, 1.0, [(c.name, 0.0, bleu, "#000000") for c in COMPARED_MODELS])
    places = sorted(text.xy[1] for text in axes.texts if isinstance(text, Annotation))
    assert len(places) == len(COMPARED_MODELS)
    assert 0 < places[0] < places[-1] < 100
    assert min(b - a for a, b in pairwise(places)) > 4


def test_every_model_has_a_colour_of_its_own() -> None:
    colours = model_colours()
    assert len(set(colours.values())) == len(COMPARED_MODELS)


# --- speeds ---


def plans(*names: str) -> list[measurement._PlannedRow]:
    """Each model twice, as two budgets have it."""
    return [
        measurement._PlannedRow(
            row(name),
            sweep.Trial(f"{name}-{steps}", DATA),
            name,
            DATA.overridden([f"model.{size}"]),
        )
        for steps in (300, 400)
        for name, size in zip(names, ("d_ff=8", "d_ff=16", "d_ff=24"), strict=False)
    ]


def test_a_speed_is_measured_once_a_model_and_kept(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[int] = []

    def measure_speed(config: Config, prepared: Prepared) -> TrainingSpeed:
        if config.model.d_ff == 16:
            raise RuntimeError("out of memory\nand more")
        timed.append(config.model.d_ff)
        return TrainingSpeed(1000.0 * config.model.d_ff, "a fast one")

    monkeypatch.setattr(measurement, "measure_speed", measure_speed)
    said: list[str] = []
    asked = plans("LSTM", "GNMT", "Transformer")
    found = measurement._measure_speeds(asked, prepared, tmp_path, said.append)
    assert {name: speed.tokens_per_second for name, speed in found.items()} == {
        "LSTM": 8000.0,
        "Transformer": 24_000.0,
    }
    assert timed == [8, 24]
    assert "GNMT: could not be timed (out of memory)" in said
    assert measurement._measure_speeds(asked, prepared, tmp_path, said.append) == found
    assert timed == [8, 24], "timed again"
    wider = [replace(asked[0], sized=DATA.overridden(["model.d_ff=32"]))]
    assert (
        measurement._measure_speeds(wider, prepared, tmp_path, print)["LSTM"].tokens_per_second
        == 32_000.0
    )


@pytest.mark.slow
def test_the_first_steps_are_not_timed(
    tiny: Config, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that the steps move: the first takes 100 s, the others 0.5 s each."""
    clock = [0.0]
    steps: list[int] = []

    def run_steps(self: DragomanTraining, count: int) -> None:
        for _ in range(count):
            clock[0] += 0.5 if steps else 100.0
            steps.append(1)

    monkeypatch.setattr(DragomanTraining, "run_steps", run_steps)
    monkeypatch.setattr("dragoman.bench.training.timing.time.perf_counter", lambda: clock[0])
    config = tiny.overridden([f"tokenizer.vocabulary={len(prepared.tokenizer)}"])
    batches = first_batches(prepared, 2)
    found = measure_speed(config, prepared)
    assert found.tokens_per_second == sum(batch.target_tokens for batch in batches)
    assert len(steps) == 2 * (1 + 2), "a round to warm up, and rounds of 2 s together"
    assert found.device.startswith("CPU")


@pytest.mark.slow
def test_a_model_is_timed_by_its_own_steps_and_the_threads_are_given_back(
    tiny: Config, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "_WANTED_SECONDS", 0.2)
    config = tiny.overridden([f"tokenizer.vocabulary={len(prepared.tokenizer)}"])
    threads = torch.get_num_threads()
    small = measure_speed(config.overridden(["training.threads=2"]), prepared)
    assert small.device == "CPU, 2 threads"
    assert torch.get_num_threads() == threads
    large = measure_speed(config.overridden(["model.d_model=256", "model.d_ff=1024"]), prepared)
    assert small.tokens_per_second > 2 * large.tokens_per_second > 0


# --- scores ---


def test_what_was_scored_is_not_translated_again_unless_something_has_changed(
    trained: Path, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, file = Path(shutil.copytree(trained / "model", tmp_path / "model")), tmp_path / "s.json"
    sources, references = prepared.valid_source[:5], prepared.valid_target[:5]
    task = EvaluationSet(sources, references, "de", SearchConfig(beam=2))
    begun: list[str] = []

    def score(task: EvaluationSet) -> TranslationScores:
        return task.score(model, file, lambda: begun.append("translating"))

    first = score(task)
    assert len(begun) == 1
    assert first.by_length[0].sentences == 5
    assert 1 < first.perplexity < 330
    (model / "weights.safetensors").unlink()
    assert score(task) == first
    assert len(begun) == 1
    changed = [
        replace(task, references=[*references[:4], "nothing"]),
        replace(task, sources=[*sources[:4], "the"]),
        replace(task, search=SearchConfig(beam=3)),
        replace(task, search=SearchConfig(beam=2, length_penalty=0.0)),
    ]
    for other in changed:
        with pytest.raises(ModelError, match="not a model directory"):  # it would translate
            score(other)
    (model / "card.json").write_text('{"format": 1, "made_of": "another run"}')
    with pytest.raises(ModelError, match="not a model directory"):
        score(task)
    assert len(begun) == 6


def test_a_model_that_cannot_be_scored_leaves_the_others_alone(
    trained: Path, prepared: Prepared, tmp_path: Path
) -> None:
    run = tmp_path / "lstm"
    (run / "model").mkdir(parents=True)
    shutil.copy(trained / "model/card.json", run / "model")
    task = EvaluationSet(prepared.valid_source[:2], prepared.valid_target[:2], "de", SearchConfig())
    said: list[str] = []
    found = sweep.TrialResult("lstm", run, DATA, run / "model")
    assert "not a model directory" in str(measurement._score_trial(found, task, said.append))
    assert said[-1].startswith("lstm: could not be scored (")
    failed = sweep.TrialResult("lstm", run, DATA, failure="killed by signal 9")
    assert measurement._score_trial(failed, task, said.append) == "killed by signal 9"


# --- a real sweep ---


@pytest.mark.slow
@pytest.mark.thorough
def test_two_models_on_a_small_phrasebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    said: list[str] = []

    def measure() -> Table2:
        return measurement.measure_phrasebook(
            tmp_path,
            pairs=1500,
            sentences=60,
            parameters=300_000,
            steps=8,
            jobs=1,
            print_message=said.append,
            models=[BY_NAME["LSTM"], BY_NAME["Transformer"]],
        )

    found = measure()
    assert [(r.model, r.budget) for r in found.rows] == [
        ("LSTM", "parameters"),
        ("Transformer", "parameters"),
        ("LSTM", "flops"),
        ("Transformer", "flops"),
    ]
    lstm, transformer, lstm_again, transformer_again = found.rows
    assert replace(transformer_again, budget="parameters") == transformer  # trained once
    assert all(r.failure is None for r in found.rows)
    assert all(abs(r.active / 300_000 - 1) < 0.05 for r in found.rows)
    assert lstm.steps == transformer.steps == 8
    assert lstm_again.flops == pytest.approx(transformer.flops, rel=0.08)  # whole steps
    assert all(1 < r.perplexity < 2000 and r.tokens_per_second > 0 for r in found.rows)
    assert sum(b.sentences for b in lstm.by_length) == 60 == found.sentences
    assert "tok:13a" in found.signature
    assert lstm.tokens_per_second == lstm_again.tokens_per_second, "it is the same model"
    assert sum("alone" in line for line in said) == 2
    assert sum("translating" in line for line in said) == 3

    monkeypatch.setattr(sweep._Sweep, "_start", lambda self, trial: pytest.fail("trained again"))
    monkeypatch.setattr(measurement, "measure_speed", lambda *given: pytest.fail("timed again"))
    said.clear()
    assert measure() == found  # taken up from what is on the disk
    assert not any("translating" in line for line in said)
    with (tmp_path / "test.de").open("r+", encoding="utf-8") as references:
        references.write("Q")
    again = measure()
    assert sum("translating" in line for line in said) == 3
    assert again.rows[0].perplexity != lstm.perplexity
