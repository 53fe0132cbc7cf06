"""What moves between host and device, and is waited for no sooner than it is needed."""

# S slots

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.inference.gpu.batch_state import DONE, Report, Slots

__all__ = ["Look", "fetch", "mark", "pinned"]

LITTLE: Final = 1 << 16
"""Bytes of a report that are copied whole, whatever in them is news."""


class Look:
    """The host's copy of what is done, on its way or there; used again and again."""

    time = 0
    """When it was taken."""

    def __init__(self, slots: Slots) -> None:
        """If there is little to know, it is a copy of all that is known."""
        cuda = slots.marks.is_cuda
        self.report: Report | None = None
        if slots.report.raw.numel() <= LITTLE:
            self.report = Report.empty(torch.device("cpu"), *slots.shape, pinned=cuda)
            self._from, self._to, done_S = (
                slots.report.raw,
                self.report.raw,
                self.report.marks[DONE],
            )
        else:
            self._from = slots.marks[DONE]
            self._to = done_S = torch.empty(slots.count + 1, dtype=torch.int32, pin_memory=cuda)
        self.done_S: NDArray[np.int32] = done_S.numpy()
        self.ready: Callable[[], None] = lambda: None
        """Waits until it is there."""

    def take(self, time: int) -> None:
        """Ask for it anew."""
        self.time = time
        fetch(self._to, self._from)
        self.ready = mark(self._from.device)


def fetch(here: Tensor, there: Tensor) -> None:
    """Ask for a copy of what is on the device."""
    here.copy_(there, non_blocking=True)


def mark(device: torch.device) -> Callable[[], None]:
    """Something to wait for: all that has been asked of the device until now."""
    if device.type != "cuda":
        return lambda: None
    event = torch.cuda.Event()
    event.record()
    return event.synchronize


def pinned(array: NDArray[Any], device: torch.device) -> Tensor:
    """On its way to a device."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory() if device.type == "cuda" else tensor
