"""Places for sentences that are searched at the same time, each as far as it has come.

Sentences join as others leave. A place has room for the hypotheses of a beam; what these are made
of stays where it is when they change places: see `cells`.
"""

# A sentences being searched, K beams, R pieces to compute, X of them chosen after, C candidates

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.allowed_tokens import Flags, Ints, Language
from dragoman.inference.cpu.kv_cache import PAGE, Cells
from dragoman.inference.cpu.shortlist_projection import Narrow, Parts
from dragoman.search.options import Hypothesis, SearchOptions, length_penalty
from dragoman.text.special_tokens import BOS, EOS

__all__ = ["NOTHING", "Floats", "Job", "Pieces", "Slots"]

Floats = NDArray[np.float32]
Job = tuple[int, Sequence[int], int]
"""A sentence: its number, its ids, and the most pieces it may become."""

Memories = list[Any]
"""Of each sentence, a pointer to where the keys and values of its source are."""

ENCODED = 512
"""Pieces that are encoded together, unless one sentence has more."""

NOTHING = -1e29
"""What is below is no log-probability."""


class Pieces(NamedTuple):
    """What the kernel computes keys and values of."""

    ids: Ints
    positions: Ints
    hypotheses: Ints

    def and_then(self, others: Pieces) -> Pieces:
        """These, then others."""
        if not len(others.ids):
            return self
        return Pieces(*(np.concatenate(both) for both in zip(self, others, strict=True)))


