"""One process or many: which rank this is, and what ranks tell each other.

Started plainly there is one rank and nothing here communicates. Under torchrun there are several,
joined through gloo on CPUs and NCCL on GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.errors import ConfigError

__all__ = ["Ranks", "joined", "pick_device"]


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among the others."""

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """Whether this rank writes and talks."""
        return self.rank == 0

    def total(self, *numbers: float) -> list[float]:
        """Each number summed over all ranks."""
        if self.world == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def from_first(self, *numbers: float) -> list[float]:
        """Each number as the first rank has it."""
        if self.world == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(tensor, 0)
        return tensor.tolist()

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensor of every rank, on every rank; all have one shape, on the CPU."""
        if self.world == 1:
            return [tensor]
        tensors = [torch.empty_like(tensor) for _ in range(self.world)]
        dist.all_gather(tensors, tensor)
        return tensors


def pick_device(wanted: str) -> torch.device:
    """The device of this process; `auto` is the GPU where there is one."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError('training.device = "cuda", but no GPU is visible; try "auto"')
    if wanted == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join the other ranks if torchrun started this process, and leave them at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if world == 1:
        yield Ranks()
        return
    # gloo carries the small host-side messages, NCCL the gradients of GPUs.
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    try:
        yield Ranks(dist.get_rank(), world)
    finally:
        dist.destroy_process_group()
