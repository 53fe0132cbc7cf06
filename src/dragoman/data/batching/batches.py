"""Batches have one static shape, are nearly free of padding, and can be resumed anywhere.

Sentence pairs are packed into rows, with the number of its segment and the position in it at every
place: its pieces and EOS on the source side, BOS and its pieces as the decoder's input, its pieces
and EOS as the expected output. docs/batches.md tells how, and what it gains. An epoch's shuffled
order is cut into chunks of some ten thousand pairs: enough to pack well, few enough to be there in
a fraction of a second. A chunk is a pure function of (store, settings, seed, epoch, chunk), so any
process can build it and nothing before it needs to be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields
from itertools import count, pairwise
from typing import Any, Final, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batching.packing import pack
from dragoman.data.batching.shuffle import derive_seed, shuffle_indices
from dragoman.errors import ConfigError, DataError
from dragoman.system.process_pool import map_ahead
from dragoman.text.special_tokens import BOS, EOS, PAD

# N pairs, C rows of a chunk, R rows of a batch, L row length (S source, T target)


Ids: TypeAlias = NDArray[np.int32]
Numbers: TypeAlias = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Hold rows of packed pairs; a pair has the same row and segment number on both sides."""

    source_ids: Ids  # R S
    source_segments: Ids  # R S; from 1, 0 is padding
    source_positions: Ids  # R S; from 0 in each segment
    target_input: Ids  # R T; begins with BOS
    target_output: Ids  # R T; ends with EOS
    target_segments: Ids  # R T
    target_positions: Ids  # R T

    @property
    def sentences(self) -> int:
        """Return how many pairs there are."""
        return int(self.target_segments.max(axis=1, initial=0).sum())

    @property
    def source_tokens(self) -> int:
        """Return how many source positions are not padding, EOS counted."""
        return int(np.count_nonzero(self.source_segments))

    @property
    def target_tokens(self) -> int:
        """Return how many target positions are not padding; the loss is the mean over these."""
        return int(np.count_nonzero(self.target_segments))

    def rows(self, part: int, parts: int) -> Batch:
        """Return one of `parts` equal shares, for a rank or a slice of accumulation.

        A share has every parts-th row, so that empty rows, which come last, are shared evenly.
        """
        return Batch(*(np.ascontiguousarray(a[part::parts]) for a in self.arrays()))

    def with_rows(self, count: int) -> Batch:
        """Return the batch with empty rows at its end, `count` rows in all."""
        more = count - len(self.source_ids)
        if more <= 0:
            return self
        return Batch(*(np.pad(a, ((0, more), (0, 0)), constant_values=PAD) for a in self.arrays()))

    def arrays(self) -> list[Ids]:
        """Return all arrays, in the order in which they stand above."""
        return [getattr(self, field.name) for field in fields(self)]


