"""What the device can do at best: the rate of large matrix products, measured."""

from __future__ import annotations

import time
from statistics import median
from typing import Final

import torch

from dragoman.bench.timing import synchronize

__all__ = ["matrix_rate"]

GPU_SHAPES: Final = ((8192, 8192, 8192), (16384, 8192, 8192), (8192, 8192, 16384))
CPU_SHAPES: Final = ((1024, 1024, 1024), (2048, 512, 1024))
"""m, n, k; which one suits the device best differs."""


def matrix_rate(device: torch.device) -> float:
    """Operations a second of the best large product: bf16 on a GPU, fp32 on a CPU.

    The factors are random: a GPU multiplies zeros faster, because that takes less power.
    """
    if device.type == "cuda":
        return max(_rate(device, torch.bfloat16, m, n, k, times=20) for m, n, k in GPU_SHAPES)
    return max(_rate(device, torch.float32, m, n, k, times=5) for m, n, k in CPU_SHAPES)


def _rate(device: torch.device, dtype: torch.dtype, m: int, n: int, k: int, *, times: int) -> float:
    """The median of some times of some products in a row."""
    a = torch.randn(m, k, device=device).to(dtype)
    b = torch.randn(k, n, device=device).to(dtype)
    out = torch.empty(m, n, device=device, dtype=dtype)
    in_a_row = 10 if device.type == "cuda" else 1  # waiting for a GPU takes time too
    seconds = []
    for _ in range(1 + times):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(in_a_row):
            torch.mm(a, b, out=out)
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    return 2 * m * n * k * in_a_row / median(seconds[1:])  # the first one chooses a kernel
