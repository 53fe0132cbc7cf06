from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from dragoman.config import SearchConfig
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.models.api import Rows
from dragoman.search import SearchOptions, beam_search, greedy_search, length_penalty, search
from dragoman.search.allowed_outputs import Constraint
from dragoman.search.beam import stable_topk
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK

from ..conftest import more_examples
from .toy_model import FIRST, Toy, exhaustive, only, sources

WIDE = 128  # more than there are sequences of at most 4 of 3 pieces: 121


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("min_length", [0, 2, 4])
@pytest.mark.parametrize("prefix", [[], [5], [6, 4, 4]])
@pytest.mark.parametrize("n_best", [1, 7])
def test_a_wide_enough_beam_equals_exhaustive_search(
    alpha: float, min_length: int, prefix: list[int], n_best: int
) -> None:
    options = SearchOptions(
        beam=WIDE, n_best=n_best, length_penalty=alpha, min_length=min_length, max_extra=1
    )
    for seed in range(4):
        model, source = Toy(seed), sources(3)
        expected = exhaustive(model, source, options, ceiling=4, prefix=prefix)[:n_best]
        [found] = beam_search(model, source, options, prefixes=[prefix])
        assert [h.ids for h in found] == [h.ids for h in expected]
        assert [h.score for h in found] == pytest.approx([h.score for h in expected])
        assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in expected])


@pytest.mark.slow
@more_examples(1.5)
@given(
    seed=st.integers(0, 10_000),
    beam=st.integers(1, 6),
    n_best=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.0]),
    min_length=st.integers(0, 3),
    max_extra=st.integers(0, 6),
    sharpness=st.sampled_from([0.0, 0.5, 2.0, 5.0]),
)
def test_stopping_early_changes_nothing(
    seed: int,
    beam: int,
    n_best: int,
    alpha: float,
    min_length: int,
    max_extra: int,
    sharpness: float,
) -> None:
    model, source = Toy(seed, pieces=4, sharpness=sharpness), sources(2, 5, 0)

    def found(stop_early: bool) -> object:
        options = SearchOptions(
            beam=max(beam, n_best),
            n_best=n_best,
            length_penalty=alpha,
            min_length=min_length,
            max_extra=max_extra,
            stop_early=stop_early,
        )
        return beam_search(model, source, options)

    assert found(True) == found(False)


def test_a_sentence_ends_when_as_many_have_finished_as_there_are_beams() -> None:
    model = Toy(0)
    model.table[...] = torch.tensor([-9.0, -9, -2, -9, -5, -6, -7])  # EOS is the likeliest
    options = SearchOptions(beam=3, length_penalty=9.0, max_extra=40, stop_early=False)
    [[best]] = beam_search(model, sources(0), options)
    # The empty sequence finishes first, then [4], [5] and [6]. With so large an α one of 40 pieces
    # would score better.
    assert len(model.rows_stepped) == 2
    assert best.ids == [4]


@pytest.mark.parametrize("beam", [2, 3, 4])
def test_unlikely_beams_that_end_early_do_not_end_the_search(beam: int) -> None:
    model = Toy(0)
    sure = torch.full((model.vocabulary,), -5.0)
    sure[EOS] = -0.03
    model.table[...] = sure  # whatever comes, it ends next …
    likely = [4, 5, 6, 4, 4]
    for before, last, piece in zip([1, 1, *likely], [1, *likely], likely, strict=False):
        model.table[:, before, last, EOS] = -6.0
        model.table[:, before, last, piece] = -0.03  # … but for one way, which is the likeliest
    options = SearchOptions(beam=beam, max_extra=20)
    [[best]] = beam_search(model, sources(3), options)
    assert best.ids == likely
    assert best == greedy_search(model, sources(3), options)[0][0]


def test_stopping_early_takes_fewer_steps() -> None:
    steps = []
    for stop_early in (True, False):
        model = Toy(3, sharpness=3.0)
        options = SearchOptions(beam=4, max_extra=50, stop_early=stop_early)
        beam_search(model, sources(4, 5, 6), options)
        steps.append(sum(model.rows_stepped))
    assert steps[0] < steps[1]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), alpha=st.sampled_from([0.0, 0.6, 3.0]), data=st.data())
