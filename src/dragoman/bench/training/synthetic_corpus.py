"""Sentences are made up for benchmarks, the same on every machine, as long as those of news.

They are packed as in training, so that padding costs here what it costs there.
"""

# N pairs

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.config import Config
from dragoman.data.batching.batches import Batch, Batches
from dragoman.data.store import id_type
from dragoman.text.special_tokens import UNK

Numbers: TypeAlias = NDArray[np.integer[Any]]

CORPUS_PAIRS: Final = 80_000
"""The pairs of the corpus: two chunks of batches, so that the first is packed like any other."""
SEED: Final = 1
MEAN_LENGTH: Final = 27.0
"""The mean number of pieces on either side, as in the paper's English-German corpus."""
LENGTH_DEVIATION: Final = 0.6
"""The standard deviation of the logarithm of a source sentence's length."""
RATIO_DEVIATION: Final = 0.25
"""The standard deviation of the logarithm of target length ÷ source length."""
ZIPF_SHIFT: Final = 2.7
"""Mandelbrot's shift of Zipf's law: the k-th piece has a probability ∝ 1 / (k + 2.7)."""


class SyntheticPairs:
    """Hold pairs of random ids, a pure function of (vocabulary, longest, pairs, seed).

    Lengths are log-normal, of 27 pieces on average before they are cut to 1 … `longest`; ids
    follow Zipf's law, the frequent ones first, as a tokeniser numbers them.
    """

    def __init__(
        self, *, vocabulary: int, longest: int, pairs: int = CORPUS_PAIRS, seed: int = SEED
    ) -> None:
        random = np.random.Generator(np.random.PCG64(seed))
        source_N = _log_normal(random, LENGTH_DEVIATION, pairs) * MEAN_LENGTH
        target_N = source_N * _log_normal(random, RATIO_DEVIATION, pairs)
        self._source = _SyntheticSentences(random, source_N, vocabulary, longest)
        self._target = _SyntheticSentences(random, target_N, vocabulary, longest)
        self.meta = CorpusTotals(
            self._source.pieces, self._target.pieces, self._source.longest, self._target.longest
        )

    @classmethod
    def for_config(cls, config: Config) -> Self:
        """Return the pairs that every benchmark with this vocabulary and longest sentence uses."""
        return cls(vocabulary=config.tokenizer.vocabulary, longest=config.data.max_length)

    def __len__(self) -> int:
        return self._source.count

    def source(self, index: int, /) -> Numbers:
        """Return the ids of a source sentence."""
        return self._source.sentence(index)

    def target(self, index: int, /) -> Numbers:
        """Return the ids of a target sentence."""
        return self._target.sentence(index)

    def source_lengths(self, indices: Numbers, /) -> Numbers:
        """Return how many pieces these source sentences have."""
        return self._source.lengths_N[indices]

    def target_lengths(self, indices: Numbers, /) -> Numbers:
        """Return how many pieces these target sentences have."""
        return self._target.lengths_N[indices]


@dataclass(frozen=True, slots=True)
class CorpusTotals:
    """Hold the totals that batches are planned by."""

    source_pieces: int
    target_pieces: int
    longest_source: int
    longest_target: int


class _SyntheticSentences:
    """Hold the sentences of one side, one after the other."""

    def __init__(
        self,
        random: np.random.Generator,
        lengths_N: NDArray[np.float64],
        vocabulary: int,
        longest: int,
    ) -> None:
        self.lengths_N = np.clip(np.rint(lengths_N), 1, longest).astype(np.int64)
        self.count = len(self.lengths_N)
        self.pieces = int(self.lengths_N.sum())
        self.longest = int(self.lengths_N.max())
        self._ends_N = np.cumsum(self.lengths_N)
        self._ids = _zipf(random, vocabulary, self.pieces)

    def sentence(self, index: int) -> Numbers:
        end = self._ends_N[index]
        return self._ids[end - self.lengths_N[index] : end]


def _log_normal(random: np.random.Generator, deviation: float, count: int) -> NDArray[np.float64]:
    """Return random factors of mean 1."""
    return random.lognormal(-(deviation**2) / 2, deviation, count)


def _zipf(random: np.random.Generator, vocabulary: int, count: int) -> Numbers:
    first = UNK + 1
    weights = 1 / (np.arange(1, vocabulary - first + 1) + ZIPF_SHIFT)
    ends = np.cumsum(weights / weights.sum())[:-1]  # a draw past the last end is the last piece
    found = np.searchsorted(ends, random.random(count), side="right") + first
    return found.astype(id_type(vocabulary))


def packed_batches(config: Config, pairs: SyntheticPairs, count: int) -> list[Batch]:
    """Return the first `count` batches that a run with this config would make of the pairs."""
    batches = Batches(
        pairs,
        batch_tokens=config.training.tokens,
        row_length=config.data.row_length,
        seed=config.training.seed,
    )
    return [batch for batch, _ in islice(batches.stream(), count)]
