"""Points to be killed at: each is a patch of the process that is to die, not of Dragoman.

A patched function counts its calls, and the process kills itself before, in or after one of them.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from dragoman.models import weights
from dragoman.system import atomic_files
from dragoman.training import loop, metrics_log, optimizers, validation
from dragoman.training.checkpoints import checkpoint, writer

Action = Callable[..., Any]


def die() -> None:
    """End as in a power cut, as far as this process is concerned."""
    os.kill(os.getpid(), signal.SIGKILL)


def before(plain: Action) -> Action:
    """Die before the call."""
    return lambda *arguments, **options: die()


def after(plain: Action) -> Action:
    """Die when the call has returned."""

    def call(*arguments: Any, **options: Any) -> None:
        plain(*arguments, **options)
        die()

    return call


def half_a_file(plain: Action) -> Action:
    """Die when half of the file is written."""

    def call(*arguments: Any, **options: Any) -> None:
        plain(*arguments, **options)
        path = next(argument for argument in arguments if isinstance(argument, Path))
        os.truncate(path, path.stat().st_size // 2)
        die()

    return call


def half_a_line(plain: Action) -> Action:
    """Die when half of a line of metrics.jsonl is written."""

    def call(self: Any, *arguments: Any, **options: Any) -> None:
        self._file.write('{"kind": "train", "st')
        self._file.flush()
        die()

    return call


def half_removed(plain: Action) -> Action:
    """Die when the first file of a directory is removed."""

    def call(path: Path, **options: Any) -> None:
        for file in sorted(Path(path).glob("*"))[:1]:
            file.unlink()
        die()

    return call


def slow_disk(seconds: float) -> None:
    """Give the training time to go on while a checkpoint is being written."""
    module: Any = checkpoint
    plain = module.write_tensors

    def slow(*arguments: Any) -> None:
        time.sleep(seconds)
        plain(*arguments)

    module.write_tensors = slow


def count_every_call(*arguments: Any, **options: Any) -> bool:
    """Every call counts."""
    return True


def directory_exists(path: Path, **options: Any) -> bool:
    """Removing what is not there does not count."""
    return Path(path).is_dir()


@dataclass(frozen=True)
class KillPoint:
    """A call of a function, and what becomes of it."""

    owner: Any
    function: str
    action: Callable[[Action], Action]
    calls: int
    """The fatal call is drawn from so many."""
    counts: Callable[..., bool] = count_every_call

    def arm(self, draw: Random) -> Callable[[], None]:
        """Return the patch that makes a process die at this point."""
        fatal_call = draw.randint(1, self.calls)

        def patch() -> None:
            plain = getattr(self.owner, self.function)
            fatal = self.action(plain)
            left = fatal_call

            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                left -= self.counts(*arguments, **options)
                return (fatal if left == 0 else plain)(*arguments, **options)

            setattr(self.owner, self.function, call)

        return patch


KILL_POINTS = {
    "half a shard is written": KillPoint(checkpoint, "write_tensors", half_a_file, 5),
    "half the index is written": KillPoint(checkpoint, "write_synced", half_a_file, 5),
    "before an fsync": KillPoint(os, "fsync", before, 30),
    "after an fsync": KillPoint(os, "fsync", after, 30),
    "before a rename": KillPoint(Path, "rename", before, 8),
    "after a rename": KillPoint(Path, "rename", after, 8),
    "before the checkpoint has its name": KillPoint(writer, "replace_directory", before, 5),
    "after the checkpoint has its name": KillPoint(writer, "replace_directory", after, 5),
    "before pruning": KillPoint(checkpoint, "_remove", before, 3),
    "half a checkpoint is pruned": KillPoint(shutil, "rmtree", half_removed, 3, directory_exists),
    "after pruning": KillPoint(checkpoint, "_remove", after, 3),
    "before a validation": KillPoint(loop, "validate", before, 4),
    "in a validation": KillPoint(validation, "_bleu", before, 4),
    "after a validation": KillPoint(loop, "validate", after, 4),
    "half the best model is written": KillPoint(weights, "write_tensors", half_a_file, 2),
    "the best model has its name": KillPoint(atomic_files, "replace_directory", after, 2),
    "half a line of metrics is written": KillPoint(
        metrics_log.MetricsWriter, "write", half_a_line, 30
    ),
    "between two lines of metrics": KillPoint(metrics_log.MetricsWriter, "write", after, 30),
    "before Adam": KillPoint(optimizers.Adam, "step", before, 25),
    "after Adam": KillPoint(optimizers.Adam, "step", after, 25),
    "before the state is restored": KillPoint(checkpoint.Checkpoint, "load_into", before, 1),
    "after the state is restored": KillPoint(checkpoint.Checkpoint, "load_into", after, 1),
    "before metrics are cut": KillPoint(os, "truncate", before, 1),
    "after metrics are cut": KillPoint(os, "truncate", after, 1),
}
