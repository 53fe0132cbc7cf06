"""Several ranks as threads of one process: what they say to each other, without the network."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from dragoman.training.checkpoints.shards import Part
from dragoman.training.distributed.ranks import Ranks

Result = TypeVar("Result")


class Meeting:
    """Where threads hand each other tensors."""

    def __init__(self, world: int) -> None:
        self.barrier = threading.Barrier(world, timeout=30)
        self.brought: list[Tensor] = [torch.empty(0)] * world

    def bring(self, rank: int, tensor: Tensor) -> list[Tensor]:
        self.brought[rank] = tensor
        self.barrier.wait()
        everything = list(self.brought)
        self.barrier.wait()
        return everything


@dataclass(frozen=True)
class ThreadRanks(Ranks):
    meeting: Meeting = field(default_factory=lambda: Meeting(1))

    def apart(self) -> Ranks:
        return self

    def gather(self, tensor: Tensor) -> list[Tensor]:
        return self.meeting.bring(self.rank, tensor)

    def from_first(self, *numbers: float) -> list[float]:
        return self.gather(torch.tensor(numbers, dtype=torch.float64))[0].tolist()


def on_ranks(world: int, work: Callable[[Ranks], Result]) -> list[Result | Exception]:
    """What each rank's work gave, or how it ended."""
    meeting = Meeting(world)

    def guarded(rank: int) -> Result | Exception:
        try:
            return work(ThreadRanks(rank, world, meeting=meeting))
        except Exception as error:
            return error

    with ThreadPoolExecutor(world) as pool:
        return list(pool.map(guarded, range(world)))


def chunk(tensor: Tensor, rank: int, world: int) -> Part:
    """The rows of a rank as FSDP2 deals them out; the last ranks may have none."""
    shape = tuple(tensor.shape)
    if not shape:
        return Part(tensor, 0, shape)
    size = -(-len(tensor) // world)
    first = min(rank * size, len(tensor))
    return Part(tensor[first : first + size], first, shape)
