"""A sweep: many training runs on one prepared corpus, each in a process of its own.

``OUT/NAME.toml`` is a trial's config, with the fingerprint of its corpus, ``OUT/NAME.log`` what its
process said, ``OUT/NAME`` its run directory. Stopped or killed at any moment, a sweep is continued
by running it again: there or, with a copy of OUT and of the corpus, anywhere else. Of a finished
trial the small files suffice: NAME.toml and, in NAME, all but weights and checkpoints.
"""

from __future__ import annotations

import fcntl
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import ConfigError, DataError, TrainingError
from dragoman.paper.result_cache import corpus_fingerprint
from dragoman.system.atomic_files import atomic_write, explained
from dragoman.system.cores import available_cores
from dragoman.system.signals import Signals

__all__ = ["Finished", "Trial", "first_line", "run"]

Say: TypeAlias = Callable[[str], None]
Then: TypeAlias = Callable[["Finished"], None]

_GRACE: Final = 30.0
"""Seconds that a run told to stop may take; it saves within ten."""
_OTHER: Final = {signal.SIGINT: signal.SIGTERM, signal.SIGTERM: signal.SIGINT}
"""A run obeys the second signal of a kind at once, unsaved, and may have had ours already."""
_MARK: Final = "# On the corpus "
"""How a trial's config begins; the corpus's fingerprint follows."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One training run of a sweep."""

    name: str
    """Its directory's name."""
    config: Config
    """All of it."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of a trial; without a model there is a failure, and the figures are 0."""

    name: str
    run: Path
    config: Config
    """As the run settled it with the corpus; the trial's own if it failed."""
    model: Path | None = None
    """Its directory; a trial that was carried here may have left its weights behind."""
    steps: int = 0
    seconds: float = 0.0
    """Of training, by the run's clock, until the last step that was logged."""
    target_tokens: int = 0
    """Seen in training."""
    tokens_per_second: float = 0.0
    """Target tokens, the median over the run's log."""
    parameters: int = 0
    perplexity: float | None = None
    """Of the validation set, a piece."""
    bleu: float | None = None
    """Of the validation set, greedy; None also if it was not asked for."""
    failure: str | None = None
    """The last line it said."""


def run(
    trials: Sequence[Trial],
    data: Path,
    out: Path,
    *,
    jobs: int = 1,
    say: Say,
    then: Then = lambda found: None,
) -> list[Finished]:
    """Train every trial on a prepared corpus, `jobs` at a time; those that are done are not redone.

    One that was interrupted goes on from its last checkpoint; one that fails leaves the others
    alone and is tried again next time. A finished one keeps its model and its records, not its
    checkpoints, and `then` is called with it while the others go on. Ctrl-C and SIGTERM make every
    run save and end; the process then leaves with status 128 + signal.
    """
    assert len({trial.name for trial in trials}) == len(trials), "names of trials must differ"
    if jobs < 1:
        raise ConfigError(f"jobs = {jobs} is too small; the least is 1")
    corpus = _Corpus(data, corpus_fingerprint(Prepared.open(data)))
    with explained(out), _locked(out) as lock:
        for trial in trials:
            _refuse_others(trial, corpus, out)
        sweep = _Sweep(trials, corpus, out, jobs, lock, say)
        return sweep.run(then)


@dataclass(frozen=True, slots=True)
class _Corpus:
    """Where it is, and what it is wherever it is."""

    path: Path
    fingerprint: str


