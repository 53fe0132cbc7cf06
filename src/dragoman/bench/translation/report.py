"""What `dragoman bench translate` found, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from dragoman.bench.translation.benchmark import mode
from dragoman.bench.translation.figures import Latency, Ratio, Result, Speed, ratio
from dragoman.bench.translation.systems import OURS, WITH_SHORTLIST, describe

__all__ = ["TranslationReport"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslationReport:
    """Everything that is measured; docs/bench.md explains each."""

    model: str
    parameters: int
    source: str
    sentences: int
    source_tokens: int
    left_out: int
    """Lines of the source that are empty or longer than the model reads at once."""
    processor: str
    threads: int
    rounds: int
    load_average: float | None
    """Before anything was started."""
    others: float | None
    """The share of all cores' time during the rounds that other processes took."""
    versions: dict[str, str]
    results: list[Result]

    @property
    def ours(self) -> Result | None:
        """What the others are compared with: the first of ours that ran."""
        ran = (one for one in self.results if one.failed is None)
        return next((one for one in ran if one.name.startswith("dragoman")), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        facts = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name != "results"
        }
        results = []
        for one in self.results:
            table = one.to_dict()
            if one.failed is None and self.ours is not None and one is not self.ours:
                table["against"] = _against(self.ours, one)
            results.append(table)
        return facts | {
            "compared_with": self.ours and self.ours.name,
            "rounding": _rounding(self.results),
            "results": results,
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"model: {self.model}, {self.parameters / 1e6:.2f}M parameters"
        left_out = f", {self.left_out} lines left out" if self.left_out else ""
        yield (
            f"text: {self.source}, {self.sentences:,} sentences, "
            f"{self.source_tokens:,} tokens{left_out}"
        )
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        yield f"machine: {self.processor}, {threads}"
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
        for line in _rounding(ran):
            yield (
                f"{line['name']}: BLEU {line['difference']:+.2f} against float32, "
                f"{mode(line['beam'])}"
            )

    def _speed_lines(self, rows: list[tuple[str, Speed]], width: int) -> Iterator[str]:
        assert self.ours is not None
        first = rows[0][1]
        scored = first.bleu is not None
        bleu = "   BLEU" if scored else ""
        yield (
            f"{mode(first.beam):{width}}  target tokens/s  sentences/s  spread  CPU ms/token"
            f"{bleu}  {self.ours.name} is"
        )
        for name, speed in rows:
            bleu = f"  {speed.bleu:5.2f}" if scored else ""
            than = "" if name == self.ours.name else f"  {_times(_speedup(first, speed))} as fast"
            yield (
                f"{name:{width}}  {speed.tokens_per_second:15,.0f}  "
                f"{speed.sentences_per_second:11.2f}  {speed.spread:6.1%}  "
                f"{1000 * speed.cpu_seconds_per_token:12.3f}{bleu}{than}"
            )

    def _latency_lines(self, rows: list[tuple[str, Latency]], width: int) -> Iterator[str]:
        assert self.ours is not None
        first = rows[0][1]
        title = f"{mode(first.beam)}, one by one"
        yield f"{title:{width}}   p50 ms   p95 ms  {self.ours.name} takes"
        for name, latency in rows:
            than = (
                "" if name == self.ours.name else f"  {_times(_slowdown(first, latency))} as long"
            )
            yield f"{name:{width}}  {1000 * latency.p50:7.1f}  {1000 * latency.p95:7.1f}{than}"


def _loading_lines(ran: list[Result], width: int) -> Iterator[str]:
    yield (
        f"{'loading and memory':{width}}  imports s  first translation s  MiB on disk"
        f"  peak MiB: loading, {', '.join(mode(speed.beam) for speed in ran[0].speeds)}"
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
                yield f"{one.name}, {mode(speed.beam)}: {describe(speed.settings)}"


def _shortlist_lines(ran: list[Result]) -> Iterator[str]:
    """Ours with a shortlist against each of the others, with theirs and without."""
    ours = next((one for one in ran if one.name == f"{OURS[0].name}{WITH_SHORTLIST}"), None)
    if ours is None:
        return
    for theirs in ran:
        for a, b in zip(ours.speeds, theirs.speeds, strict=True):
            if theirs is not ours:
                times = _times(_speedup(a, b))
                yield f"{ours.name}, {mode(a.beam)}: {times} as fast as {theirs.name}"


def _against(ours: Result, theirs: Result) -> dict[str, Any]:
    """Every ratio, ours to theirs, by mode."""
    return {
        "times_as_fast": {
            mode(a.beam): asdict(_speedup(a, b))
            for a, b in zip(ours.speeds, theirs.speeds, strict=True)
        },
        "times_the_tokens_per_second": {
            mode(a.beam): a.tokens_per_second / b.tokens_per_second
            for a, b in zip(ours.speeds, theirs.speeds, strict=True)
        },
        "times_the_cpu_seconds": {
            mode(a.beam): asdict(ratio(a.cpu_seconds, b.cpu_seconds))
            for a, b in zip(ours.speeds, theirs.speeds, strict=True)
        },
        "times_as_long": {
            mode(a.beam): asdict(_slowdown(a, b))
            for a, b in zip(ours.latencies, theirs.latencies, strict=True)
        },
        "times_the_memory": ours.memory / theirs.memory,
        "times_the_load_seconds": median(ours.loading.load_seconds)
        / median(theirs.loading.load_seconds),
        "times_the_size": ours.size / theirs.size,
    }


def _speedup(ours: Speed, theirs: Speed) -> Ratio:
    """Of the time for the same sentences, however many tokens they became."""
    return ratio(theirs.seconds, ours.seconds)


def _slowdown(ours: Latency, theirs: Latency) -> Ratio:
    """Of the medians over the sentences."""
    return ratio([median(each) for each in ours.seconds], [median(each) for each in theirs.seconds])


def _times(found: Ratio) -> str:
    return f"{found.value:.2f} ({found.least:.2f} to {found.most:.2f}) times"


def _rounding(results: list[Result]) -> list[dict[str, Any]]:
    """What each system's int8 changes of its own float32's BLEU, where both were scored."""
    found = []
    for one in results:
        family = one.name.removesuffix(WITH_SHORTLIST).removesuffix(one.precision)
        exact = next((o for o in results if o.name == f"{family}float32" and o is not one), None)
        if exact is None or one.failed is not None or exact.failed is not None:
            continue
        for rounded, whole in zip(one.speeds, exact.speeds, strict=True):
            if rounded.bleu is not None and whole.bleu is not None:
                difference = rounded.bleu - whole.bleu
                found.append({"name": one.name, "beam": rounded.beam, "difference": difference})
    return found
