"""Several ranks as threads of one process, which communicate without the network."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from dragoman.training.distributed.parallel import LocalRows
from dragoman.training.distributed.ranks import Ranks

Result = TypeVar("Result")


class ThreadGroup:
    """Lets threads gather each other's tensors."""

    def __init__(self, world_size: int) -> None:
        self.barrier = threading.Barrier(world_size, timeout=30)
        self.tensors: list[Tensor] = [torch.empty(0)] * world_size

    def all_gather(self, rank: int, tensor: Tensor) -> list[Tensor]:
        self.tensors[rank] = tensor
        self.barrier.wait()
        tensors = list(self.tensors)
        self.barrier.wait()
        return tensors


@dataclass(frozen=True)
class ThreadRanks(Ranks):
    threads: ThreadGroup = field(default_factory=lambda: ThreadGroup(1))

    def separate_group(self) -> Ranks:
        return self

    def all_gather(self, tensor: Tensor) -> list[Tensor]:
        return self.threads.all_gather(self.rank, tensor)

    def broadcast(self, *numbers: float) -> list[float]:
        return self.all_gather(torch.tensor(numbers, dtype=torch.float64))[0].tolist()


def run_on_ranks(world_size: int, work: Callable[[Ranks], Result]) -> list[Result | Exception]:
    """Return what each rank's work returned or raised."""
    threads = ThreadGroup(world_size)

    def run(rank: int) -> Result | Exception:
        try:
            return work(ThreadRanks(rank, world_size, threads=threads))
        except Exception as error:
            return error

    with ThreadPoolExecutor(world_size) as pool:
        return list(pool.map(run, range(world_size)))


def shard_rows(tensor: Tensor, rank: int, world_size: int) -> LocalRows:
    """Return the rows of a rank as FSDP2 distributes them; the last ranks may have none."""
    shape = tuple(tensor.shape)
    if not shape:
        return LocalRows(tensor, 0, shape)
    size = -(-len(tensor) // world_size)
    start = min(rank * size, len(tensor))
    return LocalRows(tensor[start : start + size], start, shape)
