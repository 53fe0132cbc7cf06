"""Measure how translation grows with threads, and what the machine itself allows.

    python benchmarks/thread_scaling.py models/en-de --source newstest2013.en \
        --threads 1,2,4,8,16 --isa avx512_vnni,amx --beam 1

For each number of threads it prints four figures, each also as a multiple of that of one thread:

- spin: additions of independent processes, nothing shared. If 16 give 8 times as many as one, the
  16 are threads of 8 cores, or the clock falls, and nothing can do better than that.
- processes: sentences/s of so many processes, each with an engine of one thread, all at once. What
  is missing from `spin` is lost to shared caches and memory.
- threads: sentences/s of one process, as `dragoman translate` works. What is missing from
  `processes` is lost to Python's lock and to threads that run out of sentences.
- kernel: the share of the threads' time in which they compute in the kernel, where Python's lock is
  free. The rest is Python, waiting for its lock, or having no sentences left.

Tokenising is not timed. Every thread, and every process, gets as many sentences.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

SPINS = 4_000_000


def spin(barrier: Barrier, found: Any, _: None) -> None:
    """Add for a second or so, and say how many additions a second that was."""
    barrier.wait()
    start, total = time.perf_counter(), 0
    for number in range(SPINS):
        total += number
    found.put((SPINS, time.perf_counter() - start))


def search_alone(barrier: Barrier, found: Any, given: tuple[str, str, int, int]) -> None:
    """Search with an engine of one thread, and say how many sentences took how long."""
    engine, sentences, options, _ = load_engine(*given)
    engine.workers = 1
    engine.search(sentences[:8], options)
    barrier.wait()
    start = time.perf_counter()
    engine.search(sentences, options)
    found.put((len(sentences), time.perf_counter() - start))


def load_engine(model: str, source: str, count: int, beam: int) -> tuple[Any, Any, Any, Any]:
    """Return an engine, sentences for one thread, the search's options, and the kernel."""
    from dragoman.inference.cpu import kernel_library
    from dragoman.inference.cpu.engine import open_cpu_engine
    from dragoman.model_directory import open_model
    from dragoman.search import SearchOptions

    loaded = open_model(model)
    lines = [line for line in Path(source).read_text("utf-8").splitlines() if line][:count]
    options = SearchOptions(beam=beam, max_extra=loaded.config.search.max_extra)
    sentences = loaded.tokenizer.encode_batch(lines)
    return open_cpu_engine(loaded), sentences, options, kernel_library.load_kernel()


def run_processes(target: Callable[..., None], count: int, given: Any) -> float:
    """Return how much `count` processes do in a second, all until the last of them ends."""
    context = multiprocessing.get_context("spawn")
    barrier, found = context.Barrier(count), context.Queue()
    processes = [context.Process(target=target, args=(barrier, found, given)) for _ in range(count)]
    for process in processes:
        process.start()
    results = [found.get() for _ in processes]
    for process in processes:
        process.join()
    return sum(work for work, _ in results) / max(seconds for _, seconds in results)


class TimedKernel:
    """Stand for the kernel's library, and keep the processor time of threads in its calls."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)
        if name not in ("dragoman_step", "dragoman_encode"):
            return function

        def timed(*arguments: Any) -> Any:
            start = time.thread_time()  # does not count waiting for the lock
            result = function(*arguments)
            self.seconds.append(time.thread_time() - start)
            return result

        return timed


def search_threads(threads: int, given: tuple[str, str, int, int]) -> tuple[float, float]:
    """Return sentences/s of so many threads of this process, and their share in the kernel."""
    from dragoman.inference.cpu import kernel_library

    engine, sentences, options, library = load_engine(*given)
    engine.workers = threads
    timed = TimedKernel(library)
    kernel_library.load_kernel = lambda: timed  # type: ignore[assignment]
    sentences = list(sentences) * threads
    engine.search(sentences[: 8 * threads], options)
    timed.seconds.clear()
    start = time.perf_counter()
    engine.search(sentences, options)
    elapsed = time.perf_counter() - start
    return len(sentences) / elapsed, sum(timed.seconds) / (threads * elapsed)


def run_threads(_: Barrier, found: Any, given: tuple[int, tuple[str, str, int, int]]) -> None:
    """Search with threads in a process of its own, whose instruction set is the environment's."""
    found.put(search_threads(*given))


def measure_threads(threads: int, given: tuple[str, str, int, int]) -> tuple[float, float]:
    """Return what `search_threads` does, in a new process."""
    context = multiprocessing.get_context("spawn")
    barrier, found = context.Barrier(1), context.Queue()
    process = context.Process(target=run_threads, args=(barrier, found, (threads, given)))
    process.start()
    result: tuple[float, float] = found.get()
    process.join()
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each instruction set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--source", required=True)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--isa", default="", help="a list; default: the fastest there is")
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=256, help="of each thread")
    given = parser.parse_args(arguments)
    counts = [int(one) for one in given.threads.split(",")]
    task = (given.model, given.source, given.sentences, given.beam)
    spins = {count: run_processes(spin, count, None) for count in counts}
    for isa in given.isa.split(","):
        if isa:
            os.environ["DRAGOMAN_ISA"] = isa
        print(f"{isa or 'fastest'}, beam {given.beam}, {given.sentences} sentences a thread")
        print("threads  spin  processes, sentences/s  threads, sentences/s  kernel")
        first: tuple[float, float] | None = None
        for count in counts:
            alone = run_processes(search_alone, count, task)
            together, share = measure_threads(count, task)
            first = first or (alone, together)
            print(
                f"{count:7} {spins[count] / spins[counts[0]]:5.2f}"
                f" {alone:14.1f} {alone / first[0]:7.2f} {together:14.1f}"
                f" {together / first[1]:6.2f} {share:7.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
