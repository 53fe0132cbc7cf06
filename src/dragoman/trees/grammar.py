"""The grammar of actions for many hypotheses at once, written once for tensors and for arrays.

What may follow depends on a few numbers: the words left, the depth, the last few actions and the
room. `dragoman.trees.linearization` has the same grammar as plain Python, to be read first.
"""

# W last actions, C kinds of action and, last, the end

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeAlias

from dragoman.text.special_tokens import FIRST
from dragoman.text.tokenizer import Tokenizer
from dragoman.trees.actions import Actions
from dragoman.trees.linearization import CLOSE, OPEN, WORD, Bounds, merges_table

__all__ = ["NOTHING", "RULES", "Here", "Rules", "Yields", "to_announce"]

Array: TypeAlias = Any
"""A tensor, or an array of numpy."""

NOTHING: Final = -1
"""The kind of an id that is no action, and of what precedes the first action."""


@dataclass(frozen=True, slots=True)
class Yields:
    """The words that trees are to be made over, sentence by sentence."""

    actions: Actions
    words: Sequence[int]
    """How many each has."""
    announced: Sequence[Sequence[int]]
    """The id that announces each word, if words are announced."""
    announcements: range
    """All such ids."""

    @classmethod
    def of(cls, tokenizer: Tokenizer, sources: Sequence[str]) -> Yields | None:
        """Of these sources; None if the target is plain text."""
        actions = tokenizer.actions
        if actions is None:
            return None
        words = [tokenizer.words_of(source) for source in sources]
        different = list(dict.fromkeys(chain.from_iterable(words)))
        announced = dict(zip(different, tokenizer.announce(different), strict=False))
        return cls(
            actions,
            list(map(len, words)),
            [[announced[word] for word in one] if announced else [] for one in words],
            range(FIRST + len(actions), tokenizer.sizes[1]),
        )

    def shortest(self, sentence: int) -> int:
        """The fewest pieces that make a tree of a sentence."""
        words = self.words[sentence]
        return self.actions.least_room(words) + len(self.announced[sentence])


def to_announce(left: Array, due: Array) -> Array:
    """How many announcements are still to come, each of which takes room."""
    return (left - 1 + due).clip(0)


@dataclass(frozen=True, slots=True)
class Here:
    """Where hypotheses have come to: see `linear.State`; all of one shape, such as B K."""

    left: Array
    depth: Array
    room: Array
    recent: Array
    """The kinds of the last actions, in one dimension more."""

    @property
    def last(self) -> Array:
        """The kind of the last action."""
        return self.recent[..., -1]


class Rules(ABC):
    """What may follow, in one order of actions."""

    window: int
    """How many of the last actions matter."""

    def __init__(self, bounds: Bounds, words: int, xp: Any, **where: Any) -> None:
        """`xp` is torch or numpy; `where` is for what it makes, such as a device."""
        self.window = bounds.chain
        self._xp, self._where = xp, where

    def _array(self, values: Sequence[int]) -> Array:
        return self._xp.asarray(values, **self._where)

    @abstractmethod
    def deeper(self, kind: int) -> int:
        """What an action adds to the depth."""

    @abstractmethod
    def allowed(self, here: Here) -> Array:
        """Which kinds, and the end, may follow: booleans, in one dimension more."""


class Brackets(Rules):
    """From the top down."""

    def deeper(self, kind: int) -> int:
        return {WORD: 0, OPEN: 1, CLOSE: -1}[kind]

    def allowed(self, here: Here) -> Array:
        inside, more, last = here.depth > 0, here.left > 0, here.last
        spare = here.room - here.left - here.depth
        full = (here.recent == OPEN).all(-1)
        word = inside & more & (spare >= 0)
        open_ = (inside | (last == NOTHING)) & more & ~full & (spare >= 2)
        close = inside & (last != OPEN) & ((here.depth > 1) | ~more) & (spare >= 0)
        end = ~inside & ~more & (last == CLOSE)
        return self._xp.stack([word, open_, close, end], -1)


class InOrder(Brackets):
    """A constituent's first child, its name, its other children."""

    def __init__(self, bounds: Bounds, words: int, xp: Any, **where: Any) -> None:
        super().__init__(bounds, words, xp, **where)
        self.window = 2 * bounds.chain + 1
        self._chain_W = self._array([OPEN, CLOSE] * bounds.chain)

    def allowed(self, here: Here) -> Array:
        inside, more, last = here.depth > 0, here.left > 0, here.last
        spare = here.room - here.left - here.depth
        full = self._xp.where(
            last == OPEN,
            (here.recent[..., :-1] == self._chain_W).all(-1),
            (here.recent[..., 1:] == self._chain_W).all(-1),
        )
        word = more & (inside & (spare >= 0) | (last == NOTHING) & (spare >= 2))
        open_ = ((last == WORD) | (last == CLOSE)) & (more | ~full) & (spare >= 2)
        # What closes before the last word is not the root yet: that needs two actions more.
        root_later = (here.depth == 1) & more
        close = inside & ((last != OPEN) | ~full) & (spare >= 2 * root_later)
        end = ~inside & ~more & (last == CLOSE)
        return self._xp.stack([word, open_, close, end], -1)


class BottomUp(Rules):
    """Words are shifted, and the last so many parts become a constituent."""

    def __init__(self, bounds: Bounds, words: int, xp: Any, **where: Any) -> None:
        super().__init__(bounds, words, xp, **where)
        self._merges = self._array(merges_table(bounds.kinds, words))
        self._arities_C = self._array(range(1, bounds.kinds[-1] + 1))

    def deeper(self, kind: int) -> int:
        return 1 - kind

    def allowed(self, here: Here) -> Array:
        parts, spare = here.left + here.depth, here.room - here.left
        fewest = self._xp.where(parts == 1, 1, self._fewest(parts))
        word = (here.left > 0) & (spare >= fewest)
        full = (here.recent == 1).all(-1)
        makes_C = (here.depth[..., None] >= self._arities_C) & (
            spare[..., None] > self._fewest(parts[..., None] + 1 - self._arities_C)
        )
        makes_C[..., 0] &= ~full
        end = (here.left == 0) & (here.depth == 1) & (here.last > WORD)
        return self._xp.concatenate([word[..., None], makes_C, end[..., None]], -1)

    def _fewest(self, parts: Array) -> Array:
        return self._merges[(parts - 1).clip(0, len(self._merges) - 1)]


RULES: Final[dict[str, type[Rules]]] = {
    "brackets": Brackets,
    "in-order": InOrder,
    "bottom-up": BottomUp,
}
"""By the name of the order."""
