"""The kernel draws samples: each is a hypothesis of its sentence's slot, on its own.

The kernel returns the likeliest pieces alone. So it can sample where only some of these may be
drawn, by `top_k` or `epsilon`. The rules, and the random numbers, are those of
`dragoman.search.sampling`.
"""

# A sentences being sampled, K samples of each, C pieces drawn from, X samples that go on

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.search import (
    IMPOSSIBLE,
    AllowedPieces,
    BatchSearch,
    Floats,
    Ints,
    SearchJob,
)
from dragoman.search.options import (
    Hypothesis,
    Limits,
    SamplingOptions,
    SearchOptions,
    fallback_hypothesis,
)
from dragoman.search.random_numbers import random_numbers
from dragoman.text.special_tokens import EOS


def draw(
    log_probs_XC: Floats, uniform_X: NDArray[np.float64], options: SamplingOptions
) -> NDArray[np.intp]:
    """Return which of the likeliest pieces is drawn; they are given best first."""
    values_XC = log_probs_XC.astype(np.float64)
    scaled_XC = (values_XC - values_XC[:, :1]) / options.temperature
    probs_XC = np.exp(scaled_XC)
    probs_XC /= probs_XC.sum(1, keepdims=True)
    if options.top_p < 1:
        probs_XC[probs_XC.cumsum(1) - probs_XC >= options.top_p] = 0.0
    if options.epsilon > 0:
        rare_XC = values_XC < np.log(options.epsilon)
        rare_XC[:, 0] = False
        probs_XC[rare_XC] = 0.0
    mass_XC = probs_XC.cumsum(1)
    goal_X1 = uniform_X[:, None] * mass_XC[:, -1:]
    return np.asarray(np.minimum((mass_XC <= goal_X1).sum(1), mass_XC.shape[1] - 1))


class SamplingSearch(BatchSearch):
    """Draw every piece of every sample; there are as many beams as samples."""

    def __init__(
        self,
        model: kernel_library.KernelModel,
        sampling: SamplingOptions,
        allowed: AllowedPieces,
        **settings: Any,
    ) -> None:
        """Take what `BatchSearch` takes, with options of sampling."""
        limits = {name: getattr(sampling, name) for name in Limits.__dataclass_fields__}
        options = SearchOptions(beam=sampling.samples, n_best=sampling.samples, **limits)
        super().__init__(model, options, allowed, **settings)
        assert sampling.most_pieces is not None
        self._sampling, self._pieces = sampling, sampling.most_pieces
        self._uniform: NDArray[np.float64] = np.zeros((self.slots, self.beams, self.longest))

    def admit(self, coming: list[SearchJob]) -> list[int]:
        """Encode sentences into free slots; all samples of one begin alike."""
        slots = super().admit(coming)
        for slot, job in zip(slots, coming, strict=True):
            begun = int(self.lengths[slot])
            for table in (self.ids, self.running_sums, self.cache_tables):
                table[slot, 1:, :begun] = table[slot, 0, :begun]
            self.last[slot], self.sums[slot] = self.last[slot, 0], self.sums[slot, 0]
            drawn = random_numbers(job.source, job.max_length, self._sampling)
            self._uniform[slot, :, : drawn.shape[1]] = drawn
            self.finished[slot] = [fallback_hypothesis(list(job.prefix))] * self.beams
        return slots

    def step(self, active_A: Ints) -> list[int]:
        """Extend every sample of these slots by a piece; return the slots that are done."""
        lengths_A = self.lengths[active_A]
        open_AK = self.sums[active_A] > IMPOSSIBLE
        places, samples = open_AK.nonzero()
        slots_X, lengths_X = active_A[places], lengths_A[places]
        allowed_AKC = self._allowed_next(active_A)
        found_XC, log_probs_XC = self._compute(
            self._last_pieces(slots_X, samples),
            self._last_pieces(slots_X[:0], samples[:0]),
            None if allowed_AKC is None else allowed_AKC[open_AK],
            self._pieces,
        )
        log_probs_XC[log_probs_XC < IMPOSSIBLE] = -np.inf
        with np.errstate(invalid="ignore"):  # where nothing is possible
            chosen_X = draw(
                log_probs_XC, self._uniform[slots_X, samples, lengths_X], self._sampling
            )
        rows_X = np.arange(len(chosen_X))
        pieces_X = found_XC[rows_X, chosen_X]
        totals_X = self.sums[slots_X, samples] + log_probs_XC[rows_X, chosen_X]
        ended_X = pieces_X == EOS
        for x in np.flatnonzero(ended_X & (totals_X > IMPOSSIBLE)).tolist():
            self._finish(int(slots_X[x]), int(samples[x]), int(lengths_X[x]), float(totals_X[x]))
        self.ids[slots_X, samples, lengths_X] = pieces_X
        self.running_sums[slots_X, samples, lengths_X] = totals_X
        self.last[slots_X, samples] = pieces_X
        self.sums[slots_X, samples] = np.where(ended_X, -np.inf, totals_X)
        self.lengths[active_A] += 1
        going_A = (self.sums[active_A] > IMPOSSIBLE).any(1)
        done: list[int] = active_A[~going_A].tolist()
        return done

    def _finish(self, slot: int, sample: int, length: int, total: float) -> None:
        """Keep a sample that has ended, at its place among the others."""
        ids: list[int] = self.ids[slot, sample, :length].tolist()
        sums: Sequence[float] = self.running_sums[slot, sample, :length].tolist()
        score = total / float(self.penalties[length])
        self.finished[slot][sample] = Hypothesis.from_running_sums(ids, score, total, sums)
