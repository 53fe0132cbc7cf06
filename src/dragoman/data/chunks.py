"""A chunk of an epoch, built from nothing but its number.

An epoch's shuffled order is cut into chunks of some ten thousand pairs: enough to pack well, few
enough to be there in a fraction of a second. A chunk is a pure function of (store, settings,
seed, epoch, chunk), so any process can build it and nothing before it needs to be read.
"""

# N pairs, R rows of a batch, S and T the lengths of its source and target rows

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.data.layout import Batch, lay_out
from dragoman.data.packing import pack
from dragoman.data.shuffle import derive, shuffled

__all__ = ["Chunks", "PairStore", "Sampler"]

Numbers: TypeAlias = NDArray[np.integer[Any]]
Sampler: TypeAlias = Callable[[Sequence[Numbers], int], Sequence[Sequence[int]]]
"""Other segmentations of these sentences, drawn with this seed; picklable where workers are."""

CHUNK_PAIRS: Final = 40_000
SAMPLED_CHUNK_PAIRS: Final = 10_000
"""Drawing segmentations takes many times as long as all the rest."""
GROWTH_PAIRS: Final = 200
"""Pairs segmented anew on trial, to know how much longer that makes them."""

_ORDER, _ROWS, _SOURCE, _TARGET = range(4)  # what a seed is derived for


class Totals(Protocol):
    """What a store knows of itself without looking."""

    @property
    def source_pieces(self) -> int:
        """Of all source sentences together."""

    @property
    def target_pieces(self) -> int:
        """Of all target sentences together."""

    @property
    def longest_source(self) -> int:
        """Pieces of the longest source sentence."""

    @property
    def longest_target(self) -> int:
        """Pieces of the longest target sentence."""


class PairStore(Protocol):
    """Pairs of id sequences without begin and end marks; cheap to pickle where workers are."""

    @property
    def meta(self) -> Totals:
        """Its totals."""

    def __len__(self) -> int: ...

    def source(self, index: int, /) -> Numbers:
        """The ids of a source sentence."""

    def target(self, index: int, /) -> Numbers:
        """The ids of a target sentence."""

    def source_lengths(self, indices: Numbers, /) -> Numbers:
        """How many pieces these source sentences have."""

    def target_lengths(self, indices: Numbers, /) -> Numbers:
        """How many pieces these target sentences have."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """All chunks of all epochs; each is made when asked for."""

    store: PairStore
    shape: tuple[int, int, int]
    seed: int
    shuffle: bool
    sampler: Sampler | None
    sample_targets: bool = True
    """Whether targets, too, are text that the sampler can cut otherwise."""
    pairs: int = field(init=False)
    """Of a chunk; the last one of an epoch has up to half as many more or less."""
    count: int = field(init=False)
    """Chunks of an epoch."""

    def __post_init__(self) -> None:
        pairs = self._pairs_of_whole_batches()
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "count", max(1, round(len(self.store) / pairs)))

    def build(self, number: tuple[int, int]) -> list[Batch]:
        """The batches of (epoch, chunk)."""
        epoch, chunk = number
        end = (chunk + 1) * self.pairs if chunk + 1 < self.count else len(self.store)
        indices = np.arange(chunk * self.pairs, end)
        if self.shuffle:
            seed = derive(self.seed, _ORDER, epoch)
            indices = np.sort(shuffled(indices, len(self.store), seed))  # reads go one way
        _, S, T = self.shape
        source, target = self._read(indices)
        source = self._sampled(source, S, derive(self.seed, _SOURCE, epoch, chunk))
        if self.sample_targets:
            target = self._sampled(target, T, derive(self.seed, _TARGET, epoch, chunk))
        rows = pack(_lengths(source), _lengths(target), S, T)
        if self.shuffle:
            seed = derive(self.seed, _ROWS, epoch, chunk)
            rows = [rows[row] for row in shuffled(np.arange(len(rows)), len(rows), seed)]
        return lay_out(source, target, rows, self.shape)

    def _read(self, indices: NDArray[np.int64]) -> tuple[list[Numbers], list[Numbers]]:
        numbers = indices.tolist()
        return [self.store.source(i) for i in numbers], [self.store.target(i) for i in numbers]

    def _sampled(self, sentences: list[Numbers], L: int, seed: int) -> list[Numbers]:
        """Other segmentations, but not where there is none or none that the row can hold."""
        if self.sampler is None:
            return sentences
        drawn = self.sampler(sentences, seed)
        return [
            np.asarray(new, old.dtype) if 0 < len(new) < L else old
            for new, old in zip(drawn, sentences, strict=True)
        ]

    def _pairs_of_whole_batches(self) -> int:
        """About CHUNK_PAIRS, such that a chunk's rows nearly fill its last batch.

        The rows a chunk will need are estimated from the means of the store and a trial packing.
        Their number varies from chunk to chunk; a batch that is begun for a few rows too many
        costs more than some empty rows, so the aim is a little below whole batches.
        """
        R, S, T = self.shape
        N, meta = len(self.store), self.store.meta
        wanted = SAMPLED_CHUNK_PAIRS if self.sampler else CHUNK_PAIRS
        trial = np.arange(min(N, wanted // 5)) * N // min(N, wanted // 5)
        source_N = self.store.source_lengths(trial) + 1
        target_N = self.store.target_lengths(trial) + 1
        rows = len(pack(source_N, target_N, S, T))
        # The trial's sentences are a little longer or shorter than the store's.
        need = max((meta.source_pieces + N) / S, (meta.target_pieces + N) / T) / N
        efficiency = max(source_N.sum() / S, target_N.sum() / T) / rows
        rows_a_pair = need / efficiency * self._growth(trial)
        batches = max(1, round(wanted * rows_a_pair / R))
        pairs = batches * R / rows_a_pair
        sizes_N = source_N / S + target_N / T
        deviation = float(sizes_N.std() / sizes_N.mean()) / math.sqrt(pairs)
        return max(1, int(pairs * (1 - _margin(deviation, batches))))

    def _growth(self, trial: NDArray[np.int64]) -> float:
        """How many times as long the sampler makes sentences."""
        _, S, T = self.shape
        sides = list(zip(self._read(trial[:: -(-len(trial) // GROWTH_PAIRS)]), (S, T), strict=True))
        return max(
            float(_lengths(self._sampled(old, L, seed=0)).sum() / _lengths(old).sum())
            for old, L in (sides if self.sample_targets else sides[:1])
        )


def _margin(deviation: float, batches: int) -> float:
    """The share of rows to leave empty for the least waste.

    That is the least of z × deviation + P(more than z deviations) / batches, as for a normal
    distribution: empty rows against one more batch, begun and spread.
    """
    slope = batches * deviation * math.sqrt(2 * math.pi)
    return deviation * math.sqrt(-2 * math.log(slope)) if 0 < slope < 1 else 0.0


def _lengths(sentences: Sequence[Numbers]) -> NDArray[np.int64]:
    """Positions of each: its pieces and one mark."""
    return np.fromiter(map(len, sentences), np.int64, len(sentences)) + 1
