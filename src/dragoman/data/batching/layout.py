"""Packed sentences are laid out in the arrays of a batch.

A pair is one segment of one row: its pieces and EOS on the source side, BOS and its pieces as the
decoder's input, its pieces and EOS as the expected output.
"""

# N pairs, C rows of a chunk, R rows of a batch, L row length (S source, T target)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.text.special_tokens import BOS, EOS, PAD

__all__ = ["Batch", "lay_out"]

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
