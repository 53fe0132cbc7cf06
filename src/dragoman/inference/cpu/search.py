"""The kernel searches for many sentences at once, greedily or with a beam, each in its slot.

Sentences join as others finish. The rules are those of `dragoman.search.greedy` and
`dragoman.search.beam`, in numpy. No beam is copied: keys and values stay where they are when
hypotheses change places, see `kv_cache`.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.kv_cache import PAGE_POSITIONS, KVCache
from dragoman.inference.cpu.shortlist import ShortlistProjection, SlotProjections
from dragoman.search.options import Hypothesis, SearchOptions, length_penalty
from dragoman.search.repeated_ngrams import repeating_pieces
from dragoman.text.special_tokens import BOS, EOS, PAD

# A sentences being searched, K beams, R pieces to compute, X of them predicted after,
# C candidates of each, T pieces so far


Flags = NDArray[np.bool_]
Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
SourcePointers = list[Any]
"""For each sentence, this points to the keys and values of its source."""

ENCODED_AT_ONCE = 512
"""So many pieces are encoded together, unless one sentence has more."""
IMPOSSIBLE = -1e29
"""What is below this is not a log-probability."""


class SearchJob(NamedTuple):
    """Hold a sentence that is to be searched."""

    number: int
    source: Sequence[int]
    max_length: int
    """Its output may have so many pieces."""
    prefix: Sequence[int] = ()
    """Its output begins with these."""


class StepPieces(NamedTuple):
    """Hold the pieces that the kernel computes keys and values of in one step."""

    ids: Ints
    positions: Ints
    hypotheses: Ints

    def followed_by(self, others: StepPieces) -> StepPieces:
        """Return these pieces, then others."""
        if not len(others.ids):
            return self
        return StepPieces(*(np.concatenate(both) for both in zip(self, others, strict=True)))


class BatchSearch(ABC):
    """Search with one worker, as many sentences at a time as there are slots."""

    def __init__(
        self,
        model: kernel_library.KernelModel,
        options: SearchOptions,
        allowed: AllowedPieces,
        *,
        slots: int,
        longest: int,
        helpers: int = 0,
        projection: ShortlistProjection | None = None,
    ) -> None:
        """Make `slots` slots for sentences of at most `longest` target pieces.

        `helpers` are threads that share in each product. With a `projection` on a shortlist the
        pieces to choose from are each sentence's own.
        """
        self.model, self.options, self.allowed, self.slots = model, options, allowed, slots
        self.projections = None if projection is None else SlotProjections(projection, slots)
        self.library = kernel_library.load_kernel()
        self.scratch = self.library.dragoman_new_scratch(helpers)
        self.width = 2 * model.heads * model.d_k
        K = self.beams = options.beam
        self.longest = longest + 1
        pages = -(-self.longest // PAGE_POSITIONS)
        self.cache = KVCache(model.decoder_layers, self.width, K, slots * pages * PAGE_POSITIONS)
        self.penalties = np.array(
            [length_penalty(n, options.length_penalty) for n in range(longest + 1)]
        )
        self.free_slots = list(range(slots - 1, -1, -1))
        self.numbers: list[int] = [-1] * slots
        self.max_lengths: Ints = np.zeros(slots, np.int32)
        # The source of each sentence.
        self.source_lengths: Ints = np.zeros(slots, np.int32)
        self.source_arrays: list[NDArray[Any] | None] = [None] * slots
        self.source_caches = (ctypes.POINTER(ctypes.c_uint16) * slots)()
        # Its hypotheses, and where their keys and values are.
        self.ids: Ints = np.zeros((slots, K, self.longest), np.int32)
        self.lengths: Ints = np.zeros(slots, np.int32)
        self.last: Ints = np.zeros((slots, K), np.int32)
        self.sums: Floats = np.zeros((slots, K), np.float32)
        self.running_sums: Floats = np.zeros((slots, K, self.longest), np.float32)
        self.cache_tables: Ints = np.zeros((slots, K, self.longest), np.int32)
        self.pages: list[list[int]] = [[] for _ in range(slots)]
        self.last_page: Ints = np.zeros(slots, np.int32)
        # Its finished hypotheses, best first.
        self.finished: list[list[Hypothesis]] = [[] for _ in range(slots)]
        self.finished_count: Ints = np.zeros(slots, np.int32)
        self.best_finished_sum = np.zeros(slots)
        self.worst_finished_score = np.zeros(slots)

    def __del__(self) -> None:
        if getattr(self, "scratch", None):
            self.library.dragoman_free_scratch(self.scratch)

    def run(self, jobs: Iterator[SearchJob]) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yield what is found of each sentence with its number, as they are finished."""
        active: list[int] = []
        waiting = next(jobs, None)
        while active or waiting is not None:
            # Encoding a few at a time would waste the encoder's products.
            if waiting is not None and len(self.free_slots) >= max(1, self.slots // 4):
                coming: list[SearchJob] = []
                while waiting is not None and len(coming) < len(self.free_slots):
                    coming.append(waiting)
                    waiting = next(jobs, None)
                active += self.admit(coming)
            active_A = np.array(active, np.int32)
            self.reserve_next(active_A)
            done = self.step(active_A)
            for slot in done:
                yield self.numbers[slot], self.release(slot)
            if done:
                gone = set(done)
                active = [slot for slot in active if slot not in gone]

    @abstractmethod
    def step(self, active_A: Ints) -> list[int]:
        """Extend every hypothesis of these slots by one choice; return the slots that are done."""

    # --- sentences come and go ---

    def admit(self, coming: list[SearchJob]) -> list[int]:
        """Encode sentences into free slots, and return these slots."""
        slots = [self.free_slots.pop() for _ in coming]
        ids = [[*job.source, EOS] for job in coming]
        lengths = np.array([len(one) for one in ids], np.int32)
        flat = np.array([i for one in ids for i in one], np.int32)
        pointers: SourcePointers = []
        for place, (slot, job) in enumerate(zip(slots, coming, strict=True)):
            if self.projections is not None:
                self.projections.admit(slot, job.source)
            size = self.model.decoder_layers * int(lengths[place]) * self.width
            array = self.source_arrays[slot] = np.empty(size, np.uint16)
            self.source_caches[slot] = array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint16))
            pointers.append(self.source_caches[slot])
            self.numbers[slot], self.max_lengths[slot] = job.number, job.max_length
            self.finished[slot] = []
            self.source_lengths[slot] = lengths[place]
        self._encode(lengths, flat, pointers)
        self.lengths[slots] = self.finished_count[slots] = 0
        self.sums[slots] = -np.inf
        self.sums[slots, 0] = 0.0
        self.last[slots] = BOS
        self.best_finished_sum[slots] = self.worst_finished_score[slots] = -np.inf
        self.allowed.admit(slots, [job.number for job in coming])
        for slot, job in zip(slots, coming, strict=True):
            if job.prefix:
                self._force_prefix(slot, job.prefix)
        return slots

    def _force_prefix(self, slot: int, prefix: Sequence[int]) -> None:
        """Begin the first hypothesis of a slot with pieces, at what the model says they cost."""
        count = len(prefix)
        self._reserve(slot, count - 1)
        pieces = StepPieces(
            np.array([BOS, *prefix[:-1]], np.int32),
            np.arange(count, dtype=np.int32),
            np.full(count, slot * self.beams, np.int32),
        )
        following: Ints = np.array(prefix, np.int32)
        best, best_log_probs = np.empty(count, np.int32), np.empty(count, np.float32)
        log_probs = np.full(count, -np.inf, np.float32)
        step = self._step_input(pieces, count, candidates=1)
        step.next = following.ctypes.data
        output = kernel_library.StepOutput(
            best.ctypes.data, best_log_probs.ctypes.data, log_probs.ctypes.data
        )
        self.library.dragoman_step(self.model, self.scratch, step, output)
        # A piece that the model rules out costs nothing.
        sums = np.cumsum(np.where(log_probs > IMPOSSIBLE, log_probs, 0.0), dtype=np.float32)
        self.ids[slot, 0, :count], self.running_sums[slot, 0, :count] = following, sums
        self.lengths[slot], self.last[slot], self.sums[slot, 0] = count, prefix[-1], sums[-1]

    def _encode(self, lengths: Ints, flat: Ints, pointers: SourcePointers) -> None:
        """Encode sentences, some at a time: what lies between layers grows with their pieces."""
        first, ends = 0, np.cumsum(lengths)
        while first < len(lengths):
            begun = int(ends[first] - lengths[first])
            last = max(first + 1, int(np.searchsorted(ends, begun + ENCODED_AT_ONCE, "right")))
            self.library.dragoman_encode(
                *(self.model, self.scratch, last - first, lengths[first:].ctypes.data),
                flat[begun:].ctypes.data,
                (ctypes.POINTER(ctypes.c_uint16) * (last - first))(*pointers[first:last]),
            )
            first = last

    def release(self, slot: int) -> list[Hypothesis]:
        """Free a slot, and return the best finished hypotheses of its sentence."""
        self.cache.free_pages(self.pages[slot])
        self.pages[slot], self.source_arrays[slot] = [], None
        if self.projections is not None:
            self.projections.release(slot)
        self.free_slots.append(slot)
        return self.finished[slot]

    def reserve_next(self, active_A: Ints) -> None:
        """Take a page more for the sentences whose next piece begins one."""
        for slot in active_A[self.lengths[active_A] % PAGE_POSITIONS == 0].tolist():
            self._reserve(slot, int(self.lengths[slot]))

    def _reserve(self, slot: int, position: int) -> None:
        """Take pages enough for a sentence to have a piece at this position."""
        K = self.beams
        while (start := PAGE_POSITIONS * len(self.pages[slot])) <= position:
            first = self.cache.take_page()
            self.pages[slot].append(first)
            self.last_page[slot] = first
            room = min(PAGE_POSITIONS, self.longest - start)
            new = first + np.arange(room * K, dtype=np.int32).reshape(room, K)
            self.cache_tables[slot, :, start : start + room] = new.T

    # --- what a step is made of ---

    def _add_finished(self, slot: int, beam: int, length: int, total: float) -> None:
        """Keep a hypothesis that has ended if it is among the best; of equals the older stays."""
        finished = self.finished[slot]
        ids: list[int] = self.ids[slot, beam, :length].tolist()
        sums: list[float] = self.running_sums[slot, beam, :length].tolist()
        score = total / float(self.penalties[length])
        finished.append(Hypothesis.from_running_sums(ids, score, total, sums))
        finished.sort(key=lambda one: -one.score)
        del finished[self.options.n_best :]
        self.finished_count[slot] += 1
        self.best_finished_sum[slot] = max(one.log_prob for one in finished)
        if len(finished) == self.options.n_best:
            self.worst_finished_score[slot] = finished[-1].score

    def _allowed_next(self, active_A: Ints) -> Flags | None:
        """Return which kinds may follow where there is a choice, A K C; None means all."""
        lengths_A = self.lengths[active_A]
        found_AKC = self.allowed.allowed(active_A, self.max_lengths[active_A] - lengths_A)
        short_A = lengths_A < self.options.min_length
        if short_A.any():
            if found_AKC is None:
                found_AKC = self.allowed.allow_all(active_A)
            found_AKC[short_A, :, self.allowed.kinds[EOS]] = False
        return found_AKC

    def _last_pieces(self, slots_R: Ints, beams_R: NDArray[Any] | int) -> StepPieces:
        """Return the last pieces of these hypotheses."""
        hypotheses_R = (slots_R * self.beams + beams_R).astype(np.int32)
        return StepPieces(self.last[slots_R, beams_R], self.lengths[slots_R], hypotheses_R)

    def _compute(
        self, predicted: StepPieces, others: StepPieces, allowed_XC: Flags | None, candidates: int
    ) -> tuple[Ints, Floats]:
        """Return what may best follow the predicted pieces and its log-probabilities, X C.

        Of the others only keys and values are computed.
        """
        if not (self.options.limits_repetition and len(predicted.ids)):
            return self._run_kernel(predicted, others, allowed_XC, candidates)
        held_XT = self.ids.reshape(-1, self.longest)[
            predicted.hypotheses, : predicted.positions.max()
        ]
        positions_T, lengths_X = np.arange(held_XT.shape[1]), predicted.positions
        held_XT[positions_T >= lengths_X[:, None]] = PAD
        size, penalty = self.options.no_repeat_ngram, self.options.repetition_penalty
        banned_XW = held_XT[:, :0]
        if size > 0:
            banned_XW = repeating_pieces(held_XT, lengths_X, positions_T, size)
        # What is banned, or becomes less probable, may be among the best: so many more are asked.
        concerned = banned_XW if penalty == 1.0 else held_XT
        more = int((concerned != PAD).sum(1).max(initial=0))
        found_XC, log_probs_XC = self._run_kernel(predicted, others, allowed_XC, candidates + more)
        if more:
            held_XC = (found_XC[:, :, None] == held_XT[:, None]).any(-1)
            log_probs_XC[held_XC] *= np.float32(penalty)
            banned_XC = (found_XC[:, :, None] == banned_XW[:, None]).any(-1)
            log_probs_XC[banned_XC] = -np.inf
            order_XC = np.argsort(-log_probs_XC, axis=1, kind="stable")[:, :candidates]
            found_XC = np.take_along_axis(found_XC, order_XC, 1)
            log_probs_XC = np.take_along_axis(log_probs_XC, order_XC, 1)
        return found_XC, log_probs_XC

    def _run_kernel(
        self, predicted: StepPieces, others: StepPieces, allowed_XC: Flags | None, candidates: int
    ) -> tuple[Ints, Floats]:
        """Return the likeliest pieces that are allowed, whatever the hypotheses hold."""
        found_XC = np.empty((len(predicted.ids), candidates), np.int32)
        log_probs_XC = np.empty((len(predicted.ids), candidates), np.float32)
        pieces = predicted.followed_by(others)
        step = self._step_input(pieces, len(predicted.ids), candidates)
        if allowed_XC is not None:
            step.token_kinds = self.allowed.kinds.ctypes.data
            step.allowed, step.kind_count = allowed_XC.ctypes.data, allowed_XC.shape[1]
        if self.projections is not None:
            self.projections.restrict(step)
        output = kernel_library.StepOutput(found_XC.ctypes.data, log_probs_XC.ctypes.data)
        self.library.dragoman_step(self.model, self.scratch, step, output)
        return found_XC, log_probs_XC

    def _step_input(
        self, pieces: StepPieces, predicted: int, candidates: int
    ) -> kernel_library.StepInput:
        """Return what the kernel reads to compute pieces, which must outlive it.

        It predicts what follows the first `predicted` of them.
        """
        ids_R, positions_R, hypotheses_R = pieces
        return kernel_library.StepInput(
            *(len(ids_R), predicted, candidates, self.beams, self.longest),
            *(ids_R.ctypes.data, positions_R.ctypes.data, hypotheses_R.ctypes.data),
            *(self.cache_tables.ctypes.data, self.source_lengths.ctypes.data),
            ctypes.cast(self.source_caches, ctypes.c_void_p),
            *(self.cache.memory_LNW.ctypes.data, self.cache.positions),
            ctypes.pointer(self.model.projection),
        )


