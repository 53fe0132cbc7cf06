"""What was measured of a system that translates, round by round, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from dragoman.bench.translation.systems import Settings

__all__ = ["Latency", "Loading", "Ratio", "Result", "Speed", "percentile", "ratio"]


@dataclass(kw_only=True, slots=True)
class Speed:
    """Rounds of all sentences at once, with one beam."""

    beam: int
    settings: Settings
    sentences: int
    target_tokens: int = 0
    """Pieces of the translations, by our tokeniser, their ends counted."""
    seconds: list[float] = field(default_factory=list)
    """Of each round."""
    cpu_seconds: list[float] = field(default_factory=list)
    """User and system time of the process, of each round."""
    memory: int = 0
    """Bytes at the peak of these rounds."""
    bleu: float | None = None

    @property
    def tokens_per_second(self) -> float:
        """Of the median round."""
        return self.target_tokens / median(self.seconds)

    @property
    def sentences_per_second(self) -> float:
        """Of the median round."""
        return self.sentences / median(self.seconds)

    @property
    def cpu_seconds_per_token(self) -> float:
        """Of the median round; other processes change it less than they change seconds."""
        return median(self.cpu_seconds) / self.target_tokens

    @property
    def spread(self) -> float:
        """From the fastest to the slowest round, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / median(self.seconds)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self) | {
            "tokens_per_second": self.tokens_per_second,
            "sentences_per_second": self.sentences_per_second,
            "cpu_seconds_per_token": self.cpu_seconds_per_token,
            "spread": self.spread,
        }


@dataclass(kw_only=True, slots=True)
class Latency:
    """Rounds of some sentences one by one, with one beam."""

    beam: int
    settings: Settings
    seconds: list[list[float]] = field(default_factory=list)
    """Of each round, of each sentence."""

    @property
    def p50(self) -> float:
        """Seconds that half of the sentences take at most, of all rounds."""
        return percentile([s for one in self.seconds for s in one], 50)

    @property
    def p95(self) -> float:
        """Seconds that 95 of 100 sentences take at most, of all rounds."""
        return percentile([s for one in self.seconds for s in one], 95)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self) | {"p50": self.p50, "p95": self.p95}


@dataclass(kw_only=True, slots=True)
class Loading:
    """Starts of the process, each from nothing."""

    imports_seconds: list[float] = field(default_factory=list)
    """Packages alone."""
    load_seconds: list[float] = field(default_factory=list)
    """From the call that loads the model until the first translation is there."""
    memory: int = 0
    """Bytes at the peak, until then."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


@dataclass(kw_only=True, slots=True)
class Result:
    """Everything of one system."""

    name: str
    precision: str
    size: int = 0
    """Bytes of its files."""
    loading: Loading = field(default_factory=Loading)
    speeds: list[Speed] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    failed: str | None = None
    """Why there are no figures."""

    @property
    def memory(self) -> int:
        """Bytes at the peak of all it did."""
        return max([self.loading.memory, *(speed.memory for speed in self.speeds)])

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; of one that failed, why."""
        if self.failed is not None:
            return {"name": self.name, "precision": self.precision, "failed": self.failed}
        return {
            "name": self.name,
            "precision": self.precision,
            "size": self.size,
            "memory": self.memory,
            "loading": self.loading.to_dict(),
            "speeds": [speed.to_dict() for speed in self.speeds],
            "latencies": [latency.to_dict() for latency in self.latencies],
            "failed": None,
        }


@dataclass(frozen=True, slots=True)
class Ratio:
    """Of two systems' medians, and of their rounds one by one."""

    value: float
    least: float
    most: float


def ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Of figures that were measured in turn: one of each in every round."""
    each = [a / b for a, b in zip(above, below, strict=True)]
    return Ratio(median(above) / median(below), min(each), max(each))


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many in a hundred do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]
