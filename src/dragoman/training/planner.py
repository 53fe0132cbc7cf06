"""Memory, planned before the first step instead of found out in the middle of a run.

All batches of a run have one shape, so one step tells what every step needs. On a GPU it is
rehearsed before the first one: if it does not fit, batches are computed in more slices. With
``training.batch_tokens = "auto"`` their size is found here too. What a step needs is nearly linear
in its rows: the line through two sizes tells the largest that should fit, and what is rehearsed
there gives the next line.
"""

# R rows of a batch, S and T the lengths of its source and target rows

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Need", "Rehearsal", "enough_slices", "largest_rows", "rows_within"]

SHARE = 0.9
"""Of the memory there is; the rest is for validating, and for gaps between tensors."""
NEAR = 1.03
"""A size this near to the next estimate is as good."""
FIRST_ROWS = 8
TRIES = 10

Rehearsal = Callable[[int], int | None]
"""The most bytes in use while a slice of so many rows is computed; None: there were not enough."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a slice of so many rows was found to need."""

    rows: int
    bytes: int


def rows_within(memory: float, small: Need, large: Need) -> int:
    """The most rows that fit in so many bytes, by the line through two sizes."""
    each = (large.bytes - small.bytes) / (large.rows - small.rows)
    if each <= 0:  # lost among what does not depend on the rows; more of them will show
        return 2 * large.rows
    return int(large.rows + (memory - large.bytes) / each)


def largest_rows(rehearse: Rehearsal, memory: int, most: int) -> int:
    """The most rows of a slice that fit, and no more than `most`; 0: not even one does."""
    room = SHARE * memory
    last, best = None, _first_that_fits(rehearse, room, min(FIRST_ROWS, most))
    if best is None:
        return 0
    rows, too_many = 2 * best.rows, most + 1
    for _ in range(TRIES):
        rows = min(rows, too_many - 1)
        if rows < NEAR * best.rows:
            break
        found = rehearse(rows)
        if found is None or found > room * NEAR:
            too_many = rows
            rows = int(0.9 * rows)
        else:
            last, best = best, Need(rows, found)
            rows = rows_within(room, last, best)
    return best.rows


def _first_that_fits(rehearse: Rehearsal, room: float, rows: int) -> Need | None:
    while rows:
        if (found := rehearse(rows)) is not None and found <= room:
            return Need(rows, found)
        rows //= 2
    return None


def enough_slices(rehearse: Rehearsal, rows: int, slices: int) -> int:
    """In how many slices so many rows fit, no fewer than `slices`; 0: not even one by one."""
    while rehearse(-(-rows // slices)) is None:
        if slices >= rows:
            return 0
        slices = min(2 * slices, rows)
    return slices