class GreedySearch(BatchSearch):
    """Take the likeliest piece; a piece that is forced and a choice are computed in one step."""

    def step(self, active_A: Ints) -> list[int]:
        """Extend every hypothesis of these slots by one choice; return the slots that are done."""
        forced_A = active_A[self.allowed.is_forced(active_A)[:, 0]]
        before = self._last_pieces(forced_A, 0)
        if len(forced_A):
            self._extend(forced_A, self.allowed.forced_pieces(forced_A)[:, 0])
            self.reserve_next(forced_A)
        lengths_A = self.lengths[active_A]
        allowed_AKC = self._allowed_next(active_A)
        allowed_AC = None if allowed_AKC is None else np.ascontiguousarray(allowed_AKC[:, 0])
        last = self._last_pieces(active_A, 0)
        found_A1, log_probs_A1 = self._compute(last, before, allowed_AC, 1)
        pieces_A, totals_A = found_A1[:, 0], self.sums[active_A, 0] + log_probs_A1[:, 0]
        totals_A[totals_A < IMPOSSIBLE] = -np.inf
        self.sums[active_A, 0] = totals_A
        self._extend(active_A, pieces_A)

        ended_A = (pieces_A == EOS) | ~(totals_A > IMPOSSIBLE)
        done: list[int] = active_A[ended_A].tolist()
        for slot, length, total in zip(
            done, lengths_A[ended_A].tolist(), totals_A[ended_A].tolist(), strict=True
        ):
            if total != -np.inf:
                self._add_finished(slot, 0, length, total)
        return done

    def _extend(self, active_A: Ints, pieces_A: Ints) -> None:
        self.ids[active_A, 0, self.lengths[active_A]] = pieces_A
        self.running_sums[active_A, 0, self.lengths[active_A]] = self.sums[active_A, 0]
        self.last[active_A, 0] = pieces_A
        self.lengths[active_A] += 1
        self.allowed.extend(active_A, np.zeros((len(active_A), 1), np.int32), pieces_A[:, None])


