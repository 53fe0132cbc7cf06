"""Copies of a run's tensors in host memory, as they were at one moment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch
from torch import Tensor

from dragoman.training.shards import Part

__all__ = ["Snapshots"]

ALIGNMENT = 64


class Snapshots:
    """Takes snapshots of one run, each into the memory of the one before."""

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}
        self._copied: torch.cuda.Event | None = None

    @torch.no_grad()
    def take(self, state: Mapping[str, Part]) -> dict[str, Part]:
        """The state as it is now; of tensors on a GPU, once `ready` returns."""
        self._buffers = self._buffers or _buffers(state)
        for name, part in state.items():
            # On a GPU this is queued: after the step that is being computed, before the next one.
            self._buffers[name].copy_(part.tensor, non_blocking=True)
        if any(part.tensor.is_cuda for part in state.values()):
            self._copied = torch.cuda.Event()
            self._copied.record()
        return {n: dataclasses.replace(p, tensor=self._buffers[n]) for n, p in state.items()}

    def ready(self) -> None:
        """Wait until the last snapshot is in host memory."""
        if self._copied is not None:
            self._copied.synchronize()


def _buffers(state: Mapping[str, Part]) -> dict[str, Tensor]:
    """Room for every tensor, asked of the system at once: pinned memory is slow to get."""
    starts, size = {}, 0
    for name, part in state.items():
        starts[name] = size
        size += -(-part.tensor.nbytes // ALIGNMENT) * ALIGNMENT
    # A GPU copies to pinned memory while the loop goes on, to other memory while it waits.
    pinned = any(part.tensor.is_cuda for part in state.values())
    memory = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
    return {
        name: memory[start : start + state[name].tensor.nbytes]
        .view(state[name].tensor.dtype)
        .view(state[name].tensor.shape)
        for name, start in starts.items()
    }
