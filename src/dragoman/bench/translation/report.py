"""The results of `dragoman bench translate` are written as lines of text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from dragoman.bench.translation.systems import (
    DRAGOMAN_SYSTEMS,
    SHORTLIST_SUFFIX,
    Settings,
    describe_beam,
    describe_settings,
)


@dataclass(kw_only=True, slots=True)
class Speed:
    """Hold the rounds of all sentences at once, with one beam."""

    beam: int
    settings: Settings
    sentences: int
    target_tokens: int = 0
    """Counts the pieces of the translations by our tokeniser, their ends included."""
    seconds: list[float] = field(default_factory=list)
    """Holds the time of each round."""
    cpu_seconds: list[float] = field(default_factory=list)
    """Holds user and system time of the process, of each round."""
    memory: int = 0
    """Counts bytes at the peak of these rounds."""
    bleu: float | None = None

    @property
    def tokens_per_second(self) -> float:
        """Return that of the median round."""
        return self.target_tokens / median(self.seconds)

    @property
    def sentences_per_second(self) -> float:
        """Return that of the median round."""
        return self.sentences / median(self.seconds)

    @property
    def cpu_seconds_per_token(self) -> float:
        """Return that of the median round; other processes change it less than seconds."""
        return median(self.cpu_seconds) / self.target_tokens

    @property
    def spread(self) -> float:
        """Return the time from the fastest to the slowest round, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / median(self.seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return this as JSON holds it."""
        return asdict(self) | {
            "tokens_per_second": self.tokens_per_second,
            "sentences_per_second": self.sentences_per_second,
            "cpu_seconds_per_token": self.cpu_seconds_per_token,
            "spread": self.spread,
        }


@dataclass(kw_only=True, slots=True)
class Latency:
    """Hold the rounds of some sentences one by one, with one beam."""

    beam: int
    settings: Settings
    seconds: list[list[float]] = field(default_factory=list)
    """Holds the time of each sentence of each round."""

    @property
    def p50(self) -> float:
        """Return the seconds that half of the sentences of all rounds take at most."""
        return percentile([s for one in self.seconds for s in one], 50)

    @property
    def p95(self) -> float:
        """Return the seconds that 95 of 100 sentences of all rounds take at most."""
        return percentile([s for one in self.seconds for s in one], 95)

    def to_dict(self) -> dict[str, Any]:
        """Return this as JSON holds it."""
        return asdict(self) | {"p50": self.p50, "p95": self.p95}


@dataclass(kw_only=True, slots=True)
class Loading:
    """Hold the times and the memory of starting the process."""

    imports_seconds: list[float] = field(default_factory=list)
    """Holds the time of importing packages alone."""
    load_seconds: list[float] = field(default_factory=list)
    """Holds the time from the call that loads the model until the first translation."""
    memory: int = 0
    """Counts bytes at the peak until then."""


@dataclass(kw_only=True, slots=True)
class Result:
    """Hold everything measured of one system."""

    name: str
    precision: str
    size: int = 0
    """Counts the bytes of its files."""
    loading: Loading = field(default_factory=Loading)
    speeds: list[Speed] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    failed: str | None = None
    """Says why there are no figures."""

    @property
    def memory(self) -> int:
        """Return the bytes at the peak of all it did."""
        return max([self.loading.memory, *(speed.memory for speed in self.speeds)])

    def to_dict(self) -> dict[str, Any]:
        """Return this as JSON holds it; of a system that failed, why."""
        if self.failed is not None:
            return {"name": self.name, "precision": self.precision, "failed": self.failed}
        return {
            "name": self.name,
            "precision": self.precision,
            "size": self.size,
            "memory": self.memory,
            "loading": asdict(self.loading),
            "speeds": [speed.to_dict() for speed in self.speeds],
            "latencies": [latency.to_dict() for latency in self.latencies],
            "failed": None,
        }


@dataclass(frozen=True, slots=True)
class Ratio:
    """Hold the ratio of two systems' medians, and the least and most of single rounds."""

    value: float
    least: float
    most: float


def compute_ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Compare figures that were measured in turn, one of each in every round."""
    each = [a / b for a, b in zip(above, below, strict=True)]
    return Ratio(median(above) / median(below), min(each), max(each))


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that so many in a hundred do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslationReport:
    """Hold everything that is measured; docs/bench.md explains each."""

    model: str
    parameters: int
    source: str
    sentences: int
    source_tokens: int
    left_out: int
    """Counts lines of the source that are empty or longer than the model reads at once."""
    processor: str
    instruction_set: str | None
    """Names what the kernel of ours computes with; None where it cannot be used."""
    threads: int
    rounds: int
    load_average: float | None
    """Is the load average before anything was started."""
    others: float | None
    """Is the share of all cores' time during the rounds that other processes took."""
    versions: dict[str, str]
    results: list[Result]

    @property
    def ours(self) -> Result | None:
        """Return what the others are compared with: the first of ours that ran."""
        ran = (one for one in self.results if one.failed is None)
        return next((one for one in ran if one.name.startswith("dragoman")), None)

    def to_dict(self) -> dict[str, Any]:
        """Return this as JSON holds it."""
        facts = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name != "results"
        }
        results = []
        for one in self.results:
            table = one.to_dict()
            if one.failed is None and self.ours is not None and one is not self.ours:
                table["against"] = _compare(self.ours, one)
            results.append(table)
        return facts | {
            "compared_with": self.ours and self.ours.name,
            "rounding": _bleu_differences(self.results),
            "results": results,
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as lines of text."""
        yield f"model: {self.model}, {self.parameters / 1e6:.2f}M parameters"
        left_out = f", {self.left_out} lines left out" if self.left_out else ""
        yield (
            f"text: {self.source}, {self.sentences:,} sentences, "
            f"{self.source_tokens:,} tokens{left_out}"
        )
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        instructions = f", instructions for {self.instruction_set}" if self.instruction_set else ""
        yield f"machine: {self.processor}, {threads}{instructions}"
        if self.others is not None:
            yield f"others: {self.others:.0%} of the machine's time during the rounds"
        yield f"versions: {', '.join(f'{name} {v}' for name, v in self.versions.items())}"
        ran = [one for one in self.results if one.failed is None]
        for one in self.results:
            if one.failed is not None:
                yield f"{one.name} did not run: {one.failed}"
        if self.ours is None:
            return
        width = max(len("beam 10, one by one"), *(len(one.name) for one in ran))
        for n in range(len(self.ours.speeds)):
            yield ""
            yield from self._speed_lines([(one.name, one.speeds[n]) for one in ran], width)
        for n in range(len(self.ours.latencies)):
            yield ""
            yield from self._latency_lines([(one.name, one.latencies[n]) for one in ran], width)
        yield ""
        yield from _loading_lines(ran, width)
        yield ""
        yield from _setting_lines(ran)
        yield from _shortlist_lines(ran)
        for line in _bleu_differences(ran):
            yield (
                f"{line['name']}: BLEU {line['difference']:+.2f} against float32, "
                f"{describe_beam(line['beam'])}"
            )

    def _speed_lines(self, rows: list[tuple[str, Speed]], width: int) -> Iterator[str]:
        assert self.ours is not None
        first = rows[0][1]
        scored = first.bleu is not None
        bleu = "   BLEU" if scored else ""
        yield (
            f"{describe_beam(first.beam):{width}}  target tokens/s  sentences/s  spread  "
            f"CPU ms/token{bleu}  {self.ours.name} is"
        )
        for name, speed in rows:
            bleu = f"  {speed.bleu:5.2f}" if scored else ""
            than = (
                ""
                if name == self.ours.name
                else f"  {_format_ratio(_speedup(first, speed))} as fast"
            )
            yield (
                f"{name:{width}}  {speed.tokens_per_second:15,.0f}  "
                f"{speed.sentences_per_second:11.2f}  {speed.spread:6.1%}  "
                f"{1000 * speed.cpu_seconds_per_token:12.3f}{bleu}{than}"
            )

    def _latency_lines(self, rows: list[tuple[str, Latency]], width: int) -> Iterator[str]:
        assert self.ours is not None
        first = rows[0][1]
        title = f"{describe_beam(first.beam)}, one by one"
        yield f"{title:{width}}   p50 ms   p95 ms  {self.ours.name} takes"
        for name, latency in rows:
            than = (
                ""
                if name == self.ours.name
                else f"  {_format_ratio(_slowdown(first, latency))} as long"
            )
            yield f"{name:{width}}  {1000 * latency.p50:7.1f}  {1000 * latency.p95:7.1f}{than}"


def _loading_lines(ran: list[Result], width: int) -> Iterator[str]:
    yield (
        f"{'loading and memory':{width}}  imports s  first translation s  MiB on disk"
        f"  peak MiB: loading, {', '.join(describe_beam(speed.beam) for speed in ran[0].speeds)}"
    )
    for one in ran:
        peaks = [one.loading.memory, *(speed.memory for speed in one.speeds)]
        yield (
            f"{one.name:{width}}  {median(one.loading.imports_seconds):9.2f}  "
            f"{median(one.loading.load_seconds):19.2f}  {one.size / 2**20:11.1f}  "
            f"{', '.join(f'{peak / 2**20:,.0f}' for peak in peaks)}"
        )


def _setting_lines(ran: list[Result]) -> Iterator[str]:
    for one in ran:
        for speed in one.speeds:
            if speed.settings:
                settings = describe_settings(speed.settings)
                yield f"{one.name}, {describe_beam(speed.beam)}: {settings}"


def _shortlist_lines(ran: list[Result]) -> Iterator[str]:
    """Compare ours with a shortlist to each of the others, with theirs and without."""
    ours = next(
        (one for one in ran if one.name == f"{DRAGOMAN_SYSTEMS[0].name}{SHORTLIST_SUFFIX}"), None
    )
    if ours is None:
        return
    for theirs in ran:
        for a, b in zip(ours.speeds, theirs.speeds, strict=True):
            if theirs is not ours:
                times = _format_ratio(_speedup(a, b))
                yield f"{ours.name}, {describe_beam(a.beam)}: {times} as fast as {theirs.name}"


def _compare(ours: Result, theirs: Result) -> dict[str, Any]:
    """Return every ratio of ours to theirs, by beam."""
    speeds = {
        describe_beam(a.beam): (a, b) for a, b in zip(ours.speeds, theirs.speeds, strict=True)
    }
    return {
        "times_as_fast": {beam: asdict(_speedup(a, b)) for beam, (a, b) in speeds.items()},
        "times_the_tokens_per_second": {
            beam: a.tokens_per_second / b.tokens_per_second for beam, (a, b) in speeds.items()
        },
        "times_the_cpu_seconds": {
            beam: asdict(compute_ratio(a.cpu_seconds, b.cpu_seconds))
            for beam, (a, b) in speeds.items()
        },
        "times_as_long": {
            describe_beam(a.beam): asdict(_slowdown(a, b))
            for a, b in zip(ours.latencies, theirs.latencies, strict=True)
        },
        "times_the_memory": ours.memory / theirs.memory,
        "times_the_load_seconds": median(ours.loading.load_seconds)
        / median(theirs.loading.load_seconds),
        "times_the_size": ours.size / theirs.size,
    }


def _speedup(ours: Speed, theirs: Speed) -> Ratio:
    """Compare the time for the same sentences, however many tokens they became."""
    return compute_ratio(theirs.seconds, ours.seconds)


def _slowdown(ours: Latency, theirs: Latency) -> Ratio:
    """Compare the medians over the sentences."""
    return compute_ratio(
        [median(each) for each in ours.seconds], [median(each) for each in theirs.seconds]
    )


def _format_ratio(found: Ratio) -> str:
    return f"{found.value:.2f} ({found.least:.2f} to {found.most:.2f}) times"


def _bleu_differences(results: list[Result]) -> list[dict[str, Any]]:
    """Return what each system's int8 changes of its own float32's BLEU, if both were scored."""
    found = []
    for one in results:
        family = one.name.removesuffix(SHORTLIST_SUFFIX).removesuffix(one.precision)
        exact = next((o for o in results if o.name == f"{family}float32" and o is not one), None)
        if exact is None or one.failed is not None or exact.failed is not None:
            continue
        for rounded, whole in zip(one.speeds, exact.speeds, strict=True):
            if rounded.bleu is not None and whole.bleu is not None:
                difference = rounded.bleu - whole.bleu
                found.append({"name": one.name, "beam": rounded.beam, "difference": difference})
    return found
