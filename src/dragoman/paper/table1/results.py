"""Table 1's results hold numbers, their exponents, and where the costs of two layers cross."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np

from dragoman.paper.table1.layers import LAYERS

Quantity: TypeAlias = Literal["mixing", "operations", "training_operations", "forward", "training"]
"""The name of a number of a layer that depends on n and d."""

_COUNTED_QUANTITIES: Final = ("mixing", "operations", "training_operations")


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationCount:
    """Hold how many operations a layer computes for one sentence."""

    layer: str
    n: int
    d: int
    mixing: int
    """Counts the operations that Table 1 counts, forward."""
    operations: int
    """Counts those of the whole layer, forward: with the projections of an attention."""
    training_operations: int
    """Counts those of the whole layer, forward and backward."""
    sequential: int
    """Counts the products that wait for each other, forward."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassTime:
    """Hold the median seconds that the whole layer takes for one sentence."""

    layer: str
    n: int
    d: int
    forward: float
    training: float
    """Is the time of forward and backward together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PathLength:
    """Hold how many layers lie between the first and the last of n positions."""

    layer: str
    n: int
    hops: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Table1:
    """Hold everything `dragoman paper table1` measures."""

    device: str
    torch: str
    kernel: int
    window: int
    """Counts the positions seen on each side; the paper's r is 2·window + 1."""
    repeats: int
    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    counts: tuple[OperationCount, ...]
    times: tuple[PassTime, ...]
    paths: tuple[PathLength, ...]
    notes: tuple[str, ...] = ()
    """Say what was not measured, and why."""

    def by_length(self, quantity: Quantity, layer: str, d: int) -> dict[int, float]:
        """Return a quantity of a layer of width d, by n."""
        found = (one for one in self._records(quantity) if one.layer == layer and one.d == d)
        return {one.n: getattr(one, quantity) for one in found}

    def by_width(self, quantity: Quantity, layer: str) -> dict[int, float]:
        """Return a quantity of a layer, by d, at the longest n that all widths share."""
        found = (one for one in self._records(quantity) if one.layer == layer)
        n = self.longest_shared(quantity)
        return {one.d: getattr(one, quantity) for one in found if one.n == n}

    def longest_shared(self, quantity: Quantity) -> int:
        """Return the longest n at which every layer of every width was measured, or 0."""
        counts = Counter(one.n for one in self._records(quantity))
        complete = len(LAYERS) * len(self.widths)
        return max((n for n, found in counts.items() if found == complete), default=0)

    def sequential(self, layer: str) -> dict[int, int]:
        """Return the longest chain of a layer, by n."""
        d = self.widths[0]
        return {one.n: one.sequential for one in self.counts if (one.layer, one.d) == (layer, d)}

    def path(self, layer: str) -> dict[int, int]:
        """Return the path length of a layer, by n."""
        return {one.n: one.hops for one in self.paths if one.layer == layer}

    def _records(self, quantity: Quantity) -> tuple[OperationCount, ...] | tuple[PassTime, ...]:
        return self.counts if quantity in _COUNTED_QUANTITIES else self.times

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """Return the table that `to_json` was called on."""
        records: dict[str, type[OperationCount | PassTime | PathLength]]
        records = {"counts": OperationCount, "times": PassTime, "paths": PathLength}
        found = {name: tuple(kind(**one) for one in table[name]) for name, kind in records.items()}
        plain = {name: tuple(table[name]) for name in ("lengths", "widths", "notes")}
        return cls(**{**table, **plain, **found})


def upper_half(line: Mapping[int, float]) -> dict[int, float]:
    """Return the upper half of a line, at least three points: where the leading term rules."""
    keys = sorted(line)
    return {key: line[key] for key in keys[-max(3, math.ceil(len(keys) / 2)) :]}


def fit_exponent(line: Mapping[int, float]) -> float | None:
    """Return the slope of a line in logarithms, by least squares; None below two points."""
    if len(line) < 2:
        return None
    slope, _ = np.polyfit(np.log(list(line)), np.log(list(line.values())), 1)
    return float(slope)


def find_crossover(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """Return the n up to which the first line is below the second, interpolating logarithms.

    It is 0 if it is so nowhere, ∞ if it is so at the longest n; None if nothing can be compared.
    """
    shared = sorted(set(first) & set(second))
    if not shared:
        return None
    gaps = [math.log(first[n] / second[n]) for n in shared]
    last = max((place for place, gap in enumerate(gaps) if gap < 0), default=None)
    if last is None:
        return 0.0
    if last + 1 == len(shared):
        return math.inf
    low, high = math.log(shared[last]), math.log(shared[last + 1])
    return math.exp(low + (high - low) * gaps[last] / (gaps[last] - gaps[last + 1]))