class BeamSearch(BatchSearch):
    """Keep the best K hypotheses of each sentence."""

    def step(self, active_A: Ints) -> list[int]:
        """Extend every hypothesis of these slots by one piece; return the slots that are done."""
        K = self.beams
        rows_A1, lengths_A = np.arange(len(active_A))[:, None], self.lengths[active_A]
        best_AC, parents_AC, pieces_AC = self._find_candidates(active_A)
        ends_AC = pieces_AC == EOS
        final_AK = ends_AC[:, :K] & (best_AC[:, :K] > IMPOSSIBLE)
        for a, k in np.argwhere(final_AK).tolist():
            slot, length = int(active_A[a]), int(lengths_A[a])
            self._add_finished(slot, int(parents_AC[a, k]), length, float(best_AC[a, k]))

        going_AK = np.argsort(ends_AC, axis=1, kind="stable")[:, :K]
        parents_AK, pieces_AK = parents_AC[rows_A1, going_AK], pieces_AC[rows_A1, going_AK]
        # Where fewer than K others may follow, ends are among these: they have ended.
        sums_AK = np.where(pieces_AK == EOS, -np.inf, best_AC[rows_A1, going_AK])
        longest = int(lengths_A.max()) + 1
        for table in (self.ids, self.running_sums, self.cache_tables):
            table[active_A, :, :longest] = table[active_A[:, None], parents_AK, :longest]
        self._use_own_positions(active_A, lengths_A)
        self.ids[active_A, :, lengths_A] = pieces_AK
        self.running_sums[active_A, :, lengths_A] = sums_AK
        self.last[active_A], self.sums[active_A] = pieces_AK, sums_AK
        self.lengths[active_A] += 1
        self.allowed.extend(active_A, parents_AK, pieces_AK)

        best_sum_A = sums_AK.max(axis=1)
        done_A = (self.finished_count[active_A] >= K) & (
            self.best_finished_sum[active_A] >= best_sum_A
        )
        done_A |= ~(best_sum_A > IMPOSSIBLE)
        if self.options.stop_early:
            bound_A = best_sum_A.astype(np.float64) / self.penalties[self.max_lengths[active_A]]
            done_A |= self.worst_finished_score[active_A] >= bound_A
        finished: list[int] = active_A[done_A].tolist()
        return finished

    def _find_candidates(self, active_A: Ints) -> tuple[Floats, NDArray[Any], Ints]:
        """Return the best extensions of these slots' hypotheses: sums, parents, pieces, A C each.

        There are twice as many as beams, best first: if as many as beams are ends, as many go on.
        """
        A, K, C = len(active_A), self.beams, 2 * self.beams
        sums_AK = self.sums[active_A]
        alive_AK = sums_AK > IMPOSSIBLE
        forced_AK = self.allowed.is_forced(active_A) & alive_AK
        choice_AK = alive_AK & ~forced_AK
        allowed_AKC = self._allowed_next(active_A)
        (forced, forced_beams), (choice, beams) = forced_AK.nonzero(), choice_AK.nonzero()
        found_XC, log_probs_XC = self._compute(
            self._last_pieces(active_A[choice], beams),
            self._last_pieces(active_A[forced], forced_beams),
            None if allowed_AKC is None else allowed_AKC[choice_AK],
            C,
        )
        totals_AKC = np.full((A, K, C), -np.inf, np.float32)
        pieces_AKC = np.zeros((A, K, C), np.int32)
        totals_AKC[choice_AK], pieces_AKC[choice_AK] = log_probs_XC, found_XC
        if len(forced):
            totals_AKC[forced_AK, 0] = 0.0
            pieces_AKC[forced_AK, 0] = self.allowed.forced_pieces(active_A)[forced_AK]
        totals_AKC += np.where(alive_AK, sums_AK, -np.inf)[:, :, None]
        totals_AKC[totals_AKC < IMPOSSIBLE] = -np.inf

        totals_AX, pieces_AX = totals_AKC.reshape(A, K * C), pieces_AKC.reshape(A, K * C)
        order_AC = np.argsort(-totals_AX, axis=1, kind="stable")[:, :C]
        rows_A1 = np.arange(A)[:, None]
        return totals_AX[rows_A1, order_AC], order_AC // C, pieces_AX[rows_A1, order_AC]

    def _use_own_positions(self, active_A: Ints, lengths_A: Ints) -> None:
        """Let the next piece be kept at the beam's own cache position, not at its parent's.

        Where that piece begins a page, the page will say so.
        """
        K = self.beams
        next_A = lengths_A + 1
        inside_A = (next_A % PAGE_POSITIONS != 0) & (next_A < self.longest)
        slots_A, next_A = active_A[inside_A], next_A[inside_A]
        firsts_A = self.last_page[slots_A] + next_A % PAGE_POSITIONS * K
        self.cache_tables[slots_A, :, next_A] = firsts_A[:, None] + np.arange(K)


