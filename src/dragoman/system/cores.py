"""The number of processor cores there are to work with is decided here."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Return how many cores this process may run on, at least 1."""
    if hasattr(os, "sched_getaffinity"):  # a container or taskset may allow fewer than there are
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
