"""A search that sentences join and leave at any step finds what the engine finds."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from dragoman.inference.cpu import CpuEngine
from dragoman.inference.cpu.continuous_batching import ContinuousBatchingEngine
from dragoman.inference.cpu.shortlist import Shortlist
from dragoman.search import Hypothesis, SearchOptions
from dragoman.text.special_tokens import EOS, FIRST_PIECE

from ...kernel import needs_kernel
from .small_models import BASE, VOCABULARY, engine, made

pytestmark = needs_kernel


def sources(count: int, longest: int = 20, seed: int = 0) -> list[list[int]]:
    draw = random.Random(seed)
    return [
        [draw.randrange(FIRST_PIECE, VOCABULARY) for _ in range(draw.randint(1, longest))]
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def plain() -> CpuEngine:
    return engine(made(BASE), BASE)


@pytest.fixture
def narrow(plain: CpuEngine) -> Iterator[CpuEngine]:
    """With a shortlist of few pieces."""
    common = np.array([EOS, *range(FIRST_PIECE, VOCABULARY, 5)], np.int32)
    starts = np.arange(VOCABULARY + 1, dtype=np.int32)
    targets = np.full(VOCABULARY, FIRST_PIECE + 1, np.int32)
    few = Shortlist(VOCABULARY, common, np.array([FIRST_PIECE + 2], np.int32), starts, targets)
    plain.use_shortlist(few)
    yield plain
    plain.use_shortlist(None)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("kind", ["plain", "narrow"])
def test_whenever_sentences_join_and_leave_each_is_found_as_if_alone(
    request: pytest.FixtureRequest, kind: str, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.inference.cpu.shortlist.MIN_CONFIDENCE", 0.0)
    plain: CpuEngine = request.getfixturevalue(kind)
    options = SearchOptions(beam=beam, n_best=min(beam, 2), max_extra=12)
    sentences = sources(120)
    wanted = plain.search(sentences, options)
    if kind == "narrow":
        pieces = {piece for best, *_ in wanted for piece in best.ids}
        assert len(pieces) < VOCABULARY // 2, "or a shortlist would not show"
    batch = ContinuousBatchingEngine(plain, 40).start_batch(options)
    draw, waiting, running, found = random.Random(1), list(range(120)), set[int](), {}
    dropped = set[int]()
    while waiting or running:
        coming = waiting[: min(batch.free_slots, draw.randint(0, 6))]
        del waiting[: len(coming)]
        if coming:
            batch.admit([(i, sentences[i]) for i in coming])
            running.update(coming)
        if running and draw.random() < 0.2:
            gone = draw.choice(sorted(running))
            batch.cancel(gone)
            running.discard(gone)
            dropped.add(gone)
        if running:
            for i, hypotheses in batch.step():
                found[i] = hypotheses
                running.discard(i)
    assert len(dropped) > 5
    assert len(found) + len(dropped) == 120
    assert len(batch) == 0
    assert batch.free_slots == batch.slots
    assert all(found[i] == wanted[i] for i in found)


@pytest.mark.parametrize("beam", [1, 4])
def test_what_is_agreed_only_grows_and_is_how_the_translation_begins(
    plain: CpuEngine, beam: int
) -> None:
    options = SearchOptions(beam=beam, max_extra=12)
    sentences = sources(20)
    batch = ContinuousBatchingEngine(plain, 40).start_batch(options)
    batch.admit(list(enumerate(sentences)))
    agreed: dict[int, list[int]] = {i: [] for i in range(20)}
    most = 0
    while len(batch):
        for i, found in batch.step():
            assert found[0].ids[: len(agreed[i])] == agreed[i]
            agreed.pop(i)
        for i, before in agreed.items():
            agreed[i] = batch.agreed_prefix(i)
            assert agreed[i][: len(before)] == before
            most = max(most, len(agreed[i]))
    assert most > 3, "something was known before the end"


def test_a_hypothesis_that_has_ended_must_agree_too(plain: CpuEngine) -> None:
    batch = ContinuousBatchingEngine(plain, 40).start_batch(SearchOptions(beam=1, max_extra=12))
    batch.admit([(7, sources(1)[0])])
    for _ in range(4):
        assert batch.step() == []
    begun = batch.agreed_prefix(7)
    assert len(begun) == 4
    batch._search.finished[batch._active[7]] = [
        Hypothesis([*begun[:2], FIRST_PIECE, FIRST_PIECE], -1.0, -1.0)
    ]
    assert begun[2] != FIRST_PIECE
    assert batch.agreed_prefix(7) == begun[:2]
