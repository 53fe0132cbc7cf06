"""One system translates in this process, whose requests and answers are lines of JSON.

A process of its own has its own memory, threads and clock.
`python -m dragoman.bench.translation.worker` is started by `worker_client`, which also documents
the requests.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

from dragoman.errors import first_line


class LoadedSystem(Protocol):
    """Hold a system that has loaded its model, as `worker_NAME.load` returns it."""

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        """Use these threads and batches from now on."""

    def translate(self, texts: Sequence[str], beam: int) -> list[str]:
        """Translate texts to texts."""


def main() -> None:
    """Answer the requests on stdin until it ends."""
    # Whatever a library prints goes to stderr: stdout carries answers alone.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for found in handle_requests(sys.stdin):
        answer.write(json.dumps(found) + "\n")
        answer.flush()


def handle_requests(requests: TextIO) -> Iterator[dict[str, Any]]:
    """Yield an answer to each line; an error is an answer, too, and the last."""
    actions: dict[str, Callable[..., dict[str, Any]]] = {}
    for line in requests:
        request = json.loads(line)
        try:
            if request["do"] == "load":
                actions, found = _load(**request["with"])
            else:
                found = actions[request["do"]](**request["with"])
        except Exception as error:
            yield {"error": first_line(error)}
            return
        yield found


def _load(
    name: str, threads: int, text: str, settings: dict[str, Any], **options: Any
) -> tuple[dict[str, Callable[..., dict[str, Any]]], dict[str, Any]]:
    """Import, load, and translate a first text greedily; imports are timed on their own."""
    _limit_cores(threads)
    start = time.perf_counter()
    module = importlib.import_module(f"dragoman.bench.translation.worker_{name}")
    module.prepare(threads)
    imported = time.perf_counter()
    system: LoadedSystem = module.load(settings=settings, **options)
    system.translate([text], 1)
    ready = time.perf_counter()
    found = {
        "imports_seconds": imported - start,
        "load_seconds": ready - imported,
        "memory": peak_memory(),
    }
    return {
        "apply_settings": lambda settings: _apply_settings(system, settings),
        "translate": lambda texts, beam: _translate(system, texts, beam),
        "translate_one_by_one": lambda texts, beam: _translate_one_by_one(system, texts, beam),
    }, found


def _apply_settings(system: LoadedSystem, settings: dict[str, Any]) -> dict[str, Any]:
    system.apply_settings(settings)
    reset_peak_memory()
    return {}


def _translate(system: LoadedSystem, texts: list[str], beam: int) -> dict[str, Any]:
    """Translate all texts at once, the way the system is fastest."""
    cpu, start = time.process_time(), time.perf_counter()
    found = system.translate(texts, beam)
    seconds = time.perf_counter() - start
    cpu = time.process_time() - cpu
    return {"seconds": seconds, "cpu_seconds": cpu, "texts": found, "memory": peak_memory()}


def _translate_one_by_one(system: LoadedSystem, texts: list[str], beam: int) -> dict[str, Any]:
    """Translate each text by itself, the next when the last is done."""
    cpu, seconds = time.process_time(), []
    for text in texts:
        start = time.perf_counter()
        system.translate([text], beam)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "cpu_seconds": time.process_time() - cpu}


# --- the process ---


def _limit_cores(threads: int) -> None:
    """Use no more cores than threads, for systems that take all there are."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        if threads < len(cores):
            os.sched_setaffinity(0, cores[:threads])


def peak_memory() -> int:
    """Return the most bytes of memory that were in use since `reset_peak_memory`."""
    with suppress(OSError, ValueError):
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak_memory() -> None:
    """Start a new peak; where the system cannot, the peak is that of the whole process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


if __name__ == "__main__":
    main()
