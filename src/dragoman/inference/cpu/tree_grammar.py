"""The grammar of trees says which actions may follow each hypothesis of a parser.

The rules of trees are those of `dragoman.trees.grammar`. What they depend on is not counted anew at
every step, but kept as hypotheses grow and change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.cpu.search import AllowedPieces, Flags, Ints
from dragoman.text.special_tokens import EOS, FIRST_PIECE
from dragoman.trees.grammar import (
    ACTION_GRAMMARS,
    NO_ACTION,
    GrammarState,
    SentencesToParse,
    announcements_left,
)
from dragoman.trees.linearization import WORD

# A sentences being searched, K beams, W last actions, C kinds of piece: of trees those of the
# actions, then the end, then what no rule allows


class TreeGrammar(AllowedPieces):
    """Allow only actions that make a tree over the words of their sentence."""

    def __init__(self, to_parse: SentencesToParse, slots: int, beams: int, outputs: int) -> None:
        actions, most_words = to_parse.actions, max(to_parse.words)
        self._rules = ACTION_GRAMMARS[actions.order.name](actions.bounds, most_words, np)
        self._to_parse, self._announces = to_parse, len(to_parse.announcements) > 0
        self._end = actions.bounds.kinds[-1] + 1
        self.kinds = np.full(outputs, self._end + 1, np.int32)
        self.kinds[FIRST_PIECE : FIRST_PIECE + len(actions)] = actions.kinds
        self.kinds[EOS] = self._end
        self._deeper: Ints = np.zeros(self._end + 2, np.int32)
        self._deeper[: self._end] = [self._rules.depth_change(kind) for kind in range(self._end)]
        self._announced: Ints = np.zeros((slots, most_words + 1), np.int32)
        self._words: Ints = np.zeros(slots, np.int32)
        self._left: Ints = np.zeros((slots, beams), np.int32)
        self._depth: Ints = np.zeros((slots, beams), np.int32)
        self._recent: Ints = np.zeros((slots, beams, self._rules.window), np.int32)
        self._due: Flags = np.zeros((slots, beams), np.bool_)

    def admit(self, slots: Sequence[int], sentences: Sequence[int]) -> None:
        """Begin new sentences, given by their numbers, in these slots."""
        for slot, sentence in zip(slots, sentences, strict=True):
            announced = self._to_parse.announced[sentence]
            self._words[slot] = self._left[slot] = self._to_parse.words[sentence]
            self._announced[slot, : len(announced)] = announced
        self._depth[slots] = 0
        self._recent[slots] = NO_ACTION
        self._due[slots] = self._announces

    def is_forced(self, active_A: Ints) -> Flags:
        """Return whether a word has to be announced next, A K."""
        due_AK: Flags = self._due[active_A]
        return due_AK

    def forced_pieces(self, active_A: Ints) -> Ints:
        """Return the piece that announces the next word, A K."""
        next_AK = self._words[active_A][:, None] - self._left[active_A]
        found_AK: Ints = self._announced[active_A[:, None], next_AK]
        return found_AK

    def allowed(self, active_A: Ints, room_A: Ints) -> Flags:
        """Return which kinds may follow where there is a choice, A K C."""
        left_AK = self._left[active_A]
        room_AK = room_A[:, None]
        if self._announces:
            room_AK = room_AK - announcements_left(left_AK, self._due[active_A])
        state = GrammarState(left_AK, self._depth[active_A], room_AK, self._recent[active_A])
        found_AKC = self._rules.allowed(state)
        return np.concatenate([found_AKC, np.zeros_like(found_AKC[..., :1])], -1)

    def extend(self, active_A: Ints, parents_AK: NDArray[Any], pieces_AK: Ints) -> None:
        """Note that each hypothesis is now its parent, and one piece more."""
        before = (active_A[:, None], parents_AK)
        kinds_AK = self.kinds[pieces_AK]
        words_AK = kinds_AK == WORD
        left_AK = self._left[before] - words_AK
        recent_AKW = self._recent[before]
        later_AKW = np.concatenate([recent_AKW[..., 1:], kinds_AK[..., None]], -1)
        is_action_AK1 = (kinds_AK < self._end)[..., None]
        self._left[active_A] = left_AK
        self._depth[active_A] = self._depth[before] + self._deeper[kinds_AK]
        self._recent[active_A] = np.where(is_action_AK1, later_AKW, recent_AKW)
        if self._announces:
            self._due[active_A] = words_AK & (left_AK > 0)
