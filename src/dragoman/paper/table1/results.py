"""Table 1 as it was measured: the numbers, their exponents, and where two layers cross."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np

from dragoman.paper.table1.layers import LAYERS

__all__ = ["Count", "Measure", "Path", "Table1", "Time", "crossing", "exponent", "upper"]

Measure: TypeAlias = Literal["mixing", "operations", "training_operations", "forward", "training"]
"""A number of a layer that depends on n and d."""

_COUNTED: Final = ("mixing", "operations", "training_operations")


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """What a layer computes for one sentence."""

    layer: str
    n: int
    d: int
    mixing: int
    """Operations that Table 1 counts, forward."""
    operations: int
    """Of the whole layer, forward: with the projections of an attention."""
    training_operations: int
    """Of the whole layer, forward and backward."""
    sequential: int
    """Products that wait for each other, forward."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Time:
    """Seconds of the whole layer for one sentence, medians."""

    layer: str
    n: int
    d: int
    forward: float
    training: float
    """Forward and backward."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """Hops between the first and the last of n positions."""

    layer: str
    n: int
    hops: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Table1:
    """Everything `dragoman paper table1` measures."""

    device: str
    torch: str
    kernel: int
    window: int
    """Positions seen on each side; the paper's r is 2·window + 1."""
    repeats: int
    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    counts: tuple[Count, ...]
    times: tuple[Time, ...]
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    """What was not measured, and why."""

    def by_length(self, measure: Measure, layer: str, d: int) -> dict[int, float]:
        """A measure of a layer of width d, by n."""
        found = (one for one in self._records(measure) if one.layer == layer and one.d == d)
        return {one.n: getattr(one, measure) for one in found}

    def by_width(self, measure: Measure, layer: str) -> dict[int, float]:
        """A measure of a layer, by d, at the longest n that is shared."""
        found = (one for one in self._records(measure) if one.layer == layer)
        n = self.longest_shared(measure)
        return {one.d: getattr(one, measure) for one in found if one.n == n}

    def longest_shared(self, measure: Measure) -> int:
        """The longest n at which every width of every layer has a measure; 0 if there is none."""
        cells = Counter(one.n for one in self._records(measure))
        all_of_them = len(LAYERS) * len(self.widths)
        return max((n for n, found in cells.items() if found == all_of_them), default=0)

    def sequential(self, layer: str) -> dict[int, int]:
        """The longest chain of a layer, by n."""
        d = self.widths[0]
        return {one.n: one.sequential for one in self.counts if (one.layer, one.d) == (layer, d)}

    def path(self, layer: str) -> dict[int, int]:
        """Hops by n."""
        return {one.n: one.hops for one in self.paths if one.layer == layer}

    def _records(self, measure: Measure) -> tuple[Count, ...] | tuple[Time, ...]:
        return self.counts if measure in _COUNTED else self.times

    def to_json(self) -> dict[str, Any]:
        """As a file holds it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """What `to_json` gave, also by way of a file."""
        records: dict[str, type[Count | Time | Path]]
        records = {"counts": Count, "times": Time, "paths": Path}
        found = {name: tuple(kind(**one) for one in table[name]) for name, kind in records.items()}
        plain = {name: tuple(table[name]) for name in ("lengths", "widths", "notes")}
        return cls(**{**table, **plain, **found})


def upper(line: Mapping[int, float]) -> dict[int, float]:
    """The upper half of a line, three points at least: where the leading term rules."""
    keys = sorted(line)
    return {key: line[key] for key in keys[-max(3, math.ceil(len(keys) / 2)) :]}


def exponent(line: Mapping[int, float]) -> float | None:
    """The slope of the line in logarithms, by least squares; None for fewer than two points."""
    if len(line) < 2:
        return None
    slope, _ = np.polyfit(np.log(list(line)), np.log(list(line.values())), 1)
    return float(slope)


def crossing(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """The n up to which ours is the smaller: between two points by their logarithms.

    0 if it is so nowhere, ∞ if it is so at the longest n; None where nothing can be compared.
    """
    shared = sorted(set(ours) & set(theirs))
    if not shared:
        return None
    gaps = [math.log(ours[n] / theirs[n]) for n in shared]
    last = max((place for place, gap in enumerate(gaps) if gap < 0), default=None)
    if last is None:
        return 0.0
    if last + 1 == len(shared):
        return math.inf
    low, high = math.log(shared[last]), math.log(shared[last + 1])
    return math.exp(low + (high - low) * gaps[last] / (gaps[last] - gaps[last + 1]))
