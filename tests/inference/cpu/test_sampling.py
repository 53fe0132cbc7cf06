"""The CPU engine draws the samples that PyTorch draws, by the same random numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from dragoman.inference.cpu.continuous_batching import ContinuousBatchingEngine
from dragoman.inference.cpu.sampling import draw
from dragoman.search import Hypothesis, SamplingOptions, SearchOptions, sample
from dragoman.search.batching import source_rows
from dragoman.search.constraints.requirements import OutputRequirements

from ...kernel import needs_kernel
from .small_models import BASE, engine, in_int8, made
from .test_search_limits import EAGER, eager, sources

pytestmark = needs_kernel

CUTOFFS: dict[str, dict[str, Any]] = {
    "the likeliest ten": {"top_k": 10},
    "the likeliest one": {"top_k": 1},
    "none that is rare": {"epsilon": 0.03},
    "both, and little mass": {"top_k": 20, "epsilon": 0.02, "top_p": 0.7},
    "colder": {"epsilon": 0.02, "temperature": 0.6},
    "at least five pieces": {"top_k": 8, "min_length": 5},
    "no pair twice": {"top_k": 8, "no_repeat_ngram": 2, "repetition_penalty": 1.3},
}
FREE = OutputRequirements()


def ids_of(found: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[one.ids for one in row] for row in found]


def check_agreement(
    found: list[list[Hypothesis]], expected: list[list[Hypothesis]], begin: int = 2
) -> None:
    """Keys and values in bf16 decide close calls, after which such a model says other things."""
    pairs = [both for rows in zip(found, expected, strict=True) for both in zip(*rows, strict=True)]
    assert sum(a.ids[:begin] == b.ids[:begin] for a, b in pairs) >= 0.6 * len(pairs)
    same = [(a, b) for a, b in pairs if a.ids == b.ids]
    for a, b in same:
        assert a.log_prob == pytest.approx(b.log_prob, abs=0.1, rel=0.03)
        assert sum(a.log_probs) == pytest.approx(a.log_prob, abs=1e-4)


@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_the_samples_are_those_of_pytorch_over_rounded_numbers(
    cutoff: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SamplingOptions(samples=6, max_extra=10, seed=3, **CUTOFFS[cutoff])
    sentences, model = sources(12), eager(1.0)
    ours = engine(model, EAGER, workers=2)
    assert ours.supports_sampling(options)
    found = ours.sample(sentences, options, [FREE] * len(sentences))
    with in_int8(model, monkeypatch), torch.no_grad():
        expected = sample(model, source_rows(sentences, torch.device("cpu")), options)
    assert found is not None
    check_agreement(found, expected)


def test_samples_do_not_depend_on_what_else_is_sampled() -> None:
    options = SamplingOptions(samples=5, top_k=10, max_extra=8)
    sentences, model = sources(40), made(BASE)
    together = engine(model, BASE, workers=2).sample(sentences, options, [FREE] * 40)
    alone = engine(model, BASE)
    assert together is not None
    for sentence, found in zip(sentences[:8], together, strict=False):
        assert ids_of(alone.sample([sentence], options, [FREE]) or []) == ids_of([found])


def test_the_samples_of_a_sentence_differ() -> None:
    found = engine(made(BASE), BASE).sample(
        sources(1), SamplingOptions(samples=20, top_k=50), [FREE]
    )
    assert found is not None
    assert len({tuple(one.ids) for one in found[0]}) > 10


def test_the_likeliest_piece_alone_is_greedy_search() -> None:
    ours, sentences = engine(made(BASE), BASE), sources(6)
    greedy = ours.search(sentences, SearchOptions(beam=1))
    drawn = ours.sample(sentences, SamplingOptions(samples=3, top_k=1), [FREE] * 6)
    assert drawn is not None
    assert ids_of(drawn) == [[one[0].ids] * 3 for one in greedy]


def test_every_sample_begins_with_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    options, prefix = SamplingOptions(samples=6, top_k=10), [9, 17, 30]
    sentences, required = sources(3), [OutputRequirements(prefix), FREE, OutputRequirements(prefix)]
    model = made(BASE)
    found = engine(model, BASE).sample(sentences, options, required)
    assert found is not None
    assert all(one.ids[:3] == prefix for row in (found[0], found[2]) for one in row)
    assert len({tuple(one.ids) for one in found[0]}) > 1
    rows = source_rows(sentences, torch.device("cpu"))
    with in_int8(model, monkeypatch), torch.no_grad():
        expected = sample(model, rows, options, prefixes=[prefix, [], prefix])
    check_agreement(found, expected, begin=5)


def test_a_service_samples_what_the_engine_samples() -> None:
    ours, options = engine(made(BASE), BASE), SamplingOptions(samples=4, top_k=10)
    sentences = sources(4)
    served = ContinuousBatchingEngine(ours, 20)  # the table of positions is too short for some
    expected = ours.sample(sentences, options, [FREE] * 4)
    assert served.sample(sentences, options, [FREE] * 4) == expected


def test_pieces_are_drawn_as_often_as_they_are_probable() -> None:
    draws = 20_000
    log_probs = np.log(np.tile([0.4, 0.3, 0.2, 0.06], (draws, 1)).astype(np.float32))
    uniform = (np.arange(draws) + 0.5) / draws
    for options, expected in [
        (SamplingOptions(top_k=4), [0.4, 0.3, 0.2, 0.06]),
        (SamplingOptions(top_k=4, epsilon=0.1), [4 / 9, 3 / 9, 2 / 9, 0]),
        (SamplingOptions(top_k=4, epsilon=0.9), [1, 0, 0, 0]),
        (SamplingOptions(top_k=4, epsilon=0.1, temperature=0.5), [16 / 29, 9 / 29, 4 / 29, 0]),
    ]:
        counts = Counter(draw(log_probs, uniform, options).tolist())
        total = sum(expected)
        shares = [counts[piece] / draws for piece in range(4)]
        assert shares == pytest.approx([one / total for one in expected], abs=2e-4)


@pytest.mark.parametrize("options", [{}, {"top_p": 0.5}, {"top_k": 65}, {"epsilon": 0.01}])
def test_what_draws_from_more_pieces_is_left_to_pytorch(options: dict[str, float]) -> None:
    assert not engine(made(BASE), BASE).supports_sampling(SamplingOptions(**options))
