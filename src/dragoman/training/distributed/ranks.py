"""A process is one rank of one or many; ranks find each other and exchange numbers.

Started plainly there is one rank, and nothing here communicates. Under torchrun there are several,
joined in a process group: gloo on CPUs, NCCL on GPUs.

The rendezvous: torchrun keeps one store for all starts of a job, and what the last start wrote is
still there: addresses of processes that are gone. Its count of restarts tells starts apart on one
machine, but not on several, where each counts its own. So the ranks first agree on an id of this
start: each writes a random token, the first rank makes an id of all tokens, and the id is valid
once every rank has found its own token in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, Self, cast

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.errors import ConfigError, TrainingError
from dragoman.training.run_json import RunFile

POLL_SECONDS = 0.05


class Store(Protocol):
    """Share keys and values between ranks; failures are RuntimeErrors."""

    def set(self, key: str, value: str) -> None:
        """Set a key to a value, in place of what was there."""

    def get(self, key: str) -> bytes:
        """Return the value of a key that is there."""

    def check(self, keys: list[str]) -> bool:
        """Return whether all of the keys are there."""

    def compare_set(self, key: str, expected: str, value: str) -> bytes:
        """Set a key that is not there, if `expected` is empty; return its value after that."""

    def clone(self) -> Self:
        """Return the same store, for another thread."""


def environment_rank() -> int:
    """Return the rank that torchrun gave this process; 0 without torchrun."""
    return int(os.environ.get("RANK", "0"))


def environment_world_size() -> int:
    """Return how many ranks torchrun has started; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def store_address() -> str:
    """Return the address of the store, as torchrun gives it."""
    return f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"


def connect_store(rank: int, world_size: int, timeout: float) -> Store:
    """Wait for all ranks, and return a store for this start of the job, which is still empty."""
    from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    torchrun_has_one = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store: Any = TCPStore(
        host,
        port,
        is_master=rank == 0 and not torchrun_has_one,
        timeout=timedelta(seconds=timeout),
        wait_for_workers=False,
    )
    return cast(Store, PrefixStore(agree_on_start_id(store, rank, world_size, timeout), store))


def agree_on_start_id(store: Store, rank: int, world_size: int, timeout: float) -> str:
    """Return an id that all ranks of this start, and no others, know."""
    token, ranks = str(uuid.uuid4()), range(world_size)
    store.set(f"token/{rank}", token)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if rank == 0 and store.check([f"token/{r}" for r in ranks]):
            tokens = [store.get(f"token/{r}").decode() for r in ranks]
            start_id = hashlib.sha256("".join(tokens).encode()).hexdigest()
            store.set("start", json.dumps([start_id, tokens]))
            if store.check([f"{start_id}/seen/{r}" for r in ranks[1:]]):
                store.set(f"{start_id}/valid", "")
                return start_id
        elif rank and store.check(["start"]):
            start_id, tokens = json.loads(store.get("start"))
            if rank < len(tokens) and tokens[rank] == token:
                store.set(f"{start_id}/seen/{rank}", "")
                if store.check([f"{start_id}/valid"]):
                    return str(start_id)
        time.sleep(POLL_SECONDS)
    raise RuntimeError("timed out waiting for the other ranks")


# --- restarts by torchrun (--max-restarts) ---


def job_id() -> str:
    """Return what identifies a torchrun job over all its starts; empty without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "")
    # A job without a name is identified by the torchrun process that started this one.
    return f"{socket.gethostname()}:{os.getppid()}" if name == "none" else name


def is_restart_of(run: Path) -> bool:
    """Return whether this process is a restart of the very job that began the run.

    A run that was there before the job must not be resumed: the first start has refused to touch
    it, and torchrun starts again whatever the reason was.
    """
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0:
        return False
    if environment_rank() != 0:
        return True  # the first rank decides: the others cannot go on without it
    run_file = RunFile.read(run)
    return run_file is not None and run_file.job == job_id()


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
