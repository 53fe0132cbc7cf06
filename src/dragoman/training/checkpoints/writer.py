"""Checkpoints are written asynchronously: a thread brings a copy of the state to the disk.

The loop waits for a copy of its tensors in host memory, no longer. If the disk fails, a message
says so at once, and the run goes on with the checkpoint it has.

Every rank writes its shard to one temporary directory. When all shards are on the disk, the first
rank adds the index and renames the directory. A run killed before the rename has no checkpoint of
that step, one killed after it has a complete one.
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
from dragoman.run_directory import checkpoint_path
from dragoman.system.atomic_files import (
    TEMPORARY_PREFIX,
    os_error_cause,
    replace_directory,
    sync_directory,
)
from dragoman.training.checkpoints.checkpoint import (
    GENERATORS,
    Checksum,
    TrainingState,
    build_index,
    prune_checkpoints,
    shard_filename,
    write_shard,
    write_state_file,
)
from dragoman.training.distributed.parallel import LocalRows, all_rows
from dragoman.training.distributed.ranks import Ranks

ALIGNMENT = 64


class CheckpointWriter:
    """Save the checkpoints of a run one after the other in a thread; every rank has one.

    A context manager: leaving it waits for the checkpoint that is being written.
    """

    def __init__(
        self,
        run: Path,
        *,
        keep: int,
        newest: int,
        ranks: Ranks,
        before_write: Callable[[], None],
        show_message: Callable[[str], None],
    ) -> None:
        self._run, self._keep, self._newest = run, keep, newest
        # A process group of its own: the loop and the thread communicate in no fixed order.
        self._ranks = ranks.separate_group()
        self._before_write, self._show_message = before_write, show_message
        self._snapshot = HostSnapshot()
        self._thread: threading.Thread | None = None
        self._disk_error: OSError | None = None
        self._other_error: Exception | None = None
        self._wait_seconds = 0.0

    def save(
        self,
        state: TrainingState,
        tensors: Mapping[str, LocalRows],
        generators: Mapping[str, Tensor],
        *,
        last: bool = False,
    ) -> None:
        """Save the run as it is now; `last` waits until that is done, and raises if it fails."""
        started = time.monotonic()
        self.wait()
        copy = self._snapshot.take(tensors)
        arguments = (dataclasses.replace(state), copy, generators, last)
        self._thread = threading.Thread(
            target=self._write, args=arguments, name="checkpoint", daemon=True
        )
        self._thread.start()
        if last:
            self.wait()
        self._wait_seconds += time.monotonic() - started
        if last and self._disk_error is not None:
            raise TrainingError(self._describe_failure(state, self._disk_error, last=True))

    def wait(self) -> None:
        """Wait for the checkpoint that is being written; raise errors that are not the disk's."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._other_error is not None:
            error, self._other_error = self._other_error, None
            raise error

    def take_wait_seconds(self) -> float:
        """Return how long the loop has waited for checkpoints since the last call of this."""
        seconds, self._wait_seconds = self._wait_seconds, 0.0
        return seconds

    def __enter__(self) -> Self:
        if self._newest and self._ranks.is_first:
            self._prune()  # a killed run may not have done it
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.wait()
        elif self._thread is not None and kind is not KeyboardInterrupt:  # which means: now
            self._thread.join()

    # --- in the thread ---

    def _write(
        self,
        state: TrainingState,
        tensors: Mapping[str, LocalRows],
        generators: Mapping[str, Tensor],
        last: bool,
    ) -> None:
        self._disk_error = None

        def before_write() -> None:
            self._snapshot.wait()
            self._before_write()

        try:
            save_checkpoint(
                self._run, state, tensors, generators, self._ranks, before_write=before_write
            )
            self._newest = state.step
            if self._ranks.is_first:
                self._prune()
        except OSError as error:
            self._disk_error = error
            if self._ranks.is_first and not last:
                self._show_message(self._describe_failure(state, error, last=False))
        except Exception as error:  # raised by `wait`, in the loop's thread
            self._other_error = error

    def _prune(self) -> None:
        try:
            prune_checkpoints(self._run, self._keep, self._newest)
        except OSError as error:
            self._show_message(
                f"{self._run / 'checkpoints'}: an old checkpoint cannot be removed "
                f"({error.strerror}); the run goes on, remove it by hand"
            )

    def _describe_failure(self, state: TrainingState, error: OSError, *, last: bool) -> str:
        what = f"{checkpoint_path(self._run, state.step)}: {os_error_cause(error)}; "
        newest = f"the newest checkpoint is step {self._newest:,}"
        if not self._newest:
            newest = "there is no checkpoint yet"
        if not last:
            return f"{what}the run goes on, {newest}"
        return f"{what}{newest}; fix this, then: dragoman train --resume {self._run}"


