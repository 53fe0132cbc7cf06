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
from typing import TYPE_CHECKING, Any, Final

from dragoman.config import ModelConfig
from dragoman.errors import ModelError
from dragoman.inference.cpu.constrained_search import ConstrainedSearch, RequiredPieces
from dragoman.inference.cpu.forced_decoding import force_decode
from dragoman.inference.cpu.kernel_library import bind_model, why_no_kernel
from dragoman.inference.cpu.next_pieces import predict_next
from dragoman.inference.cpu.search import (
    AllowedPieces,
    BatchSearch,
    BeamSearch,
    Flags,
    GreedySearch,
    SearchJob,
)
from dragoman.inference.cpu.shortlist import Shortlist, ShortlistProjection
from dragoman.inference.cpu.speculative_decoding import SpeculativeSearch
from dragoman.inference.engine import DEFAULT_WINDOW, Engine, ForcedDecoding, NextPieces
from dragoman.model_directory import LoadedModel, read_packed_weights
from dragoman.models.int8_weights import PackedWeights, Weights, pack_weights
from dragoman.models.supported_settings import unsupported
from dragoman.search.constraints.requirements import OutputRequirements, required_limits
from dragoman.search.options import (
    Hypothesis,
    SamplingOptions,
    SearchOptions,
    fallback_hypothesis,
    output_limits,
    refuse_nan,
)
from dragoman.system.cores import available_cores

if TYPE_CHECKING:
    from dragoman.trees.grammar import SentencesToParse

WORKER_ROWS: Final = 96
"""A worker extends so many hypotheses at a time."""
MAX_PIECES: Final = 64
"""Samples are drawn from so many of the likeliest pieces at most: the kernel finds no others."""
FIRST_POSITIONS: Final = 256
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
        limits = output_limits(sentences, options, to_parse)
        # Where many sentences are searched at a time each product has rows enough, and proposals
        # would add to them. A draft knows nothing of what must not be repeated.
        few = len(sentences) <= self.workers and options.beam == 1 and to_parse is None
        few = few and not options.limits_repetition
        jobs = [SearchJob(i, ids, limits[i]) for i, ids in enumerate(sentences)]
        return self._search_jobs(
            jobs, options, to_parse=to_parse, draft=self.draft if few else None
        )

    def search_constrained(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        requirements: Sequence[OutputRequirements],
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each sentence that are what is required of it."""
        limits = required_limits(sentences, options, requirements)
        jobs = [
            SearchJob(i, ids, limits[i], requirements[i].prefix) for i, ids in enumerate(sentences)
        ]
        limited = any(one.limits_choice for one in requirements)
        return self._search_jobs(jobs, options, requirements=requirements if limited else None)

    def supports_sampling(self, options: SamplingOptions) -> bool:
        """Return whether few enough samples are drawn, from few enough of the likeliest pieces."""
        most = options.most_pieces
        return most is not None and most <= MAX_PIECES and options.samples <= self.max_beam

    def sample(
        self,
        sentences: Sequence[Sequence[int]],
        options: SamplingOptions,
        requirements: Sequence[OutputRequirements],
    ) -> list[list[Hypothesis]] | None:
        """Return samples of each sentence: see Engine; what may not occur needs PyTorch."""
        if any(one.limits_choice for one in requirements):
            return None
        limits = required_limits(sentences, options, requirements)
        jobs = [
            SearchJob(i, ids, limits[i], requirements[i].prefix) for i, ids in enumerate(sentences)
        ]
        return self._search_jobs(jobs, options)

    def _search_jobs(
        self,
        jobs: Sequence[SearchJob],
        options: SearchOptions | SamplingOptions,
        *,
        draft: CpuEngine | None = None,
        **constraint: Any,
    ) -> list[list[Hypothesis]]:
        """Return what workers find of jobs, in their order; constraints are `make_search`'s."""
        if not jobs:
            return []
        workers = min(self.workers, len(jobs))
        slots = max(1, min(-(-len(jobs) // workers), WORKER_ROWS // count_hypotheses(options)))
        longest = max(job.max_length for job in jobs)
        for engine in (self, *([draft] if draft else [])):
            engine.extend_positions(max(longest, *(len(job.source) for job in jobs)) + 2)

        order = sorted(range(len(jobs)), key=lambda i: -len(jobs[i].source))
        queue = _SentenceQueue([jobs[i] for i in deal_sentences(order, workers, slots)])
        results: list[list[Hypothesis]] = [[] for _ in jobs]

        def work(_: int) -> None:
            search = self.make_search(
                options,
                slots=slots,
                longest=longest,
                helpers=self.workers // workers - 1,
                draft=draft,
                **constraint,
            )
            for number, found in search.run(iter(queue)):
                results[number] = found or [fallback_hypothesis(list(jobs[number].prefix))]

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

    def predict_next(
        self,
        source: Sequence[int],
        prefix: Sequence[int],
        words: Sequence[Sequence[int]],
        groups_GV: Flags,
        count: int,
    ) -> NextPieces:
        """Return the `count` likeliest pieces of each group after the prefix and each word."""
        self.extend_positions(max(len(source), len(prefix) + max(map(len, words))) + 2)
        return predict_next(self._model, source, prefix, words, groups_GV, count)

    def make_search(
        self,
        options: SearchOptions | SamplingOptions,
        *,
        slots: int,
        longest: int,
        helpers: int = 0,
        to_parse: SentencesToParse | None = None,
        requirements: Sequence[OutputRequirements] | None = None,
        draft: CpuEngine | None = None,
    ) -> BatchSearch:
        """Return one worker's search with these options."""
        outputs, beam = self._model.projection.outputs, count_hypotheses(options)
        settings: dict[str, Any] = {"slots": slots, "longest": longest, "helpers": helpers}
        if isinstance(options, SamplingOptions):
            from dragoman.inference.cpu.sampling import SamplingSearch  # searches need none

            free = AllowedPieces(beam, outputs)
            settings["projection"] = self.projection
            return SamplingSearch(self._model, options, free, **settings)
        if requirements is not None:
            required = RequiredPieces(requirements, self.targets, slots, beam, outputs)
            return ConstrainedSearch(self._model, options, required, **settings)
        allowed = AllowedPieces(beam, outputs)
        if to_parse is not None:
            from dragoman.inference.cpu.tree_grammar import TreeGrammar  # translators need none

            allowed = TreeGrammar(to_parse, slots, beam, outputs)
        settings["projection"] = self.projection if to_parse is None else None
        if draft is not None:
            return SpeculativeSearch(self._model, options, allowed, draft=draft._model, **settings)
        kind = GreedySearch if beam == 1 else BeamSearch
        return kind(self._model, options, allowed, **settings)

    def extend_positions(self, count: int) -> None:
        """Compute sinusoids for `count` positions, if that is more than there are."""
        if self.config.positions == "sinusoidal" and count > self._model.longest:
            del self.packed["positions"]
            self._model = bind_model(self.packed, self.config, self.targets, longest=2 * count)


def count_hypotheses(options: SearchOptions | SamplingOptions) -> int:
    """Return how many hypotheses of a sentence are extended at a time."""
    return options.samples if isinstance(options, SamplingOptions) else options.beam


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
