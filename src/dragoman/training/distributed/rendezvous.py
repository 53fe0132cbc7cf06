"""How ranks find each other: a store that all can reach, and a key prefix no one used before.

torchrun keeps one store for all starts of a job, and what the last start wrote is still there:
addresses of processes that are gone. Its count of restarts tells starts apart on one machine, but
not on several, where each counts its own. So the ranks first agree on an id of this start: each
writes a random token, the first rank makes an id of all tokens, and the id is valid once every rank
has found its own token in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, Self, cast

from dragoman.training.run_file import RunFile

__all__ = [
    "Store",
    "agree_on_start_id",
    "connect_store",
    "environment_rank",
    "environment_world_size",
    "is_restart_of",
    "job_id",
    "store_address",
]

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
