"""A shortlist is learned from pairs, kept beside a model, and refused where it does not fit."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import dragoman
from dragoman.data.prepare import Prepared
from dragoman.data.store import Store, StoreWriter
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.inference import shortlist_training
from dragoman.inference.cpu.shortlist import SHORTLIST_FILE
from dragoman.inference.shortlist_training import (
    Lexicon,
    count_target_pieces,
    learn_lexicon,
    make_shortlist,
)
from dragoman.model_directory import open_model
from dragoman.models.weight_files import MappedSafetensors
from dragoman.text.tokenizer import Tokenizer

from ..kernel import needs_kernel
from ..shortlist_helpers import give_shortlist

WORDS = 40
"""Source pieces 4 … 43; the piece s is translated by s + 100, beside pieces 200 … 202."""


def silent(stage: str, done: int, total: int | None) -> None:
    pass


def corpus(path: Path, pairs: int) -> Store:
    """Sentences of words, each translated by its own piece, among pieces that are everywhere."""
    draw = np.random.default_rng(1)
    path.mkdir()
    with StoreWriter(path, vocabulary=300, tokenizer="none") as writer:
        for _ in range(pairs):
            source = draw.integers(4, 4 + WORDS, draw.integers(1, 9))
            target = np.concatenate([draw.permutation(source) + 100, draw.integers(200, 203, 3)])
            writer.append(source, target)
        writer.close()
    return Store.open(path)


def lists(found: Lexicon) -> dict[int, list[int]]:
    return {int(s): found.targets[found.sources == s].tolist() for s in np.unique(found.sources)}


def test_every_piece_finds_its_translation(tmp_path: Path) -> None:
    found = learn_lexicon(corpus(tmp_path / "store", 1000), np.zeros(0, int), silent)
    assert lists(found.best(1, 0.0)) == {s: [s + 100] for s in range(4, 44)}


def test_a_piece_brings_its_translation_into_nearly_every_sentence(tmp_path: Path) -> None:
    found = learn_lexicon(corpus(tmp_path / "store", 1000), np.arange(200, 203), silent).best(
        1, 0.0
    )
    assert found.probabilities.min() > 0.9
    assert found.probabilities.max() <= 1.0 + 1e-9


def test_what_is_common_is_left_out(tmp_path: Path) -> None:
    store = corpus(tmp_path / "store", 300)
    common = np.argsort(-count_target_pieces(store, silent))[:3]
    assert set(common.tolist()) == {200, 201, 202}
    assert not np.isin(learn_lexicon(store, common, silent).targets, common).any()


def test_what_is_unlikely_is_not_listed(tmp_path: Path) -> None:
    found = learn_lexicon(corpus(tmp_path / "store", 1000), np.arange(200, 203), silent)
    assert lists(found.best(50, 0.5)) == {s: [s + 100] for s in range(4, 44)}


def test_one_chunk_or_many_count_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = corpus(tmp_path / "store", 200)
    whole = learn_lexicon(store, np.zeros(0, int), silent)
    monkeypatch.setattr(shortlist_training, "CHUNK_PAIRS", 7)
    monkeypatch.setattr(shortlist_training, "MERGE_THRESHOLD", 50)
    parts = learn_lexicon(store, np.zeros(0, int), silent)
    assert (whole.sources == parts.sources).all()
    assert (whole.targets == parts.targets).all()
    assert parts.probabilities == pytest.approx(whole.probabilities)


def test_where_all_is_common_no_lists_are_needed(tmp_path: Path) -> None:
    found = learn_lexicon(corpus(tmp_path / "store", 20), np.arange(300), silent)
    assert len(found.best(5, 0.0).sources) == 0


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy that may be written to."""
    return Path(shutil.copytree(trained / "model", tmp_path / "model"))


@pytest.fixture
def listed(model: Path) -> Path:
    """The model with a shortlist of all its pieces."""
    give_shortlist(model)
    return model


@needs_kernel
def test_a_shortlist_of_all_pieces_translates_as_none(listed: Path) -> None:
    lines = ["the old dog sees", "a", "red blue big small tree", ""]
    with_it = dragoman.load(listed, device="cpu", shortlist=True).translate(lines)
    without = dragoman.load(listed, device="cpu").translate(lines)
    assert [one.text for one in with_it] == [one.text for one in without]


