"""In continuous batching, sentences join a search and leave it at any step.

A service uses it, whose sentences come one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dragoman.inference.cpu.engine import WORKER_ROWS, CpuEngine
from dragoman.inference.cpu.forced_decoding import force_decode
from dragoman.inference.cpu.search import IMPOSSIBLE, Flags, SearchJob
from dragoman.inference.engine import ForcedDecoding, NextPieces
from dragoman.search.constraints.requirements import OutputRequirements, required_limits
from dragoman.search.options import (
    Hypothesis,
    SamplingOptions,
    SearchOptions,
    fallback_hypothesis,
    output_limits,
    refuse_nan,
)

RESERVED_FRACTION: Final = 4
"""One slot in so many is kept for newcomers, however many sentences one client has waiting."""


class ContinuousBatchingEngine(CpuEngine):
    """Search with the same weights as an engine in batches that sentences can join at any step.

    Neither a sentence nor its translation may have more than `longest` pieces: the table of
    positions must not move while a batch reads it.
    """

    def __init__(self, engine: CpuEngine, longest: int) -> None:
        super().__init__(dict(engine.packed), engine.config, engine.targets)
        self.projection = engine.projection
        self.extend_positions(longest + 2)
        self.longest = longest

    def search_constrained(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        requirements: Sequence[OutputRequirements],
    ) -> list[list[Hypothesis]]:
        """See Engine; such sentences join no batch."""
        limits = required_limits(sentences, options, requirements)
        if max((*map(len, sentences), *limits), default=0) > self.longest:
            return self._separate_engine().search_constrained(sentences, options, requirements)
        return super().search_constrained(sentences, options, requirements)

    def sample(
        self,
        sentences: Sequence[Sequence[int]],
        options: SamplingOptions,
        requirements: Sequence[OutputRequirements],
    ) -> list[list[Hypothesis]] | None:
        """See Engine; samples join no batch."""
        limits = required_limits(sentences, options, requirements)
        if max((*map(len, sentences), *limits), default=0) > self.longest:
            return self._separate_engine().sample(sentences, options, requirements)
        return super().sample(sentences, options, requirements)

    def predict_next(
        self,
        source: Sequence[int],
        prefix: Sequence[int],
        words: Sequence[Sequence[int]],
        groups_GV: Flags,
        count: int,
    ) -> NextPieces:
        """See Engine."""
        if max(len(source), len(prefix) + max(map(len, words))) > self.longest:
            return self._separate_engine().predict_next(source, prefix, words, groups_GV, count)
        return super().predict_next(source, prefix, words, groups_GV, count)

    def force_decode(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[ForcedDecoding]:
        """See Engine; what is longer than this engine allows is computed with another."""
        if not sources or max(map(len, (*sources, *targets))) <= self.longest:
            return force_decode(self._model, sources, targets, workers=1) if sources else []
        return self._separate_engine().force_decode(sources, targets)

    def _separate_engine(self) -> CpuEngine:
        """Return an engine of the same weights whose table of positions may move."""
        return CpuEngine(dict(self.packed), self.config, self.targets)

    def start_batch(self, options: SearchOptions) -> ContinuousBatch:
        """Return an empty batch for searches with these options."""
        return ContinuousBatch(self, options)


class ContinuousBatch:
    """Search sentences at the same time, each as far as it has come.

    What is found of a sentence depends on nothing but itself. One thread uses a batch.
    """

    def __init__(self, engine: ContinuousBatchingEngine, options: SearchOptions) -> None:
        self.slots_per_client = max(1, WORKER_ROWS // options.beam)
        """One client may have so many slots."""
        self.slots = self.slots_per_client + max(1, self.slots_per_client // RESERVED_FRACTION)
        self._options = options
        self._engine = engine  # the kernel reads its arrays
        self._search = engine.make_search(options, slots=self.slots, longest=engine.longest)
        self._active: dict[int, int] = {}  # sentence: slot

    def __len__(self) -> int:
        return len(self._active)

    @property
    def free_slots(self) -> int:
        """Return how many sentences can join now."""
        return self.slots - len(self._active)

    def admit(self, sentences: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Encode sentences, given by number, as many as there are free slots, for the next step."""
        limits = output_limits([ids for _, ids in sentences], self._options)
        coming = [SearchJob(*one, limit) for one, limit in zip(sentences, limits, strict=True)]
        for job, slot in zip(coming, self._search.admit(coming), strict=True):
            self._active[job.number] = slot

    def cancel(self, number: int) -> None:
        """Free the slot of a sentence that nobody waits for any more."""
        self._search.release(self._active.pop(number))

    def step(self) -> list[tuple[int, list[Hypothesis]]]:
        """Extend every hypothesis by a piece; return what is found of sentences that are done."""
        active_A = np.array(list(self._active.values()), np.int32)
        self._search.reserve_next(active_A)
        done = []
        for slot in self._search.step(active_A):
            number = self._search.numbers[slot]
            found = self._search.release(slot) or [fallback_hypothesis([])]
            del self._active[number]
            done.append((number, refuse_nan([found])[0]))
        return done

    def agreed_prefix(self, number: int) -> list[int]:
        """Return the first pieces of a sentence's translation, in which all hypotheses agree.

        They only become more: what is once agreed is in every translation that can still come.
        """
        search, slot = self._search, self._active[number]
        alive = search.sums[slot] > IMPOSSIBLE
        rows = [*search.ids[slot, alive, : search.lengths[slot]].tolist()]
        rows += [one.ids for one in search.finished[slot]]
        agreed = []
        for pieces in zip(*rows, strict=False):
            if len(set(pieces)) > 1:
                break
            agreed.append(int(pieces[0]))
        return agreed
