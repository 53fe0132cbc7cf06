"""The machine that translates: its cores, and who else is using them."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["BUSY", "Watch", "load_average", "processor"]

BUSY: Final = 0.25
"""Load on each core from which other processes can be felt."""


def processor() -> str:
    """The processor's name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def load_average() -> float | None:
    """Processes that ran or wanted to in the last minute; None where the system does not say."""
    with suppress(OSError, AttributeError):
        return os.getloadavg()[0]
    return None


class Watch:
    """What the machine did inside `with` blocks, by the system's own count of its cores' time."""

    def __init__(self) -> None:
        self.ours = 0.0
        """CPU seconds that were ours; who measures adds those of the workers."""
        self._busy = self._total = 0.0
        self._start: tuple[float, float] | None = None

    def __enter__(self) -> None:
        self._start = _seconds()
        self.ours -= time.process_time()

    def __exit__(self, *error: object) -> None:
        self.ours += time.process_time()
        now = _seconds()
        if now is not None and self._start is not None:
            self._busy += now[0] - self._start[0]
            self._total += now[1] - self._start[1]

    @property
    def others(self) -> float | None:
        """The share of all cores' time that others took; None where the system does not count."""
        if not self._total:
            return None
        return min(1.0, max(0.0, (self._busy - self.ours) / self._total))


def _seconds() -> tuple[float, float] | None:
    """Busy and all, of all cores together, since the system started."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    user, nice, system, idle, waiting, *more = (int(n) / ticks for n in first.split()[1:9])
    busy = user + nice + system + sum(more)
    return busy, busy + idle + waiting
