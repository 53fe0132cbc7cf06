"""A sweep trains many configs on one prepared corpus, each run in a process of its own.

``OUT/NAME.toml`` is a trial's config with the fingerprint of its corpus, ``OUT/NAME.log`` the
output of its process, ``OUT/NAME`` its run directory. Stopped or killed at any moment, a sweep is
continued by running it again: in the same place or, with a copy of OUT and of the corpus, anywhere
else. Of a finished trial the small files suffice: NAME.toml and, in NAME, all but weights and
checkpoints.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import ConfigError, DataError, TrainingError
from dragoman.paper.result_cache import corpus_fingerprint
from dragoman.system.atomic_files import atomic_write, explain_os_errors
from dragoman.system.cores import available_cores
from dragoman.system.signals import SignalCatcher
from dragoman.training.run_json import RunFile
from dragoman.workflows.stages import exclusive_lock

PrintMessage: TypeAlias = Callable[[str], None]
OnTrained: TypeAlias = Callable[["TrialResult"], None]

_STOP_SECONDS: Final = 30.0
"""How long a run that was told to stop may take; it saves within ten seconds."""
_OTHER_SIGNAL: Final = {signal.SIGINT: signal.SIGTERM, signal.SIGTERM: signal.SIGINT}
"""Which signal to pass on: a run that gets the same one twice ends at once without saving, and the
terminal may have sent it ours already."""
_CORPUS_COMMENT: Final = "# On the corpus "
"""The beginning of a trial's config, which the corpus's fingerprint follows."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Describe one training run of a sweep."""

    name: str
    """Names the run's directory, too."""
    config: Config


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Hold what came of a trial; if it failed there is no model, and the figures are 0."""

    name: str
    run_directory: Path
    config: Config
    """Is the config as the run completed it with the corpus, or the trial's own if it failed."""
    model: Path | None = None
    """Is the model's directory, which may lack weights if the trial was copied from elsewhere."""
    steps: int = 0
    seconds: float = 0.0
    """Counts training time by the run's clock, until the last step that was logged."""
    target_tokens: int = 0
    """Counts the target tokens seen in training."""
    tokens_per_second: float = 0.0
    """Is the median of target tokens a second over the run's log."""
    parameters: int = 0
    perplexity: float | None = None
    """Is the perplexity a piece on the validation set."""
    bleu: float | None = None
    """Is the greedy BLEU on the validation set; None also if the run was not to compute it."""
    failure: str | None = None
    """Is the last line of the log of a run that failed."""


def run_sweep(
    trials: Sequence[Trial],
    data: Path,
    out: Path,
    *,
    jobs: int = 1,
    print_message: PrintMessage,
    on_trained: OnTrained = lambda result: None,
) -> list[TrialResult]:
    """Train every trial on a prepared corpus, `jobs` at a time; those that are done are not redone.

    One that was interrupted goes on from its last checkpoint; one that fails leaves the others
    alone and is tried again next time. A finished one keeps its model and its records, not its
    checkpoints, and `on_trained` is called with it while the others go on. Ctrl-C and SIGTERM make
    every run save and end; the process then exits with status 128 + signal.
    """
    assert len({trial.name for trial in trials}) == len(trials), "names of trials must differ"
    if jobs < 1:
        raise ConfigError(f"jobs = {jobs} is too small; the minimum is 1")
    corpus = _Corpus(data, corpus_fingerprint(Prepared.open(data)))
    with explain_os_errors(out), _lock_directory(out) as lock:
        for trial in trials:
            _check_existing_run(trial, corpus, out)
        sweep = _Sweep(trials, corpus, out, jobs, lock, print_message)
        return sweep.run(on_trained)


@dataclass(frozen=True, slots=True)
class _Corpus:
    """Hold where a corpus is, and the fingerprint that it has wherever it is."""

    path: Path
    fingerprint: str