class HostSnapshot:
    """Copy a run's tensors to host memory, each time into the memory of the copy before."""

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}
        self._copied: torch.cuda.Event | None = None

    @torch.no_grad()
    def take(self, tensors: Mapping[str, LocalRows]) -> dict[str, LocalRows]:
        """Return a copy of the tensors as they are now; of those on a GPU, once `wait` returns."""
        self._buffers = self._buffers or _allocate_buffers(tensors)
        for name, rows in tensors.items():
            # On a GPU this is queued: after the step that is being computed, before the next one.
            self._buffers[name].copy_(rows.tensor, non_blocking=True)
        if any(rows.tensor.is_cuda for rows in tensors.values()):
            self._copied = torch.cuda.Event()
            self._copied.record()
        return {n: dataclasses.replace(r, tensor=self._buffers[n]) for n, r in tensors.items()}

    def wait(self) -> None:
        """Wait until the last copy is in host memory."""
        if self._copied is not None:
            self._copied.synchronize()


def _allocate_buffers(tensors: Mapping[str, LocalRows]) -> dict[str, Tensor]:
    """Return a buffer for every tensor, all from one allocation: pinned memory is slow to get."""
    starts, size = {}, 0
    for name, rows in tensors.items():
        starts[name] = size
        size += -(-rows.tensor.nbytes // ALIGNMENT) * ALIGNMENT
    # A GPU copies to pinned memory while the loop goes on, to other memory while it waits.
    pinned = any(rows.tensor.is_cuda for rows in tensors.values())
    memory = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
    return {
        name: memory[start : start + tensors[name].tensor.nbytes]
        .view(tensors[name].tensor.dtype)
        .view(tensors[name].tensor.shape)
        for name, start in starts.items()
    }


def save_checkpoint(
    run: Path,
    state: TrainingState,
    tensors: Mapping[str, LocalRows],
    generators: Mapping[str, Tensor],
    ranks: Ranks,
    *,
    before_write: Callable[[], None] = lambda: None,
) -> Path:
    """Write the checkpoint of this step, completely or not at all; every rank calls this.

    Each rank writes the rows it holds and its own generators, the first one also the tensors that
    all ranks have whole. If any rank fails, all of them raise its OSError.
    """
    path = checkpoint_path(run, state.step)
    temporary = path.with_name(TEMPORARY_PREFIX + path.name)  # the same for all ranks
    errors, checksum = _DeferredErrors(), Checksum(0, 0)
    with errors:
        before_write()
        shard = _select_own_rows(tensors, ranks)
        shard |= {f"{GENERATORS}{kind}/{ranks.rank}": all_rows(t) for kind, t in generators.items()}
        temporary.mkdir(parents=True, exist_ok=True)
        checksum = write_shard(temporary / shard_filename(ranks.rank), shard)
    reports = ranks.all_gather(torch.tensor([errors.errno, *checksum]))
    if ranks.is_first:
        with errors:
            checksums = {}
            for rank, (number, *rest) in enumerate(report.tolist() for report in reports):
                _raise_errno(number, path)
                checksums[shard_filename(rank)] = Checksum(*rest)
            write_state_file(temporary, state, build_index(temporary, checksums))
            sync_directory(temporary)
            replace_directory(temporary, path)
            sync_directory(path.parent)
            sync_directory(run)
        if errors.errno:
            shutil.rmtree(temporary, ignore_errors=True)
    (number,) = ranks.broadcast(errors.errno)
    if errors.other is not None:
        raise errors.other
    _raise_errno(int(number), path)
    return path


def _select_own_rows(tensors: Mapping[str, LocalRows], ranks: Ranks) -> dict[str, LocalRows]:
    """Return what this rank writes: its rows, and on the first rank tensors that all have whole."""
    return {
        name: rows
        for name, rows in tensors.items()
        if (ranks.is_first if rows.is_whole else rows.stop > rows.start)
    }


class _DeferredErrors:
    """Catch the errors of `with` blocks, to be raised once the other ranks have heard of them."""

    def __init__(self) -> None:
        self.errno = 0
        self.other: Exception | None = None
        """This is an error that is not the disk's."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, OSError):
            self.errno = error.errno or errno.EIO
        elif isinstance(error, Exception):
            self.errno, self.other = errno.EIO, error
        return isinstance(error, Exception)


def _raise_errno(number: int, path: Path) -> None:
    if number:
        raise OSError(number, os.strerror(number), str(path))
