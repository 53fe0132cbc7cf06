"""What the C library is told about memory."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

ARENAS = """
import ctypes, sys, threading
from pathlib import Path
from dragoman.memory import share_freed_memory

if sys.argv[1] == "shared":
    share_freed_memory()
malloc, together = ctypes.CDLL("libc.so.6").malloc, threading.Barrier(24)

def take():
    together.wait()
    malloc(5000)
    together.wait()

threads = [threading.Thread(target=take) for _ in range(24)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
lines = (line.split() for line in Path("/proc/self/maps").read_text().splitlines())
begins = [int(line[0].partition("-")[0], 16) for line in lines if line[1] == "rw-p"]
print(sum(begin % (64 << 20) == 0 for begin in begins))
"""
"""Counts the places beside the first that many threads take memory from; each is 64 MiB of room."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_many_threads_take_memory_from_few_places() -> None:
    command = [sys.executable, "-c", ARENAS]
    apart, shared = (
        int(subprocess.run([*command, how], capture_output=True, check=True).stdout)
        for how in ("apart", "shared")
    )
    assert apart > 2
    assert shared <= 1
