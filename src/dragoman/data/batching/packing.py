"""Sentence pairs are packed into rows: bin packing in two dimensions, a microsecond or two a pair.

Pairs wait in buckets of equal size. In a bucket they are sorted by lean: by how much more of its
target row than of its source row a pair takes. A row begins with the largest pair there is, goes
on with pairs of random sizes, each the one of its bucket that leans most against the row so far,
and ends with the largest that fit, each leaning so that both sides come out even. The lopsided
pairs are thus used up while there is much to balance them with.
"""

# N pairs, S and T room of a row on the source and the target side

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dragoman.data.batching.shuffle import shuffle_indices

ENDING: Final = 1.5
"""A row keeps room for this many pairs of average size for its end."""


def pack(
    source_lengths_N: NDArray[np.integer[Any]],
    target_lengths_N: NDArray[np.integer[Any]],
    S: int,
    T: int,
) -> list[list[int]]:
    """Return rows of pairs, as indices; each pair is in one row, no row exceeds S or T."""
    source, target = source_lengths_N.tolist(), target_lengths_N.tolist()
    # In units of which a row holds S × T on both sides; sizes are in positions of the longer row.
    source_N = source_lengths_N.astype(np.int64) * T
    target_N = target_lengths_N.astype(np.int64) * S
    unit = 2 * min(S, T)
    sizes_N = (source_N + target_N) // unit
    leans, members = _buckets(sizes_N, target_N - source_N)
    waiting = sum(1 << size for size, bucket in enumerate(members) if bucket)  # bits: not empty
    draws = sizes_N[shuffle_indices(np.arange(len(sizes_N)), len(sizes_N), seed=0)].tolist()
    ending = int(ENDING * sizes_N.mean())

    rows = []
    while waiting:
        row: list[int] = []
        source_room, target_room = S, T
        while True:
            lean = target_room * S - source_room * T
            room = (target_room * S + source_room * T) // unit
            fitting = waiting & ((2 << room) - 1)
            found = False
            if not row:
                size = fitting.bit_length() - 1
                bucket = leans[size]
                at = 0 if -bucket[0] > bucket[-1] else len(bucket) - 1
                found = True
            elif draws and room > ending:
                size = draws.pop()
                if not fitting >> size & 1:
                    continue  # all of this size are gone, or it is too large: draw again
                bucket = leans[size]
                at = len(bucket) - 1 if lean >= 0 else 0
                pair = members[size][at]
                found = (
                    size <= room - ending
                    and source[pair] <= source_room
                    and target[pair] <= target_room
                )
            while fitting and not found:
                size = fitting.bit_length() - 1
                bucket = leans[size]
                at = _nearest(bucket, lean)
                pair = members[size][at]
                found = source[pair] <= source_room and target[pair] <= target_room
                fitting ^= 1 << size
            if not found:
                break
            pair = members[size].pop(at)
            row.append(pair)
            source_room -= source[pair]
            target_room -= target[pair]
            del bucket[at]
            if not bucket:
                waiting ^= 1 << size
        rows.append(row)
    return rows


def _buckets(
    sizes_N: NDArray[np.int64], leans_N: NDArray[np.int64]
) -> tuple[list[list[int]], list[list[int]]]:
    """Return by size the leans in order, and the pairs that have them."""
    order_N = np.lexsort((leans_N, sizes_N))
    ends = np.cumsum(np.bincount(sizes_N))[:-1]
    return (
        [part.tolist() for part in np.split(leans_N[order_N], ends)],
        [part.tolist() for part in np.split(order_N, ends)],
    )


def _nearest(ordered: list[int], wanted: int) -> int:
    at = bisect_left(ordered, wanted)
    if at == len(ordered) or (at and wanted - ordered[at - 1] < ordered[at] - wanted):
        return at - 1
    return at
