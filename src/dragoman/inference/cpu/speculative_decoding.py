"""A draft model proposes pieces for greedy search, and the model checks several in one step.

One piece after another, a model reads all its weights for each. Several pieces whose predecessors
are guessed are computed together and cost little more than one. A proposal counts where it is the
model's own choice, so that what is found is what greedy search finds, to the last bit; a bad draft
costs time alone (Stern et al., 2018; Leviathan et al., 2023).
"""

# A sentences being searched, X pieces that are predicted after

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.search import (
    IMPOSSIBLE,
    AllowedPieces,
    Flags,
    GreedySearch,
    Ints,
    SearchJob,
    StepPieces,
)
from dragoman.inference.cpu.shortlist import ShortlistProjection
from dragoman.search.options import SearchOptions
from dragoman.text.special_tokens import BOS, EOS

DRAFT_PIECES: Final = 5
"""So many pieces are proposed before the model checks them."""

Row = tuple[int, int, int]
"""A piece to compute is its id, its position, and its sentence's slot."""


class SpeculativeSearch(GreedySearch):
    """Search greedily with a model, checking proposals of a draft model with the same pieces."""

    def __init__(
        self,
        model: kernel_library.KernelModel,
        options: SearchOptions,
        allowed: AllowedPieces,
        *,
        draft: kernel_library.KernelModel,
        draft_pieces: int = DRAFT_PIECES,
        projection: ShortlistProjection | None = None,
        **slots: Any,
    ) -> None:
        """Make slots as `BatchSearch` does, for both models."""
        super().__init__(model, options, allowed, projection=projection, **slots)
        outputs = draft.projection.outputs
        self.draft = _DraftSearch(draft, options, AllowedPieces(options.beam, outputs), **slots)
        self.draft_pieces = draft_pieces
        self.checks = self.pieces = 0

    def admit(self, coming: list[SearchJob]) -> list[int]:
        """Encode sentences into free slots of both models, and return these slots."""
        slots = super().admit(coming)
        assert self.draft.admit(coming) == slots, "both models use the same slots"
        return slots

    def release(self, slot: int) -> list[Any]:
        """Free a slot of both models, and return what was found of its sentence."""
        self.draft.release(slot)
        return super().release(slot)

    def step(self, active_A: Ints) -> list[int]:
        """Extend each hypothesis by the right proposals and one piece; return finished slots."""
        active: list[int] = active_A.tolist()
        room = [min(self.draft_pieces, int(self.max_lengths[s] - self.lengths[s])) for s in active]
        proposed = self.draft.propose([(s, self._pieces_so_far(s)) for s in active], room)
        rows: list[Row] = []
        for slot, proposals in zip(active, proposed, strict=True):
            length = int(self.lengths[slot])
            self._reserve(slot, length + len(proposals))
            pieces = [int(self.last[slot, 0]), *proposals]
            rows += [(piece, length + i, slot) for i, piece in enumerate(pieces)]
        found_X1, log_probs_X1 = self._compute(
            _step_pieces(rows), _step_pieces([]), self._allowed(rows), 1
        )

        done = []
        first = 0
        for slot, proposals in zip(active, proposed, strict=True):
            chosen = found_X1[first : first + len(proposals) + 1, 0].tolist()
            log_probs = log_probs_X1[first : first + len(proposals) + 1, 0]
            first += len(proposals) + 1
            right = next((i for i, p in enumerate(proposals) if p != chosen[i]), len(proposals))
            if self._accept(slot, chosen[: right + 1], log_probs):
                done.append(slot)
            else:
                self.draft.rewind(slot, int(self.lengths[slot]))
        return done

    def _pieces_so_far(self, slot: int) -> list[int]:
        return [BOS, *self.ids[slot, 0, : self.lengths[slot]].tolist()]

    def _allowed(self, rows: Sequence[Row]) -> Flags | None:
        """Return which kinds may follow: at the full length only the end, which is never early."""
        full = [position >= self.max_lengths[slot] for _, position, slot in rows]
        short = [position < self.options.min_length for _, position, _ in rows]
        if not any(full) and not any(short):
            return None
        return np.array([[not a, not b] for a, b in zip(full, short, strict=True)])

    def _accept(self, slot: int, pieces: Sequence[int], log_probs: Any) -> bool:
        """Extend a hypothesis by the model's own choices; return whether its sentence is done."""
        self.checks += 1
        for piece, log_prob in zip(pieces, log_probs, strict=False):
            self.pieces += 1
            total = self.sums[slot, 0] + log_prob
            total = total if total > IMPOSSIBLE else np.float32(-np.inf)
            length = int(self.lengths[slot])
            if total == -np.inf:
                return True
            if piece == EOS:
                self._add_finished(slot, 0, length, float(total))
                return True
            self.ids[slot, 0, length] = self.last[slot, 0] = piece
            self.sums[slot, 0] = self.running_sums[slot, 0, length] = total
            self.lengths[slot] = length + 1
        return False


class _DraftSearch(GreedySearch):
    """Propose pieces with the draft model; `lengths` counts the pieces it has computed."""

    def propose(
        self, texts: Sequence[tuple[int, list[int]]], most: Sequence[int]
    ) -> list[list[int]]:
        """Return, for each slot and its pieces so far, what may come next: no ends."""
        proposals: list[list[int]] = [[] for _ in texts]
        known: list[Row] = []
        last: list[Row] = []
        going = [i for i, count in enumerate(most) if count > 0]
        for i in going:
            slot, text = texts[i]
            self._reserve(slot, len(text) - 1)
            start = int(self.lengths[slot])
            known += [(text[p], p, slot) for p in range(start, len(text) - 1)]
            last.append((text[-1], len(text) - 1, slot))
        while going:
            found_X1, _ = self._compute(_step_pieces(last), _step_pieces(known), None, 1)
            known, later = [], []
            for i, (_, position, slot), piece in zip(
                going, last, found_X1[:, 0].tolist(), strict=True
            ):
                self.lengths[slot] = position + 1
                if piece != EOS:
                    proposals[i].append(piece)
                    if len(proposals[i]) < most[i]:
                        self._reserve(slot, position + 1)
                        later.append((i, (piece, position + 1, slot)))
            going, last = [i for i, _ in later], [row for _, row in later]
        return proposals

    def rewind(self, slot: int, length: int) -> None:
        """Forget the pieces that were computed after the first `length`."""
        self.lengths[slot] = min(int(self.lengths[slot]), length)


def _step_pieces(rows: Sequence[Row]) -> StepPieces:
    ids, positions, slots = np.array(rows, np.int32).reshape(-1, 3).T
    return StepPieces(*map(np.ascontiguousarray, (ids, positions, slots)))
