"""One process or many: which rank this is, and how ranks exchange numbers.

Started plainly there is one rank, and nothing here communicates. Under torchrun there are several,
joined in a process group: gloo on CPUs, NCCL on GPUs.
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
from dragoman.training.distributed.rendezvous import (
    Store,
    connect_store,
    environment_rank,
    environment_world_size,
    store_address,
)

__all__ = ["Ranks", "describe_device", "join_process_group", "pick_device"]


@dataclass(frozen=True, slots=True)
class Ranks:
    """Represent this process among the others, and exchange numbers with them."""

    rank: int = 0
    world_size: int = 1
    group: dist.ProcessGroup | None = None
    """This is the process group to communicate in; None means the default one."""
    store: Store | None = None
    """Through this store ranks can communicate outside of collectives; None with one rank."""

    @property
    def is_first(self) -> bool:
        """Return whether this is the rank that writes files and messages."""
        return self.rank == 0

    def separate_group(self) -> Ranks:
        """Return the same ranks with a process group of their own; all ranks must call this.

        It is for another thread, or for waits without a timeout: one rank may take long to write or
        to validate, and the watchdog notices a rank that is gone.
        """
        if self.world_size == 1:
            return self
        return replace(self, group=dist.new_group(backend="gloo", timeout=timedelta(days=1)))

    def sum(self, *numbers: float) -> list[float]:
        """Return each number summed over all ranks."""
        if self.world_size == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(tensor, group=self.group)
        return tensor.tolist()

    def mean(self, tensor: Tensor) -> Tensor:
        """Return the mean over all ranks, on the tensor's device, without waiting for it."""
        if self.world_size > 1:
            dist.all_reduce(tensor)
            tensor /= self.world_size
        return tensor

    def broadcast(self, *numbers: float) -> list[float]:
        """Return each number as the first rank has it."""
        if self.world_size == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(tensor, 0, group=self.group)
        return tensor.tolist()

    def all_gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensor of every rank, on every rank; all have one shape, on the CPU."""
        if self.world_size == 1:
            return [tensor]
        tensors = [torch.empty_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(tensors, tensor, group=self.group)
        return tensors


@contextmanager
def join_process_group(device: torch.device, timeout: float = 600.0) -> Iterator[Ranks]:
    """Join the other ranks if torchrun started this process, and leave them at the end.

    A collective fails after `timeout` seconds; to join, ranks have a minute at least.
    """
    world_size = environment_world_size()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if world_size == 1:
        yield Ranks()
        return
    # gloo carries the small messages between hosts, NCCL the gradients of GPUs.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    timeout = max(60.0, timeout)
    rank = environment_rank()
    try:
        store: Any = connect_store(rank, world_size, timeout)
        dist.init_process_group(
            backend,
            store=store,
            rank=rank,
            world_size=world_size,
            timeout=timedelta(seconds=timeout),
        )
    except RuntimeError as error:
        raise TrainingError(
            f"not all of the {world_size} ranks connected to {store_address()} within "
            f"{timeout:.0f} seconds ({str(error).partition(chr(10))[0]}); check that all are "
            "started and can reach it"
        ) from None
    try:
        yield Ranks(rank, world_size, store=store)
    finally:
        dist.destroy_process_group()


def pick_device(wanted: str) -> torch.device:
    """Return the device that this process trains on; `auto` is the GPU where there is one."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError('training.device = "cuda", but no GPU is visible; try "auto"')
    if wanted == "cpu" or not torch.cuda.is_available():
        if wanted == "auto" and (failure := _cuda_failure()):
            raise ConfigError(
                f"there is a GPU, but CUDA does not start ({failure}); fix that, or train on the "
                "CPU with --set training.device=cpu"
            )
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def _cuda_failure() -> str:
    """Return why CUDA does not start on a machine with a GPU; empty where no GPU is to be used.

    A run that silently went to the CPU would take a hundred times as long.
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
    """Return the name of the device, for a CPU with the number of threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"
