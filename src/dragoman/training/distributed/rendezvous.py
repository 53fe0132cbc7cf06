"""Where ranks find each other: a store that all can reach, under a name no one has used before.

torchrun keeps one store for all starts of a job, and what the last start wrote is still there:
addresses of processes that are gone. Its count of restarts tells starts apart on one machine, but
not on several, where each counts its own. So ranks first agree on a name: each says a word that
nobody has said before, the first one makes a name of the words, and it holds when everybody has
found the own word in it.
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

__all__ = [
    "Store",
    "address",
    "agree_on_name",
    "job",
    "meet",
    "restarted",
]


PAUSE = 0.05


class Store(Protocol):
    """Keys and values that ranks share; what fails is a RuntimeError."""

    def set(self, key: str, value: str) -> None:
        """Keep a value, in place of what was there."""

    def get(self, key: str) -> bytes:
        """The value of a key that is there."""

    def check(self, keys: list[str]) -> bool:
        """Whether all of the keys are there."""

    def compare_set(self, key: str, expected: str, value: str) -> bytes:
        """Keep a value where nothing is and nothing is expected; what is there then."""

    def clone(self) -> Self:
        """The same, for another thread."""


def address() -> str:
    """Where the store is, as torchrun tells."""
    return f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"


def meet(rank: int, world: int, timeout: float) -> Store:
    """The store of this start of a job, where nothing is yet; waits for all ranks."""
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
    return cast(Store, PrefixStore(agree_on_name(store, rank, world, timeout), store))


def agree_on_name(store: Store, rank: int, world: int, timeout: float) -> str:
    """A name that all ranks of this start, and no others, come to know."""
    word, others = str(uuid.uuid4()), [r for r in range(world) if r]
    store.set(f"word/{rank}", word)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if rank == 0 and store.check([f"word/{r}" for r in range(world)]):
            words = [store.get(f"word/{r}").decode() for r in range(world)]
            name = hashlib.sha256("".join(words).encode()).hexdigest()
            store.set("name", json.dumps([name, words]))
            if store.check([f"{name}/heard/{r}" for r in others]):
                store.set(f"{name}/holds", "")
                return name
        elif rank and store.check(["name"]):
            name, words = json.loads(store.get("name"))
            if rank < len(words) and words[rank] == word:
                store.set(f"{name}/heard/{rank}", "")
                if store.check([f"{name}/holds"]):
                    return str(name)
        time.sleep(PAUSE)
    raise RuntimeError("some did not come")


# PART training.restart: Knowing that torchrun has started this command again after a failure
# (``--max-restarts``).


def job() -> str:
    """What all starts of one job have in common; empty without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "")
    # Without a name of its own, a job is known by the torchrun that started this process.
    return f"{socket.gethostname()}:{os.getppid()}" if name == "none" else name


def restarted(run: Path) -> bool:
    """Whether an earlier start of this very job began the run.

    A run that was there before is another matter: the first start has refused to touch it, and
    torchrun tries again whatever the reason was.
    """
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0:
        return False
    if int(os.environ.get("RANK", "0")) != 0:
        return True  # the first rank decides: the others cannot go on without it
    try:
        began = json.loads((run / "run.json").read_text(encoding="utf-8"))["job"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(began == job())
