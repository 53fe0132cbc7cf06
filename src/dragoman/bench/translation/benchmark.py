"""Measuring translation: ours and others', each in its own process, on the same sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from dragoman.bench.translation.figures import Latency, Result, Speed
from dragoman.bench.translation.machine import Watch
from dragoman.bench.translation.systems import Settings, System, describe, size_on_disk
from dragoman.bench.translation.workers import Worker, WorkerError

__all__ = ["Measured", "Task", "measure", "mode", "spread_out"]

T = TypeVar("T")

STARTS: Final = 3
"""Times that a system is loaded from nothing."""
WARM_UP: Final = 16
"""Sentences at least before a clock starts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What all systems are given."""

    model: Path
    """The model directory, whatever it has been exported to."""
    sentences: Sequence[str]
    search: dict[str, Any]
    """`length_penalty` and `max_extra`, of the model's config."""
    count: Callable[[Sequence[str]], int]
    """Tokens of translations."""
    threads: int
    beams: Sequence[int] = (1, 4)
    rounds: int = 3
    alone: int = 50
    """Sentences that are translated one by one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What came of it."""

    results: list[Result]
    translations: dict[tuple[str, int], list[str]]
    """Of each system, by its name, with each beam."""
    others: float | None
    """The share of all cores' time during the rounds that other processes took."""


def measure(
    task: Task,
    systems: Iterable[tuple[System, Path]],
    *,
    say: Callable[[str], None] = lambda message: None,
) -> Measured:
    """Find each system's best settings, load it a few times, and time rounds in turn.

    With each system comes the directory of its model. One that fails costs only its own figures.
    """
    with ExitStack() as stack:
        contestants = [Contestant(task, system, path, stack) for system, path in systems]
        for one in contestants:
            one.attempt(lambda one: one.tune(say))
        say(f"loading each of {len(contestants)} systems {STARTS} times")
        for start in range(STARTS):
            for one in contestants:
                one.attempt(lambda one, last=start == STARTS - 1: one.load(keep=last))  # type: ignore[misc]
        watch = Watch()
        for beam in task.beams:
            _rounds(task, contestants, beam, watch, say)
        for beam in task.beams if task.alone else ():
            _rounds_alone(task, contestants, beam, watch, say)
        return Measured(
            results=[one.result for one in contestants],
            translations={
                (one.system.name, beam): texts
                for one in contestants
                for beam, texts in one.translations.items()
            },
            others=watch.others,
        )


def _rounds(
    task: Task, contestants: list[Contestant], beam: int, watch: Watch, say: Callable[[str], None]
) -> None:
    """All sentences at once, every system once a round."""
    say(f"{task.rounds} rounds of {len(task.sentences):,} sentences, {mode(beam)}, in turn")
    for one in contestants:
        one.attempt(lambda one: one.get_ready(beam))
    with watch:
        for _ in range(task.rounds):
            for one in contestants:
                watch.ours += one.attempt(lambda one: one.round(beam)) or 0.0


def _rounds_alone(
    task: Task, contestants: list[Contestant], beam: int, watch: Watch, say: Callable[[str], None]
) -> None:
    """The same with sentences one by one."""
    texts = spread_out(task.sentences, task.alone)
    say(f"{task.rounds} rounds of {len(texts)} sentences one by one, {mode(beam)}, in turn")
    for one in contestants:
        one.attempt(lambda one: one.get_ready_alone(beam))
    with watch:
        for _ in range(task.rounds):
            for one in contestants:
                watch.ours += one.attempt(lambda one: one.round_alone(texts)) or 0.0


