"""The engine: a Transformer in int8 that translates with all cores of a machine without a GPU.

Each core has a worker of its own, with a part of the sentences at a time, and they share the
weights: no worker waits for another, so that a busy core slows its own sentences alone. Where there
are fewer sentences than cores, several share in each product instead. A sentence's result depends
on nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Any, Final

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.allowed_tokens import Language
from dragoman.inference.cpu.batch_state import Job, Slots
from dragoman.inference.cpu.drafting import DraftedSearch
from dragoman.inference.cpu.quantization import Packed, Weights, bind, pack, why_not
from dragoman.inference.cpu.search import BeamSearch, GreedySearch
from dragoman.inference.cpu.shortlist import Shortlist
from dragoman.inference.cpu.shortlist_projection import Narrow
from dragoman.inference.cpu.tree_grammar import Trees
from dragoman.search.options import Hypothesis, SearchOptions, checked, nothing
from dragoman.system.cores import available_cores
from dragoman.trees.grammar import Yields

__all__ = ["Engine", "dealt", "why_no_engine"]

ROWS: Final = 96
"""Hypotheses a worker goes on with at a time."""


def why_no_engine(config: ModelConfig) -> str:
    """Why a model is computed by PyTorch instead; nothing, if the engine can do it."""
    if kernel_library.kernel() is None:
        return "the kernel is not compiled"
    return why_not(config)


class Engine:
    """A model's weights as the kernel reads them."""

    def __init__(self, packed: Packed, config: ModelConfig, targets: int) -> None:
        self._packed, self._config, self._targets = packed, config, targets
        self._model = bind(packed, config, targets, longest=1024)
        self.workers = available_cores()
        self.draft: Engine | None = None
        """A smaller model of the same pieces that guesses ahead, where sentences are few."""
        self.narrow: Narrow | None = None
        """Which pieces each sentence needs, if not all are looked at."""

    @classmethod
    def of(cls, weights: Weights, config: ModelConfig, targets: int) -> Engine:
        """From a model's own weights."""
        return cls(pack(weights, config, targets), config, targets)

    def take(self, shortlist: Shortlist | None) -> None:
        """Look only at the pieces of a shortlist from now on; at all with None."""
        if not hasattr(kernel_library.kernel(), "dragoman_narrows"):
            raise ConfigError("the kernel was compiled before shortlists; install Dragoman again")
        self.narrow = None if shortlist is None else Narrow(self._packed, shortlist)

    def serves(self, options: SearchOptions) -> bool:
        """Whether this is a search the engine knows: no floor, no groups, a beam that it has."""
        return options.min_length == 0 and options.groups == 1 and options.beam <= 64

    def search(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        yields: Yields | None = None,
    ) -> list[list[Hypothesis]]:
        """See Searcher."""
        if not sentences:
            return []
        ceilings = [len(ids) + options.max_extra for ids in sentences]
        if options.max_length is not None:
            ceilings = [min(one, options.max_length) for one in ceilings]
        if yields is not None:
            ceilings = [max(one, yields.shortest(i)) for i, one in enumerate(ceilings)]
        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
        longest = max(ceilings)
        reach = max(longest, *map(len, sentences)) + 2
        self._reach(reach)
        results: list[list[Hypothesis]] = [[] for _ in sentences]

        workers = min(self.workers, len(sentences))
        slots = max(1, min(-(-len(sentences) // workers), ROWS // options.beam))
        helpers = self.workers // workers - 1
        order = dealt(order, workers, slots)
        queue = _Queue([(i, sentences[i], ceilings[i]) for i in order])

        # Of many sentences at a time each product has rows enough, and guesses would add to them.
        few = len(sentences) <= self.workers and options.beam == 1 and yields is None
        draft = self.draft if few else None
        if draft is not None:
            draft._reach(reach)
        outputs = self._model.projection.outputs

        def work(_: int) -> None:
            language = (
                Language(options.beam, outputs)
                if yields is None
                else Trees(yields, slots, options.beam, outputs)
            )
            places: Any = {"slots": slots, "longest": longest, "helpers": helpers}
            narrow = self.narrow if yields is None else None
            searcher: Slots
            if draft is not None:
                model = draft._model
                searcher = DraftedSearch(
                    *(self._model, options, language), draft=model, narrow=narrow, **places
                )
            else:
                kind = GreedySearch if options.beam == 1 else BeamSearch
                searcher = kind(self._model, options, language, narrow=narrow, **places)
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


def dealt(order: Sequence[int], workers: int, slots: int) -> list[int]:
    """What each worker begins with, dealt out lest one have all the long ones; then the rest."""
    first = workers * slots
    return [*(i for w in range(workers) for i in order[w:first:workers]), *order[first:]]


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
