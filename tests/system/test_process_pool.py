"""Work done ahead of time in other processes."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.system.process_pool import map_ahead


def square(number: int) -> tuple[int, int]:
    if number == 5:
        raise DataError("line 5 is broken")
    if number == 6:
        raise ZeroDivisionError("six")
    if number == 7:
        os._exit(3)
    return number * number, os.getpid()


@pytest.mark.slow
def test_errors_of_a_worker_surface_where_they_belong() -> None:
    results = map_ahead(square, iter(range(1, 10)), workers=2)
    assert [next(results)[0] for _ in range(4)] == [1, 4, 9, 16]
    with pytest.raises(DataError, match="line 5 is broken"):
        next(results)
    with pytest.raises(ZeroDivisionError) as caught:
        list(map_ahead(square, [6], workers=1))
    assert "in a worker process" in caught.value.__notes__[0]
    with pytest.raises(DataError, match=r"ended \(status 3\)"):
        list(map_ahead(square, [7], workers=1))


def alive(pids: Iterable[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        found.append(pid)
    return found


def test_closing_early_leaves_no_process() -> None:
    results = map_ahead(square, itertools.repeat(2), workers=2)
    pids = {next(results)[1] for _ in range(20)}
    assert alive(pids)
    results.close()
    assert alive(pids) == []


SCRIPT = """
import itertools, sys, time
from dragoman.system.process_pool import map_ahead
def main():
    import os, test_process_pool
    results = map_ahead(test_process_pool.square, itertools.repeat(2), workers=2)
    print(*{next(results)[1] for _ in range(20)}, flush=True)
    for _ in results: time.sleep(0.01)
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL", "SIGTERM"])
def test_workers_end_with_their_parent(name: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert alive(pids)
    if name == "SIGINT":  # a terminal sends it to everyone in the group
        os.killpg(parent.pid, signal.SIGINT)
    else:
        parent.send_signal(getattr(signal, name))
    _, errors = parent.communicate(timeout=20)
    assert errors.count("Traceback") == (name == "SIGINT")
    deadline = time.monotonic() + 10
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive(pids) == []
