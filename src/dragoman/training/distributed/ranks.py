"""One process or many: which rank this is, and what ranks tell each other.

Started plainly there is one rank and nothing here communicates. Under torchrun there are several,
joined through gloo on CPUs and NCCL on GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.errors import ConfigError, TrainingError
from dragoman.training.distributed.rendezvous import Store, address, meet

__all__ = ["Ranks", "describe_device", "joined", "pick_device"]


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among the others."""

    rank: int = 0
    world: int = 1
    group: dist.ProcessGroup | None = None
    """The line they speak on; None: the one everybody shares."""
    store: Store | None = None
    """What they can tell each other outside of exchanges; None: nothing."""

    @property
    def first(self) -> bool:
        """Whether this rank writes and talks."""
        return self.rank == 0

    def apart(self) -> Ranks:
        """The same ranks on a line of their own, for another thread; all ask for it at once.

        It is patient: one rank may have long to write or to validate. That one is gone, the watch
        finds out.
        """
        if self.world == 1:
            return self
        return replace(self, group=dist.new_group(backend="gloo", timeout=timedelta(days=1)))

    def total(self, *numbers: float) -> list[float]:
        """Each number summed over all ranks."""
        if self.world == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(tensor, group=self.group)
        return tensor.tolist()

    def mean(self, tensor: Tensor) -> Tensor:
        """The mean over all ranks, on the tensor's device; does not wait for it."""
        if self.world > 1:
            dist.all_reduce(tensor)
            tensor /= self.world
        return tensor

    def from_first(self, *numbers: float) -> list[float]:
        """Each number as the first rank has it."""
        if self.world == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(tensor, 0, group=self.group)
        return tensor.tolist()

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensor of every rank, on every rank; all have one shape, on the CPU."""
        if self.world == 1:
            return [tensor]
        tensors = [torch.empty_like(tensor) for _ in range(self.world)]
        dist.all_gather(tensors, tensor, group=self.group)
        return tensors


def pick_device(wanted: str) -> torch.device:
    """The device of this process; `auto` is the GPU where there is one."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError('training.device = "cuda", but no GPU is visible; try "auto"')
    if wanted == "cpu" or not torch.cuda.is_available():
        if wanted == "auto" and (failure := _why_cuda_fails()):
            raise ConfigError(
                f"there is a GPU, but CUDA does not start ({failure}); mend that, or train on the "
                "CPU with --set training.device=cpu"
            )
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def _why_cuda_fails() -> str:
    """What CUDA says where it should start; nothing where no GPU is to be used.

    A run that went to the CPU in silence would take a hundred times as long.
    """
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1")
    if hidden or torch.version.cuda is None or not Path("/dev/nvidia0").exists():
        return ""
    try:
        torch.cuda.init()
    except RuntimeError as error:
        return str(error).split("(Triggered")[0].strip().split("\n")[0]
    return ""


def describe_device(device: torch.device) -> str:
    """The device by its name, a CPU with the threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


@contextmanager
def joined(device: torch.device, timeout: float = 600.0) -> Iterator[Ranks]:
    """Join the other ranks if torchrun started this process, and leave them at the end.

    An exchange that takes so many seconds fails; they have a minute at least to come.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if world == 1:
        yield Ranks()
        return
    # gloo carries the small host-side messages, NCCL the gradients of GPUs.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    timeout = max(60.0, timeout)
    rank = int(os.environ["RANK"])
    try:
        store: Any = meet(rank, world, timeout)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=world, timeout=timedelta(seconds=timeout)
        )
    except RuntimeError as error:
        raise TrainingError(
            f"not all of the {world} ranks came together at {address()} in {timeout:.0f} seconds "
            f"({str(error).partition(chr(10))[0]}); see that all are started and can reach it"
        ) from None
    try:
        yield Ranks(rank, world, store=store)
    finally:
        dist.destroy_process_group()