def test_greedy_search_equals_a_beam_of_one(seed: int, alpha: float, data: st.DataObject) -> None:
    # A sharpness of 0 makes all pieces equal, so that ties must be broken alike.
    model = Toy(seed, sharpness=data.draw(st.sampled_from([0.0, 0.1, 1.0, 4.0])))
    source = sources(3, 0, 7, 2)
    prefixes = data.draw(st.lists(st.lists(st.integers(3, 6), max_size=5), min_size=4, max_size=4))
    options = SearchOptions(beam=1, length_penalty=alpha, min_length=2, max_extra=3)
    greedy = greedy_search(model, source, options, prefixes=prefixes)
    assert greedy == beam_search(model, source, options, prefixes=prefixes)
    assert greedy == search(model, source, options, prefixes=prefixes)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 2, 5])
def test_batch_mates_change_nothing(beam: int) -> None:
    source = sources(4, 1, 9, 0, 6)
    prefixes = [[], [4, 5], [6], [], [5, 5, 5, 5, 4]]
    options = SearchOptions(beam=beam, n_best=beam, max_extra=4)
    for seed in range(10):
        model = Toy(seed)
        together = beam_search(model, source, options, prefixes=prefixes)
        for row, prefix in enumerate(prefixes):
            [alone] = beam_search(model, only(source, row), options, prefixes=[prefix])
            assert [h.ids for h in alone] == [h.ids for h in together[row]]
            assert [h.score for h in alone] == pytest.approx([h.score for h in together[row]])


def test_the_score_is_the_log_probability_over_the_length_penalty() -> None:
    model, source = Toy(5), sources(3, 4)
    options = SearchOptions(beam=4, n_best=4, length_penalty=0.6)
    for key, hypotheses in zip(
        model.keys(source).tolist(), beam_search(model, source, options), strict=True
    ):
        assert len(hypotheses) == 4
        for hypothesis in hypotheses:
            penalty = ((5 + len(hypothesis.ids) + 1) / 6) ** 0.6
            assert hypothesis.log_prob == pytest.approx(model.log_prob(key, hypothesis.ids))
            assert hypothesis.score == pytest.approx(hypothesis.log_prob / penalty)
        assert hypotheses == sorted(hypotheses, key=lambda h: -h.score)


def test_the_length_penalty_equals_numbers_worked_by_hand() -> None:
    assert length_penalty(0, 0.6) == 1.0
    assert length_penalty(6, 1.0) == 2.0
    assert length_penalty(9, 0.0) == 1.0
    assert length_penalty(18, 0.5) == 2.0


@pytest.mark.parametrize("find", [greedy_search, beam_search])
def test_only_pieces_of_text_are_produced_within_the_limits(find: type) -> None:
    options = SearchOptions(beam=3, min_length=2, max_extra=3)
    for seed in range(30):
        model = Toy(seed)
        # What must not be produced is what the model likes best.
        model.table[..., [PAD, BOS, UNK]] += 5
        for length, [best] in zip((0, 2, 5), find(model, sources(0, 2, 5), options), strict=True):
            assert all(FIRST <= piece < model.vocabulary for piece in best.ids)
            assert 2 <= len(best.ids) <= length + 3


def test_an_explicit_maximum_length_caps_the_one_by_the_source() -> None:
    model = Toy(0)
    model.table[..., EOS] -= 50
    lengths = [
        [len(row[0].ids) for row in beam_search(model, sources(1, 9), options)]
        for options in (SearchOptions(max_extra=2), SearchOptions(max_extra=2, max_length=5))
    ]
    assert lengths == [[3, 11], [3, 5]]


