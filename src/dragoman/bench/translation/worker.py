"""The process in which one system translates: requests come as lines of JSON, and answers go so.

A process of its own has its own memory, threads and clock.
`python -m dragoman.bench.translation.worker` is started by `workers.py`, which also says what may
be asked.
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

__all__ = ["Engine", "answers", "forget_peak", "main", "peak_memory"]


class Engine(Protocol):
    """A system with a model in it; `dragoman.bench.translation.worker_NAME.load` makes one."""

    def use(self, settings: Mapping[str, Any]) -> None:
        """Translate with these threads and batches from now on."""

    def translate(self, texts: Sequence[str], beam: int) -> list[str]:
        """From text to text."""


def main() -> None:
    """Answer what is asked on stdin until it ends."""
    # Whatever a library prints goes to stderr: stdout carries answers alone.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for found in answers(sys.stdin):
        answer.write(json.dumps(found) + "\n")
        answer.flush()


def answers(requests: TextIO) -> Iterator[dict[str, Any]]:
    """An answer to each line; what goes wrong is an answer too, and the last."""
    does: dict[str, Callable[..., dict[str, Any]]] = {}
    for line in requests:
        request = json.loads(line)
        try:
            if request["do"] == "load":
                does, found = _load(**request["with"])
            else:
                found = does[request["do"]](**request["with"])
        except Exception as error:
            yield {"error": (str(error).strip() or repr(error)).partition("\n")[0]}
            return
        yield found


def _load(
    name: str, threads: int, text: str, settings: dict[str, Any], **options: Any
) -> tuple[dict[str, Callable[..., dict[str, Any]]], dict[str, Any]]:
    """Import, load, and translate a first text greedily; imports are timed on their own."""
    _bind(threads)
    start = time.perf_counter()
    module = importlib.import_module(f"dragoman.bench.translation.worker_{name}")
    module.prepare(threads)
    imported = time.perf_counter()
    engine: Engine = module.load(settings=settings, **options)
    engine.translate([text], 1)
    ready = time.perf_counter()
    found = {
        "imports_seconds": imported - start,
        "load_seconds": ready - imported,
        "memory": peak_memory(),
    }
    return {
        "use": lambda settings: _use(engine, settings),
        "translate": lambda texts, beam: _translate(engine, texts, beam),
        "one_by_one": lambda texts, beam: _one_by_one(engine, texts, beam),
    }, found


def _use(engine: Engine, settings: dict[str, Any]) -> dict[str, Any]:
    engine.use(settings)
    forget_peak()
    return {}


def _translate(engine: Engine, texts: list[str], beam: int) -> dict[str, Any]:
    """All texts at once, the way the system is fastest."""
    cpu, start = time.process_time(), time.perf_counter()
    found = engine.translate(texts, beam)
    seconds = time.perf_counter() - start
    cpu = time.process_time() - cpu
    return {"seconds": seconds, "cpu_seconds": cpu, "texts": found, "memory": peak_memory()}


def _one_by_one(engine: Engine, texts: list[str], beam: int) -> dict[str, Any]:
    """Each text by itself, the next when the last is done."""
    cpu, seconds = time.process_time(), []
    for text in texts:
        start = time.perf_counter()
        engine.translate([text], beam)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "cpu_seconds": time.process_time() - cpu}


# --- the process ---


def _bind(threads: int) -> None:
    """No more cores than threads, for systems that take all there are."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        if threads < len(cores):
            os.sched_setaffinity(0, cores[:threads])


def peak_memory() -> int:
    """Bytes of memory in use at the worst moment since `forget_peak`."""
    with suppress(OSError, ValueError):
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak() -> None:
    """Begin anew; where the system cannot, the peak is that of the whole process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


if __name__ == "__main__":
    main()
