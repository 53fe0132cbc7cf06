"""Diverse beams: groups that avoid what those before them say."""

from __future__ import annotations

import pytest

from dragoman.errors import ConfigError
from dragoman.search import SearchOptions, beam_search, diverse_search, search

from .toy_model import Toy, sources


def test_without_a_penalty_every_group_finds_the_same() -> None:
    model, source = Toy(0, pieces=5), sources(4, 2)
    options = SearchOptions(beam=6, n_best=2, groups=3, diversity=0.0)
    alone = beam_search(model, source, SearchOptions(beam=2, n_best=2))
    assert diverse_search(model, source, options) == alone


def test_the_first_group_is_a_beam_search_of_its_own() -> None:
    model, source = Toy(1, pieces=5), sources(4, 2)
    options = SearchOptions(beam=6, n_best=6, groups=3, diversity=1.5)
    for first, found in zip(
        beam_search(model, source, SearchOptions(beam=2)),
        diverse_search(model, source, options),
        strict=True,
    ):
        assert first[0] in found


@pytest.mark.slow
def test_a_penalty_makes_the_first_pieces_differ() -> None:
    def first_pieces(diversity: float) -> int:
        count = 0
        for seed in range(10):
            options = SearchOptions(beam=4, n_best=4, groups=4, diversity=diversity, min_length=2)
            found = diverse_search(Toy(seed, pieces=6), sources(4), options)[0]
            count += len({one.ids[0] for one in found if one.ids})
        return count

    assert first_pieces(0.0) < first_pieces(1.0) < first_pieces(8.0)
    assert first_pieces(50.0) == 40, "a high price forbids the same piece at the same place"


def test_what_is_returned_is_different_and_has_the_model_s_own_scores() -> None:
    model, source = Toy(2, pieces=5), sources(4, 2, 6)
    options = SearchOptions(beam=9, n_best=5, groups=3, diversity=1.0)
    for key, row in zip(model.keys(source).tolist(), search(model, source, options), strict=True):
        assert len({tuple(one.ids) for one in row}) == len(row) <= 5
        assert [one.score for one in row] == sorted((one.score for one in row), reverse=True)
        for one in row:
            assert one.log_prob == pytest.approx(model.log_prob(key, one.ids), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 5}, "groups = 5 do not fit in search.beam = 4; each needs a hypothesis"),
        ({"groups": 0}, "groups = 0 do not fit"),
        ({"diversity": -1.0}, "diversity = -1.0 is too small; the minimum is 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SearchOptions(**options)  # type: ignore[arg-type]
