"""What may happen to one rank in the middle of a run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dragoman.training.loss import Criterion
from dragoman.training.step import Stepper


def killed() -> None:
    """As by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def stopped() -> None:
    """As in a machine that hangs: nothing is closed, nothing is answered."""
    os.kill(os.getpid(), signal.SIGSTOP)


def stuck() -> None:
    """As on a disk that does not answer: the process lives, and gets no further."""
    time.sleep(3600)


def out_of_memory() -> None:
    """As on a GPU that is full."""
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def out_of_host_memory() -> None:
    """As on a CPU that has none left."""
    raise RuntimeError(
        "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"
    )


ACCIDENTS: dict[str, Callable[[], None]] = {
    "killed": killed,
    "stopped": stopped,
    "stuck": stuck,
    "memory": out_of_memory,
    "host-memory": out_of_host_memory,
}
IN_BACKWARD = "-in-backward"


def arrange(*accidents: str) -> Callable[[], None]:
    """Let accidents happen in forward passes: "killed 1 7" on rank 1 at step 7, once each.

    "killed 1 7.2": in the second pass of that step. "memory-in-backward 0 3": when the gradient of
    the loss comes by. Gives what undoes it.
    """
    forward, run = Criterion.forward, Stepper.run
    rank = int(os.environ.get("RANK", "0"))
    due = {_moment(at): what for what, r, at in map(str.split, accidents) if int(r) == rank}
    now = (0, 0)

    def run_and_tell(self: Stepper, batch: Any, step: int) -> None:
        nonlocal now
        now = (step, 0)
        run(self, batch, step)

    def forward_or_not(self: Criterion, *arguments: Any) -> Any:
        nonlocal now
        now = (now[0], now[1] + 1)
        if not self.training or now not in due:
            return forward(self, *arguments)
        what = due.pop(now)
        while not Path(os.environ.get("AFTER", "/")).exists():
            time.sleep(0.01)
        accident = ACCIDENTS[what.removesuffix(IN_BACKWARD)]
        if not what.endswith(IN_BACKWARD):
            accident()
        loss, nll = forward(self, *arguments)
        loss.register_hook(lambda gradient: accident())
        return loss, nll

    Stepper.run, Criterion.forward = run_and_tell, forward_or_not  # type: ignore[method-assign]

    def undo() -> None:
        Stepper.run, Criterion.forward = run, forward  # type: ignore[method-assign]

    return undo


def _moment(text: str) -> tuple[int, int]:
    step, _, number = text.partition(".")
    return int(step), int(number or 1)
