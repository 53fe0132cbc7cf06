"""Beam search for outputs that contain some phrases and not others, or go on in a certain way.

The rules are those of `dragoman.search.constraints`. The kernel returns the best pieces among those
of a mask; a hypothesis whose next pieces leave different numbers of pieces missing is computed once
for each such number, and the beam is divided among them.
"""

# A sentences being searched, K beams, C = 2 K candidates, X rows of the kernel, V outputs

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.cpu.search import (
    IMPOSSIBLE,
    AllowedPieces,
    BeamSearch,
    Flags,
    Floats,
    Ints,
    StepPieces,
)
from dragoman.search.constraints.phrases import PhraseTracker, States
from dragoman.search.constraints.requirements import OutputRequirements
from dragoman.text.special_tokens import EOS

Choice = tuple[int, Flags]
"""These pieces may come next, V, and leave so many missing."""


class RequiredPieces(AllowedPieces):
    """Allow what leaves the hypotheses of each sentence within reach of what is required of it."""

    def __init__(
        self,
        requirements: Sequence[OutputRequirements],
        targets: int,
        slots: int,
        beams: int,
        outputs: int,
    ) -> None:
        """Take what is required of each sentence, and how many ids can be produced."""
        super().__init__(beams, outputs)
        self.kinds = np.arange(outputs, dtype=np.int32)  # so that a mask can choose any pieces
        self._requirements, self._targets = requirements, targets
        self._sentences = [_FREE] * slots
        self._trackers: list[PhraseTracker | None] = [None] * slots
        self._states: list[list[States]] = [[()] * beams for _ in range(slots)]
        self._choices: list[dict[States, list[Choice]]] = [{} for _ in range(slots)]
        self.end: Flags = self.kinds == EOS
        self._all: Flags = self.kinds < targets

    def admit(self, slots: Sequence[int], sentences: Sequence[int]) -> None:
        """Begin new sentences, given by their numbers, in these slots, after their prefixes."""
        for slot, number in zip(slots, sentences, strict=True):
            required = self._sentences[slot] = self._requirements[number]
            self._trackers[slot], self._choices[slot] = None, {}
            if required.phrases is not None:
                tracker = self._trackers[slot] = PhraseTracker(required.phrases, self._targets)
                states = tracker.start
                for piece in required.prefix:
                    states = tracker.after(states, piece)
                self._states[slot] = [states] * self._beams

    def choices(self, slot: int, beam: int, length: int, room: int) -> list[Choice]:
        """Return what may follow a hypothesis, by how much is missing then; the end needs no room.

        Where nothing has to be contained, all of it is one choice.
        """
        required, tracker = self._sentences[slot], self._trackers[slot]
        first = required.after_prefix if length == len(required.prefix) else None
        found = [(0, self._all)]
        if tracker is not None:
            found = self._phrase_choices(slot, tracker, self._states[slot][beam])
        found = [
            (missing, mask if missing < room else mask & self.end)
            for missing, mask in found
            if missing < room or mask[EOS]
        ]
        if first is not None:
            allowed = np.zeros_like(self._all)
            allowed[: len(first)] = first
            found = [(missing, mask & allowed) for missing, mask in found]
        if len(found) > 1 and not (required.phrases is not None and required.phrases.must):
            found = [(0, np.logical_or.reduce([mask for _, mask in found]))]
        return found

    def _phrase_choices(self, slot: int, tracker: PhraseTracker, states: States) -> list[Choice]:
        known = self._choices[slot]
        if states not in known:
            left_V, may_V = tracker.next_pieces(states)
            found = []
            for missing in np.unique(left_V[may_V]).tolist():
                mask = np.zeros_like(self._all)
                mask[: self._targets] = may_V & (left_V == missing)
                found.append((missing, mask))
            known[states] = found
        return known[states]

    def extend(self, active_A: Ints, parents_AK: NDArray[Any], pieces_AK: Ints) -> None:
        """Note that each hypothesis is now its parent, and one piece more."""
        for slot, parents, pieces in zip(
            active_A.tolist(), parents_AK.tolist(), pieces_AK.tolist(), strict=True
        ):
            tracker, states = self._trackers[slot], self._states[slot]
            if tracker is not None:
                self._states[slot] = [
                    tracker.after(states[parent], piece)
                    for parent, piece in zip(parents, pieces, strict=True)
                ]


_FREE = OutputRequirements()


class ConstrainedSearch(BeamSearch):
    """Keep the best hypotheses among those that can still become what is required."""

    allowed: RequiredPieces

    def _find_candidates(self, active_A: Ints) -> tuple[Floats, NDArray[Any], Ints]:
        """Return the best extensions of each number of missing pieces in turn, the fewest first."""
        C = 2 * self.beams
        best_AC = np.full((len(active_A), C), -np.inf, np.float32)
        parents_AC, pieces_AC = np.zeros((2, len(active_A), C), np.int32)
        pieces_AC[:] = EOS
        rows, masks = self._rows_to_compute(active_A)
        if not rows:
            return best_AC, parents_AC, pieces_AC
        places_X, beams_X, missing_X = np.array(rows, np.int32).T
        found_XC, log_probs_XC = self._compute(
            self._last_pieces(active_A[places_X], beams_X), _NOTHING, np.stack(masks), C
        )
        totals_XC = log_probs_XC + self.sums[active_A[places_X], beams_X][:, None]
        for place in range(len(active_A)):
            own = np.flatnonzero(places_X == place)
            parents, missing = (np.repeat(one[own], C) for one in (beams_X, missing_X))
            totals, pieces = totals_XC[own].ravel(), found_XC[own].ravel()
            order = np.lexsort((pieces, parents, -totals))
            order = order[totals[order] > IMPOSSIBLE]
            order = _take_turns(order, missing)[:C]
            best_AC[place, : len(order)] = totals[order]
            parents_AC[place, : len(order)] = parents[order]
            pieces_AC[place, : len(order)] = pieces[order]
        return best_AC, parents_AC, pieces_AC

    def _rows_to_compute(
        self, active_A: Ints
    ) -> tuple[list[tuple[int, int, int]], list[NDArray[np.bool_]]]:
        """Return a place among the slots, a beam and what is missing for each row, and its mask."""
        rows, masks = [], []
        for place, slot in enumerate(active_A.tolist()):
            length = int(self.lengths[slot])
            room = int(self.max_lengths[slot]) - length
            for beam in np.flatnonzero(self.sums[slot] > IMPOSSIBLE).tolist():
                for missing, mask in self.allowed.choices(slot, beam, length, room):
                    if length < self.options.min_length and mask[EOS]:
                        mask = mask & ~self.allowed.end
                    rows.append((place, beam, missing))
                    masks.append(mask)
        return rows, masks


_NOTHING = StepPieces(*np.zeros((3, 0), np.int32))


def _take_turns(order: NDArray[Any], missing: Ints) -> NDArray[Any]:
    """Reorder candidates, best first, to the best of each number of missing pieces, the second…"""
    ranks = np.zeros(len(order), np.int64)
    for one in np.unique(missing[order]):
        same = missing[order] == one
        ranks[same] = np.arange(same.sum())
    return order[np.lexsort((missing[order], ranks))]