@needs_kernel
def test_a_model_without_a_shortlist_says_how_to_make_one(model: Path) -> None:
    with pytest.raises(ModelError, match="has no shortlist; make one with: dragoman shortlist"):
        dragoman.load(model, device="cpu", shortlist=True)


@needs_kernel
def test_a_shortlist_of_other_pieces_is_refused(listed: Path) -> None:
    file = listed / SHORTLIST_FILE
    about = MappedSafetensors(file).metadata
    save_file(load_file(file), file, about | {"pieces": "0" * 32})
    with pytest.raises(ModelError, match="made for other pieces than the model's; make one with"):
        dragoman.load(listed, device="cpu", shortlist=True)


@needs_kernel
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("common", [4, 5]),
        ("common", [2, 10**6]),
        ("common", [2, 5, 5]),
        ("sample", [4]),
        ("starts", [0]),
        ("targets", [-1]),
    ],
)
def test_numbers_that_lead_nowhere_are_refused(listed: Path, name: str, value: list[int]) -> None:
    file = listed / SHORTLIST_FILE
    about = MappedSafetensors(file).metadata
    save_file(load_file(file) | {name: np.array(value, np.int32)}, file, about)
    with pytest.raises(ModelError, match="made for other pieces"):
        dragoman.load(listed, device="cpu", shortlist=True)


@needs_kernel
@pytest.mark.parametrize("content", [b"", b"no safetensors", None])
def test_a_damaged_shortlist_is_refused(listed: Path, content: bytes | None) -> None:
    file = listed / SHORTLIST_FILE
    if content is None:
        save_file({"common": np.zeros(1, np.int32)}, file)
    else:
        file.write_bytes(content)
    with pytest.raises(ModelError, match=r"shortlist.safetensors: .*; make one with"):
        dragoman.load(listed, device="cpu", shortlist=True)


def test_float32_takes_no_shortlist(listed: Path) -> None:
    with pytest.raises(ConfigError, match="cannot use a shortlist, which needs int8 on a CPU"):
        dragoman.load(listed, device="cpu", precision="float32", shortlist=True)


@needs_kernel
def test_the_command_makes_one_tries_it_and_it_is_used(
    model: Path, prepared: Prepared, tmp_path: Path, command: Callable[..., Any]
) -> None:
    made = command("shortlist", model, prepared.path, "--common", 20, "--json")
    assert made.status == 0, made.err
    shown = json.loads(made.out)
    assert Path(shown["file"]) == model / SHORTLIST_FILE
    assert shown["tried"][0]["beam"] == 1
    assert 0 <= shown["tried"][0]["changed"] <= shown["tried"][0]["sentences"]
    assert (
        json.loads(MappedSafetensors(model / SHORTLIST_FILE).metadata["proof"])["tried"]
        == shown["tried"]
    )
    options = ("--shortlist", "--device", "cpu")
    used = command("translate", model, *options, stdin=b"the old dog sees\n")
    assert used.status == 0, used.err
    assert used.out.strip()


@needs_kernel
def test_the_command_takes_files_too(
    model: Path, prepared: Prepared, tmp_path: Path, command: Callable[..., Any]
) -> None:
    files = [tmp_path / "corpus.en", tmp_path / "corpus.xx"]
    for file, lines in zip(files, (prepared.valid_source, prepared.valid_target), strict=True):
        file.write_text("\n".join(lines * 5) + "\n", encoding="utf-8")
    made = command("shortlist", model, *files, "--common", 20, "--sentences", 5)
    assert made.status == 0, made.err
    assert "21 pieces for all" in made.out
    assert "greedy: " in made.out


@needs_kernel
def test_a_corpus_of_other_pieces_is_refused(model: Path, prepared: Prepared) -> None:
    loaded = open_model(model)
    form = "nfkc" if prepared.tokenizer.normalization == "nfc" else "nfc"
    other = Tokenizer(prepared.tokenizer.model, kind=prepared.tokenizer.kind, normalization=form)
    data = dataclasses.replace(prepared, tokenizer=other)
    with pytest.raises(DataError, match="prepared with other pieces than the model's"):
        make_shortlist(loaded, data, common=10, most=5, progress=silent)
