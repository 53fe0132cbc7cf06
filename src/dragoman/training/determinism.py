"""The same bits every time, where a GPU would otherwise be free to choose."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import deterministic as _deterministic

__all__ = ["determined"]

deterministic: Any = _deterministic  # its attribute is made in a way that mypy cannot see


@contextmanager
def determined(enabled: bool) -> Iterator[None]:
    """Allow only kernels that give the same bits every time, while the block runs."""
    if not enabled:
        yield
        return
    # cuBLAS reads this when it is first used; a workspace of its own keeps its sums in order.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    filled = deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    deterministic.fill_uninitialized_memory = False  # nothing reads it unwritten
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        deterministic.fill_uninitialized_memory = filled
