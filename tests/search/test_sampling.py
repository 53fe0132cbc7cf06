from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from dragoman.errors import ConfigError
from dragoman.models.api import Rows
from dragoman.search import SamplingOptions, SearchOptions, greedy_search, length_penalty, sample
from dragoman.search.sampling import draw

from .toy_model import FIRST, Toy, exhaustive, only, sources


def _frequencies(probs: list[float], options: SamplingOptions, draws: int = 20_000) -> list[float]:
    """How often each piece is drawn over an even grid of chances."""
    chances = (torch.arange(draws, dtype=torch.float64)[None] + 0.5) / draws
    totals = torch.tensor(probs).log().expand(1, draws, -1) - 7.0  # any sum so far
    counts = Counter(draw(totals, chances, options)[0].tolist())
    return [counts[piece] / draws for piece in range(len(probs))]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.1, 0.4, 0.2, 0.3]),
        ({"temperature": 0.5}, [0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3]),
        ({"top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_k": 9}, [0.1, 0.4, 0.2, 0.3]),
        ({"top_p": 0.65}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 0.75}, [0, 4 / 9, 2 / 9, 3 / 9]),
        ({"top_p": 0.01}, [0, 1, 0, 0]),
        # Of the two likeliest, 4 / 7 already suffices.
        ({"top_k": 2, "top_p": 0.5}, [0, 1, 0, 0]),
        ({"epsilon": 0.15}, [0, 4 / 9, 2 / 9, 3 / 9]),
        ({"epsilon": 0.9}, [0, 1, 0, 0]),
        # The probability is that before the temperature.
        ({"epsilon": 0.25, "temperature": 0.5}, [0, 16 / 25, 0, 9 / 25]),
        ({"epsilon": 0.05, "top_k": 3}, [0, 4 / 9, 2 / 9, 3 / 9]),
    ],
)
def test_pieces_are_drawn_with_the_probabilities_worked_by_hand(
    options: dict[str, float], expected: list[float]
) -> None:
    frequencies = _frequencies([0.1, 0.4, 0.2, 0.3], SamplingOptions(**options))
    assert frequencies == pytest.approx(expected, abs=2e-4)


def test_impossible_pieces_are_never_drawn() -> None:
    frequencies = _frequencies([0.0, 0.5, 0.0, 0.5, 0.0], SamplingOptions())
    assert frequencies == pytest.approx([0, 0.5, 0, 0.5, 0])
    totals, edges = torch.tensor([[[-math.inf, 0.0, -math.inf]] * 2]), torch.tensor([[0.0, 1.0]])
    edges[0, 1] -= 1e-7
    assert draw(totals, edges.double(), SamplingOptions()).tolist() == [[1, 1]]


def test_samples_follow_the_model() -> None:
    """Chi-square over all sequences of at most 2 of 3 pieces, against the renormalised model."""
    model, source, draws = Toy(1, sharpness=0.7), sources(3), 20_000
    options = SamplingOptions(samples=draws, max_length=2)
    [found] = sample(model, source, options)
    counts = Counter(tuple(h.ids) for h in found)
    key, chi_square = int(model.keys(source)[0]), 0.0
    sequences = [h.ids for h in exhaustive(model, source, options, ceiling=2, prefix=[])]
    assert sum(counts[tuple(ids)] for ids in sequences) == draws
    for ids in sequences:
        padded, probability = [1, 1, *ids, 2], 1.0
        for place in range(len(ids) + (len(ids) < 2)):  # at 2 pieces only the end is left
            probs = model.table[key, padded[place], padded[place + 1]].exp()
            allowed = probs[[2, *range(FIRST, model.vocabulary)]].sum()
            probability *= float(probs[padded[place + 2]] / allowed)
        expected = draws * probability
        chi_square += (counts[tuple(ids)] - expected) ** 2 / expected
    assert chi_square < 32.9  # 12 degrees of freedom, p = 0.001