class Contestant:
    """A system, its process, and what has been measured of it."""

    def __init__(self, task: Task, system: System, path: Path, stack: ExitStack) -> None:
        self.system = system
        self.result = Result(
            name=system.name,
            precision=system.precision,
            size=size_on_disk(path, system),
        )
        self.translations: dict[int, list[str]] = {}
        self._task, self._path, self._stack = task, path, stack
        self._settings = {beam: system.first(task.threads) for beam in task.beams}
        self._worker: Worker | None = None

    def attempt(self, what: Callable[[Contestant], float | None]) -> float | None:
        """Do something unless it has failed before; keep the reason if it fails now."""
        if self.result.failed is None:
            try:
                return what(self)
            except WorkerError as error:
                self.result.failed = str(error)
        return None

    def tune(self, say: Callable[[str], None]) -> None:
        """Try the settings there are on a sample, in a process that is not used for more."""
        texts = spread_out(self._task.sentences, self.system.sample)
        groups = self.system.choices(self._task.threads, len(texts))
        if all(len(group) < 2 for group in groups):
            return
        with Worker(threads=self._task.threads) as worker:
            self._load(worker)
            for beam in self._task.beams:
                for group in groups:
                    tried = [self._settings[beam] | choice for choice in group]
                    if len(tried) > 1:
                        times = [_try(worker, texts, beam, settings) for settings in tried]
                        self._settings[beam] = tried[times.index(min(times))]
                best = describe(self._settings[beam])
                say(f"{self.system.name}, {mode(beam)}: {best}, the best on {len(texts)} sentences")

    def load(self, *, keep: bool) -> None:
        """Start a process and load; the last one started stays."""
        worker = Worker(threads=self._task.threads)
        with ExitStack() as stack:
            stack.enter_context(worker)
            found = self._load(worker)
            loading = self.result.loading
            loading.imports_seconds.append(found["imports_seconds"])
            loading.load_seconds.append(found["load_seconds"])
            loading.memory = max(loading.memory, found["memory"])
            if keep:
                self._stack.push(stack.pop_all())
                self._worker = worker

    def _load(self, worker: Worker) -> dict[str, Any]:
        return worker.load(
            self.system.worker,
            path=self._path,
            model=self._task.model,
            precision=self.system.precision,
            shortlist=self.system.shortlist,
            search=self._task.search,
            settings=self.system.first(self._task.threads),
            threads=self._task.threads,
            text=self._task.sentences[0],
        )

    def get_ready(self, beam: int) -> None:
        """Take the settings for this beam, and translate a little."""
        settings = self._settings[beam]
        self._begin(settings, beam)
        speed = Speed(beam=beam, settings=settings, sentences=len(self._task.sentences))
        self.result.speeds.append(speed)

    def round(self, beam: int) -> float:
        """All sentences; the CPU seconds they took."""
        assert self._worker is not None
        found = self._worker.translate(self._task.sentences, beam)
        speed = self.result.speeds[-1]
        speed.seconds.append(found["seconds"])
        speed.cpu_seconds.append(found["cpu_seconds"])
        speed.memory = found["memory"]
        speed.target_tokens = self._task.count(found["texts"])
        self.translations[beam] = found["texts"]
        return speed.cpu_seconds[-1]

    def get_ready_alone(self, beam: int) -> None:
        """Take the settings for one sentence at a time, and translate a little."""
        settings = self.system.alone(self._task.threads)
        self._begin(settings, beam)
        self.result.latencies.append(Latency(beam=beam, settings=settings))

    def round_alone(self, texts: Sequence[str]) -> float:
        """These sentences one by one; the CPU seconds they took."""
        assert self._worker is not None
        latency = self.result.latencies[-1]
        found = self._worker.one_by_one(texts, latency.beam)
        latency.seconds.append(found["seconds"])
        return float(found["cpu_seconds"])

    def _begin(self, settings: Settings, beam: int) -> None:
        assert self._worker is not None
        self._worker.use(settings)
        self._worker.translate(spread_out(self._task.sentences, WARM_UP), beam)


def mode(beam: int) -> str:
    """A beam for people."""
    return "greedy" if beam == 1 else f"beam {beam}"


def spread_out(items: Sequence[T], count: int) -> list[T]:
    """At most so many of them, evenly from all."""
    taken = min(count, len(items))
    return [items[int((k + 0.5) * len(items) / taken)] for k in range(taken)]


def _try(worker: Worker, texts: Sequence[str], beam: int, settings: Settings) -> float:
    """Seconds with these settings."""
    worker.use(settings)
    worker.translate(texts[:2], beam)
    return float(worker.translate(texts, beam)["seconds"])
