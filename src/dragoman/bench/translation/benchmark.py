"""Time translation by our systems and others', each in its own process, on the same sentences."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from dragoman.bench import sample_evenly
from dragoman.bench.translation.report import Latency, Result, Speed
from dragoman.bench.translation.systems import (
    Settings,
    System,
    describe_beam,
    describe_settings,
    size_on_disk,
)
from dragoman.bench.translation.worker_client import Worker, WorkerError
from dragoman.messages import counted

LOAD_REPEATS: Final = 3
"""How often a system is loaded in a new process."""
WARM_UP_SENTENCES: Final = 16
"""How many sentences are translated before a clock starts."""
BUSY_LOAD: Final = 0.25
"""The load on each core from which other processes can be felt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkTask:
    """Hold what all systems are given."""

    model: Path
    """Is the model directory, whatever it has been exported to."""
    sentences: Sequence[str]
    search: dict[str, Any]
    """Holds `length_penalty` and `max_extra` of the model's config."""
    count_tokens: Callable[[Sequence[str]], int]
    threads: int
    beams: Sequence[int] = (1, 4)
    rounds: int = 3
    single_sentences: int = 50
    """Counts the sentences that are translated one by one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """Hold what was measured of all systems."""

    results: list[Result]
    translations: dict[tuple[str, int], list[str]]
    """Holds each system's translations by its name and the beam."""
    others: float | None
    """Is the share of all cores' time during the rounds that other processes took."""


def measure(
    task: BenchmarkTask,
    systems: Iterable[tuple[System, Path]],
    *,
    print_message: Callable[[str], None] = lambda message: None,
) -> Measurement:
    """Find each system's best settings, load it a few times, and time rounds in turn.

    With each system comes the directory of its model. One that fails costs only its own figures.
    """
    with ExitStack() as stack:
        benchmarks = [SystemBenchmark(task, system, path, stack) for system, path in systems]
        for one in benchmarks:
            one.attempt(lambda one: one.tune(print_message))
        print_message(f"loading each of {len(benchmarks)} systems {LOAD_REPEATS} times")
        for number in range(LOAD_REPEATS):
            for one in benchmarks:
                one.attempt(lambda one, last=number == LOAD_REPEATS - 1: one.load(keep=last))  # type: ignore[misc]
        usage = CpuUsage()
        for beam in task.beams:
            count, how = counted(len(task.sentences), "sentence"), describe_beam(beam)
            print_message(f"{counted(task.rounds, 'round')} of {count}, {how}, in turn")
            warm_up = partial(SystemBenchmark.warm_up, beam=beam)
            run_round = partial(SystemBenchmark.run_round, beam=beam)
            _run_rounds(task.rounds, benchmarks, usage, warm_up, run_round)
        texts = sample_evenly(task.sentences, task.single_sentences)
        for beam in task.beams if texts else ():
            count, how = f"{counted(len(texts), 'sentence')} one by one", describe_beam(beam)
            print_message(f"{counted(task.rounds, 'round')} of {count}, {how}, in turn")
            warm_up = partial(SystemBenchmark.warm_up_single, beam=beam)
            run_round = partial(SystemBenchmark.run_single_round, texts=texts)
            _run_rounds(task.rounds, benchmarks, usage, warm_up, run_round)
        return Measurement(
            results=[one.result for one in benchmarks],
            translations={
                (one.system.name, beam): texts
                for one in benchmarks
                for beam, texts in one.translations.items()
            },
            others=usage.others,
        )


def _run_rounds(
    rounds: int,
    benchmarks: list[SystemBenchmark],
    usage: CpuUsage,
    warm_up: Callable[[SystemBenchmark], None],
    run_round: Callable[[SystemBenchmark], float],
) -> None:
    """Warm all systems up, and time every system once a round; a round returns its CPU seconds."""
    for one in benchmarks:
        one.attempt(warm_up)
    with usage:
        for _ in range(rounds):
            for one in benchmarks:
                usage.ours += one.attempt(run_round) or 0.0


