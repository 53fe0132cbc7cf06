"""The next words of a translation, with probabilities that are the model's."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman.errors import ConfigError
from dragoman.inference import Translator
from dragoman.inference.alternatives import next_words
from dragoman.inference.cpu import kernel_library
from dragoman.inference.engine import NextPieces
from dragoman.inference.torch_engine import AfterPrefix
from dragoman.search.constraints.requirements import OutputRequirements
from dragoman.text.special_tokens import EOS

TEXT = "the old dog sees"


def test_the_likeliest_first_and_each_is_how_its_translation_begins(reverser: Translator) -> None:
    found = reverser.alternatives(TEXT, "eht", 4)
    assert len(found) == 4
    assert len({one.word for one in found}) == 4
    probabilities = [one.probability for one in found]
    assert probabilities == sorted(probabilities, reverse=True)
    assert 0 < sum(probabilities) <= 1.0001
    for one in found:
        words = one.translation.split()
        assert words[:2] == (["eht", one.word] if one.word else ["eht"])
        assert one.word or words == ["eht"], "no word: the translation ends"


@pytest.fixture(scope="module", params=["float32", "int8"])
def computed(request: pytest.FixtureRequest, trained: Path) -> Translator:
    """The same model computed by PyTorch, and by the CPU engine."""
    if request.param == "int8" and kernel_library.why_no_kernel():
        pytest.skip(kernel_library.why_no_kernel())
    return dragoman.load(trained / "model", precision=request.param)


def price(translator: Translator, source: list[int], target: list[int]) -> list[float]:
    return translator.log_probabilities([source], [target])[0]


@pytest.mark.parametrize("prefix", ["", "eht", "god dlo"])
def test_a_word_is_as_probable_as_its_pieces_and_its_end_together(
    prefix: str, computed: Translator
) -> None:
    encode = computed.tokenizer.encode
    source, begun = encode(TEXT), encode(prefix)
    starts_V, engine = computed.word_starts, computed._engine or computed._torch_engine

    def predict(words: Any, groups: Any, count: int) -> NextPieces:
        found = engine.predict_next(source, begun, words, groups, count)
        assert found is not None
        return found

    found = next_words(starts_V, 5, predict)
    assert len(found) >= 5
    for ids, probability in found[:5]:
        pieces = sum(price(computed, source, [*begun, *ids])[len(begun) : -1])
        follows = [EOS, *(np.flatnonzero(starts_V).tolist() if ids else [])]
        ends = (price(computed, source, [*begun, *ids, one])[-2] for one in follows if one != EOS)
        end = sum(map(math.exp, (price(computed, source, [*begun, *ids])[-1], *ends)))
        assert probability == pytest.approx(math.exp(pieces) * end, rel=2e-3)


def test_a_word_that_has_ended_goes_on_with_a_space_or_the_end_alone() -> None:
    masks = [np.array([False, True, False]), np.array([True, False, False])]
    required = [
        OutputRequirements(prefix, after_prefix=mask)
        for prefix, mask in zip(([0, 0], [0]), masks, strict=True)
    ]
    ends = AfterPrefix(required, 3, torch.device("cpu"))
    rows, room = torch.tensor([1, 0]), torch.tensor([9, 9])
    one = ends.allowed(rows, torch.zeros(2, 2, 1, dtype=torch.int64), room)
    assert one.tolist() == [[[True, False, False]] * 2, [[True] * 3] * 2]
    two = ends.allowed(rows, torch.zeros(2, 2, 2, dtype=torch.int64), room)
    assert two.tolist() == [[[True] * 3] * 2, [[False, True, False]] * 2]
    assert [ends.shortest(0), ends.shortest(1)] == [2, 1]


@pytest.mark.parametrize("prefix", ["", "eht"])
def test_the_engine_and_pytorch_name_the_same_words(prefix: str, trained: Path) -> None:
    if reason := kernel_library.why_no_kernel():
        pytest.skip(reason)
    several = [
        dragoman.load(trained / "model", precision=precision).alternatives(TEXT, prefix, 4, beam=2)
        for precision in ("float32", "int8")
    ]
    (first, *_), (other, *_) = several
    assert first.word == other.word
    assert first.probability == pytest.approx(other.probability, rel=0.05)
    assert len({one.word for found in several for one in found}) <= 5
    for one in several[1]:
        words = one.translation.split()
        assert words[: len(prefix.split()) + 1] == [*prefix.split(), *one.word.split()]


def test_the_best_alternative_leads_to_the_best_translation(reverser: Translator) -> None:
    best = reverser.translate(TEXT, beam=8)
    found = reverser.alternatives(TEXT, "", 12, beam=8)
    assert max(found, key=lambda one: one.score).score >= best.score - 1e-4


@pytest.mark.slow
def test_nothing_to_translate_has_no_alternatives_and_none_are_no_number(
    reverser: Translator,
) -> None:
    assert reverser.alternatives(" \x00", "eht", 3) == []
    with pytest.raises(ConfigError, match="0 alternatives are too few; the least is 1"):
        reverser.alternatives(TEXT, "", 0)
    for prefix in ("\ud800", "\x00", "한국어 🦜 " * 5):
        assert reverser.alternatives(TEXT, prefix, 2)
