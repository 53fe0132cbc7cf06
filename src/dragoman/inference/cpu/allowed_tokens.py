"""What may follow a hypothesis: in plain text any piece, until there is no room."""

# A sentences being searched, K beams, C kinds of piece

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.text.special_tokens import EOS

__all__ = ["Flags", "Ints", "Language"]

Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]


class Language:
    """Plain text."""

    kinds: Ints
    """Of each output of the projection: here 0, and 1 for the end."""

    def __init__(self, beams: int, outputs: int) -> None:
        self._beams = beams
        self.kinds = np.zeros(outputs, np.int32)
        self.kinds[EOS] = 1

    def admit(self, slots: Sequence[int], sentences: Sequence[int]) -> None:
        """New sentences, by their numbers, are searched in these places."""

    def settled(self, active_A: Ints) -> Flags:
        """Whether there is no choice what comes next; A K."""
        return np.zeros((len(active_A), self._beams), np.bool_)

    def settled_pieces(self, active_A: Ints) -> Ints:
        """What comes where there is no choice; A K."""
        raise NotImplementedError

    def allowed(self, active_A: Ints, room_A: Ints) -> Flags | None:
        """Which kinds may follow where there is a choice, A K C; None: all."""
        full_A = room_A <= 0
        if not full_A.any():
            return None
        found_AKC = np.ones((len(active_A), self._beams, 2), np.bool_)
        found_AKC[full_A, :, 0] = False
        return found_AKC

    def grow(self, active_A: Ints, parents_AK: NDArray[Any], pieces_AK: Ints) -> None:
        """Each hypothesis is now its parent, and one piece more."""
