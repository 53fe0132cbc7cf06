"""No n-gram twice, a price on repetition, and the log-probability of every piece."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.search import (
    Hypothesis,
    SamplingOptions,
    SearchOptions,
    beam_search,
    length_penalty,
    sample,
    search,
)
from dragoman.search.repeated_ngrams import repeating_pieces
from dragoman.text.special_tokens import BOS, EOS, PAD

from ..conftest import more_examples
from .toy_model import FIRST, Toy, exhaustive, sources

WIDE = 128


def repeats(ids: list[int], size: int) -> bool:
    """Whether an n-gram of this size occurs twice."""
    ngrams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]
    return len(set(ngrams)) < len(ngrams)


@more_examples(2)
@given(
    rows=st.lists(st.lists(st.integers(4, 6), max_size=9), min_size=1, max_size=4),
    size=st.integers(1, 4),
)
def test_the_pieces_that_must_not_follow_are_those_that_would_repeat(
    rows: list[list[int]], size: int
) -> None:
    longest = max(map(len, rows))
    padded = [[*row, *[5] * (longest - len(row))] for row in rows]
    ids, lengths = np.array(padded).reshape(len(rows), longest), np.array(list(map(len, rows)))
    found = repeating_pieces(ids, lengths, np.arange(longest), size)
    tensors = (torch.tensor(ids), torch.tensor(lengths), torch.arange(longest))
    assert repeating_pieces(*tensors, size).tolist() == found.tolist()
    for row, pieces in zip(rows, found.tolist(), strict=True):
        before = {tuple(row[i : i + size]) for i in range(len(row) - size + 1)}
        tail = tuple(row[len(row) - size + 1 :]) if len(row) >= size - 1 else None
        wanted = {p for p in (4, 5, 6) if tail is not None and (*tail, p) in before}
        assert set(pieces) - {PAD} == wanted


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("beam", [1, 3, WIDE])
def test_no_ngram_occurs_twice(beam: int, size: int) -> None:
    options = SearchOptions(beam=beam, max_extra=2, min_length=2, no_repeat_ngram=size)
    for seed in range(6):
        model, source = Toy(seed, sharpness=4.0), sources(2)
        [[best, *_]] = search(model, source, options)
        assert not repeats(best.ids, size)
        if beam == WIDE:
            allowed = [
                h
                for h in exhaustive(model, source, options, ceiling=4, prefix=[])
                if not repeats(h.ids, size)
            ]
            assert best.ids == allowed[0].ids


def test_without_the_limit_these_models_do_repeat() -> None:
    """So that the test above says something."""
    options = SearchOptions(beam=3, max_extra=2, min_length=2)
    found = [search(Toy(seed, sharpness=4.0), sources(2), options)[0][0] for seed in range(6)]
    assert any(repeats(one.ids, 2) for one in found)


@pytest.mark.parametrize("penalty", [1.0, 1.3, 4.0])
def test_a_repeated_piece_costs_so_many_times_as_much(penalty: float) -> None:
    options = SearchOptions(beam=WIDE, n_best=9, max_extra=1, repetition_penalty=penalty)
    for seed in range(5):
        model, source = Toy(seed), sources(3)
        key = int(model.keys(source)[0])

        def worked(ids: list[int], model: Toy = model, key: int = key) -> float:
            total, padded = 0.0, [BOS, BOS, *ids, EOS]
            for n, (a, b, c) in enumerate(zip(padded, padded[1:], padded[2:], strict=False)):
                total += float(model.table[key, a, b, c]) * (penalty if c in ids[:n] else 1.0)
            return total

        every = exhaustive(model, source, options, ceiling=4, prefix=[])
        wanted = sorted(
            (worked(h.ids) / length_penalty(len(h.ids), 0.6) for h in every), reverse=True
        )
        [found] = beam_search(model, source, options)
        assert [h.log_prob for h in found] == pytest.approx([worked(h.ids) for h in found])
        assert [h.score for h in found] == pytest.approx(wanted[:9])


def test_a_forced_prefix_may_repeat_itself() -> None:
    options = SearchOptions(beam=2, no_repeat_ngram=1, repetition_penalty=2.0)
    model = Toy(1)
    [[best]] = search(model, sources(3), options, prefixes=[[4, 4, 5]])
    assert best.ids[:3] == [4, 4, 5]
    assert not set(best.ids[3:]) & {4, 5}
    key = int(model.keys(sources(3))[0])
    assert best.log_probs[1] == pytest.approx(float(model.table[key, BOS, 4, 4]), rel=1e-5)


def test_samples_do_not_repeat_what_they_must_not() -> None:
    options = SamplingOptions(samples=60, min_length=3, no_repeat_ngram=1, max_extra=3)
    [found] = sample(Toy(2, pieces=6, sharpness=0.5), sources(3), options)
    assert all(not repeats(one.ids, 1) for one in found)
    assert len({tuple(one.ids) for one in found}) > 10


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("beam", [1, 4])
def test_every_piece_has_its_log_probability(beam: int, groups: int) -> None:
    options = SearchOptions(beam=beam, n_best=beam, groups=min(beam, groups), max_extra=3)
    for seed in range(5):
        model, source = Toy(seed), sources(3, 0, 5)
        found = search(model, source, options, prefixes=[[], [4, 4], []])
        samples = sample(model, source, SamplingOptions(samples=3, seed=seed))
        for key, row in zip(2 * model.keys(source).tolist(), [*found, *samples], strict=True):
            for hypothesis in row:
                assert_worked(hypothesis, model, key)


def assert_worked(hypothesis: Hypothesis, model: Toy, key: int) -> None:
    padded = [BOS, BOS, *hypothesis.ids, EOS]
    wanted = [
        float(model.table[key, a, b, c])
        for (a, b), c in zip(pairwise(padded), padded[2:], strict=False)
    ]
    assert hypothesis.log_probs == pytest.approx(wanted, abs=1e-5)
    assert math.fsum(hypothesis.log_probs) == pytest.approx(hypothesis.log_prob, abs=1e-9)


def test_nothing_found_has_no_log_probabilities() -> None:
    model = Toy(2)
    model.table[...] = -math.inf
    for beam in (1, 3):
        [[nothing]] = search(model, sources(6), SearchOptions(beam=beam), prefixes=[[FIRST]])
        assert (nothing.ids, nothing.log_probs) == ([FIRST], [])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"no_repeat_ngram": -1}, "search.no_repeat_ngram = -1 is too small"),
        ({"repetition_penalty": 0.9}, "search.repetition_penalty = 0.9 must be a number from 1"),
        ({"repetition_penalty": math.nan}, "search.repetition_penalty = nan must be a number"),
        ({"repetition_penalty": math.inf}, "search.repetition_penalty = inf must be a number"),
    ],
)
def test_impossible_limits_are_refused(wrong: dict[str, float], message: str) -> None:
    for options in (SearchOptions, SamplingOptions):
        with pytest.raises(ConfigError, match=message):
            options(**wrong)
