"""Which text is in which set, and how general text is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dragoman.data.readers import open_corpus
from dragoman.errors import ConfigError
from dragoman.inference import Translator
from dragoman.model_directory import open_model
from dragoman.text.tokenizer import Tokenizer
from dragoman.workflows.adaptation.checks import check_characters
from dragoman.workflows.adaptation.schedule import count_passes, make_schedule, set_steps
from dragoman.workflows.adaptation.text_sets import (
    CHOICE,
    MEASURED,
    Sizes,
    Splitter,
    domain_sizes,
    open_general,
    read_set,
)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def texts(paths: list[Path]) -> tuple[list[tuple[str, str]], bool]:
    corpus, translated = open_general(paths, ("en", "de"))
    return [(pair.source, pair.target) for pair in corpus], translated


def test_two_files_are_pairs_unless_their_names_say_one_language(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.en", "x", "y"), write(tmp_path / "a.de", "z", "w")
    other = write(tmp_path / "b.en", "u")
    table = write(tmp_path / "c.tsv", "p\tq")
    plain = [write(tmp_path / "left", "l"), write(tmp_path / "right", "r")]
    assert texts([one, two]) == ([("x", "z"), ("y", "w")], True)
    assert texts([one, other]) == ([("x", ""), ("y", ""), ("u", "")], False)
    assert texts([one, two, table]) == ([("x", "z"), ("y", "w"), ("p", "q")], True)
    assert texts(plain) == ([("l", "r")], True)
    with pytest.raises(ConfigError, match=r"b\.en: has one language, and .*c\.tsv two"):
        open_general([table, other], ("en", "de"))


def test_a_source_is_in_one_set_with_all_its_translations(
    tmp_path: Path, trained: Path, tiny: object
) -> None:
    tokenizer = open_model(trained).tokenizer
    sources = [f"red {word}" for word in ["dog", "cat", "house", "tree"]] * 2
    pairs = [f"{source}\tder {n}" for n, source in enumerate(sources)]
    corpus = open_corpus([write(tmp_path / "a.tsv", *pairs)], open_model(trained).config.data)
    none = np.zeros(0, np.uint64)
    splitter = Splitter(corpus, tokenizer, none, lambda *_: None)
    assert len(splitter) == 4
    sets = splitter.split(Sizes(1, 1, 2))
    names = {name: tmp_path / name for name in (MEASURED, CHOICE, "learned")}
    counts = splitter.write(sets, names)
    assert counts == {"learned": 4, MEASURED: 1, CHOICE: 1}  # of a copy that is held out, the first
    found = [set(read_set(file).source) for file in names.values()]
    assert set().union(*found) == set(sources)
    assert sum(map(len, found)) == 4
    without = Splitter(corpus, tokenizer, sets[MEASURED], lambda *_: None)
    assert len(without) == 3


@pytest.mark.parametrize(
    ("sources", "measured", "choice"), [(50, 20, 10), (2000, 200, 100), (10**6, 1000, 500)]
)
def test_a_tenth_is_measured_on_within_bounds(sources: int, measured: int, choice: int) -> None:
    assert domain_sizes(sources) == Sizes(measured, choice)


def test_characters_without_pieces_are_told_while_they_are_few(trained: Path) -> None:
    model, said = open_model(trained), list[str]()
    encode = model.tokenizer.encode_batch
    lines = ["the red dog sees the old tree"] * 20
    check_characters(lines, encode, model, where="mine.en", tell=said.append)
    assert said == []
    check_characters([*lines, "☃"], encode, model, where="mine.en", tell=said.append)
    assert said == [
        "mine.en: 1 of 461 characters (0.2%) have no piece of their own and are spelt in bytes or "
        "lost: ☃"
    ]


def test_symbols_of_a_tokenizer_are_pieces_of_their_own(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, said = open_model(trained), list[str]()
    monkeypatch.setattr(Tokenizer, "symbols", ["<☃>"])
    lines = ["<☃> the red dog sees the old tree"] * 20
    check_characters(lines, model.tokenizer.encode_batch, model, where="mine.en", tell=said.append)
    assert said == []


def test_the_schedule_suits_the_set_and_gives_way_to_the_user(trained: Path) -> None:
    config = open_model(trained).config
    small, large = (make_schedule(config, pieces, "cuda") for pieces in (10_000, 10**7))
    assert small.training.tokens == 1024
    assert large.training.tokens == 25_344
    assert small.training.learning_rate <= large.training.learning_rate <= 4e-4
    assert count_passes(500, "cpu") > count_passes(20_000, "cpu") > count_passes(10**6, "cpu")
    assert count_passes(20_000, "cuda") == 2 * count_passes(20_000, "cpu")
    planned = set_steps(small, 1000, {"warmup_steps"}).training
    assert (planned.steps, planned.validate_every) == (1000, 200)
    assert planned.warmup_steps == small.training.warmup_steps


def test_the_python_api_adapts_as_the_command_does() -> None:
    import dragoman
    from dragoman.workflows.train import resume, train

    assert dragoman.train is train
    assert dragoman.resume is resume
    assert dragoman.Translator is Translator
