"""Faults injected into one rank in the middle of a run."""

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


def kill() -> None:
    """Die as by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def freeze() -> None:
    """Stop as on a machine that hangs: nothing is closed, nothing is answered."""
    os.kill(os.getpid(), signal.SIGSTOP)


def run_out_of_memory() -> None:
    """Raise what a full GPU raises."""
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def run_out_of_host_memory() -> None:
    """Raise what a CPU without memory raises."""
    raise RuntimeError(
        "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"
    )


FAULTS: dict[str, Callable[[], None]] = {
    "kill": kill,
    "freeze": freeze,
    "memory": run_out_of_memory,
    "host-memory": run_out_of_host_memory,
}
IN_BACKWARD = "-in-backward"


def inject_faults(*faults: str) -> Callable[[], None]:
    """Let faults happen in forward passes: "kill 1 7" on rank 1 at step 7, once each.

    "kill 1 7.2": in the second pass of that step. "memory-in-backward 0 3": when the gradient of
    the loss is computed. Return what undoes it.
    """
    forward, run = Criterion.forward, Stepper.run
    rank = int(os.environ.get("RANK", "0"))
    due = {_parse_pass(at): name for name, r, at in map(str.split, faults) if int(r) == rank}
    now = (0, 0)

    def run_and_note(self: Stepper, batch: Any, step: int) -> None:
        nonlocal now
        now = (step, 0)
        run(self, batch, step)

    def forward_or_fail(self: Criterion, *arguments: Any) -> Any:
        nonlocal now
        now = (now[0], now[1] + 1)
        if not self.training or now not in due:
            return forward(self, *arguments)
        name = due.pop(now)
        while not Path(os.environ.get("AFTER", "/")).exists():
            time.sleep(0.01)
        fault = FAULTS[name.removesuffix(IN_BACKWARD)]
        if not name.endswith(IN_BACKWARD):
            fault()
        loss, nll = forward(self, *arguments)
        loss.register_hook(lambda gradient: fault())
        return loss, nll

    Stepper.run, Criterion.forward = run_and_note, forward_or_fail  # type: ignore[method-assign]

    def undo() -> None:
        Stepper.run, Criterion.forward = run, forward  # type: ignore[method-assign]

    return undo


def _parse_pass(text: str) -> tuple[int, int]:
    step, _, number = text.partition(".")
    return int(step), int(number or 1)