class _Sweep:
    """Run the processes of a sweep, and remember which trials are finished, running and waiting."""

    def __init__(
        self,
        trials: Sequence[Trial],
        corpus: _Corpus,
        out: Path,
        jobs: int,
        lock: int,
        print_message: PrintMessage,
    ) -> None:
        self.trials, self.corpus, self.out, self.lock = trials, corpus, out, lock
        self.print_message = print_message
        self.finished = {t.name: r for t in trials if (r := _read_result(t, out)) is not None}
        self.waiting = [t for t in trials if t.name not in self.finished]
        self.running: dict[str, tuple[Trial, subprocess.Popen[bytes]]] = {}
        self.jobs = min(jobs, len(self.waiting))

    def run(self, on_trained: OnTrained) -> list[TrialResult]:
        if self.finished:
            self.print_message(f"{self.out}: {self._count_done()} trials are done already")
        ended = list(self.finished.values())
        try:
            with SignalCatcher() as signals:
                while self.waiting or self.running or ended:
                    while self.waiting and len(self.running) < self.jobs:
                        self._start(self.waiting.pop(0))
                    time.sleep(0.05)
                    if signals.caught:  # before a run that ended of it looks like a failure
                        self._stop(signals.caught[0])
                    if ended and ended[0].failure is None:
                        on_trained(ended[0])
                    ended = [*ended[1:], *self._take_finished()]
        finally:
            self._kill()
        failed = [r.name for r in self.finished.values() if r.failure is not None]
        if failed:
            self.print_message(
                f"{len(failed)} of {len(self.trials)} trials failed ({', '.join(failed)}); see "
                f"{self.out / failed[0]}.log, and run the same command to try again"
            )
        return [self.finished[trial.name] for trial in self.trials]

    def _start(self, trial: Trial) -> None:
        directory, preset = self.out / trial.name, self.out / f"{trial.name}.toml"
        words = [str(self.corpus.path), "--preset", str(preset), "--out", str(directory)]
        if (directory / "config.toml").exists():
            _update_corpus_path(directory, self.corpus.path)
            words = ["--resume", str(directory)]
        else:
            atomic_write(
                preset, f"{_CORPUS_COMMENT}{self.corpus.fingerprint}\n{trial.config.to_toml()}"
            )
        environment = dict(os.environ)
        if self.jobs > 1:
            environment.setdefault("OMP_NUM_THREADS", str(max(1, available_cores() // self.jobs)))
        with _log_file(self.out, trial.name).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dragoman", "train", *words, "--quiet"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                pass_fds=[self.lock],
            )
        self.running[trial.name] = trial, process

    def _take_finished(self) -> list[TrialResult]:
        ended = []
        for name, (trial, process) in list(self.running.items()):
            if (status := process.poll()) is None:
                continue
            del self.running[name]
            result = _read_result(trial, self.out) if status == 0 else None
            if result is None:
                reason = _failure_reason(_log_file(self.out, name), status)
                result = TrialResult(name, self.out / name, trial.config, failure=reason)
            self.finished[name] = result
            ended.append(result)
            left = len(self.waiting) + len(self.running)
            self.print_message(
                f"{name}: {_describe_result(result)}; {left} of {len(self.trials)} trials left"
            )
        return ended

    def _stop(self, number: int) -> None:
        """Tell every run to save, wait until it has, and exit."""
        for _, process in self.running.values():
            process.send_signal(_OTHER_SIGNAL[signal.Signals(number)])
        deadline = time.monotonic() + _STOP_SECONDS
        for trial, process in self.running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            if (result := _read_result(trial, self.out)) is not None:  # it was about to end anyway
                self.finished[trial.name] = result
        self._kill()
        self.print_message(
            f"{self.out}: stopped with {self._count_done()} trials done; run the same command to "
            "continue"
        )
        raise SystemExit(128 + number)

    def _kill(self) -> None:
        for _, process in self.running.values():
            process.kill()
            process.wait()

    def _count_done(self) -> str:
        done = sum(result.failure is None for result in self.finished.values())
        return f"{done} of {len(self.trials)}"


# --- files ---


@contextmanager
def _lock_directory(out: Path) -> Iterator[int]:
    """Lock the directory with a file that the runs hold, too: it is locked while any lives."""
    with exclusive_lock(out / ".lock", wait=False) as file:
        if file is None:
            raise TrainingError(
                f"{out}: another sweep, or a run that one has left behind, is still working here; "
                "wait until it ends"
            )
        yield file.fileno()


def _check_existing_run(trial: Trial, corpus: _Corpus, out: Path) -> None:
    """Refuse a run directory that was begun with another config or on another corpus."""
    directory, preset = out / trial.name, out / f"{trial.name}.toml"
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return
    advice = f"remove {directory} to train it again, or choose another directory for this sweep"
    if not preset.exists():
        raise TrainingError(f"{directory}: not a trial of a sweep; {advice}")
    if Config.load(preset) != trial.config:
        raise ConfigError(f"{preset}: {trial.name} was begun with other settings; {advice}")
    if not _same_corpus(directory, preset, corpus):
        raise DataError(f"{directory}: begun on another corpus than {corpus.path}; {advice}")


def _same_corpus(directory: Path, preset: Path, corpus: _Corpus) -> bool:
    """Compare the corpora by their fingerprints or, if the trial has none, by their paths."""
    mark = preset.read_text(encoding="utf-8").partition("\n")[0]
    if mark.startswith(_CORPUS_COMMENT):
        return mark.removeprefix(_CORPUS_COMMENT) == corpus.fingerprint
    run = RunFile.read(directory)  # None: nothing was trained
    return run is None or (directory / run.data).resolve() == corpus.path.resolve()


def _update_corpus_path(directory: Path, data: Path) -> None:
    """Correct the path of the corpus in a run that began when the corpus was elsewhere."""
    run = RunFile.read(directory)
    path = os.path.relpath(data.resolve(), directory.resolve())
    if run is not None and run.data != path:
        with suppress(OSError):  # the run itself says what is wrong with it
            replace(run, data=path).write(directory)


def _read_result(trial: Trial, out: Path) -> TrialResult | None:
    """Return the result of a finished trial, or None; a model that exists is complete."""
    directory = out / trial.name
    model = directory / "model"
    try:
        card: dict[str, Any] = json.loads((model / "card.json").read_text(encoding="utf-8"))
        config = Config.load(model / "config.toml")
        scores = card["validation"]
        logged = list(_read_training_log(directory / "metrics.jsonl"))
        result = TrialResult(
            trial.name,
            directory,
            config,
            model,
            steps=card["steps"],
            seconds=max((line["seconds"] for line in logged), default=0.0),
            target_tokens=card["target_tokens_seen"],
            tokens_per_second=statistics.median(
                [line["tokens_per_second"] for line in logged] or [0.0]
            ),
            parameters=card["parameters"],
            perplexity=scores["perplexity"],
            bleu=scores.get("greedy BLEU"),
        )
    except (OSError, ValueError, KeyError, TypeError, ConfigError):
        return None
    shutil.rmtree(directory / "checkpoints", ignore_errors=True)  # a sweep's would fill a disk
    return result


def _read_training_log(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from (line for line in map(json.loads, lines) if line["kind"] == "train")


# --- messages ---


def _describe_result(result: TrialResult) -> str:
    if result.failure is not None:
        return f"failed: {result.failure}"
    bleu = "" if result.bleu is None else f"BLEU {result.bleu:.2f}, "
    return (
        f"{bleu}perplexity {result.perplexity:.3f} after {result.steps:,} steps "
        f"in {result.seconds:,.0f} s"
    )


def _failure_reason(log: Path, status: int) -> str:
    """Return the last line of a log, or how the process ended if the log is empty."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if status < 0:
        return f"killed by signal {-status}"
    return last.removeprefix("dragoman: ") or f"ended with status {status} without a message"


def _log_file(out: Path, name: str) -> Path:
    return out / f"{name}.log"
