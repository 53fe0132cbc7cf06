"""The engine: a Transformer in int8 that translates with all cores of a machine without a GPU.

Each core has a worker of its own, with a part of the sentences at a time, and they share the
weights: no worker waits for another, so that a busy core slows its own sentences alone. Where there
are fewer sentences than cores, several share in each product instead. A sentence's result depends
on nothing but itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Final

from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.search.hypotheses import Hypothesis, SearchOptions, checked, nothing
from dragoman.translate.engine import native
from dragoman.translate.engine.packing import Packed, bind, pack, why_not
from dragoman.translate.engine.search import Searcher

__all__ = ["Engine", "why_no_engine"]

ROWS: Final = 96
"""Hypotheses a worker goes on with at a time."""

Job = tuple[int, Sequence[int], int]


def why_no_engine(config: ModelConfig) -> str:
    """Why a model is computed by PyTorch instead; nothing, if the engine can do it."""
    if native.kernel() is None:
        return "the kernel is not compiled"
    return why_not(config)


class Engine:
    """A model's weights as the kernel reads them."""

    def __init__(self, packed: Packed, config: ModelConfig, targets: int) -> None:
        self._packed, self._config, self._targets = packed, config, targets
        self._model = bind(packed, config, targets, longest=1024)
        self.workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1

    @classmethod
    def of(cls, weights: Mapping[str, Tensor], config: ModelConfig, targets: int) -> Engine:
        """From a model's own weights."""
        return cls(pack(weights, config, targets), config, targets)

    def serves(self, options: SearchOptions) -> bool:
        """Whether this is a search the engine knows: no floor, no groups, a beam that it has."""
        return options.min_length == 0 and options.groups == 1 and options.beam <= 64

    def search(
        self, sentences: Sequence[Sequence[int]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each sentence, as `dragoman.search.search` finds them."""
        if not sentences:
            return []
        ceilings = [
            min(len(ids) + options.max_extra, options.max_length or len(ids) + options.max_extra)
            for ids in sentences
        ]
        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
        queue = _Queue([(i, sentences[i], ceilings[i]) for i in order])
        longest = max(ceilings)
        self._reach(max(longest, *map(len, sentences)) + 2)
        results: list[list[Hypothesis]] = [[] for _ in sentences]

        workers = min(self.workers, len(sentences))
        slots = max(1, min(-(-len(sentences) // workers), ROWS // options.beam))
        helpers = self.workers // workers - 1

        def work(_: int) -> None:
            searcher = Searcher(self._model, options, slots, longest, helpers)
            for number, found in searcher.run(iter(queue)):
                results[number] = found or [nothing([])]

        if workers == 1:
            work(0)
            return checked(results)
        with ThreadPoolExecutor(workers) as pool:
            try:
                list(pool.map(work, range(workers)))
            except BaseException:
                queue.close()
                raise
        return checked(results)

    def _reach(self, positions: int) -> None:
        """Sinusoids for sentences longer than any so far."""
        if self._config.positions == "sinusoidal" and positions > self._model.longest:
            del self._packed["positions"]
            self._model = bind(self._packed, self._config, self._targets, longest=2 * positions)


class _Queue:
    """Sentences that several workers take from."""

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = iter(jobs)
        self._lock, self._closed = Lock(), Event()

    def __iter__(self) -> Iterator[Job]:
        while not self._closed.is_set():
            with self._lock:
                job = next(self._jobs, None)
            if job is None:
                return
            yield job

    def close(self) -> None:
        """No more of them."""
        self._closed.set()
