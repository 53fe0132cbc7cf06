"""The grammar of actions for the kernel: how far each hypothesis has come with its tree.

The rules are those of `dragoman.trees.grammar`. What they depend on is not counted anew at every
step, but kept as hypotheses grow and change places.
"""

# A sentences being searched, K beams, W last actions, C kinds of piece: those of the actions, then
# the end, then what no rule allows

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.cpu.allowed_tokens import Flags, Ints, Language
from dragoman.text.special_tokens import EOS, FIRST
from dragoman.trees.grammar import NOTHING, RULES, Here, Yields, to_announce
from dragoman.trees.linearization import WORD

__all__ = ["Trees"]


class Trees(Language):
    """Actions that make a tree over the words of their sentence."""

    def __init__(self, yields: Yields, slots: int, beams: int, outputs: int) -> None:
        actions, most = yields.actions, max(yields.words)
        self._rules = RULES[actions.order.name](actions.bounds, most, np)
        self._yields, self._announces = yields, len(yields.announcements) > 0
        self._end = actions.bounds.kinds[-1] + 1
        self.kinds = np.full(outputs, self._end + 1, np.int32)
        self.kinds[FIRST : FIRST + len(actions)] = actions.kinds
        self.kinds[EOS] = self._end
        self._deeper: Ints = np.zeros(self._end + 2, np.int32)
        self._deeper[: self._end] = [self._rules.deeper(kind) for kind in range(self._end)]
        self._announced: Ints = np.zeros((slots, most + 1), np.int32)
        self._words: Ints = np.zeros(slots, np.int32)
        self._left: Ints = np.zeros((slots, beams), np.int32)
        self._depth: Ints = np.zeros((slots, beams), np.int32)
        self._recent: Ints = np.zeros((slots, beams, self._rules.window), np.int32)
        self._due: Flags = np.zeros((slots, beams), np.bool_)

    def admit(self, slots: Sequence[int], sentences: Sequence[int]) -> None:
        """See Language."""
        for slot, sentence in zip(slots, sentences, strict=True):
            announced = self._yields.announced[sentence]
            self._words[slot] = self._left[slot] = self._yields.words[sentence]
            self._announced[slot, : len(announced)] = announced
        self._depth[slots] = 0
        self._recent[slots] = NOTHING
        self._due[slots] = self._announces

    def settled(self, active_A: Ints) -> Flags:
        """See Language: whether a word is announced next."""
        due_AK: Flags = self._due[active_A]
        return due_AK

    def settled_pieces(self, active_A: Ints) -> Ints:
        """See Language: what announces the next word."""
        next_AK = self._words[active_A][:, None] - self._left[active_A]
        found_AK: Ints = self._announced[active_A[:, None], next_AK]
        return found_AK

    def allowed(self, active_A: Ints, room_A: Ints) -> Flags:
        """See Language."""
        left_AK = self._left[active_A]
        room_AK = room_A[:, None]
        if self._announces:
            room_AK = room_AK - to_announce(left_AK, self._due[active_A])
        here = Here(left_AK, self._depth[active_A], room_AK, self._recent[active_A])
        found_AKC = self._rules.allowed(here)
        return np.concatenate([found_AKC, np.zeros_like(found_AKC[..., :1])], -1)

    def grow(self, active_A: Ints, parents_AK: NDArray[Any], pieces_AK: Ints) -> None:
        """See Language."""
        before = (active_A[:, None], parents_AK)
        kinds_AK = self.kinds[pieces_AK]
        words_AK = kinds_AK == WORD
        left_AK = self._left[before] - words_AK
        recent_AKW = self._recent[before]
        later_AKW = np.concatenate([recent_AKW[..., 1:], kinds_AK[..., None]], -1)
        acts_AK1 = (kinds_AK < self._end)[..., None]
        self._left[active_A] = left_AK
        self._depth[active_A] = self._depth[before] + self._deeper[kinds_AK]
        self._recent[active_A] = np.where(acts_AK1, later_AKW, recent_AKW)
        if self._announces:
            self._due[active_A] = words_AK & (left_AK > 0)
