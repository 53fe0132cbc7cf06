"""Writing a checkpoint with all ranks: each brings its shard to the disk, the first completes it.

The shards go to one temporary directory. When all are on the disk, the first rank adds the index
and renames the directory. Killed before the rename there is no checkpoint, after it a whole one.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from dragoman.files import TEMPORARY, put_directory, sync_directory
from dragoman.training.checkpoint import GENERATORS, Progress, checkpoint_path, write_state
from dragoman.training.distribution import Ranks
from dragoman.training.shards import Part, Receipt, make_index, shard_name, whole, write_shard

__all__ = ["save_checkpoint"]


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
