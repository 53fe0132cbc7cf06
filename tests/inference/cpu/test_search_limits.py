"""The CPU engine keeps to a least length, repeats nothing, and says how probable each piece is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from dragoman.inference.cpu import CpuEngine
from dragoman.inference.cpu.continuous_batching import ContinuousBatchingEngine
from dragoman.models import Model
from dragoman.search import Hypothesis, SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.text.special_tokens import EOS, FIRST_PIECE

from ...kernel import needs_kernel
from .small_models import BASE, VOCABULARY, engine, in_int8, made

pytestmark = needs_kernel

Find = Callable[[CpuEngine, list[list[int]], SearchOptions], list[list[Hypothesis]]]

EAGER = replace(BASE, output_bias=True)
LIMITS: dict[str, dict[str, Any]] = {
    "one piece": {"min_length": 1},
    "more than the source": {"min_length": 14, "max_extra": 2},
    "no piece twice": {"no_repeat_ngram": 1},
    "no pair twice": {"no_repeat_ngram": 2},
    "a penalty": {"repetition_penalty": 1.5},
    "all of it": {"min_length": 5, "no_repeat_ngram": 2, "repetition_penalty": 1.2},
}


def sources(count: int, seed: int = 0, longest: int = 12) -> list[list[int]]:
    draw = random.Random(seed)
    return [
        [draw.randrange(FIRST_PIECE, VOCABULARY) for _ in range(draw.randint(1, longest))]
        for _ in range(count)
    ]


def eager(amount: float = 4.0) -> Model:
    """A model that would end at once."""
    model = made(EAGER)
    with torch.no_grad():
        model.get_parameter("projection_bias")[EOS] += amount
    return model


def by_batches(ours: CpuEngine, sentences: list[list[int]], options: SearchOptions) -> Any:
    batch = ContinuousBatchingEngine(ours, 80).start_batch(options)
    waiting, found = list(enumerate(sentences)), {}
    while waiting or len(batch):
        coming, waiting = waiting[:2], waiting[2:]  # so that some are fresh and others not
        batch.admit(coming[: batch.free_slots])
        found |= dict(batch.step())
    return [found[i] for i in range(len(sentences))]


def by_draft(ours: CpuEngine, sentences: list[list[int]], options: SearchOptions) -> Any:
    ours.draft = engine(eager(0.0), EAGER)
    return [ours.search([one], options)[0] for one in sentences]


def ngrams(ids: list[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("limits", LIMITS)
def test_what_is_found_is_what_the_search_finds_over_rounded_numbers(
    limits: str, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SearchOptions(beam=beam, n_best=min(beam, 2), **{"max_extra": 12, **LIMITS[limits]})
    sentences, model = sources(12), eager(1.0)
    found = engine(model, EAGER).search(sentences, options)
    with in_int8(model, monkeypatch):
        wanted = search(model, source_rows(sentences, torch.device("cpu")), options)
    same = 0
    for ours, theirs in zip(found, wanted, strict=True):
        for one in ours:
            assert len(one.ids) >= options.min_length
            if size := options.no_repeat_ngram:
                assert len(set(ngrams(one.ids, size))) == len(ngrams(one.ids, size))
            assert len(one.log_probs) == len(one.ids) + 1
            assert math.fsum(one.log_probs) == pytest.approx(one.log_prob, abs=1e-9)
        if ours[0].ids == theirs[0].ids:
            assert ours[0].log_prob == pytest.approx(theirs[0].log_prob, abs=0.05, rel=0.02)
            assert ours[0].log_probs == pytest.approx(theirs[0].log_probs, abs=0.1)
            same += 1
    assert same >= 7, "keys and values in bf16 decide a few close calls, not most"


@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("find", [by_batches, by_draft])
def test_a_model_that_would_end_at_once_says_as_much_as_it_must(
    find: Find, beam: int, least: int
) -> None:
    ours, sentences = engine(eager(60.0), EAGER), sources(9)
    nothing = ours.search(sentences, SearchOptions(beam=beam))
    assert all(row[0].ids == [] for row in nothing)
    options = SearchOptions(beam=beam, min_length=least)
    wanted = ours.search(sentences, options)
    assert all(len(row[0].ids) == least for row in wanted)
    assert find(ours, sentences, options) == wanted


@pytest.mark.parametrize("find", [by_batches, by_draft])
def test_batch_mates_and_drafts_change_nothing_where_nothing_may_be_repeated(find: Find) -> None:
    ours, sentences = engine(eager(1.0), EAGER), sources(9)
    for beam in (1, 3):
        options = SearchOptions(beam=beam, no_repeat_ngram=2, repetition_penalty=1.3, max_extra=9)
        assert find(ours, sentences, options) == ours.search(sentences, options)


def test_the_engine_serves_such_searches_itself() -> None:
    ours = engine(eager(), EAGER)
    assert ours.supports(SearchOptions(min_length=9, no_repeat_ngram=3, repetition_penalty=2.0))
