"""Table 2: fair recipes, the table from hand-made numbers, and a small real sweep."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.config import Config, load_preset, preset_names
from dragoman.errors import ConfigError
from dragoman.evaluation.by_length import Bucket
from dragoman.paper import sweep, table2
from dragoman.paper.facts import TABLE_2
from dragoman.paper.table2 import CONTENDERS, Contender, Row, Table2
from dragoman.paper.table2_picture import palette

BY_NAME = {contender.name: contender for contender in CONTENDERS}
THERE = [c for c in CONTENDERS if c.preset in preset_names()]
DATA = load_preset("phrasebook")


def recipe(name: str, data: Config = DATA, mean: float = 27.0) -> Config:
    return table2.recipe(BY_NAME[name], data, vocabulary=2000, mean=mean)


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
        rows=rows,
    )


# --- recipes ---


def test_the_story_goes_from_no_context_to_the_transformer() -> None:
    assert len(CONTENDERS) == 12
    assert [CONTENDERS[0].preset, CONTENDERS[-1].preset] == ["feed-forward", "base"]
    assert {c.name for c in CONTENDERS if c.family == "fixed"} == {"RNN", "GRU", "LSTM"}
    assert {c.paper for c in CONTENDERS if c.paper} <= {score.model for score in TABLE_2}


def test_the_transformer_is_the_datas_own() -> None:
    assert recipe("Transformer") == DATA
    other = DATA.updated({"model": {"norm": "pre"}, "training": {"learning_rate": 0.002}})
    assert recipe("Transformer", other) == other


@pytest.mark.parametrize("contender", THERE, ids=lambda c: c.preset)
def test_everybody_sees_the_same_batches_with_the_same_regularisation(
    contender: Contender,
) -> None:
    data = DATA.updated({"model": {"dropout": 0.25}, "training": {"label_smoothing": 0.05}})
    made = table2.recipe(contender, data, vocabulary=1999)
    assert made.model.dropout == 0.25
    assert made.tokenizer.vocabulary == 1999
    assert (made.data, made.search) == (data.data, data.search)
    own = {"learning_rate": made.training.learning_rate, "clip_norm": made.training.clip_norm}
    assert replace(data.training, **own) == made.training
    preset = load_preset(contender.preset).model
    for kind in ("architecture", "cell", "source_attention", "experts", "experts_used", "kernel"):
        assert getattr(made.model, kind) == getattr(preset, kind)


def test_layers_rate_and_width_stand_to_the_transformers_as_in_the_presets(tmp_path: Path) -> None:
    preset = tmp_path / "deep.toml"
    preset.write_text(
        "[model]\narchitecture = 'convs2s'\nencoder_layers = 12\ndecoder_layers = 3\n"
        "d_ff = 1024\ndropout = 0.3\n"
        "[training]\nschedule = 'constant'\nlearning_rate = 0.0007\nclip_norm = 0.1\n"
    )
    made = table2.recipe(Contender("deep", str(preset), "other"), DATA, vocabulary=2000)
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
    assert recipe("restricted self-attention").model.window == window
    assert recipe("restricted self-attention", mean=13.5).model.window == window // 2


# --- the table ---


def test_the_table_prints_what_was_measured_beside_the_papers_figures() -> None:
    rows = [
        row("LSTM", 0.3),
        row("mixture of experts", parameters=3_900_000, active=990_000),
        row("Transformer", 0.9),
    ]
    text = table2.render(table(*rows))
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


def test_a_second_round_has_a_table_of_its_own() -> None:
    first, second = row("Transformer"), row("Transformer", budget="flops", steps=500)
    text = table2.render(table(first, second))
    assert "same data: 400 steps each" in text
    assert "same training FLOPs" in text


def test_bleu_by_length_has_the_sentences_in_its_head() -> None:
    grid = table2.grids(table(row("LSTM", 0.5)))[-1]
    assert list(grid.header) == ["model", "3–5 (200)", "16–20 (100)"]
    assert list(map(tuple, grid.rows)) == [("LSTM", "60.0 ± 2.0", "30.0 ± 1.0")]


def test_a_failure_is_told_and_leaves_the_others_alone() -> None:
    broken = row("GNMT", failure="out of memory", by_length=(), bleu=0.0)
    found = table(broken, row("Transformer"))
    text = table2.render(found)
    assert "GNMT: out of memory" in text
    assert [r.model for r in found.at("parameters")] == ["Transformer"]


def test_the_verdict_says_who_falls_faster_with_the_figures() -> None:
    text = table2.verdict(table(row("LSTM", 0.3), row("LSTM + dot attention", 0.9)))
    assert "one fixed vector falls with length faster than attention does" in text
    assert "LSTM 30% (60.0 → 18.0)" in text
    assert "LSTM + dot attention 90% (60.0 → 54.0)" in text
    assert "From 3–5 to 16–20 words" in text


def test_the_verdict_can_be_the_other_one_or_none() -> None:
    less = table2.verdict(table(row("LSTM", 0.9), row("LSTM + dot attention", 0.3)))
    assert "falls with length less than attention" in less
    alike = table2.verdict(table(row("LSTM", 0.80), row("LSTM + dot attention", 0.81)))
    assert "fall alike" in alike
    assert "cannot be told" in table2.verdict(table(row("Transformer")))
    zero = Bucket(3, 5, 90, 0.2, 0.1, 0.3)
    nothing = row("LSTM", by_length=(zero, zero))
    assert "cannot be told" in table2.verdict(table(nothing, row("Transformer")))


def test_a_table_survives_json() -> None:
    found = table(row("LSTM"), row("Transformer", failure="killed", by_length=()))
    assert Table2.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_the_picture_is_drawn_and_an_empty_one_refused(tmp_path: Path) -> None:
    rows = [row(c.name, 0.5, bleu=40.0 + n) for n, c in enumerate(CONTENDERS)]
    picture = table2.draw(table(*rows, row("LSTM", budget="flops", flops=5e12)), tmp_path / "a.svg")
    drawn = picture.read_text(encoding="utf-8")
    assert all(drawn.count(f">{c.name}<") == 2 for c in CONTENDERS)  # once in each panel
    with pytest.raises(ConfigError, match="no model to draw"):
        table2.draw(table(row("LSTM", failure="killed")), tmp_path / "b.svg")


def test_every_model_has_a_colour_of_its_own() -> None:
    colours = palette()
    assert len(set(colours.values())) == len(CONTENDERS)


# --- a real sweep ---


@pytest.mark.slow
def test_two_contenders_on_a_small_phrasebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    said: list[str] = []

    def measure() -> Table2:
        return table2.phrasebook(
            tmp_path,
            pairs=1500,
            sentences=60,
            parameters=300_000,
            steps=8,
            jobs=1,
            say=said.append,
            contenders=[BY_NAME["LSTM"], BY_NAME["Transformer"]],
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

    monkeypatch.setattr(sweep._Sweep, "_start", lambda self, trial: pytest.fail("trained again"))
    assert measure() == found  # taken up from what is on the disk