@pytest.mark.parametrize("find", [greedy_search, beam_search])
def test_a_prefix_or_minimum_longer_than_the_maximum_raises_it(find: type) -> None:
    options = SearchOptions(max_extra=0)
    [[prefixed]] = find(Toy(0), sources(1), options, prefixes=[[4, 5, 6]])
    assert prefixed.ids == [4, 5, 6]
    [[long]] = find(Toy(0), sources(1), SearchOptions(max_extra=0, min_length=4))
    assert len(long.ids) == 4


@pytest.mark.parametrize("find", [greedy_search, beam_search])
def test_a_forced_piece_the_model_rules_out_is_free(find: type) -> None:
    model = Toy(1)
    model.table[..., UNK] = -math.inf
    [[forced]] = find(model, sources(3), SearchOptions(), prefixes=[[UNK]])
    assert forced.ids[0] == UNK
    assert math.isfinite(forced.log_prob)


@pytest.mark.parametrize("find", [greedy_search, beam_search])
def test_impossible_pieces_are_avoided_and_an_impossible_sentence_is_its_prefix(find: type) -> None:
    model = Toy(2)
    model.table[..., 5] = -math.inf
    [[best]] = find(model, sources(6), SearchOptions(beam=8))
    assert 5 not in best.ids
    model.table[...] = -math.inf
    [[nothing]] = find(model, sources(6), SearchOptions(beam=8), prefixes=[[4]])
    assert (nothing.ids, nothing.score, nothing.log_prob) == ([4], -math.inf, -math.inf)


@pytest.mark.parametrize("find", [greedy_search, beam_search])
def test_a_model_without_numbers_is_refused(find: type) -> None:
    model = Toy(2)
    model.table[...] = math.nan
    with pytest.raises(ModelError, match="NaN"):
        find(model, sources(6), SearchOptions(max_extra=3))


def test_fewer_than_n_best_are_found_where_fewer_exist() -> None:
    options = SearchOptions(beam=8, n_best=8, max_length=1)
    [found] = beam_search(Toy(0), sources(4), options)
    assert sorted(h.ids for h in found) == [[], [4], [5], [6]]


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_of_equals_the_first_is_taken(beam: int) -> None:
    model = Toy(0, pieces=40)
    model.table[...] = -math.log(model.vocabulary)
    [[best]] = beam_search(model, sources(0), SearchOptions(beam=beam, min_length=3, max_extra=3))
    assert best.ids == [FIRST] * 3


def test_the_source_is_read_once_and_finished_sentences_leave_the_batch() -> None:
    model = Toy(0)
    model.table[..., EOS] -= 50  # so that each sentence ends at its maximum
    beam_search(model, sources(1, 3, 6), SearchOptions(beam=4, max_extra=0, stop_early=False))
    assert model.starts == 1
    assert model.rows_stepped == [3, 3, 2, 2, 1, 1, 1]


def test_lower_precision_log_probabilities_are_summed_in_single_precision() -> None:
    model = Toy(4)
    model.table = model.table.bfloat16()
    [[best]] = beam_search(model, sources(5), SearchOptions())
    assert best.log_prob == pytest.approx(
        model.log_prob(int(model.keys(sources(5))[0]), best.ids), rel=1e-5
    )


class Alternating(Constraint):
    """No piece twice in a row, and the vocabulary's last piece, only then EOS, at the end."""

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def shortest(self, sentence: int) -> int:
        return 1

    def allowed(self, sentences_B: Tensor, ids_BKT: Tensor, room_B: Tensor) -> Tensor:
        begun_BKT = functional.pad(ids_BKT, (1, 0), value=BOS)
        pieces_V = torch.arange(self.vocabulary)
        differs_BKV = pieces_V != begun_BKT[:, :, -1:]
        closed_BK1 = begun_BKT[:, :, -1:] == self.vocabulary - 1
        closes_B1V = (room_B > 1)[:, None, None] | (pieces_V == self.vocabulary - 1)
        return torch.where(pieces_V == EOS, closed_BK1, differs_BKV & closes_B1V)


