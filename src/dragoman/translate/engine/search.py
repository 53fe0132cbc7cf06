"""Beam search with the kernel: sentences join as others leave, and no beam is copied.

The rules are those of `dragoman.search.beam`, in numpy and for sentences that are each at a place
of their own. A beam of 1 is greedy search.
"""

# A sentences being searched, K beams, C candidates of each, T pieces, N best finished

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.search.hypotheses import Hypothesis, SearchOptions, length_penalty
from dragoman.text.symbols import BOS, EOS
from dragoman.translate.engine import native
from dragoman.translate.engine.cells import PAGE, Cells

__all__ = ["Searcher"]

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]

NOTHING = -1e29
"""What is below is no log-probability."""


class Searcher:
    """One worker: it searches many sentences, some at a time."""

    def __init__(
        self,
        model: native.Model,
        options: SearchOptions,
        slots: int,
        longest: int,
        helpers: int = 0,
    ) -> None:
        """`slots` sentences at a time, of at most `longest` target pieces.

        `helpers` are threads that share in each product.
        """
        self.model, self.options, self.slots = model, options, slots
        self.library = native.kernel()
        self.scratch = self.library.dragoman_scratch(helpers)
        self.width = 2 * model.heads * model.d_k
        K = self.beams = options.beam
        self.candidates = 2 * K if K > 1 else 1
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
        self.pools: list[list[tuple[float, float, list[int]]]] = [[] for _ in range(slots)]
        self.names: list[int] = [-1] * slots
        self.free = list(range(slots - 1, -1, -1))

    def __del__(self) -> None:
        if getattr(self, "scratch", None):
            self.library.dragoman_free(self.scratch)

    def run(
        self, sentences: Iterator[tuple[int, Sequence[int], int]]
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Of sentences, each with its number and the most pieces it may have, what is found.

        They come in the order they are finished in.
        """
        active: list[int] = []
        waiting = next(sentences, None)
        while active or waiting is not None:
            # Encoding a few at a time would waste the encoder's products.
            if waiting is not None and len(self.free) >= max(1, self.slots // 4):
                coming: list[tuple[int, Sequence[int], int]] = []
                while waiting is not None and len(coming) < len(self.free):
                    coming.append(waiting)
                    waiting = next(sentences, None)
                active += self._admit(coming)
            done = self._step(np.array(active, np.int32))
            for slot in done:
                yield self.names[slot], self._leave(slot)
            if done:
                gone = set(done)
                active = [slot for slot in active if slot not in gone]

    def _admit(self, coming: list[tuple[int, Sequence[int], int]]) -> list[int]:
        slots = [self.free.pop() for _ in coming]
        ids = [[*source, EOS] for _, source, _ in coming]
        lengths = np.array([len(one) for one in ids], np.int32)
        flat = np.array([i for one in ids for i in one], np.int32)
        memories = (ctypes.POINTER(ctypes.c_uint16) * len(slots))()
        for place, (slot, (name, _, ceiling)) in enumerate(zip(slots, coming, strict=True)):
            size = self.model.decoder_layers * int(lengths[place]) * self.width
            memory = self.kept[slot] = np.empty(size, np.uint16)
            memories[place] = self.memories[slot] = memory.ctypes.data_as(
                ctypes.POINTER(ctypes.c_uint16)
            )
            self.names[slot], self.ceilings[slot] = name, ceiling
            self.pools[slot] = []
            self.source_lengths[slot] = lengths[place]
        self.library.dragoman_encode(
            *(self.model, self.scratch, len(slots), lengths.ctypes.data, flat.ctypes.data, memories)
        )
        self.lengths[slots] = self.ended[slots] = 0
        self.sums[slots] = -np.inf
        self.sums[slots, 0] = 0.0
        self.last[slots] = BOS
        self.best_sums[slots] = self.least_scores[slots] = -np.inf
        return slots

    def _leave(self, slot: int) -> list[Hypothesis]:
        self.cells.give_back(self.pages[slot])
        self.pages[slot], self.kept[slot] = [], None
        self.free.append(slot)
        return [Hypothesis(ids, score, total) for score, total, ids in self.pools[slot]]

    def _step(self, active_A: Ints) -> list[int]:
        """One piece more of every hypothesis; the sentences that are done."""
        K, C = self.beams, self.candidates
        lengths_A = self.lengths[active_A]
        for slot in active_A[lengths_A % PAGE == 0].tolist():
            first, start = self.cells.borrow(), int(self.lengths[slot])
            self.pages[slot].append(first)
            room = min(PAGE, self.longest - start)
            new = first + np.arange(room * K, dtype=np.int32).reshape(room, K)
            self.tables[slot, :, start : start + room] = new.T
        sums_AK = self.sums[active_A]
        alive_AK = sums_AK > NOTHING
        found, log_probs, ends = self._kernel(active_A, lengths_A, alive_AK)

        A = len(active_A)
        totals_AKC = np.full((A, K, C), -np.inf, np.float32)
        totals_AKC[alive_AK] = log_probs
        totals_AKC += np.where(alive_AK, sums_AK, -np.inf)[:, :, None]
        pieces_AKC = np.zeros((A, K, C), np.int32)
        pieces_AKC[alive_AK] = found
        full_A = lengths_A >= self.ceilings[active_A]
        if full_A.any():  # only the end may follow
            ends_AK = np.full((A, K), -np.inf, np.float32)
            ends_AK[alive_AK] = ends
            totals_AKC[full_A] = -np.inf
            totals_AKC[full_A, :, 0] = (sums_AK + ends_AK)[full_A]
            pieces_AKC[full_A] = EOS
        totals_AKC[totals_AKC < NOTHING] = -np.inf
        if K == 1:
            return self._greedily(active_A, lengths_A, totals_AKC[:, 0, 0], pieces_AKC[:, 0, 0])

        flat_AX = totals_AKC.reshape(A, K * C)
        order_AC = np.argsort(-flat_AX, axis=1, kind="stable")[:, :C]
        best_AC = np.take_along_axis(flat_AX, order_AC, 1)
        pieces_AC = np.take_along_axis(pieces_AKC.reshape(A, K * C), order_AC, 1)
        parents_AC = order_AC // C
        ends_AC = pieces_AC == EOS
        final_AK = ends_AC[:, :K] & (best_AC[:, :K] > NOTHING)
        for a, k in np.argwhere(final_AK).tolist():
            slot, length = int(active_A[a]), int(lengths_A[a])
            ids = self.ids[slot, parents_AC[a, k], :length].tolist()
            self._finish(slot, float(best_AC[a, k]), ids)

        going_AK = np.argsort(ends_AC, axis=1, kind="stable")[:, :K]
        parents_AK = np.take_along_axis(parents_AC, going_AK, 1)
        last_AK = np.take_along_axis(pieces_AC, going_AK, 1)
        sums_AK = np.take_along_axis(best_AC, going_AK, 1)
        longest = int(lengths_A.max()) + 1
        rows_A1 = active_A[:, None]
        for table in (self.ids, self.tables):
            table[active_A, :, :longest] = table[rows_A1, parents_AK, :longest]
        # The table's next places are the beam's own, not its parent's.
        self._own_cells(active_A, lengths_A)
        self.ids[rows_A1, np.arange(K), lengths_A[:, None]] = last_AK
        self.last[active_A], self.sums[active_A] = last_AK, sums_AK
        self.lengths[active_A] += 1

        hope_A = sums_AK.max(axis=1)
        done_A = (self.ended[active_A] >= K) & (self.best_sums[active_A] >= hope_A)
        done_A |= ~(hope_A > NOTHING)
        if self.options.stop_early:
            bound_A = hope_A.astype(np.float64) / self.penalties[self.ceilings[active_A]]
            done_A |= self.least_scores[active_A] >= bound_A
        finished: list[int] = active_A[done_A].tolist()
        return finished

    def _own_cells(self, active_A: Ints, lengths_A: Ints) -> None:
        """After beams have changed places: where each writes until its page ends."""
        K = self.beams
        for slot, length in zip(active_A.tolist(), lengths_A.tolist(), strict=True):
            start = length + 1
            if start % PAGE == 0 or start == self.longest:
                continue
            first = self.pages[slot][-1] + (start % PAGE) * K
            self.tables[slot, :, start] = np.arange(first, first + K)

    def _greedily(
        self, active_A: Ints, lengths_A: Ints, totals_A: Floats, pieces_A: Ints
    ) -> list[int]:
        self.ids[active_A, 0, lengths_A] = pieces_A
        self.last[active_A, 0], self.sums[active_A, 0] = pieces_A, totals_A
        self.lengths[active_A] += 1
        ended = (pieces_A == EOS) | ~(totals_A > NOTHING)
        done: list[int] = active_A[ended].tolist()
        for slot, length, total in zip(
            done, lengths_A[ended].tolist(), totals_A[ended].tolist(), strict=True
        ):
            self._finish(slot, total, self.ids[slot, 0, :length].tolist())
        return done

    def _finish(self, slot: int, total: float, ids: list[int]) -> None:
        pool = self.pools[slot]
        pool.append((total / float(self.penalties[len(ids)]), total, ids))
        pool.sort(key=lambda one: -one[0])
        del pool[self.options.n_best :]
        self.ended[slot] += 1
        self.best_sums[slot] = max(one[1] for one in pool)
        if len(pool) == self.options.n_best:
            self.least_scores[slot] = pool[-1][0]

    def _kernel(
        self, active_A: Ints, lengths_A: Ints, alive_AK: NDArray[np.bool_]
    ) -> tuple[Ints, Floats, Floats]:
        """Candidates and ends of the hypotheses that are alive, in their order."""
        K, C = self.beams, self.candidates
        widest = int(lengths_A.max()) + 1
        ids = self.last[active_A][alive_AK]
        positions = np.repeat(lengths_A, K)[alive_AK.ravel()]
        sentences = np.repeat(active_A, K)[alive_AK.ravel()]
        cells = np.ascontiguousarray(self.tables[active_A, :, :widest][alive_AK])
        count = len(ids)
        found = np.empty((count, C), np.int32)
        log_probs = np.empty((count, C), np.float32)
        ends = np.empty(count, np.float32)
        rows = native.Rows(
            *(count, C, widest, ids.ctypes.data, positions.ctypes.data, cells.ctypes.data),
            *(sentences.ctypes.data, self.source_lengths.ctypes.data),
            ctypes.cast(self.memories, ctypes.c_void_p),
            *(self.cells.memory.ctypes.data, self.cells.count),
            ctypes.pointer(self.model.projection),
            None,
        )
        out = native.Found(found.ctypes.data, log_probs.ctypes.data, ends.ctypes.data)
        self.library.dragoman_step(self.model, self.scratch, rows, out)
        return found, log_probs, ends
