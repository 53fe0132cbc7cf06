"""Given translations: what the CPU engine says of them is what its search said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman.inference import Translator
from dragoman.inference.alignment import word_alignment
from dragoman.inference.source_attention import mean_attention, source_attention
from dragoman.search import SearchOptions


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return dragoman.load(trained / "model", device="cpu", precision="int8")


LINES = ["the old dog sees", "red cat", "the red house eats the small tree", "dog"]


@pytest.mark.parametrize("beam", [1, 3])
def test_log_probabilities_are_those_of_the_search(translator: Translator, beam: int) -> None:
    engine = translator._engine
    assert engine is not None
    sources = translator.tokenizer.encode_batch(LINES)
    found = [row[0] for row in engine.search(sources, SearchOptions(beam=beam))]
    forced = engine.force_decode(sources, [one.ids for one in found])
    assert forced is not None
    for one, other in zip(found, forced, strict=True):
        assert len(other.log_probs) == len(one.ids) + 1
        assert float(other.log_probs.sum()) == pytest.approx(one.log_prob, abs=1e-4)


def test_attention_is_that_of_the_model_in_float32(translator: Translator) -> None:
    engine = translator._engine
    assert engine is not None
    sources = translator.tokenizer.encode_batch(LINES)
    targets = translator.tokenizer.encode_batch([translator.translate(line).text for line in LINES])
    forced = engine.force_decode(sources, targets)
    assert forced is not None
    exact = map(mean_attention, source_attention(translator.model, sources, targets))
    for one, weights, source, target in zip(forced, exact, sources, targets, strict=True):
        assert one.attention.shape == (len(target), len(source))
        assert np.abs(one.attention - weights).max() < 0.05
        pairs = word_alignment(one.attention, translator.tokenizer, source, target)
        assert pairs == word_alignment(weights, translator.tokenizer, source, target)


def test_nothing_is_decoded_of_nothing_and_an_empty_target_ends(translator: Translator) -> None:
    engine = translator._engine
    assert engine is not None
    assert engine.force_decode([], []) == []
    [one] = engine.force_decode([translator.tokenizer.encode("dog")], [[]]) or []
    assert one.log_probs.shape == (1,)
    assert one.attention.shape[0] == 0


def test_many_pairs_are_computed_in_batches_that_change_nothing(translator: Translator) -> None:
    engine = translator._engine
    assert engine is not None
    sources = translator.tokenizer.encode_batch(LINES * 80)
    targets = sources
    together = engine.force_decode(sources, targets) or []
    for number in (0, 5, 319):
        [alone] = engine.force_decode([sources[number]], [targets[number]]) or []
        np.testing.assert_allclose(together[number].log_probs, alone.log_probs, atol=1e-5)
