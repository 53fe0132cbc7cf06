"""Triton kernels compute what PyTorch computes slowly on a GPU; they are training's fast path.

Each file holds one operation: its kernels, its gradient, and a function that computes what the
plain code in `models` computes. `usable` tells where they run; the plain path is the reference that
they are tested against. Which models each operation supports is declared in
`dragoman.models.supported_settings`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

__all__ = ["supported", "usable"]

_HOMES = {
    "GradientGatherer": "optimizer",
    "SentenceSpans": "attention",
    "adam_update": "optimizer",
    "add": "residual",
    "add_and_norm": "residual",
    "attend": "attention",
    "embed": "embedding",
    "norm": "residual",
    "project_and_score": "loss",
    "relu_feed_forward": "feed_forward",
    "restart_dropout": "dropout",
    "seed_dropout": "dropout",
}
"""This maps each operation to its module. Triton is imported with the first one that is used."""


def __getattr__(name: str) -> Any:
    """Import an operation when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman.kernels' has no attribute {name!r}")
    return getattr(import_module(f"dragoman.kernels.{_HOMES[name]}"), name)


def usable(x: Tensor) -> bool:
    """Return whether kernels can compute with this tensor: bf16, on a GPU that has bf16."""
    return x.is_cuda and x.dtype == torch.bfloat16 and supported(x.device)


@cache
def supported(device: torch.device) -> bool:
    """Return whether kernels run on a device: a GPU that has bf16, with Triton installed."""
    if device.type != "cuda" or find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)