def lay_out(
    source: Sequence[Numbers],
    target: Sequence[Numbers],
    rows: Sequence[Sequence[int]],
    shape: tuple[int, int, int],
) -> list[Batch]:
    """Make as few batches of R rows as hold the rows; empty rows are shared among them."""
    R, S, T = shape
    batches = -(-len(rows) // R)
    bounds = [len(rows) * batch // batches for batch in range(batches + 1)]
    all_rows: list[Sequence[int]] = []  # of all batches
    for start, end in pairwise(bounds):
        all_rows += [*rows[start:end], *[()] * (R - (end - start))]
    _, *source_grids = _grids(source, all_rows, S)
    grids = [grid.reshape(batches, R, -1) for grid in [*source_grids, *_grids(target, all_rows, T)]]
    return [Batch(*(grid[batch] for grid in grids)) for batch in range(batches)]


def _grids(sentences: Sequence[Numbers], rows: Sequence[Sequence[int]], L: int) -> list[Ids]:
    """Return input, output, segments and positions of all rows, end to end.

    The padding of a row is laid out like one more sentence, of segment 0 and maybe no length.
    """
    order = [index for row in rows for index in row]
    lengths_N = np.fromiter(map(len, sentences), np.int64, len(sentences))[order] + 1
    sizes_C = np.fromiter(map(len, rows), np.int64, len(rows))
    bounds_C = np.cumsum(sizes_C)
    ends_N = np.concatenate([[0], np.cumsum(lengths_N)])
    padding_C = L - (ends_N[bounds_C] - ends_N[bounds_C - sizes_C])

    kind = sentences[0].dtype
    eos, pad_L = np.array([EOS], kind), np.full(L, PAD, kind)
    pieces: list[Any] = []
    for row, padding in zip(rows, padding_C.tolist(), strict=True):
        for index in row:
            pieces += (sentences[index], eos)
        pieces.append(pad_L[:padding])
    # np.concatenate would do the same in three times the time.
    output = np.frombuffer(b"".join(pieces), kind).astype(np.int32)

    # N now counts the paddings too.
    lengths_N = np.insert(lengths_N, bounds_C, padding_C)
    segment_N = np.insert(_count_within(sizes_C) + 1, bounds_C, 0)
    segments = np.repeat(segment_N.astype(np.int32), lengths_N)
    positions = _count_within(lengths_N) * (segments > 0)

    shifted = np.roll(output, 1)
    starts_N = np.cumsum(lengths_N) - lengths_N
    real_N, some_N = segment_N > 0, lengths_N > 0
    shifted[starts_N[~real_N & some_N]] = PAD
    shifted[starts_N[real_N]] = BOS
    return [shifted, output, segments, positions]


def _count_within(lengths: NDArray[np.int64]) -> Ids:
    """Count 0, 1, … within each of the lengths, one after another."""
    starts = (np.cumsum(lengths) - lengths).astype(np.int32)
    return np.arange(lengths.sum(), dtype=np.int32) - np.repeat(starts, lengths)


# N pairs, R rows of a batch, S and T the lengths of its source and target rows


Sampler: TypeAlias = Callable[[Sequence[Numbers], int], Sequence[Sequence[int]]]
"""Draws other segmentations of sentences with a seed; picklable where there are workers."""

CHUNK_PAIRS: Final = 40_000
"""About so many pairs make a chunk."""
SAMPLED_CHUNK_PAIRS: Final = 10_000
"""The same where segmentations are drawn, which takes many times as long as all the rest."""
GROWTH_PAIRS: Final = 200
"""So many pairs are segmented anew on trial, to know how much longer that makes them."""

_ORDER, _ROWS, _SOURCE, _TARGET = range(4)  # what a seed is derived for


class StoreTotals(Protocol):
    """Know the totals of a store without reading it."""

    @property
    def source_pieces(self) -> int:
        """Return the pieces of all source sentences together."""

    @property
    def target_pieces(self) -> int:
        """Return the pieces of all target sentences together."""

    @property
    def longest_source(self) -> int:
        """Return the pieces of the longest source sentence."""

    @property
    def longest_target(self) -> int:
        """Return the pieces of the longest target sentence."""


class PairStore(Protocol):
    """Give pairs of id sequences without begin and end marks; be cheap to pickle for workers."""

    @property
    def meta(self) -> StoreTotals:
        """Return how many pairs and pieces there are in all."""

    def __len__(self) -> int: ...

    def source(self, index: int, /) -> Numbers:
        """Return the ids of a source sentence."""

    def target(self, index: int, /) -> Numbers:
        """Return the ids of a target sentence."""

    def source_lengths(self, indices: Numbers, /) -> Numbers:
        """Return how many pieces these source sentences have."""

    def target_lengths(self, indices: Numbers, /) -> Numbers:
        """Return how many pieces these target sentences have."""


@dataclass(frozen=True, slots=True)
class ChunkBuilder:
    """Build any chunk of any epoch when it is asked for."""

    store: PairStore
    shape: tuple[int, int, int]
    seed: int
    shuffle: bool
    sampler: Sampler | None
    sample_targets: bool = True
    """Whether targets, too, are text that the sampler can cut otherwise."""
    pairs: int = field(init=False)
    """Pairs of a chunk; the last one of an epoch has up to half as many more or less."""
    count: int = field(init=False)
    """Chunks of an epoch."""
    rows_a_pair: float = field(init=False)
    """Rows that a pair takes, by an estimate."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows_a_pair", self._estimate_rows_a_pair())
        pairs = self._pairs_of_whole_batches()
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "count", max(1, round(len(self.store) / pairs)))

    def build(self, number: tuple[int, int]) -> list[Batch]:
        """Return the batches of (epoch, chunk)."""
        epoch, chunk = number
        end = (chunk + 1) * self.pairs if chunk + 1 < self.count else len(self.store)
        indices = np.arange(chunk * self.pairs, end)
        if self.shuffle:
            seed = derive_seed(self.seed, _ORDER, epoch)
            indices = np.sort(shuffle_indices(indices, len(self.store), seed))  # reads go one way
        _, S, T = self.shape
        source, target = self._read(indices)
        source = self._sample(source, S, derive_seed(self.seed, _SOURCE, epoch, chunk))
        if self.sample_targets:
            target = self._sample(target, T, derive_seed(self.seed, _TARGET, epoch, chunk))
        rows = pack(_lengths(source), _lengths(target), S, T)
        if self.shuffle:
            seed = derive_seed(self.seed, _ROWS, epoch, chunk)
            rows = [rows[row] for row in shuffle_indices(np.arange(len(rows)), len(rows), seed)]
        return lay_out(source, target, rows, self.shape)

    def _read(self, indices: NDArray[np.int64]) -> tuple[list[Numbers], list[Numbers]]:
        numbers = indices.tolist()
        return [self.store.source(i) for i in numbers], [self.store.target(i) for i in numbers]

    def _sample(self, sentences: list[Numbers], L: int, seed: int) -> list[Numbers]:
        """Draw other segmentations, but not where there is none or none that fits the row."""
        if self.sampler is None:
            return sentences
        drawn = self.sampler(sentences, seed)
        return [
            np.asarray(new, old.dtype) if 0 < len(new) < L else old
            for new, old in zip(drawn, sentences, strict=True)
        ]

    def _trial_pairs(self) -> NDArray[np.int64]:
        """Return the numbers of pairs that stand for all, a fifth of a chunk."""
        N = len(self.store)
        count = min(N, self._wanted_pairs // 5)
        return np.arange(count) * N // count

    @property
    def _wanted_pairs(self) -> int:
        return SAMPLED_CHUNK_PAIRS if self.sampler else CHUNK_PAIRS

    def _estimate_rows_a_pair(self) -> float:
        """Return how many rows a pair takes, by the means of the store and a trial packing."""
        _, S, T = self.shape
        N, meta, trial = len(self.store), self.store.meta, self._trial_pairs()
        source_N = self.store.source_lengths(trial) + 1
        target_N = self.store.target_lengths(trial) + 1
        rows = len(pack(source_N, target_N, S, T))
        # The trial's sentences are a little longer or shorter than the store's.
        need = max((meta.source_pieces + N) / S, (meta.target_pieces + N) / T) / N
        efficiency = max(source_N.sum() / S, target_N.sum() / T) / rows
        return float(need / efficiency * self._growth(trial))

    def _pairs_of_whole_batches(self) -> int:
        """Return about CHUNK_PAIRS, such that a chunk's rows nearly fill its last batch.

        The rows of a chunk vary from one to the next; a batch that is begun for a few rows too
        many costs more than some empty rows, so the aim is a little below whole batches.
        """
        R, S, T = self.shape
        trial, rows_a_pair = self._trial_pairs(), self.rows_a_pair
        source_N = self.store.source_lengths(trial) + 1
        target_N = self.store.target_lengths(trial) + 1
        batches = max(1, round(self._wanted_pairs * rows_a_pair / R))
        pairs = batches * R / rows_a_pair
        sizes_N = source_N / S + target_N / T
        deviation = float(sizes_N.std() / sizes_N.mean()) / math.sqrt(pairs)
        return max(1, int(pairs * (1 - _margin(deviation, batches))))

    def _growth(self, trial: NDArray[np.int64]) -> float:
        """Return how many times as long the sampler makes sentences."""
        _, S, T = self.shape
        sides = list(zip(self._read(trial[:: -(-len(trial) // GROWTH_PAIRS)]), (S, T), strict=True))
        return max(
            float(_lengths(self._sample(old, L, seed=0)).sum() / _lengths(old).sum())
            for old, L in (sides if self.sample_targets else sides[:1])
        )


def _margin(deviation: float, batches: int) -> float:
    """Return the share of rows to leave empty for the least waste.

    That is the least of z × deviation + P(more than z deviations) / batches, as for a normal
    distribution: empty rows against one more batch.
    """
    slope = batches * deviation * math.sqrt(2 * math.pi)
    return deviation * math.sqrt(-2 * math.log(slope)) if 0 < slope < 1 else 0.0


def _lengths(sentences: Sequence[Numbers]) -> NDArray[np.int64]:
    """Return the positions of each sentence: its pieces and one mark."""
    return np.fromiter(map(len, sentences), np.int64, len(sentences)) + 1


@dataclass(frozen=True, slots=True)
class Position:
    """Say which batch comes next: `batch` of `chunk` of `epoch`, all from 0."""

    epoch: int = 0
    chunk: int = 0
    batch: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the position as JSON holds it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, numbers: dict[str, Any]) -> Self:
        """Make a position from what `to_dict` gave."""
        try:
            position = cls(**{name: int(number) for name, number in numbers.items()})
        except (TypeError, ValueError):
            raise DataError(f"{numbers!r} is not a position in the data") from None
        if min(asdict(position).values()) < 0:
            raise DataError(f"{numbers!r} is not a position in the data")
        return position


START = Position()


class Batches:
    """Yield the batches of a store, epoch after epoch.

    Every batch has the shape (R, S, T): R rows, `multiple_of` dividing R; the side with more
    pieces has rows of `row_length`, the other shorter ones in proportion. Every pair comes once
    an epoch. The number of workers changes nothing but the speed.
    """

    def __init__(
        self,
        store: PairStore,
        *,
        batch_tokens: int,
        row_length: int,
        seed: int,
        multiple_of: int = 1,
        shuffle: bool = True,
        sampler: Sampler | None = None,
        sample_targets: bool = True,
        workers: int = 0,
    ) -> None:
        if len(store) == 0:
            raise DataError("there are no sentence pairs to make batches of; prepare a corpus")
        longest = max(store.meta.longest_source, store.meta.longest_target)
        if longest >= row_length:
            raise ConfigError(
                f"data.row_length = {row_length} cannot hold a sentence of {longest} pieces and "
                f"its end mark; try {longest + 1}"
            )
        R = max(batch_tokens // row_length // multiple_of, 1) * multiple_of
        self.shape = (R, *_row_lengths(store, row_length))
        """R, S, T: the same for every batch."""
        self._chunks = ChunkBuilder(store, self.shape, seed, shuffle, sampler, sample_targets)
        self.chunks = self._chunks.count
        self._workers = workers

    @property
    def batches_an_epoch(self) -> int:
        """Return how many batches an epoch has, by the estimate that chunks are cut by."""
        R, chunks = self.shape[0], self._chunks
        last = len(chunks.store) - (chunks.count - 1) * chunks.pairs
        whole, rest = (
            math.ceil(pairs * chunks.rows_a_pair / R - 1e-9) for pairs in (chunks.pairs, last)
        )
        return (chunks.count - 1) * whole + max(1, rest)

    def stream(self, position: Position = START) -> Generator[tuple[Batch, Position], None, None]:
        """Yield batches without end, from the position on, each with the next one's position.

        Closing the generator ends its workers.
        """
        per_epoch = self.chunks
        start = position.epoch * per_epoch + position.chunk
        with closing(self._build(count(start))) as built:
            for number, batches in zip(count(start), built, strict=False):
                first = position.batch if number == start else 0
                if position.chunk >= per_epoch or first >= len(batches):
                    raise DataError(
                        f"there is no batch at {position}; the corpus or the batch settings are "
                        "not those it was saved with"
                    )
                for index, batch in enumerate(batches[first:], first + 1):
                    if index < len(batches):
                        yield batch, Position(*divmod(number, per_epoch), index)
                    else:
                        yield batch, Position(*divmod(number + 1, per_epoch))

    def epoch(self, number: int = 0) -> Generator[Batch, None, None]:
        """Yield the batches of one pass over all pairs."""
        per_epoch = self.chunks
        with closing(self._build(range(number * per_epoch, (number + 1) * per_epoch))) as built:
            for batches in built:
                yield from batches

    def _build(self, numbers: Iterable[int]) -> Generator[list[Batch], None, None]:
        """Build chunks, given by their numbers over all epochs."""
        pairs = (divmod(number, self.chunks) for number in numbers)
        return map_ahead(self._chunks.build, pairs, self._workers)


def _row_lengths(store: PairStore, row_length: int) -> tuple[int, int]:
    """Return S and T: the side with more pieces has the full length, the other its share.

    The share is the nearest multiple of 4, or the next that holds the longest sentence.
    """
    meta, pairs = store.meta, len(store)
    most = max(meta.source_pieces, meta.target_pieces) + pairs

    def side(pieces: int, longest: int) -> int:
        share = row_length * (pieces + pairs) / most
        return min(row_length, 4 * max(round(share / 4), longest // 4 + 1))

    return side(meta.source_pieces, meta.longest_source), side(
        meta.target_pieces, meta.longest_target
    )
