"""Benchmarks measure how fast models train and translate on this machine, ours and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["sample_evenly"]

T = TypeVar("T")


def sample_evenly(items: Sequence[T], count: int) -> list[T]:
    """Return at most `count` of the items, spread evenly over all, in their order."""
    taken = min(count, len(items))
    return [items[int((k + 0.5) * len(items) / taken)] for k in range(taken)]
