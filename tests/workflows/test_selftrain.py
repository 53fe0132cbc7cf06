"""Self-training: what is parsed, what is kept, what is learned, and going on after a kill."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.config import Config, load_preset
from dragoman.data.prepare import Prepared
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.inference.parser import load_parser
from dragoman.training.run import train
from dragoman.trees.bracketing import parse_tree, write_tree
from dragoman.trees.tree import leaves
from dragoman.trees.word_tokenizer import split_words
from dragoman.workflows.selftrain import Plan, collect_sentences, select_trees, selftrain

NOUNS = ("dog", "cat", "house", "tree", "girl", "cow")
VERBS = ("sees", "eats", "likes", "hears")
SETTINGS = [
    "tokenizer.vocabulary=330",
    "data.task=parsing",
    "data.max_length=63",
    "data.row_length=64",
    "data.max_ratio=0",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.d_model=32",
    "model.d_ff=64",
    "model.heads=2",
    "training.steps=100",
    "training.batch_tokens=512",
    "training.schedule=constant",
    "training.learning_rate=0.01",
    "training.warmup_steps=5",
    "training.validate_every=100",
    "training.checkpoint_every=100",
    "training.validate_sentences=10",
    "training.threads=1",
    "training.device=cpu",
    "search.beam=1",
]

SALAD = [" ".join(random.Random(i).choices(NOUNS + VERBS, k=12)) for i in range(30)]
"""What no two parsers see alike."""


def trees(count: int, seed: int) -> list[str]:
    """Trees of different sentences."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        subject, object_ = (f"(NP (DT the) (NN {draw.choice(NOUNS)}))" for _ in range(2))
        place = f" (PP (IN near) (NP (CD {draw.randint(1, 99)})))" if draw.random() < 0.8 else ""
        found[f"(S {subject} (VP (VBZ {draw.choice(VERBS)}) {object_}{place}))"] = None
    return list(found)


def text(bracketed: list[str]) -> list[str]:
    return [" ".join(leaf.word for leaf in leaves(parse_tree(tree))) for tree in bracketed]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@dataclasses.dataclass
