"""The grammar of actions holds for many hypotheses at once, for tensors and for arrays.

What may follow depends on a few numbers: the words left, the depth, the last few actions and how
many more there may be. `dragoman.trees.linearization` has the same grammar as plain Python, to be
read first.
"""

# W last actions, C kinds of action and, last, the end

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeAlias

from dragoman.text.tokenizer import Tokenizer
from dragoman.trees.linearization import CLOSE, OPEN, WORD, Actions, Bounds, merges_table
from dragoman.trees.tree_tokenizer import TreeTokenizer

Array: TypeAlias = Any
"""A tensor, or an array of numpy."""

NO_ACTION: Final = -1
"""The kind of an id that is no action, and of what precedes the first action."""


@dataclass(frozen=True, slots=True)
class SentencesToParse:
    """Say what the trees of a batch are to be made of: the actions there are, and the words."""

    actions: Actions
    words: Sequence[int]
    """How many words each sentence has."""
    announced: Sequence[Sequence[int]]
    """The id that announces each word of each sentence, if words are announced."""
    announcements: range
    """All ids that announce a word."""

    @classmethod
    def from_sources(cls, tokenizer: Tokenizer, sources: Sequence[str]) -> SentencesToParse | None:
        """Return what the trees of these sources are made of; None if the target is plain text."""
        if not isinstance(tokenizer, TreeTokenizer):
            return None
        words = [tokenizer.split_source(source) for source in sources]
        different = list(dict.fromkeys(chain.from_iterable(words)))
        announced = dict(zip(different, tokenizer.announcement_ids(different), strict=False))
        return cls(
            tokenizer.actions,
            list(map(len, words)),
            [[announced[word] for word in one] if announced else [] for one in words],
            tokenizer.announcements,
        )

    def shortest_target(self, sentence: int) -> int:
        """Return the fewest ids that make a tree of a sentence."""
        words = self.words[sentence]
        return self.actions.fewest_actions(words) + len(self.announced[sentence])


def announcements_left(words_left: Array, due: Array) -> Array:
    """Return how many announcements are still to come; `due` says whether one comes next."""
    return (words_left - 1 + due).clip(0)


@dataclass(frozen=True, slots=True)
class GrammarState:
    """Hold where hypotheses have come to (see `linearization.State`), all of one shape like B K."""

    words_left: Array
    depth: Array
    actions_left: Array
    """How many more actions there may be."""
    recent: Array
    """The kinds of the last actions, in one dimension more."""

    @property
    def last(self) -> Array:
        """Return the kind of the last action."""
        return self.recent[..., -1]


class ActionGrammar(ABC):
    """Decide which kinds of action may follow, in one order of actions."""

    window: int
    """How many of the last actions matter."""

    def __init__(self, bounds: Bounds, words: int, xp: Any, **where: Any) -> None:
        """Prepare for up to so many words; `xp` is torch or numpy, `where` its arrays' device."""
        self.window = bounds.chain
        self._xp, self._where = xp, where

    def _array(self, values: Sequence[int]) -> Array:
        return self._xp.asarray(values, **self._where)

    @abstractmethod
    def depth_change(self, kind: int) -> int:
        """Return what an action adds to the depth."""

    @abstractmethod
    def allowed(self, state: GrammarState) -> Array:
        """Return which kinds, and the end, may follow: booleans, in one dimension more."""


class _BracketsGrammar(ActionGrammar):
    """Name a constituent before its children: from the top down."""

    def depth_change(self, kind: int) -> int:
        return {WORD: 0, OPEN: 1, CLOSE: -1}[kind]

    def allowed(self, state: GrammarState) -> Array:
        inside, more, last = state.depth > 0, state.words_left > 0, state.last
        spare = state.actions_left - state.words_left - state.depth
        full = (state.recent == OPEN).all(-1)
        word = inside & more & (spare >= 0)
        open_ = (inside | (last == NO_ACTION)) & more & ~full & (spare >= 2)
        close = inside & (last != OPEN) & ((state.depth > 1) | ~more) & (spare >= 0)
        end = ~inside & ~more & (last == CLOSE)
        return self._xp.stack([word, open_, close, end], -1)


class _InOrderGrammar(_BracketsGrammar):
    """Name a constituent after its first child."""

    def __init__(self, bounds: Bounds, words: int, xp: Any, **where: Any) -> None:
        super().__init__(bounds, words, xp, **where)
        self.window = 2 * bounds.chain + 1
        self._chain_W = self._array([OPEN, CLOSE] * bounds.chain)

    def allowed(self, state: GrammarState) -> Array:
        inside, more, last = state.depth > 0, state.words_left > 0, state.last
        spare = state.actions_left - state.words_left - state.depth
        full = self._xp.where(
            last == OPEN,
            (state.recent[..., :-1] == self._chain_W).all(-1),
            (state.recent[..., 1:] == self._chain_W).all(-1),
        )
        word = more & (inside & (spare >= 0) | (last == NO_ACTION) & (spare >= 2))
        open_ = ((last == WORD) | (last == CLOSE)) & (more | ~full) & (spare >= 2)
        # What closes before the last word is not the root yet: that needs two actions more.
        root_later = (state.depth == 1) & more
        close = inside & ((last != OPEN) | ~full) & (spare >= 2 * root_later)
        end = ~inside & ~more & (last == CLOSE)
        return self._xp.stack([word, open_, close, end], -1)


class _BottomUpGrammar(ActionGrammar):
    """Name a constituent after its children, with how many they are."""

    def __init__(self, bounds: Bounds, words: int, xp: Any, **where: Any) -> None:
        super().__init__(bounds, words, xp, **where)
        self._merges = self._array(merges_table(bounds.kinds, words))
        self._arities_C = self._array(range(1, bounds.kinds[-1] + 1))

    def depth_change(self, kind: int) -> int:
        return 1 - kind

    def allowed(self, state: GrammarState) -> Array:
        parts = state.words_left + state.depth
        spare = state.actions_left - state.words_left
        fewest = self._xp.where(parts == 1, 1, self._fewest(parts))
        word = (state.words_left > 0) & (spare >= fewest)
        full = (state.recent == 1).all(-1)
        makes_C = (state.depth[..., None] >= self._arities_C) & (
            spare[..., None] > self._fewest(parts[..., None] + 1 - self._arities_C)
        )
        makes_C[..., 0] &= ~full
        end = (state.words_left == 0) & (state.depth == 1) & (state.last > WORD)
        return self._xp.concatenate([word[..., None], makes_C, end[..., None]], -1)

    def _fewest(self, parts: Array) -> Array:
        return self._merges[(parts - 1).clip(0, len(self._merges) - 1)]


ACTION_GRAMMARS: Final[dict[str, type[ActionGrammar]]] = {
    "brackets": _BracketsGrammar,
    "in-order": _InOrderGrammar,
    "bottom-up": _BottomUpGrammar,
}
"""The grammar of each order of actions, by the order's name."""
