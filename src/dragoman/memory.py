"""How the C library deals with freed memory."""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["keep_freed_memory", "share_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # names of malloc.h


def keep_freed_memory() -> None:
    """Tell it not to give freed blocks back to the system; for work on the CPU.

    By default glibc returns every large block when it is freed, and the next step faults the same
    pages in again: up to half of the time of a small model's step. Elsewhere this does nothing.
    """
    _tell({_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 2**31 - 1})  # the largest values it takes


def share_freed_memory() -> None:
    """Tell it that threads to come take memory from the same two places; for many of them.

    By default glibc has eight places for each core, and what one thread frees there the others
    cannot have: a service with a thread a request would grow for an hour.
    """
    _tell({_ARENA_MAX: 2})


def _tell(settings: dict[int, int]) -> None:
    try:
        mallopt: Any = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    for name, value in settings.items():
        mallopt(name, value)