class Files:
    models: list[Path]
    gold: Path
    valid: Path
    raw: Path
    raw_lines: list[str]

    def plan(self, **changes: object) -> Plan:
        known = {
            "models": self.models[:1],
            "trees": [self.gold],
            "valid": [self.valid],
            "text": [self.raw],
        }
        return Plan(**(known | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Two parsers on one prepared treebank, and text that they have not seen; do not write."""
    directory = tmp_path_factory.mktemp("selftrain")
    every = trees(260, 1)
    gold = write(directory / "gold.trees", every[:100])
    valid = write(directory / "valid.trees", every[100:120])
    raw_lines = text(every[120:])
    config = Config().overridden(SETTINGS)
    first = directory / "first"
    train(config, gold, valid=[valid], run=first, quiet=True)
    other = config.overridden(["training.seed=2", "training.steps=130"])
    train(other, first / "data", run=directory / "second", quiet=True)
    return Files(
        [first, directory / "second"], gold, valid, write(directory / "raw", raw_lines), raw_lines
    )


def parsed(out: Path) -> list[tuple[float, str]]:
    lines = [
        line
        for file in sorted((out / "parsed").glob("*.tsv"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return [(float(line.split("\t")[0]), line.split("\t")[1]) for line in lines]


def kept(out: Path) -> list[str]:
    return (out / "automatic" / "trees.txt").read_text(encoding="utf-8").splitlines()


# --- the text ---


@pytest.mark.slow
def test_sentences_are_dropped_for_what_they_are_and_counted(files: Files, tmp_path: Path) -> None:
    (gold,) = text(files.gold.read_text().splitlines()[:1])
    (valid,) = text(files.valid.read_text().splitlines()[:1])
    long = "a b c d e f g h"
    lines = ["a b", "a b c", "a  b c", "", long, gold, valid, "x y z", "not read for the limit"]
    raw = write(tmp_path / "raw", lines)
    plan = files.plan(text=[raw], tokenized=True, limit=2, longest=7)
    counts = collect_sentences(plan, split_words, tmp_path / "text", lambda *_: None)
    assert (tmp_path / "text" / "sentences.txt").read_text() == "a b c\nx y z\n"
    assert counts == {
        "read": 8,
        "to parse": 2,
        "too short": 2,
        "too long": 1,
        "in the gold trees": 2,
        "duplicate": 1,
    }


@pytest.mark.slow
def test_a_gold_sentence_is_known_however_it_is_cut(files: Files, tmp_path: Path) -> None:
    gold = write(tmp_path / "gold", ["(S (`` ``) (UH No) ('' '') (VP (MD ca) (RB n't)) (. .))"])
    raw = write(tmp_path / "raw", ['"No" can\'t.', "Yes they can't."])
    plan = files.plan(trees=[gold], text=[raw], shortest=1)
    assert (
        collect_sentences(plan, split_words, tmp_path / "text", lambda *_: None)[
            "in the gold trees"
        ]
        == 1
    )
    assert (tmp_path / "text" / "sentences.txt").read_text() == "Yes they ca n't .\n"


def test_text_may_be_compressed_and_several_files(files: Files, tmp_path: Path) -> None:
    packed = tmp_path / "raw.gz"
    packed.write_bytes(gzip.compress(b"one two three.\n"))
    plan = files.plan(text=[packed, write(tmp_path / "more", ["four five six."])])
    collect_sentences(plan, split_words, tmp_path / "text", lambda *_: None)
    found = (tmp_path / "text" / "sentences.txt").read_text()
    assert found == "one two three .\nfour five six .\n"


def test_nothing_left_to_parse_is_refused(files: Files, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing is left to parse \(too short: 140,"):
        selftrain(files.plan(shortest=30), tmp_path / "out", device="cpu")
    assert not (tmp_path / "out" / "text").exists()


# --- parsing and choosing ---


def test_the_most_confident_trees_are_kept_in_the_order_of_the_text(
    files: Files, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    plan = files.plan(keep=0.25, window=50)
    result = selftrain(plan, out, device="cpu", parse_only=True)
    found = parsed(out)
    parser = load_parser(files.models[0], device="cpu")
    wanted = [(p.confidence, write_tree(p.tree)) for p in parser.parse_lines(files.raw_lines) if p]
    assert [tree for _, tree in found] == [tree for _, tree in wanted]
    assert [c for c, _ in found] == pytest.approx([c for c, _ in wanted], rel=1e-4)
    assert len(list((out / "parsed").iterdir())) == 3
    best = sorted(found, reverse=True)[:35]
    assert kept(out) == [tree for c, tree in found if (c, tree) in best]
    assert result.automatic["kept"] == len(kept(out)) == 35
    assert result.automatic["confidence"] == pytest.approx(best[-1][0], abs=1e-6)
    assert result.model is None
    assert not (out / "data").exists()


def test_of_ties_the_first_are_kept_and_none_instead_of_a_better_one(
    files: Files, tmp_path: Path
) -> None:
    (tmp_path / "parsed").mkdir()
    first = ["0.7\t(A a)", "0.5\t(A b)", "0.9\t", "0.5\t(A c)", "0.5\t(A d)"]
    write(tmp_path / "parsed" / "000000.tsv", first)
    write(tmp_path / "parsed" / "000001.tsv", ["0.4\t(A e)", "0.7\t(A f)"])
    counts = select_trees(files.plan(keep=0.66), tmp_path)
    assert kept(tmp_path) == ["(A a)", "(A b)", "(A c)", "(A f)"]
    assert counts == {"parsed": 7, "agreed": 6, "kept": 4, "confidence": 0.5}


def test_a_threshold_keeps_what_reaches_it(files: Files, tmp_path: Path) -> None:
    (tmp_path / "parsed").mkdir()
    write(tmp_path / "parsed" / "000000.tsv", ["0.5\t(A a)", "0.7\t(A b)", "0.8\t(A c)"])
    with pytest.raises(DataError, match=r"no tree has a confidence of 0.9; the highest is 0.8000"):
        select_trees(files.plan(threshold=0.9), tmp_path)
    assert select_trees(files.plan(threshold=0.7), tmp_path)["kept"] == 2
    assert kept(tmp_path) == ["(A b)", "(A c)"]


def test_models_that_are_to_agree_parse_by_themselves(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    lines = files.raw_lines[:30] + SALAD
    raw = write(tmp_path / "raw", lines)
    plan = files.plan(models=files.models, text=[raw], agree=True)
    result = selftrain(plan, out, device="cpu", parse_only=True)
    parses = [list(load_parser(path, device="cpu").parse_lines(lines)) for path in files.models]
    pairs = [
        (write_tree(a.tree), write_tree(b.tree)) for a, b in zip(*parses, strict=True) if a and b
    ]
    agreed = [a for a, b in pairs if a == b]
    assert kept(out) == agreed
    assert 0 < len(agreed) < 60, "the test needs models that agree on some trees, not on all"
    assert result.automatic["agreed"] == len(agreed)
    product = parses[0][0].confidence * parses[1][0].confidence  # type: ignore[union-attr]
    assert parsed(out)[0][0] == pytest.approx(product**0.5, rel=1e-4)


def test_several_models_are_an_ensemble(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = files.plan(models=files.models, text=[write(tmp_path / "raw", SALAD)])
    selftrain(plan, out, device="cpu", parse_only=True)
    ensemble = [p for p in load_parser(*files.models, device="cpu").parse_lines(SALAD) if p]
    assert [tree for _, tree in parsed(out)] == [write_tree(p.tree) for p in ensemble]
    confidences = [confidence for confidence, _ in parsed(out)]
    assert confidences == pytest.approx([p.confidence for p in ensemble], rel=1e-4)


# --- training ---


@pytest.mark.slow
def test_a_parser_is_trained_on_weighted_gold_and_automatic_trees(
    files: Files, tmp_path: Path, command: Callable[..., object]
) -> None:
    arguments = [
        *("selftrain", files.models[0], "--trees", files.gold, "--valid", files.valid),
        *("--text", files.raw, "--out", tmp_path / "out", "--keep", "0.5", "--gold-weight", "3"),
        *("--set", "training.steps=10", "--device", "cpu"),
    ]
    first = command(*arguments)
    assert first.status == 0, first.err  # type: ignore[attr-defined]
    model = tmp_path / "out" / "run" / "model"
    assert first.out == f"{model}\n"  # type: ignore[attr-defined]
    data = Prepared.open(tmp_path / "out" / "data")
    assert len(data.train) == 3 * 100 + 70
    assert data.valid_target == files.valid.read_text().splitlines()
    parsers = [load_parser(path, device="cpu") for path in (files.models[0], model)]
    assert parsers[0].tokenizer == parsers[1].tokenizer
    assert parsers[1].config.training.steps == 10
    assert parsers[1].config.model == parsers[0].config.model
    load_parser(*files.models, model, device="cpu")  # the three can be an ensemble

    before = model.stat().st_mtime_ns
    again = command(*arguments, "--json")
    assert again.status == 0, again.err  # type: ignore[attr-defined]
    assert json.loads(again.out)["automatic"]["kept"] == 70  # type: ignore[attr-defined]
    assert model.stat().st_mtime_ns == before


def test_a_preset_leaves_pieces_and_labels_to_the_model(files: Files) -> None:
    own = load_parser(files.models[0], device="cpu").config
    preset = load_preset("parsing").overridden(["trees.linearization=brackets"])
    config = files.plan(config=preset, assignments=["training.steps=7"]).resolve_config(own)
    assert (config.trees, config.tokenizer) == (own.trees, own.tokenizer)
    assert config.model == preset.model
    assert config.training.steps == 7
    assert files.plan(config=preset, new_tokenizer=True).resolve_config(own).trees == preset.trees


def test_a_new_tokenizer_learns_from_all_trees(files: Files, tmp_path: Path) -> None:
    changes = ["training.steps=2", "tokenizer.vocabulary=340", "trees.linearization=brackets"]
    plan = files.plan(new_tokenizer=True, assignments=changes, limit=20)
    result = selftrain(plan, tmp_path / "out", device="cpu", quiet=True)
    assert result.model is not None
    parser = load_parser(result.model, device="cpu")
    assert len(parser.tokenizer) == 340 + len(parser.tokenizer.announcements)
    assert parser.tokenizer.actions.order.name == "brackets"


# --- going on ---


def killed_while_parsing(files: Files, out: Path) -> None:
    """Start the command and kill it when two windows are there."""
    arguments = [
        *("selftrain", files.models[0], "--trees", files.gold, "--valid", files.valid),
        *(
            "--text",
            files.raw,
            "--out",
            out,
            "--window",
            "5",
            "--limit",
            "60",
            "--parse-only",
            "--device",
            "cpu",
        ),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", *map(str, arguments)], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while len(list((out / "parsed").glob("*.tsv"))) < 2:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_killed_while_parsing_it_goes_on_and_ends_with_the_same_trees(
    files: Files, tmp_path: Path
) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    killed_while_parsing(files, out)
    there = {file: file.stat().st_mtime_ns for file in sorted((out / "parsed").glob("0*.tsv"))}
    assert 2 <= len(there) < 12
    assert not (out / "automatic").exists()
    (out / "parsed" / ".tmp-000011.tsv-x").write_text("0.9\t(A half", encoding="utf-8")
    plan = files.plan(window=5, limit=60)
    selftrain(plan, out, device="cpu", parse_only=True)
    assert {file: file.stat().st_mtime_ns for file in there} == there
    selftrain(plan, whole, device="cpu", parse_only=True)
    assert kept(out) == kept(whole)
    assert parsed(out) == parsed(whole)
    assert not list((out / "parsed").glob(".tmp-*"))


@pytest.mark.slow
def test_a_run_that_was_interrupted_is_resumed(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = files.plan(limit=20, assignments=["training.steps=4", "training.checkpoint_every=2"])
    selftrain(plan, out, device="cpu", quiet=True)
    weights = (out / "run" / "model" / "weights.safetensors").read_bytes()
    for name in ("model", "checkpoints/step-00000004"):
        place = out / "run" / name
        assert place.exists(), sorted((out / "run" / "checkpoints").iterdir())
        place.rename(tmp_path / place.name)
    result = selftrain(plan, out, device="cpu", quiet=True)
    assert result.outcome is not None
    assert result.outcome.step == 4
    assert (out / "run" / "model" / "weights.safetensors").read_bytes() == weights


# --- what is refused ---


def test_other_settings_are_refused_from_the_stage_on_that_they_change(
    files: Files, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    selftrain(files.plan(limit=20), out, device="cpu", parse_only=True)
    with pytest.raises(ConfigError, match=r"text: made with another --limit \(20, now 30\)"):
        selftrain(files.plan(limit=30), out, device="cpu", parse_only=True)
    with pytest.raises(
        ConfigError, match=r"parsed: made with another models; .* remove parsed and automatic in it"
    ):
        selftrain(files.plan(limit=20, models=files.models), out, device="cpu", parse_only=True)
    changed = files.plan(limit=20, keep=0.1, assignments=["training.steps=5"])
    with pytest.raises(ConfigError, match=r"automatic: made with another --keep \(None, now 0.1\)"):
        selftrain(changed, out, device="cpu", parse_only=True)
    assert len(kept(out)) == 10
    for name in ("trees.txt", "counts.json"):
        (out / "automatic" / name).unlink()
    (out / "automatic").rmdir()
    before = (out / "parsed" / "000000.tsv").stat().st_mtime_ns
    selftrain(changed, out, device="cpu", parse_only=True)  # the parsed text serves again
    assert len(kept(out)) == 2
    assert (out / "parsed" / "000000.tsv").stat().st_mtime_ns == before


def test_a_directory_of_something_else_is_refused(files: Files, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ConfigError, match=r"not made by dragoman selftrain; choose another --out"):
        selftrain(files.plan(), tmp_path, device="cpu")
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_translator_is_refused(files: Files, trained: Path, tmp_path: Path) -> None:
    for models in ([trained], [trained, files.models[0]]):
        with pytest.raises(ModelError, match=r"a translator; use it with dragoman translate"):
            selftrain(files.plan(models=models), tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agree": True}, "--agree compares models; give at least two"),
        ({"keep": 0.5, "threshold": 0.5}, "choose one"),
        ({"keep": 0.0}, "--keep 0.0 must be above 0 and at most 1"),
        ({"threshold": 1.5}, "--threshold 1.5 must be above 0 and at most 1"),
        ({"gold_weight": 0}, "--gold-weight 0 must be at least 1"),
        ({"shortest": 70}, "--shortest 70 is above --longest 60"),
        ({"assignments": ["trees.tags=false"]}, "add --new-tokenizer"),
        ({"text": []}, "--text to parse"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(
    files: Files, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        files.plan(**changes)


def test_training_needs_a_gold_validation_set(files: Files, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--valid is missing"):
        selftrain(files.plan(valid=()), tmp_path / "out", device="cpu")
    result = selftrain(
        files.plan(valid=(), limit=4), tmp_path / "out", device="cpu", parse_only=True
    )
    assert result.automatic["kept"] == 2
