"""Keeping freed memory for the next step."""

from __future__ import annotations

import ctypes

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of malloc.h


def keep_freed_memory() -> None:
    """Tell the C library not to give freed blocks back to the system; for work on the CPU.

    By default glibc returns every large block when it is freed, and the next step faults the same
    pages in again: up to half of the time of a small model's step. Elsewhere this does nothing.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, 32 << 20)  # the largest value it takes
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)