def test_the_score_is_the_models_own_whatever_the_temperature() -> None:
    model, source = Toy(2), sources(4)
    options = SamplingOptions(samples=20, temperature=3.0, top_k=3, max_extra=2)
    [found] = sample(model, source, options)
    for h in found:
        log_prob = model.log_prob(int(model.keys(source)[0]), h.ids)
        assert h.log_prob == pytest.approx(log_prob)
        assert h.score == pytest.approx(log_prob / length_penalty(len(h.ids), 0.6))


@pytest.mark.parametrize("options", [{"temperature": 1e-4}, {"top_k": 1}, {"top_p": 1e-6}])
def test_without_chance_sampling_is_greedy_search(options: dict[str, float]) -> None:
    source, prefixes = sources(3, 0, 6), [[], [5, 5], [4]]
    for seed in range(10):
        model = Toy(seed)
        greedy = greedy_search(model, source, SearchOptions(max_extra=5), prefixes=prefixes)
        drawn = sample(model, source, SamplingOptions(max_extra=5, **options), prefixes=prefixes)
        assert drawn == greedy


def test_batch_mates_change_nothing() -> None:
    model, source = Toy(3, sharpness=0.5), sources(5, 2, 8)
    options = SamplingOptions(samples=6, max_extra=3)
    together = sample(model, source, options)
    for row in range(3):
        [alone] = sample(model, only(source, row), options)
        assert alone == together[row]


def test_the_seed_and_the_sentence_decide() -> None:
    model = Toy(3, sharpness=0.5)
    # Two sentences that are one and the same to the model.
    one, other = (Rows.one_a_row(torch.tensor([[i, 2]]), torch.tensor([2])) for i in (4, 17))
    assert torch.equal(model.keys(one), model.keys(other))

    def drawn(seed: int, source: Rows = one) -> list[list[int]]:
        [found] = sample(model, source, SamplingOptions(samples=8, seed=seed, min_length=5))
        return [h.ids for h in found]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert drawn(1) != drawn(1, other)
    assert len({tuple(ids) for ids in drawn(1)}) > 4


def test_limits_and_prefixes_hold() -> None:
    model = Toy(4)
    model.table[..., [0, 1, 3]] += 5
    options = SamplingOptions(samples=50, min_length=3, max_extra=2)
    for h in sample(model, sources(4), options, prefixes=[[6, 6]])[0]:
        assert h.ids[:2] == [6, 6]
        assert 3 <= len(h.ids) <= 6
        assert min(h.ids) >= FIRST


def test_an_impossible_sentence_is_its_prefix() -> None:
    model = Toy(4)
    model.table[...] = -math.inf
    [[nothing]] = sample(model, sources(4), SamplingOptions(), prefixes=[[5]])
    assert (nothing.ids, nothing.score) == ([5], -math.inf)


def test_no_sentences_give_no_samples() -> None:
    empty = Rows.one_a_row(torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0))
    assert sample(Toy(), empty, SamplingOptions()) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"temperature": 0.0}, "search.temperature = 0.0 must be above 0; for none, use a beam"),
        ({"top_p": 0.0}, "search.top_p = 0.0 must be above 0"),
        ({"top_p": 1.5}, "search.top_p = 1.5"),
        ({"top_k": -1}, "search.top_k = -1 is too small"),
        ({"samples": 0}, "search.samples = 0 is too small"),
        ({"max_extra": -1}, "search.max_extra = -1 is too small"),
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SamplingOptions(**wrong)


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"top_k": 4, "top_p": 0.9}, {"top_p": 0.8}])
def test_a_gpu_draws_what_the_cpu_draws(options: dict[str, float]) -> None:
    source, device = sources(5, 2, 8), torch.device("cuda")
    drawing = SamplingOptions(samples=20, max_extra=3, **options)
    expected = sample(Toy(3, sharpness=0.5), source, drawing)
    found = sample(Toy(3, sharpness=0.5).to(device), source.to(device), drawing)
    assert [[h.ids for h in row] for row in found] == [[h.ids for h in row] for row in expected]
