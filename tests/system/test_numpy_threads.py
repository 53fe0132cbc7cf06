"""numpy without the threads of its own library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

THREADS = Path("/proc/self/task")
COUNT = """
import os
from pathlib import Path
from dragoman.system.numpy_threads import import_numpy_without_threads

import_numpy_without_threads()
print(len(list(Path("/proc/self/task").iterdir())), os.environ.get("OPENBLAS_NUM_THREADS"))
import numpy
assert numpy.ones((3, 3)) @ numpy.ones(3) is not None
"""


def count(**variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)} | variables,
    )
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(not THREADS.exists(), reason="this system does not list threads there")
def test_no_thread_is_started_and_others_may_start_theirs() -> None:
    assert count() == "1 None"


@pytest.mark.slow
@pytest.mark.skipif(not THREADS.exists(), reason="this system does not list threads there")
def test_what_the_user_says_holds() -> None:
    assert count(OPENBLAS_NUM_THREADS="2").endswith(" 2")
