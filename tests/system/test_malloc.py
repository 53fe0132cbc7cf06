"""What the C library is told about freed memory."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest

ARENAS = """
import ctypes, sys, threading
from pathlib import Path
from dragoman.system.malloc import share_freed_memory

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

LARGE = """
import ctypes, sys
from dragoman.system.malloc import share_freed_memory

class Information(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd".split()]
    _fields_ += [(f"more_{n}", ctypes.c_size_t) for n in range(5)]

library = ctypes.CDLL("libc.so.6")
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
library.mallinfo2.restype = Information
if sys.argv[1] == "shared":
    share_freed_memory()
for _ in range(3):
    library.free(library.malloc(3 << 20))
before = library.mallinfo2().hblks
kept = library.malloc(2 << 20)
print(library.mallinfo2().hblks - before)
"""
"""Whether a large block, after a larger one was freed, is the system's own when it is freed."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_many_threads_take_memory_from_few_places() -> None:
    assert run_script(ARENAS, "apart") > 2
    assert run_script(ARENAS, "shared") <= 1


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="another C library",
)
def test_large_blocks_go_back_to_the_system() -> None:
    assert run_script(LARGE, "apart") == 0
    assert run_script(LARGE, "shared") == 1


def run_script(script: str, how: str) -> int:
    command = [sys.executable, "-c", script, how]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)
