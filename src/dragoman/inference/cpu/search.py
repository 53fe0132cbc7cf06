"""Greedy and beam search with the kernel: no beam is copied.

The rules are those of `dragoman.search.greedy` and `dragoman.search.beam`, in numpy and for
sentences that are each at a place of their own.
"""

# A sentences being searched, K beams, C = 2 K candidates of each, X hypotheses with a choice

from __future__ import annotations

import numpy as np

from dragoman.inference.cpu.allowed_tokens import Ints
from dragoman.inference.cpu.batch_state import NOTHING, Slots
from dragoman.inference.cpu.kv_cache import PAGE
from dragoman.text.special_tokens import EOS

__all__ = ["BeamSearch", "GreedySearch"]


class GreedySearch(Slots):
    """Always the likeliest piece; where there is no choice, that piece and a choice in one step."""

    def _step(self, active_A: Ints) -> list[int]:
        settled_A = active_A[self.language.settled(active_A)[:, 0]]
        before = self._last(settled_A, 0)
        if len(settled_A):
            self._grow(settled_A, self.language.settled_pieces(settled_A)[:, 0])
            self._borrow(settled_A)
        lengths_A = self.lengths[active_A]
        allowed_AKC = self.language.allowed(active_A, self.ceilings[active_A] - lengths_A)
        allowed_AC = None if allowed_AKC is None else np.ascontiguousarray(allowed_AKC[:, 0])
        found_A1, log_probs_A1 = self._compute(self._last(active_A, 0), before, allowed_AC, 1)
        pieces_A, totals_A = found_A1[:, 0], self.sums[active_A, 0] + log_probs_A1[:, 0]
        totals_A[totals_A < NOTHING] = -np.inf
        self.sums[active_A, 0] = totals_A
        self._grow(active_A, pieces_A)

        ended_A = (pieces_A == EOS) | ~(totals_A > NOTHING)
        done: list[int] = active_A[ended_A].tolist()
        for slot, length, total in zip(
            done, lengths_A[ended_A].tolist(), totals_A[ended_A].tolist(), strict=True
        ):
            self._finish(slot, total, self.ids[slot, 0, :length].tolist())
        return done

    def _grow(self, active_A: Ints, pieces_A: Ints) -> None:
        self.ids[active_A, 0, self.lengths[active_A]] = pieces_A
        self.last[active_A, 0] = pieces_A
        self.lengths[active_A] += 1
        self.language.grow(active_A, np.zeros((len(active_A), 1), np.int32), pieces_A[:, None])


class BeamSearch(Slots):
    """The best K hypotheses of each sentence go on."""

    def _step(self, active_A: Ints) -> list[int]:
        A, K, C = len(active_A), self.beams, 2 * self.beams
        lengths_A, sums_AK = self.lengths[active_A], self.sums[active_A]
        alive_AK = sums_AK > NOTHING
        settled_AK = self.language.settled(active_A) & alive_AK
        choice_AK = alive_AK & ~settled_AK
        allowed_AKC = self.language.allowed(active_A, self.ceilings[active_A] - lengths_A)
        (settled, settled_beams), (choice, beams) = settled_AK.nonzero(), choice_AK.nonzero()
        found_XC, log_probs_XC = self._compute(
            self._last(active_A[choice], beams),
            self._last(active_A[settled], settled_beams),
            None if allowed_AKC is None else allowed_AKC[choice_AK],
            C,
        )
        totals_AKC = np.full((A, K, C), -np.inf, np.float32)
        pieces_AKC = np.zeros((A, K, C), np.int32)
        totals_AKC[choice_AK], pieces_AKC[choice_AK] = log_probs_XC, found_XC
        if len(settled):
            totals_AKC[settled_AK, 0] = 0.0
            pieces_AKC[settled_AK, 0] = self.language.settled_pieces(active_A)[settled_AK]
        totals_AKC += np.where(alive_AK, sums_AK, -np.inf)[:, :, None]
        totals_AKC[totals_AKC < NOTHING] = -np.inf

        totals_AX, pieces_AX = totals_AKC.reshape(A, K * C), pieces_AKC.reshape(A, K * C)
        order_AC = np.argsort(-totals_AX, axis=1, kind="stable")[:, :C]
        rows_A1 = np.arange(A)[:, None]
        best_AC, pieces_AC = totals_AX[rows_A1, order_AC], pieces_AX[rows_A1, order_AC]
        parents_AC = order_AC // C
        ends_AC = pieces_AC == EOS
        final_AK = ends_AC[:, :K] & (best_AC[:, :K] > NOTHING)
        for a, k in np.argwhere(final_AK).tolist():
            slot, length = int(active_A[a]), int(lengths_A[a])
            ids = self.ids[slot, parents_AC[a, k], :length].tolist()
            self._finish(slot, float(best_AC[a, k]), ids)

        going_AK = np.argsort(ends_AC, axis=1, kind="stable")[:, :K]
        parents_AK, pieces_AK = parents_AC[rows_A1, going_AK], pieces_AC[rows_A1, going_AK]
        # Where fewer than K others may follow, ends are among these: they have ended.
        sums_AK = np.where(pieces_AK == EOS, -np.inf, best_AC[rows_A1, going_AK])
        longest = int(lengths_A.max()) + 1
        for table in (self.ids, self.tables):
            table[active_A, :, :longest] = table[active_A[:, None], parents_AK, :longest]
        self._own_cells(active_A, lengths_A)
        self.ids[active_A, :, lengths_A] = pieces_AK
        self.last[active_A], self.sums[active_A] = pieces_AK, sums_AK
        self.lengths[active_A] += 1
        self.language.grow(active_A, parents_AK, pieces_AK)

        hope_A = sums_AK.max(axis=1)
        done_A = (self.ended[active_A] >= K) & (self.best_sums[active_A] >= hope_A)
        done_A |= ~(hope_A > NOTHING)
        if self.options.stop_early:
            bound_A = hope_A.astype(np.float64) / self.penalties[self.ceilings[active_A]]
            done_A |= self.least_scores[active_A] >= bound_A
        finished: list[int] = active_A[done_A].tolist()
        return finished

    def _own_cells(self, active_A: Ints, lengths_A: Ints) -> None:
        """The table's next place is the beam's own, not its parent's, unless it begins a page."""
        K = self.beams
        next_A = lengths_A + 1
        inside_A = (next_A % PAGE != 0) & (next_A < self.longest)
        slots_A, next_A = active_A[inside_A], next_A[inside_A]
        firsts_A = self.page[slots_A] + next_A % PAGE * K
        self.tables[slots_A, :, next_A] = firsts_A[:, None] + np.arange(K)