class AllowedPieces:
    """Allow any piece until a hypothesis has its full length, and then only the end."""

    kinds: Ints
    """This maps each output of the projection to its kind: here 0, and 1 for the end."""

    def __init__(self, beams: int, outputs: int) -> None:
        self._beams = beams
        self.kinds = np.zeros(outputs, np.int32)
        self.kinds[EOS] = 1

    def admit(self, slots: Sequence[int], sentences: Sequence[int]) -> None:
        """Begin new sentences, given by their numbers, in these slots."""

    def is_forced(self, active_A: Ints) -> Flags:
        """Return whether there is only one piece that may come next, A K."""
        return np.zeros((len(active_A), self._beams), np.bool_)

    def forced_pieces(self, active_A: Ints) -> Ints:
        """Return the piece that comes next where only one may, A K."""
        raise NotImplementedError

    def allowed(self, active_A: Ints, room_A: Ints) -> Flags | None:
        """Return which kinds may follow where there is a choice, A K C; None means all."""
        full_A = room_A <= 0
        if not full_A.any():
            return None
        found_AKC = self.allow_all(active_A)
        found_AKC[full_A, :, 0] = False
        return found_AKC

    def allow_all(self, active_A: Ints) -> Flags:
        """Return that every kind may follow, A K C."""
        return np.ones((len(active_A), self._beams, 2), np.bool_)

    def extend(self, active_A: Ints, parents_AK: NDArray[Any], pieces_AK: Ints) -> None:
        """Note that each hypothesis is now its parent, and one piece more."""
