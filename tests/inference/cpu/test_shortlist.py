"""With a shortlist the engine looks at fewer pieces, and where it is not sure at all of them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dragoman.inference.cpu import CpuEngine
from dragoman.inference.cpu.shortlist import Shortlist
from dragoman.search import SearchOptions
from dragoman.text.special_tokens import EOS, FIRST_PIECE

from ...kernel import needs_kernel
from .small_models import BASE, engine, made

pytestmark = needs_kernel

VOCABULARY = 700


@pytest.fixture(scope="module")
def whole() -> CpuEngine:
    return engine(made(BASE, VOCABULARY, vocabulary=VOCABULARY), BASE)


def sources(count: int = 40) -> list[list[int]]:
    draw = random.Random(0)
    return [
        [draw.randrange(FIRST_PIECE, VOCABULARY) for _ in range(draw.randint(1, 12))]
        for _ in range(count)
    ]


def listed(common: int, each: int, sample: int = 32) -> Shortlist:
    """The first ids for all, and some for each source piece."""
    draw = np.random.default_rng(1)
    others = np.arange(FIRST_PIECE + common, VOCABULARY)
    lists = [np.sort(draw.permutation(others)[:each]) for _ in range(VOCABULARY)]
    return Shortlist(
        VOCABULARY,
        np.append(EOS, np.arange(FIRST_PIECE, FIRST_PIECE + common)).astype(np.int32),
        np.sort(draw.permutation(others)[:sample]).astype(np.int32),
        each * np.arange(VOCABULARY + 1, dtype=np.int32),
        np.concatenate(lists).astype(np.int32) if each else np.zeros(0, np.int32),
    )


@pytest.mark.parametrize("beam", [1, 4])
def test_where_nothing_is_sure_everything_is_as_without(
    whole: CpuEngine, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SearchOptions(beam=beam, n_best=beam, max_extra=12)
    whole.use_shortlist(None)
    wanted = whole.search(sources(), options)
    monkeypatch.setattr("dragoman.inference.cpu.shortlist.MIN_CONFIDENCE", 1.1)
    whole.use_shortlist(listed(100, 5))
    assert whole.search(sources(), options) == wanted


@pytest.mark.parametrize("beam", [1, 4])
def test_lists_of_all_pieces_find_what_is_found_without(
    whole: CpuEngine, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.inference.cpu.shortlist.MIN_CONFIDENCE", 0.0)
    options = SearchOptions(beam=beam, max_extra=12)
    whole.use_shortlist(None)
    wanted = whole.search(sources(), options)
    half, rest = (
        (VOCABULARY - FIRST_PIECE) // 2,
        VOCABULARY - FIRST_PIECE - (VOCABULARY - FIRST_PIECE) // 2,
    )
    whole.use_shortlist(listed(half, rest, sample=0))
    for ours, theirs in zip(whole.search(sources(), options), wanted, strict=True):
        assert ours[0].ids == theirs[0].ids
        assert ours[0].score == pytest.approx(theirs[0].score, rel=0.01)  # the marks have a part


@pytest.mark.parametrize("beam", [1, 3])
def test_only_what_is_listed_is_produced(
    whole: CpuEngine, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.inference.cpu.shortlist.MIN_CONFIDENCE", 0.0)
    shortlist = listed(60, 4)
    whole.use_shortlist(None)
    free = whole.search(sources(), SearchOptions(beam=beam, max_extra=12))
    whole.use_shortlist(shortlist)
    found = whole.search(sources(), SearchOptions(beam=beam, max_extra=12))
    outside = 0
    for source, ours, theirs in zip(sources(), found, free, strict=True):
        may = {*shortlist.common.tolist(), *shortlist.pieces_for(source).tolist()}
        assert set(ours[0].ids) <= may
        outside += not set(theirs[0].ids) <= may
    assert outside > 20, "else the lists would forbid nothing"


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_batch_mates_and_workers_change_nothing(whole: CpuEngine, beam: int) -> None:
    options = SearchOptions(beam=beam, max_extra=12)
    whole.use_shortlist(listed(100, 5))
    alone = [whole.search([one], options)[0] for one in sources()]
    assert whole.search(sources(), options) == alone
    whole.workers = 3
    try:
        assert whole.search(sources()[::-1], options) == alone[::-1]
    finally:
        whole.workers = 1


def test_the_sum_is_over_all_pieces_by_a_sample(
    whole: CpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample of all that is on no list has weight 1, and the sum is exact."""
    monkeypatch.setattr("dragoman.inference.cpu.shortlist.MIN_CONFIDENCE", 0.0)
    options = SearchOptions(beam=1, max_extra=0, max_length=1)
    common = 400
    everything = listed(common, 0, sample=VOCABULARY - FIRST_PIECE - common)
    none = listed(common, 0, sample=0)
    scores = []
    for shortlist in (None, everything, none):
        whole.use_shortlist(shortlist)
        scores.append([found[0] for found in whole.search(sources(), options)])
    pairs = [(a, b, c) for a, b, c in zip(*scores, strict=True) if a.ids == b.ids == c.ids]
    assert len(pairs) > 3
    for exact, sampled, without in pairs:
        assert sampled.score == pytest.approx(exact.score, abs=0.05)
        assert without.score > exact.score + 0.1


def test_a_draft_changes_nothing(whole: CpuEngine) -> None:
    options = SearchOptions(beam=1, max_extra=12)
    whole.use_shortlist(listed(100, 5))
    wanted = [whole.search([one], options) for one in sources(12)]
    whole.draft = engine(made(BASE, VOCABULARY, seed=2, vocabulary=VOCABULARY), BASE)
    try:
        assert [whole.search([one], options) for one in sources(12)] == wanted
    finally:
        whole.draft = None


def test_a_sentence_has_its_own_pieces_but_no_marks() -> None:
    shortlist = listed(10, 0, sample=8)
    lone = next(i for i in range(FIRST_PIECE + 10, VOCABULARY) if i not in shortlist.sample)
    assert shortlist.pieces_for([lone, FIRST_PIECE, EOS, 3]).tolist() == [lone]