class _Sweep:
    """The processes of a sweep, and what is left to do."""

    def __init__(
        self, trials: Sequence[Trial], corpus: _Corpus, out: Path, jobs: int, lock: int, say: Say
    ) -> None:
        self.trials, self.corpus, self.out, self.lock, self.say = trials, corpus, out, lock, say
        self.found = {t.name: f for t in trials if (f := _read(t, out)) is not None}
        self.waiting = [t for t in trials if t.name not in self.found]
        self.running: dict[str, tuple[Trial, subprocess.Popen[bytes]]] = {}
        self.jobs = min(jobs, len(self.waiting))

    def run(self, then: Then) -> list[Finished]:
        if self.found:
            self.say(f"{self.out}: {self._done()} trials are done already")
        ended = list(self.found.values())
        try:
            with Signals() as signals:
                while self.waiting or self.running or ended:
                    while self.waiting and len(self.running) < self.jobs:
                        self._start(self.waiting.pop(0))
                    time.sleep(0.05)
                    if signals.caught:  # before a run that ended of it looks like a failure
                        self._stop(signals.caught[0])
                    if ended and ended[0].failure is None:
                        then(ended[0])
                    ended = [*ended[1:], *self._take_finished()]
        finally:
            self._kill()
        failed = [f.name for f in self.found.values() if f.failure is not None]
        if failed:
            self.say(
                f"{len(failed)} of {len(self.trials)} trials failed ({', '.join(failed)}); see "
                f"{self.out / failed[0]}.log, and run the same command to try again"
            )
        return [self.found[trial.name] for trial in self.trials]

    def _start(self, trial: Trial) -> None:
        directory, preset = self.out / trial.name, self.out / f"{trial.name}.toml"
        words = [str(self.corpus.path), "--preset", str(preset), "--out", str(directory)]
        if (directory / "config.toml").exists():
            _tell_place(directory, self.corpus.path)
            words = ["--resume", str(directory)]
        else:
            atomic_write(preset, f"{_MARK}{self.corpus.fingerprint}\n{trial.config.to_toml()}")
        environment = dict(os.environ)
        if self.jobs > 1:
            environment.setdefault("OMP_NUM_THREADS", str(max(1, available_cores() // self.jobs)))
        with _log(self.out, trial.name).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dragoman", "train", *words, "--quiet"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                pass_fds=[self.lock],
            )
        self.running[trial.name] = trial, process

    def _take_finished(self) -> list[Finished]:
        ended = []
        for name, (trial, process) in list(self.running.items()):
            if (status := process.poll()) is None:
                continue
            del self.running[name]
            found = _read(trial, self.out) if status == 0 else None
            if found is None:
                reason = _reason(_log(self.out, name), status)
                found = Finished(name, self.out / name, trial.config, failure=reason)
            self.found[name] = found
            ended.append(found)
            left = len(self.waiting) + len(self.running)
            self.say(f"{name}: {_in_words(found)}; {left} of {len(self.trials)} trials left")
        return ended

    def _stop(self, number: int) -> None:
        """Tell every run to save, wait for that, and leave."""
        for _, process in self.running.values():
            process.send_signal(_OTHER[signal.Signals(number)])
        deadline = time.monotonic() + _GRACE
        for trial, process in self.running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            if (found := _read(trial, self.out)) is not None:  # it was about to end by itself
                self.found[trial.name] = found
        self._kill()
        self.say(
            f"{self.out}: stopped with {self._done()} trials done; run the same command to continue"
        )
        raise SystemExit(128 + number)

    def _kill(self) -> None:
        for _, process in self.running.values():
            process.kill()
            process.wait()

    def _done(self) -> str:
        done = sum(found.failure is None for found in self.found.values())
        return f"{done} of {len(self.trials)}"


# --- what is on the disk ---


@contextmanager
def _locked(out: Path) -> Iterator[int]:
    """Hold the directory for this sweep: a file that its runs, too, hold as long as they live."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise TrainingError(
                f"{out}: a sweep is at work here, or a run that one has left; wait for its end"
            ) from None
        yield file.fileno()


def _refuse_others(trial: Trial, corpus: _Corpus, out: Path) -> None:
    """A run that was begun must be this trial's, and on this corpus."""
    directory, preset = out / trial.name, out / f"{trial.name}.toml"
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return
    advice = f"remove {directory} to train it anew, or choose another place for this sweep"
    if not preset.exists():
        raise TrainingError(f"{directory}: not a trial of a sweep; {advice}")
    if Config.load(preset) != trial.config:
        raise ConfigError(f"{preset}: {trial.name} was begun with other settings; {advice}")
    if not _same_corpus(directory, preset, corpus):
        raise DataError(f"{directory}: was begun on another corpus than {corpus.path}; {advice}")


def _same_corpus(directory: Path, preset: Path, corpus: _Corpus) -> bool:
    """By the fingerprint, or, of a trial that has none, by the place."""
    mark = preset.read_text(encoding="utf-8").partition("\n")[0]
    if mark.startswith(_MARK):
        return mark.removeprefix(_MARK) == corpus.fingerprint
    with suppress(OSError, ValueError, KeyError, TypeError):  # no run.json yet: nothing was trained
        place: str = json.loads((directory / "run.json").read_text(encoding="utf-8"))["data"]
        return (directory / place).resolve() == corpus.path.resolve()
    return True


def _tell_place(directory: Path, data: Path) -> None:
    """Say where the corpus is to a run that began where it was elsewhere."""
    file = directory / "run.json"
    with suppress(OSError, ValueError, TypeError):  # the run itself says what is wrong with it
        facts = json.loads(file.read_text(encoding="utf-8"))
        moved = {**facts, "data": os.path.relpath(data.resolve(), directory.resolve())}
        if moved != facts:
            atomic_write(file, json.dumps(moved) + "\n")


def _read(trial: Trial, out: Path) -> Finished | None:
    """What came of a trial; None until its model is there, which is whole when it is there."""
    directory = out / trial.name
    model = directory / "model"
    try:
        card: dict[str, Any] = json.loads((model / "card.json").read_text(encoding="utf-8"))
        config = Config.load(model / "config.toml")
        scores = card["validation"]
        logged = list(_logged(directory / "metrics.jsonl"))
        found = Finished(
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
    return found


def _logged(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        yield from (line for line in map(json.loads, lines) if line["kind"] == "train")


# --- in words ---


def first_line(error: Exception) -> str:
    """What an error says, as far as one line goes."""
    return str(error).strip().partition("\n")[0] or repr(error)


def _in_words(found: Finished) -> str:
    if found.failure is not None:
        return f"failed: {found.failure}"
    bleu = "" if found.bleu is None else f"BLEU {found.bleu:.2f}, "
    return (
        f"{bleu}perplexity {found.perplexity:.3f} after {found.steps:,} steps "
        f"in {found.seconds:,.0f} s"
    )


def _reason(log: Path, status: int) -> str:
    """The last line of a log, or how the process ended if it said nothing."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if status < 0:
        return f"killed by signal {-status}"
    return last.removeprefix("dragoman: ") or f"ended with status {status} and no word"


def _log(out: Path, name: str) -> Path:
    return out / f"{name}.log"