@pytest.mark.parametrize("beam", [1, 2, WIDE])
def test_a_constraint_is_obeyed(beam: int) -> None:
    options = SearchOptions(beam=beam, max_extra=1)
    for seed in range(10):
        model, source = Toy(seed), sources(3)
        [[best]] = search(model, source, options, constraint=Alternating(model.vocabulary))
        obedient = [
            h.ids
            for h in exhaustive(model, source, options, ceiling=4, prefix=[])
            if h.ids[-1:] == [model.vocabulary - 1]
            and all(a != b for a, b in zip(h.ids, h.ids[1:], strict=False))
        ]
        assert best.ids in obedient
        if beam == WIDE:
            assert best.ids == obedient[0]


def test_no_sentences_give_no_hypotheses() -> None:
    empty = Rows.one_a_row(torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0))
    assert search(Toy(), empty, SearchOptions()) == []
    assert search(Toy(), empty, SearchOptions(beam=1)) == []


def test_options_come_from_the_config_with_changes() -> None:
    config = SearchConfig(beam=7, length_penalty=0.3, max_extra=300, min_length=2)
    options = SearchOptions.from_config(config, n_best=3, beam=5)
    assert options == SearchOptions(
        beam=5, length_penalty=0.3, max_extra=300, min_length=2, n_best=3
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_best": 5}, r"search.n_best = 5 is more than search.beam = 4"),
        ({"n_best": 0}, "search.n_best = 0 is too small"),
        ({"beam": 0}, "search.beam = 0 is too small"),
        ({"length_penalty": -1}, "search.length_penalty = -1 is too small"),
        ({"min_length": 5, "max_length": 4}, "search.max_length = 4 is below"),
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SearchOptions(**wrong)


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        ([[4]], "1 prefixes for 2 sentences"),
        ([[4], [EOS]], "prefix 2 holds id 2"),
        ([[7], [4]], "prefix 1 holds id 7"),
    ],
)
def test_impossible_prefixes_are_refused(prefixes: list[list[int]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        search(Toy(), sources(1, 2), SearchOptions(), prefixes=prefixes)


@pytest.mark.gpu
@pytest.mark.parametrize("beam", [1, 4])
def test_a_gpu_finds_what_the_cpu_finds(beam: int) -> None:
    source, prefixes = sources(4, 1, 9, 0, 6), [[], [4, 5], [6], [], [5, 5, 5, 5, 4]]
    options = SearchOptions(beam=beam, n_best=beam, min_length=1, max_extra=4)
    for seed in range(5):
        expected = search(Toy(seed), source, options, prefixes=prefixes)
        device = torch.device("cuda")
        found = search(Toy(seed).to(device), source.to(device), options, prefixes=prefixes)
        for one, other in zip(expected, found, strict=True):
            assert [h.ids for h in one] == [h.ids for h in other]
            assert [h.score for h in one] == pytest.approx([h.score for h in other])


# --- the best of equals ---

ROWS = st.lists(
    st.lists(st.sampled_from([-5.0, -1.0, -0.5, 0.0]), min_size=12, max_size=12),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@more_examples(2)
@given(rows=ROWS, count=st.integers(1, 15))
def test_the_best_are_chosen_and_of_equals_the_first(rows: list[list[float]], count: int) -> None:
    values, places = stable_topk(torch.tensor(rows), count)
    for row, best, where in zip(rows, values.tolist(), places.tolist(), strict=True):
        expected = sorted(range(12), key=lambda place: (-row[place], place))[:count]
        assert where == expected
        assert best == [row[place] for place in expected]


@pytest.mark.gpu
@pytest.mark.parametrize(("rows", "columns"), [(1, 50), (64, 5_000), (2, 150_000), (300, 37_000)])
def test_a_gpu_chooses_what_the_cpu_chooses(rows: int, columns: int) -> None:
    values = torch.randint(-40, 0, (rows, columns)).float()
    for count in (1, 2, 8, 16):
        expected, places = stable_topk(values, count)
        found, found_places = stable_topk(values.cuda(), count)
        assert torch.equal(found.cpu(), expected)
        assert torch.equal(found_places.cpu(), places)
