"""Greedy search with a draft: a smaller model guesses, the model checks several pieces in a step.

One piece after another, a model reads all its weights for each. Several pieces whose predecessors
are guessed are computed together and cost little more than one. A guess counts where it is the
model's own choice, so that what is found is what greedy search finds, to the last bit; a bad draft
costs time alone (Stern et al., 2018; Leviathan et al., 2023).
"""

# A sentences being searched, X pieces that are chosen after

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.allowed_tokens import Flags, Ints, Language
from dragoman.inference.cpu.batch_state import NOTHING, Job, Pieces
from dragoman.inference.cpu.search import GreedySearch
from dragoman.inference.cpu.shortlist_projection import Narrow
from dragoman.search.options import SearchOptions
from dragoman.text.special_tokens import BOS, EOS

__all__ = ["DraftedSearch"]

GUESSES: Final = 5
"""Pieces that are guessed before the model looks."""

Row = tuple[int, int, int]
"""A piece to compute: its id, its place, its sentence's slot."""


class DraftedSearch(GreedySearch):
    """Greedy search of a model, with guesses of another that has the same pieces."""

    def __init__(
        self,
        model: kernel_library.Model,
        options: SearchOptions,
        language: Language,
        *,
        draft: kernel_library.Model,
        guesses: int = GUESSES,
        narrow: Narrow | None = None,
        **places: Any,
    ) -> None:
        """See Slots; `guesses` at a time, of the model `draft`."""
        super().__init__(model, options, language, narrow=narrow, **places)
        outputs = draft.projection.outputs
        self.guesser = _Guesser(draft, options, Language(options.beam, outputs), **places)
        self.guesses = guesses
        self.checks = self.pieces = 0

    def _admit(self, coming: list[Job]) -> list[int]:
        slots = super()._admit(coming)
        assert self.guesser._admit(coming) == slots, "both have the same places"
        return slots

    def _leave(self, slot: int) -> list[Any]:
        self.guesser._leave(slot)
        return super()._leave(slot)

    def _step(self, active_A: Ints) -> list[int]:
        active: list[int] = active_A.tolist()
        room = [min(self.guesses, int(self.ceilings[s] - self.lengths[s])) for s in active]
        guessed = self.guesser.guess([(s, self._text(s)) for s in active], room)
        rows: list[Row] = []
        for slot, guesses in zip(active, guessed, strict=True):
            length = int(self.lengths[slot])
            self._reserve(slot, length + len(guesses))
            pieces = [int(self.last[slot, 0]), *guesses]
            rows += [(piece, length + i, slot) for i, piece in enumerate(pieces)]
        found_X1, log_probs_X1 = self._compute(_pieces(rows), _pieces([]), self._allowed(rows), 1)

        done = []
        first = 0
        for slot, guesses in zip(active, guessed, strict=True):
            chosen = found_X1[first : first + len(guesses) + 1, 0].tolist()
            log_probs = log_probs_X1[first : first + len(guesses) + 1, 0]
            first += len(guesses) + 1
            right = next((i for i, g in enumerate(guesses) if g != chosen[i]), len(guesses))
            if self._follow(slot, chosen[: right + 1], log_probs):
                done.append(slot)
            else:
                self.guesser.forget(slot, int(self.lengths[slot]))
        return done

    def _text(self, slot: int) -> list[int]:
        return [BOS, *self.ids[slot, 0, : self.lengths[slot]].tolist()]

    def _allowed(self, rows: Sequence[Row]) -> Flags | None:
        """Where there is no more room only the end may follow: see Language."""
        full = [place >= self.ceilings[slot] for _, place, slot in rows]
        if not any(full):
            return None
        return np.array([[not one, True] for one in full])

    def _follow(self, slot: int, pieces: Sequence[int], log_probs: Any) -> bool:
        """Grow by the model's own choices, one after another; whether the sentence is done."""
        self.checks += 1
        for piece, log_prob in zip(pieces, log_probs, strict=False):
            self.pieces += 1
            total = self.sums[slot, 0] + log_prob
            total = total if total > NOTHING else np.float32(-np.inf)
            length = int(self.lengths[slot])
            if piece == EOS or total == -np.inf:
                self._finish(slot, float(total), self.ids[slot, 0, :length].tolist())
                return True
            self.ids[slot, 0, length] = self.last[slot, 0] = piece
            self.sums[slot, 0] = total
            self.lengths[slot] = length + 1
        return False


class _Guesser(GreedySearch):
    """The smaller model in the same places; `lengths` are the pieces it has computed."""

    def guess(self, texts: Sequence[tuple[int, list[int]]], most: Sequence[int]) -> list[list[int]]:
        """Of each slot and its pieces so far, what may come next: at most so many, no ends."""
        guesses: list[list[int]] = [[] for _ in texts]
        known: list[Row] = []
        last: list[Row] = []
        owners = [i for i, count in enumerate(most) if count > 0]
        for i in owners:
            slot, text = texts[i]
            self._reserve(slot, len(text) - 1)
            start = int(self.lengths[slot])
            known += [(text[p], p, slot) for p in range(start, len(text) - 1)]
            last.append((text[-1], len(text) - 1, slot))
        while owners:
            found_X1, _ = self._compute(_pieces(last), _pieces(known), None, 1)
            known, going = [], []
            for i, (_, place, slot), piece in zip(
                owners, last, found_X1[:, 0].tolist(), strict=True
            ):
                self.lengths[slot] = place + 1
                if piece != EOS:
                    guesses[i].append(piece)
                    if len(guesses[i]) < most[i]:
                        self._reserve(slot, place + 1)
                        going.append((i, (piece, place + 1, slot)))
            owners, last = [i for i, _ in going], [row for _, row in going]
        return guesses

    def forget(self, slot: int, length: int) -> None:
        """Of the pieces it has computed, only these many were right."""
        self.lengths[slot] = min(int(self.lengths[slot]), length)


def _pieces(rows: Sequence[Row]) -> Pieces:
    ids, places, slots = np.array(rows, np.int32).reshape(-1, 3).T
    return Pieces(*map(np.ascontiguousarray, (ids, places, slots)))