class SystemBenchmark:
    """Run a system in its process, and collect what is measured of it."""

    def __init__(self, task: BenchmarkTask, system: System, path: Path, stack: ExitStack) -> None:
        self.system = system
        self.result = Result(
            name=system.name,
            precision=system.precision,
            size=size_on_disk(path, system),
        )
        self.translations: dict[int, list[str]] = {}
        self._task, self._path, self._stack = task, path, stack
        self._settings = {beam: system.default_settings(task.threads) for beam in task.beams}
        self._worker: Worker | None = None

    def attempt(self, action: Callable[[SystemBenchmark], float | None]) -> float | None:
        """Do something unless the system has failed before; remember why if it fails now."""
        if self.result.failed is None:
            try:
                return action(self)
            except WorkerError as error:
                self.result.failed = str(error)
        return None

    def tune(self, print_message: Callable[[str], None]) -> None:
        """Try all settings on a sample, in a process of its own, and keep the fastest."""
        texts = sample_evenly(self._task.sentences, self.system.tuning_sentences)
        groups = self.system.candidates(self._task.threads, len(texts))
        if all(len(group) < 2 for group in groups):
            return
        with Worker(threads=self._task.threads) as worker:
            self._load(worker)
            for beam in self._task.beams:
                for group in groups:
                    tried = [self._settings[beam] | candidate for candidate in group]
                    if len(tried) > 1:
                        times = [_time_settings(worker, texts, beam, one) for one in tried]
                        self._settings[beam] = tried[times.index(min(times))]
                best = describe_settings(self._settings[beam])
                print_message(
                    f"{self.system.name}, {describe_beam(beam)}: {best}, the best on {len(texts)} "
                    "sentences"
                )

    def load(self, *, keep: bool) -> None:
        """Start a process and load the model; with `keep` the process stays for the rounds."""
        worker = Worker(threads=self._task.threads)
        with ExitStack() as stack:
            stack.enter_context(worker)
            answer = self._load(worker)
            loading = self.result.loading
            loading.imports_seconds.append(answer["imports_seconds"])
            loading.load_seconds.append(answer["load_seconds"])
            loading.memory = max(loading.memory, answer["memory"])
            if keep:
                self._stack.push(stack.pop_all())
                self._worker = worker

    def _load(self, worker: Worker) -> dict[str, Any]:
        return worker.load(
            self.system.worker,
            path=str(self._path),
            model=str(self._task.model),
            precision=self.system.precision,
            shortlist=self.system.shortlist,
            search=self._task.search,
            settings=self.system.default_settings(self._task.threads),
            threads=self._task.threads,
            text=self._task.sentences[0],
        )

    def warm_up(self, beam: int) -> None:
        """Take the settings for this beam, and translate a few sentences."""
        settings = self._settings[beam]
        self._apply_settings(settings, beam)
        speed = Speed(beam=beam, settings=settings, sentences=len(self._task.sentences))
        self.result.speeds.append(speed)

    def run_round(self, beam: int) -> float:
        """Translate all sentences, and return the CPU seconds that took."""
        assert self._worker is not None
        answer = self._worker.translate(self._task.sentences, beam)
        speed = self.result.speeds[-1]
        speed.seconds.append(answer["seconds"])
        speed.cpu_seconds.append(answer["cpu_seconds"])
        speed.memory = answer["memory"]
        speed.target_tokens = self._task.count_tokens(answer["texts"])
        self.translations[beam] = answer["texts"]
        return speed.cpu_seconds[-1]

    def warm_up_single(self, beam: int) -> None:
        """Take the settings for one sentence at a time, and translate a few sentences."""
        settings = self.system.single_settings(self._task.threads)
        self._apply_settings(settings, beam)
        self.result.latencies.append(Latency(beam=beam, settings=settings))

    def run_single_round(self, texts: Sequence[str]) -> float:
        """Translate these sentences one by one, and return the CPU seconds that took."""
        assert self._worker is not None
        latency = self.result.latencies[-1]
        answer = self._worker.translate_one_by_one(texts, latency.beam)
        latency.seconds.append(answer["seconds"])
        return float(answer["cpu_seconds"])

    def _apply_settings(self, settings: Settings, beam: int) -> None:
        assert self._worker is not None
        self._worker.apply_settings(settings)
        self._worker.translate(sample_evenly(self._task.sentences, WARM_UP_SENTENCES), beam)


def _time_settings(worker: Worker, texts: Sequence[str], beam: int, settings: Settings) -> float:
    """Return the seconds that the texts take with these settings."""
    worker.apply_settings(settings)
    worker.translate(texts[:2], beam)
    return float(worker.translate(texts, beam)["seconds"])


# --- the machine ---


def processor() -> str:
    """Return the processor's name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def load_average() -> float | None:
    """Return how many processes ran or waited in the last minute; None if the system cannot say."""
    with suppress(OSError, AttributeError):
        return os.getloadavg()[0]
    return None


class CpuUsage:
    """Measure what the machine does inside `with` blocks, by the system's own count of CPU time."""

    def __init__(self) -> None:
        self.ours = 0.0
        """Counts the CPU seconds that were ours; whoever measures adds those of the workers."""
        self._busy = self._total = 0.0
        self._start: tuple[float, float] | None = None

    def __enter__(self) -> None:
        self._start = _read_cpu_seconds()
        self.ours -= time.process_time()

    def __exit__(self, *error: object) -> None:
        self.ours += time.process_time()
        now = _read_cpu_seconds()
        if now is not None and self._start is not None:
            self._busy += now[0] - self._start[0]
            self._total += now[1] - self._start[1]

    @property
    def others(self) -> float | None:
        """Return the share of all cores' time that others took; None if the system cannot say."""
        if not self._total:
            return None
        return min(1.0, max(0.0, (self._busy - self.ours) / self._total))


def _read_cpu_seconds() -> tuple[float, float] | None:
    """Return busy and all seconds of all cores together since the system started."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    user, nice, system, idle, waiting, *more = (int(n) / ticks for n in first.split()[1:9])
    busy = user + nice + system + sum(more)
    return busy, busy + idle + waiting