class Slots(ABC):
    """One worker: it searches many sentences, some at a time."""

    def __init__(
        self,
        model: kernel_library.Model,
        options: SearchOptions,
        language: Language,
        *,
        slots: int,
        longest: int,
        helpers: int = 0,
        narrow: Narrow | None = None,
    ) -> None:
        """`slots` sentences at a time, of at most `longest` target pieces.

        `helpers` are threads that share in each product. With `narrow` the pieces to choose from
        are each sentence's own.
        """
        self.model, self.options, self.language, self.slots = model, options, language, slots
        self.parts = None if narrow is None else Parts(narrow, slots)
        self.library = kernel_library.kernel()
        self.scratch = self.library.dragoman_scratch(helpers)
        self.width = 2 * model.heads * model.d_k
        K = self.beams = options.beam
        self.longest = longest + 1
        pages = -(-self.longest // PAGE)
        self.cells = Cells(model.decoder_layers, self.width, K, slots * pages * PAGE)
        self.penalties = np.array(
            [length_penalty(n, options.length_penalty) for n in range(longest + 1)]
        )
        self.tables: Ints = np.zeros((slots, K, self.longest), np.int32)
        self.ids: Ints = np.zeros((slots, K, self.longest), np.int32)
        self.sums: Floats = np.zeros((slots, K), np.float32)
        self.last: Ints = np.zeros((slots, K), np.int32)
        self.lengths: Ints = np.zeros(slots, np.int32)
        self.ceilings: Ints = np.zeros(slots, np.int32)
        self.ended: Ints = np.zeros(slots, np.int32)
        self.best_sums = np.zeros(slots)
        self.least_scores = np.zeros(slots)
        self.source_lengths: Ints = np.zeros(slots, np.int32)
        self.memories = (ctypes.POINTER(ctypes.c_uint16) * slots)()
        self.kept: list[NDArray[Any] | None] = [None] * slots
        self.pages: list[list[int]] = [[] for _ in range(slots)]
        self.page: Ints = np.zeros(slots, np.int32)
        self.pools: list[list[tuple[float, float, list[int]]]] = [[] for _ in range(slots)]
        self.names: list[int] = [-1] * slots
        self.free = list(range(slots - 1, -1, -1))

    def __del__(self) -> None:
        if getattr(self, "scratch", None):
            self.library.dragoman_free(self.scratch)

    def run(self, sentences: Iterator[Job]) -> Iterator[tuple[int, list[Hypothesis]]]:
        """What is found of each sentence, by its number; they come as they are finished."""
        active: list[int] = []
        waiting = next(sentences, None)
        while active or waiting is not None:
            # Encoding a few at a time would waste the encoder's products.
            if waiting is not None and len(self.free) >= max(1, self.slots // 4):
                coming: list[Job] = []
                while waiting is not None and len(coming) < len(self.free):
                    coming.append(waiting)
                    waiting = next(sentences, None)
                active += self._admit(coming)
            active_A = np.array(active, np.int32)
            self._borrow(active_A)
            done = self._step(active_A)
            for slot in done:
                yield self.names[slot], self._leave(slot)
            if done:
                gone = set(done)
                active = [slot for slot in active if slot not in gone]

    @abstractmethod
    def _step(self, active_A: Ints) -> list[int]:
        """One choice more of every hypothesis; the sentences that are done."""

    def _admit(self, coming: list[Job]) -> list[int]:
        slots = [self.free.pop() for _ in coming]
        ids = [[*source, EOS] for _, source, _ in coming]
        lengths = np.array([len(one) for one in ids], np.int32)
        flat = np.array([i for one in ids for i in one], np.int32)
        memories: Memories = []
        for place, (slot, (name, source, ceiling)) in enumerate(zip(slots, coming, strict=True)):
            if self.parts is not None:
                self.parts.admit(slot, source)
            size = self.model.decoder_layers * int(lengths[place]) * self.width
            memory = self.kept[slot] = np.empty(size, np.uint16)
            self.memories[slot] = memory.ctypes.data_as(ctypes.POINTER(ctypes.c_uint16))
            memories.append(self.memories[slot])
            self.names[slot], self.ceilings[slot] = name, ceiling
            self.pools[slot] = []
            self.source_lengths[slot] = lengths[place]
        self._encode(lengths, flat, memories)
        self.lengths[slots] = self.ended[slots] = 0
        self.sums[slots] = -np.inf
        self.sums[slots, 0] = 0.0
        self.last[slots] = BOS
        self.best_sums[slots] = self.least_scores[slots] = -np.inf
        self.language.admit(slots, [name for name, _, _ in coming])
        return slots

    def _encode(self, lengths: Ints, flat: Ints, memories: Memories) -> None:
        """Read sentences, some at a time: what lies between layers grows with their pieces."""
        first, ends = 0, np.cumsum(lengths)
        while first < len(lengths):
            begun = int(ends[first] - lengths[first])
            last = max(first + 1, int(np.searchsorted(ends, begun + ENCODED, "right")))
            self.library.dragoman_encode(
                *(self.model, self.scratch, last - first, lengths[first:].ctypes.data),
                flat[begun:].ctypes.data,
                (ctypes.POINTER(ctypes.c_uint16) * (last - first))(*memories[first:last]),
            )
            first = last

    def _leave(self, slot: int) -> list[Hypothesis]:
        self.cells.give_back(self.pages[slot])
        self.pages[slot], self.kept[slot] = [], None
        if self.parts is not None:
            self.parts.leave(slot)
        self.free.append(slot)
        return [Hypothesis(ids, score, total) for score, total, ids in self.pools[slot]]

    def _borrow(self, active_A: Ints) -> None:
        """A page more for the sentences whose next piece begins one."""
        for slot in active_A[self.lengths[active_A] % PAGE == 0].tolist():
            self._reserve(slot, int(self.lengths[slot]))

    def _reserve(self, slot: int, place: int) -> None:
        """Pages enough for a sentence to have a piece in this place."""
        K = self.beams
        while (start := PAGE * len(self.pages[slot])) <= place:
            first = self.cells.borrow()
            self.pages[slot].append(first)
            self.page[slot] = first
            room = min(PAGE, self.longest - start)
            new = first + np.arange(room * K, dtype=np.int32).reshape(room, K)
            self.tables[slot, :, start : start + room] = new.T

    def _finish(self, slot: int, total: float, ids: list[int]) -> None:
        """One more hypothesis has ended; of equals the older stays."""
        pool = self.pools[slot]
        pool.append((total / float(self.penalties[len(ids)]), total, ids))
        pool.sort(key=lambda one: -one[0])
        del pool[self.options.n_best :]
        self.ended[slot] += 1
        self.best_sums[slot] = max(one[1] for one in pool)
        if len(pool) == self.options.n_best:
            self.least_scores[slot] = pool[-1][0]

    def _last(self, slots_R: Ints, beams_R: NDArray[Any] | int) -> Pieces:
        """The last pieces of these hypotheses."""
        hypotheses_R = (slots_R * self.beams + beams_R).astype(np.int32)
        return Pieces(self.last[slots_R, beams_R], self.lengths[slots_R], hypotheses_R)

    def _compute(
        self, chosen: Pieces, settled: Pieces, allowed_XC: Flags | None, candidates: int
    ) -> tuple[Ints, Floats]:
        """What may best follow the chosen, X C; of what is settled, keys and values alone."""
        found_XC = np.empty((len(chosen.ids), candidates), np.int32)
        log_probs_XC = np.empty((len(chosen.ids), candidates), np.float32)
        ids_R, positions_R, hypotheses_R = chosen.and_then(settled)
        rows = kernel_library.Rows(
            *(len(ids_R), len(chosen.ids), candidates, self.beams, self.longest),
            *(ids_R.ctypes.data, positions_R.ctypes.data, hypotheses_R.ctypes.data),
            *(self.tables.ctypes.data, self.source_lengths.ctypes.data),
            ctypes.cast(self.memories, ctypes.c_void_p),
            *(self.cells.memory_LNW.ctypes.data, self.cells.count),
            ctypes.pointer(self.model.projection),
        )
        if allowed_XC is not None:
            rows.kinds, rows.allowed = self.language.kinds.ctypes.data, allowed_XC.ctypes.data
            rows.kind_count = allowed_XC.shape[1]
        if self.parts is not None:
            self.parts.narrow(rows)
        out = kernel_library.Found(found_XC.ctypes.data, log_probs_XC.ctypes.data)
        self.library.dragoman_step(self.model, self.scratch, rows, out)
        return found_XC, log_probs_XC
