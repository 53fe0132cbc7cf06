"""In the GPU engine, too, whatever the model prefers is a tree over exactly the words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.inference.gpu import cuda_graphs
from dragoman.models import Model
from dragoman.search import SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.text.special_tokens import FIRST_PIECE
from dragoman.trees.grammar import SentencesToParse
from dragoman.trees.linearization import Actions, get_linearisation

from .small_engines import assert_same, engine
from .tree_helpers import CPU, ORDERS, OUTPUTS, assert_trees, plain, sentences, targets

Make = Callable[..., Model]


@pytest.mark.parametrize("announced", [False, True], ids=["alone", "announced"])
@pytest.mark.parametrize("beam", [1, 4, pytest.param(21, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("order", ORDERS)
def test_trees_are_those_of_the_plain_search(
    order: str, beam: int, announced: bool, make: Make
) -> None:
    words = [3, 1, 40, 9, 2, 17, 1, 5, 12, 26] if beam < 21 else [3, 1, 25, 9, 2, 6]
    sources, to_parse = sentences(order, words, announced=announced)
    model = make(targets=targets(to_parse), shared_embeddings=False, output_bias=beam != 4)
    options = SearchOptions(beam=beam, n_best=min(beam, 3), max_extra=30)
    found = engine(model, 4).search(sources, options, to_parse)
    assert_trees(found, to_parse)
    assert_same(found, plain(model, sources, to_parse, options))


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_where_there_is_hardly_room_the_shortest_tree_is_found(order: str, make: Make) -> None:
    sources, to_parse = sentences(order, [7, 1, 12, 4], announced=True)
    model = make(targets=targets(to_parse), shared_embeddings=False)
    for beam in (1, 3):
        options = SearchOptions(beam=beam, max_extra=0, max_length=9)
        found = engine(model, 4).search(sources, options, to_parse)
        assert_trees(found, to_parse)
        assert_same(found, plain(model, sources, to_parse, options))
        for number, one in enumerate(found):
            assert len(one[0].ids) <= max(to_parse.shortest_target(number), 9)


def test_a_beam_wider_than_what_may_follow_finds_all_there_is(make: Make) -> None:
    actions = Actions(get_linearisation("brackets", tags=False), ("_", "(A", ")"), 1)
    to_parse = SentencesToParse(actions, [1, 2], [[], []], range(0))
    model = make(targets=FIRST_PIECE + len(actions), shared_embeddings=False)
    options = SearchOptions(beam=8, n_best=8, max_extra=10)
    one, two = engine(model, 4).search([[9], [9, 8]], options, to_parse)
    assert len(one) == 1
    assert len({tuple(h.ids) for h in two}) == len(two) > 1
    assert_trees([one, two], to_parse)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("slots", [pytest.param(1, marks=pytest.mark.thorough), 16, None])
def test_neither_neighbours_nor_recordings_change_a_tree(
    slots: int | None, beam: int, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is run in order to record it is run here, and nothing is recorded."""

    def capture(run: Callable[[], None], pool: Any) -> tuple[Callable[[], None], Any]:
        for _ in range(3):
            run()
        return run, pool

    monkeypatch.setattr(cuda_graphs, "capture", capture)
    sources, to_parse = sentences("in-order", [6, 1, 9, 2, 14, 3, 3, 8, 1], announced=True)
    model = make(targets=targets(to_parse), shared_embeddings=False)
    options = SearchOptions(beam=beam, max_extra=20)
    wanted = plain(model, sources, to_parse, options)
    ours = engine(model, slots, use_graphs=True)
    for _ in range(2):
        assert_same(ours.search(sources, options, to_parse), wanted)
        for i in (0, 4, 8):
            alone = SentencesToParse(
                to_parse.actions,
                [to_parse.words[i]],
                [to_parse.announced[i]],
                to_parse.announcements,
            )
            assert_same(ours.search([sources[i]], options, alone), [wanted[i]])
    kinds = {(one.state.small, one.grammar is None) for one in ours._runners}
    assert len(kinds) == len(ours._runners), "slots are used again"


@pytest.mark.slow
def test_other_actions_have_other_slots(make: Make) -> None:
    options = SearchOptions(beam=2, max_extra=10)
    words = [3, 5]
    model = make(targets=OUTPUTS, shared_embeddings=False)
    ours = engine(model, 4)
    for order in (*ORDERS, ORDERS[0]):
        sources, to_parse = sentences(order, words, announced=False)
        assert_same(
            ours.search(sources, options, to_parse), plain(model, sources, to_parse, options)
        )
    assert_same(ours.search(sources, options), search(model, source_rows(sources, CPU), options))
