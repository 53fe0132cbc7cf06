"""Watching a few steps with PyTorch's profiler."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from dragoman.bench.kernels import Class, Kernel, busy, table
from dragoman.bench.timing import synchronize

__all__ = ["where_time_goes"]


def where_time_goes(
    work: Callable[[], None], device: torch.device, *, steps: int, milliseconds: float
) -> list[Class]:
    """The classes of what `work` does in some steps of so many milliseconds each.

    A step's time was measured without the profiler, which slows down the host but not a GPU's
    kernels. It does slow down a CPU: there, shares are of the operators' time, and no gaps.
    Empty where the profiler may not look at the GPU.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it would tell of its start and its end
    if device.type == "cuda":
        kernels = _gpu_kernels(work, device)
        return table(kernels, steps=steps, milliseconds=milliseconds) if kernels else []
    operators = _cpu_operators(work)
    return table(operators, steps=steps, milliseconds=busy(operators) / steps)[:-1]


def _gpu_kernels(work: Callable[[], None], device: torch.device) -> list[Kernel]:
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        synchronize(device)
    return [
        Kernel(event.name, event.time_range.start, event.time_range.elapsed_us())
        for event in _events(profiler)
        if event.device_type.name == "CUDA" and not event.is_user_annotation
    ]


def _cpu_operators(work: Callable[[], None]) -> list[Kernel]:
    """Operators contain each other; their own times, which do not, are laid end to end."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        work()
    events = _events(profiler)
    starts = accumulate((event.self_cpu_time_total for event in events), initial=0.0)
    return [
        Kernel(event.name, start, event.self_cpu_time_total)
        for event, start in zip(events, starts, strict=False)
    ]


def _events(profiler: profile) -> list[Any]:
    return list(profiler.events() or ())
