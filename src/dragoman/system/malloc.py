"""The C library is told here what to do with memory that has been freed."""

from __future__ import annotations

import ctypes
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # names of malloc.h


def keep_freed_memory() -> None:
    """Tell the C library not to give freed blocks back to the system; for work on the CPU.

    By default glibc returns every large block when it is freed, and the next step faults the same
    pages in again: up to half of the time of a small model's step. Elsewhere this does nothing.
    """
    largest = {_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 2**31 - 1}  # that it takes
    _set_malloc_options(largest)


def share_freed_memory() -> None:
    """Tell the C library to let other threads, or the system, have freed blocks; for a service.

    By default glibc has eight arenas for each core to take memory from, and what one thread frees
    in one of them, threads that use the others cannot have. And once a large block has been freed,
    the next ones are kept, between which there is ever less room.
    """
    _set_malloc_options({_ARENA_MAX: 2, _MMAP_THRESHOLD: 128 << 10})


def _set_malloc_options(options: dict[int, int]) -> None:
    try:
        mallopt: Any = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    for name, value in options.items():
        mallopt(name, value)
