"""The CPU engine runs a Transformer in int8 on all cores of a machine without a GPU.

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
from dragoman.errors import ModelError
from dragoman.inference.cpu.forced_decoding import force_decode
from dragoman.inference.cpu.kernel_library import bind_model, why_no_kernel
from dragoman.inference.cpu.search import (
    AllowedPieces,
    BatchSearch,
    BeamSearch,
    GreedySearch,
    SearchJob,
)
from dragoman.inference.cpu.shortlist import Shortlist, ShortlistProjection
from dragoman.inference.cpu.speculative_decoding import SpeculativeSearch
from dragoman.inference.cpu.tree_grammar import TreeGrammar
from dragoman.inference.engine import DEFAULT_WINDOW, Engine, ForcedDecoding
from dragoman.model_directory import LoadedModel, read_packed_weights
from dragoman.models.int8_weights import PackedWeights, Weights, pack_weights
from dragoman.models.supported_settings import unsupported
from dragoman.search.options import (
    Hypothesis,
    SearchOptions,
    fallback_hypothesis,
    output_limits,
    refuse_nan,
)
from dragoman.system.cores import available_cores
from dragoman.trees.grammar import SentencesToParse

WORKER_ROWS: Final = 96
"""A worker extends so many hypotheses at a time."""
FIRST_POSITIONS: Final = 1024
"""Sinusoids are computed for so many positions at first."""


def why_no_cpu_engine(config: ModelConfig) -> str:
    """Return why PyTorch has to compute a model; an empty string if the engine can."""
    return why_no_kernel() or unsupported(config, "cpu engine") or ""


class CpuEngine(Engine):
    """Search with a model whose weights are packed for the kernel."""

    window = DEFAULT_WINDOW
    max_beam = 64

    def __init__(self, packed: PackedWeights, config: ModelConfig, targets: int) -> None:
        """Use packed weights of a model that can produce `targets` ids."""
        self.packed, self.config, self.targets = packed, config, targets
        self._model = bind_model(packed, config, targets, longest=FIRST_POSITIONS)
        self.workers = available_cores()
        self.draft: CpuEngine | None = None
        """A smaller model of the same pieces proposes some where sentences are few."""
        self.projection: ShortlistProjection | None = None
        """Only the pieces of a shortlist are computed if there is one."""

    @classmethod
    def from_weights(cls, weights: Weights, config: ModelConfig, targets: int) -> CpuEngine:
        """Return the engine of a model's own weights."""
        return cls(pack_weights(weights, config, targets), config, targets)

    def use_shortlist(self, shortlist: Shortlist | None) -> None:
        """Compute only the pieces of a shortlist from now on; all of them with None."""
        self.projection = None if shortlist is None else ShortlistProjection(self.packed, shortlist)

    def search_each(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        to_parse: SentencesToParse | None = None,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yield the number of each sentence and its best hypotheses, when all are found."""
        yield from enumerate(self.search(sentences, options, to_parse))

    def search(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        to_parse: SentencesToParse | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each sentence."""
        if not sentences:
            return []
        limits = output_limits(sentences, options, to_parse)
        workers = min(self.workers, len(sentences))
        slots = max(1, min(-(-len(sentences) // workers), WORKER_ROWS // options.beam))
        # Where many sentences are searched at a time each product has rows enough, and proposals
        # would add to them. A draft knows nothing of what must not be repeated.
        few = len(sentences) <= self.workers and options.beam == 1 and to_parse is None
        few = few and not options.limits_repetition
        draft = self.draft if few else None
        longest = max(limits)
        for engine in (self, *([draft] if draft else [])):
            engine.extend_positions(max(longest, *map(len, sentences)) + 2)

        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
        order = deal_sentences(order, workers, slots)
        queue = _SentenceQueue([SearchJob(i, sentences[i], limits[i]) for i in order])
        results: list[list[Hypothesis]] = [[] for _ in sentences]

        def work(_: int) -> None:
            search = self.make_search(
                options,
                slots=slots,
                longest=longest,
                helpers=self.workers // workers - 1,
                to_parse=to_parse,
                draft=draft,
            )
            for number, found in search.run(iter(queue)):
                results[number] = found or [fallback_hypothesis([])]

        if workers == 1:
            work(0)
            return refuse_nan(results)
        with ThreadPoolExecutor(workers) as pool:
            try:
                list(pool.map(work, range(workers)))
            except BaseException:
                queue.close()
                raise
        return refuse_nan(results)

    def force_decode(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[ForcedDecoding]:
        """Return what the model says of each target as the translation of its source."""
        if not sources:
            return []
        self.extend_positions(max(map(len, (*sources, *targets))) + 2)
        return force_decode(self._model, sources, targets, self.workers)

    def make_search(
        self,
        options: SearchOptions,
        *,
        slots: int,
        longest: int,
        helpers: int = 0,
        to_parse: SentencesToParse | None = None,
        draft: CpuEngine | None = None,
    ) -> BatchSearch:
        """Return one worker's search with these options."""
        outputs = self._model.projection.outputs
        allowed = (
            AllowedPieces(options.beam, outputs)
            if to_parse is None
            else TreeGrammar(to_parse, slots, options.beam, outputs)
        )
        settings: dict[str, Any] = {"slots": slots, "longest": longest, "helpers": helpers}
        settings["projection"] = self.projection if to_parse is None else None
        if draft is not None:
            return SpeculativeSearch(self._model, options, allowed, draft=draft._model, **settings)
        kind = GreedySearch if options.beam == 1 else BeamSearch
        return kind(self._model, options, allowed, **settings)

    def extend_positions(self, count: int) -> None:
        """Compute sinusoids for `count` positions, if that is more than there are."""
        if self.config.positions == "sinusoidal" and count > self._model.longest:
            del self.packed["positions"]
            self._model = bind_model(self.packed, self.config, self.targets, longest=2 * count)


def deal_sentences(order: Sequence[int], workers: int, slots: int) -> list[int]:
    """Deal out what each worker begins with, lest one have all the long ones; then the rest."""
    first = workers * slots
    return [*(i for w in range(workers) for i in order[w:first:workers]), *order[first:]]


def open_cpu_engine(loaded: LoadedModel) -> CpuEngine:
    """Return the engine of a model: from its int8 file, or else packed from its weights now."""
    packed = read_packed_weights(loaded)
    try:
        return CpuEngine(packed, loaded.config.model, loaded.tokenizer.sizes[1])
    except ModelError as error:
        raise ModelError(f"{loaded.path}: {error}") from None


class _SentenceQueue:
    """Hand out sentences to several workers, each sentence once."""

    def __init__(self, jobs: list[SearchJob]) -> None:
        self._jobs = iter(jobs)
        self._lock, self._closed = Lock(), Event()

    def __iter__(self) -> Iterator[SearchJob]:
        while not self._closed.is_set():
            with self._lock:
                job = next(self._jobs, None)
            if job is None:
                return
            yield job

    def close(self) -> None:
        """Hand out no more sentences."""
        self._closed.set()
