"""Triton kernels for what PyTorch's own leave slow on a GPU: the fast path of training.

Each file holds one operation: its kernels, its gradient, and a function that does what the plain
code in `models` does. `usable` says where they run; the plain path is the reference they are tested
against.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

__all__ = ["fits", "supported", "usable"]

_HOMES = {
    "Sentences": "attention",
    "Gather": "gather",
    "adam_update": "adam",
    "attend": "attention",
    "embed": "embedding",
    "relu_feed_forward": "feed_forward",
    "project_and_score": "loss",
    "reseed": "random",
    "restart": "random",
    "add": "residual",
    "add_and_norm": "residual",
    "norm": "residual",
}
"""Where each operation is. Triton is imported with the first of them, and not before."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(f"dragoman.kernels.{_HOMES[name]}"), name)


def usable(x: Tensor) -> bool:
    """Whether kernels may take this tensor: bf16 on a GPU that has bf16, where Triton is."""
    return x.is_cuda and x.dtype == torch.bfloat16 and supported(x.device)


def fits(*widths: int) -> bool:
    """Whether attention can be computed with heads of these widths."""
    return all(16 <= width <= 128 and width.bit_count() == 1 for width in widths)


@cache
def supported(device: torch.device) -> bool:
    """Whether kernels run on a device."""
    if device.type != "cuda" or find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)
