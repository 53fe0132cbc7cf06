"""Checkpoints written behind the back of the training.

The loop waits for a copy of its state in host memory, no longer; a thread brings the copy to the
disk. What cannot be written is said at once, and the run goes on with the checkpoint it has.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from dragoman.errors import TrainingError
from dragoman.system.atomic_files import TEMPORARY, cause, put_directory, sync_directory
from dragoman.training.checkpoints.checkpoint import (
    GENERATORS,
    Progress,
    checkpoint_path,
    prune,
    write_state,
)
from dragoman.training.checkpoints.shards import (
    Part,
    Receipt,
    make_index,
    shard_name,
    whole,
    write_shard,
)
from dragoman.training.distributed.ranks import Ranks

__all__ = [
    "CheckpointWriter",
    "Snapshots",
    "save_checkpoint",
]


# PART training.saving: Writing a checkpoint with all ranks: each brings its shard to the disk,
# the first completes it.
#
# The shards go to one temporary directory. When all are on the disk, the first rank adds the
# index and renames the directory. Killed before the rename there is no checkpoint, after it a
# whole one.


def save_checkpoint(
    run: Path,
    progress: Progress,
    state: Mapping[str, Part],
    generators: Mapping[str, Tensor],
    ranks: Ranks,
    *,
    ready: Callable[[], None] = lambda: None,
) -> Path:
    """Write the checkpoint of this step, completely or not at all; every rank calls this.

    Each rank writes the rows it holds and its own generators, the first one also what all hold
    alike. `ready` is called before. Whichever rank fails, all raise its OSError.
    """
    path = checkpoint_path(run, progress.step)
    temporary = path.with_name(TEMPORARY + path.name)  # the same for all ranks
    attempt, receipt = _Attempt(), Receipt(0, 0)
    with attempt:
        ready()
        mine = _owned(state, ranks)
        mine |= {f"{GENERATORS}{kind}/{ranks.rank}": whole(t) for kind, t in generators.items()}
        temporary.mkdir(parents=True, exist_ok=True)
        receipt = write_shard(temporary / shard_name(ranks.rank), mine)
    told = ranks.gather(torch.tensor([attempt.errno, *receipt]))
    if ranks.first:
        with attempt:
            receipts = {}
            for rank, (failure, *rest) in enumerate(report.tolist() for report in told):
                _raise(failure, path)
                receipts[shard_name(rank)] = Receipt(*rest)
            write_state(temporary, progress, make_index(temporary, receipts))
            sync_directory(temporary)
            put_directory(temporary, path)
            sync_directory(path.parent)
            sync_directory(run)
        if attempt.errno:
            shutil.rmtree(temporary, ignore_errors=True)
    (failure,) = ranks.from_first(attempt.errno)
    if attempt.surprise is not None:
        raise attempt.surprise
    _raise(int(failure), path)
    return path


def _owned(state: Mapping[str, Part], ranks: Ranks) -> dict[str, Part]:
    """What this rank writes: its rows, and on the first rank what every rank holds alike."""
    return {
        name: part
        for name, part in state.items()
        if (ranks.first if part.is_whole else part.stop > part.first)
    }


class _Attempt:
    """Blocks whose errors are kept until the other ranks, who wait for word, have it."""

    def __init__(self) -> None:
        self.errno = 0
        self.surprise: Exception | None = None
        """An error that is not the disk's."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, OSError):
            self.errno = error.errno or errno.EIO
        elif isinstance(error, Exception):
            self.errno, self.surprise = errno.EIO, error
        return isinstance(error, Exception)


def _raise(number: int, path: Path) -> None:
    if number:
        raise OSError(number, os.strerror(number), str(path))


# PART training.snapshot: Copies of a run's tensors in host memory, as they were at one moment.


ALIGNMENT = 64


class Snapshots:
    """Takes snapshots of one run, each into the memory of the one before."""

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}
        self._copied: torch.cuda.Event | None = None

    @torch.no_grad()
    def take(self, state: Mapping[str, Part]) -> dict[str, Part]:
        """The state as it is now; of tensors on a GPU, once `ready` returns."""
        self._buffers = self._buffers or _buffers(state)
        for name, part in state.items():
            # On a GPU this is queued: after the step that is being computed, before the next one.
            self._buffers[name].copy_(part.tensor, non_blocking=True)
        if any(part.tensor.is_cuda for part in state.values()):
            self._copied = torch.cuda.Event()
            self._copied.record()
        return {n: dataclasses.replace(p, tensor=self._buffers[n]) for n, p in state.items()}

    def ready(self) -> None:
        """Wait until the last snapshot is in host memory."""
        if self._copied is not None:
            self._copied.synchronize()


def _buffers(state: Mapping[str, Part]) -> dict[str, Tensor]:
    """Room for every tensor, asked of the system at once: pinned memory is slow to get."""
    starts, size = {}, 0
    for name, part in state.items():
        starts[name] = size
        size += -(-part.tensor.nbytes // ALIGNMENT) * ALIGNMENT
    # A GPU copies to pinned memory while the loop goes on, to other memory while it waits.
    pinned = any(part.tensor.is_cuda for part in state.values())
    memory = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
    return {
        name: memory[start : start + state[name].tensor.nbytes]
        .view(state[name].tensor.dtype)
        .view(state[name].tensor.shape)
        for name, start in starts.items()
    }


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
