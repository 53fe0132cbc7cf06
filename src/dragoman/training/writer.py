"""Checkpoints written behind the back of the training.

The loop waits for a copy of its state in host memory, no longer; a thread brings the copy to the
disk. What cannot be written is said at once, and the run goes on with the checkpoint it has.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from torch import Tensor

from dragoman.errors import TrainingError
from dragoman.files import cause
from dragoman.training.checkpoint import Progress, checkpoint_path, prune
from dragoman.training.distribution import Ranks
from dragoman.training.saving import save_checkpoint
from dragoman.training.shards import Part
from dragoman.training.snapshot import Snapshots

__all__ = ["CheckpointWriter"]


class CheckpointWriter:
    """Saves the checkpoints of a run, one after the other; every rank has one.

    A context manager: leaving it waits for what is being written.
    """

    def __init__(
        self,
        run: Path,
        *,
        keep: int,
        newest: int,
        ranks: Ranks,
        before: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._run, self._keep, self._newest = run, keep, newest
        # Its own line: the loop and the thread speak to other ranks in no fixed order.
        self._ranks = ranks.apart()
        self._before, self._say = before, say
        self._snapshots = Snapshots()
        self._thread: threading.Thread | None = None
        self._failure: OSError | None = None
        self._surprise: Exception | None = None
        self._seconds = 0.0

    def save(
        self,
        progress: Progress,
        state: Mapping[str, Part],
        generators: Mapping[str, Tensor],
        *,
        last: bool = False,
    ) -> None:
        """Save the run as it is now; `last`: wait until that is done, or refuse to end well."""
        started = time.monotonic()
        self.wait()
        copy = self._snapshots.take(state)
        then = dataclasses.replace(progress)
        self._thread = threading.Thread(
            target=self._write, args=(then, copy, generators, last), name="checkpoint", daemon=True
        )
        self._thread.start()
        if last:
            self.wait()
        self._seconds += time.monotonic() - started
        if last and self._failure is not None:
            raise TrainingError(self._complaint(progress, self._failure, last=True))

    def wait(self) -> None:
        """Wait for what is being written; what went wrong with it is known afterwards."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._surprise is not None:
            surprise, self._surprise = self._surprise, None
            raise surprise

    def take_seconds(self) -> float:
        """Time the loop has spent waiting for checkpoints since it last asked."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def __enter__(self) -> Self:
        if self._newest and self._ranks.first:
            self._prune()  # a killed run may not have come to it
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.wait()
        elif self._thread is not None and kind is not KeyboardInterrupt:  # that means: now
            self._thread.join()

    # --- in the thread ---

    def _write(
        self,
        progress: Progress,
        state: Mapping[str, Part],
        generators: Mapping[str, Tensor],
        last: bool,
    ) -> None:
        self._failure = None
        try:
            save_checkpoint(
                self._run, progress, state, generators, self._ranks, ready=self._get_ready
            )
            self._newest = progress.step
            if self._ranks.first:
                self._prune()
        except OSError as error:
            self._failure = error
            if self._ranks.first and not last:
                self._say(self._complaint(progress, error, last=False))
        except Exception as error:  # raised where somebody can see it
            self._surprise = error

    def _get_ready(self) -> None:
        self._snapshots.ready()
        self._before()

    def _prune(self) -> None:
        try:
            prune(self._run, self._keep, self._newest)
        except OSError as error:
            self._say(
                f"{self._run / 'checkpoints'}: an old checkpoint cannot be removed "
                f"({error.strerror}); the run goes on, remove it by hand"
            )

    def _complaint(self, progress: Progress, error: OSError, *, last: bool) -> str:
        what = f"{checkpoint_path(self._run, progress.step)}: {cause(error)}; "
        newest = f"the newest checkpoint is step {self._newest:,}"
        if not self._newest:
            newest = "there is no checkpoint yet"
        if not last:
            return f"{what}the run goes on, {newest}"
        return f"{what}{newest}; mend this, then: dragoman train --resume {self._run}"
