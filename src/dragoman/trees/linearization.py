"""Trees as sequences of actions, from which, with the words, the same trees are made again.

(S (NP (DT the) (NN dog)) (VP (VBZ barks))) becomes, in three orders to choose from,

    brackets   (S (NP _DT _NN ) (VP _VBZ ) )   a constituent is named before its children,
    in-order   _DT (NP _NN ) (S _VBZ (VP ) )   after the first of them,
    bottom-up  _DT _NN )NP/2 _VBZ )VP/1 )S/2   after all, with how many they are.

The first character says what an action is, so that tags and labels may be any text. Without tags
every word is `_`, and the tree made of it has the tag XX. Brackets are what §6.3 of the paper takes
from Vinyals et al. (2015); in-order is Liu and Zhang's (2017).

An order is also a grammar: which kinds of action may follow others, such that a tree over just the
words there are can always be finished. Here it is written to be read; `search.grammar` has it for
batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

from dragoman.errors import ConfigError, DataError
from dragoman.trees.tree import Leaf, Node, Tree

__all__ = [
    "CLOSE",
    "END",
    "LINEARISATIONS",
    "NO_TAG",
    "OPEN",
    "WORD",
    "Bounds",
    "Linearisation",
    "linearisation",
    "merges_table",
]

NO_TAG: Final = "XX"
"""The tag of a word where tags are not told."""

WORD: Final = 0
"""The kind of the actions that stand for a word, in every order."""
OPEN: Final = 1
"""The kind that names a constituent which is to be closed."""
CLOSE: Final = 2
"""The kind that closes it. From bottom up there are neither: the kind of an action that makes a
constituent is the number of its children."""
END: Final = -1
"""Among kinds, the end of the sequence."""


_BRACKETS: Final = {"_": WORD, "(": OPEN, ")": CLOSE}


class Bounds(NamedTuple):
    """What a grammar takes from the trees it was made for; it allows all of them."""

    chain: int
    """The most constituents in a row with one child each. For brackets, the most that begin at
    the same word: while they are open, nothing says how many children they will have."""
    kinds: tuple[int, ...]
    """All there are. From bottom up, 1 and 2 must be among them."""


class State(NamedTuple):
    """Where a sequence of actions has come to."""

    left: int
    """Words still to come."""
    depth: int = 0
    """Constituents that are open; from bottom up, parts that wait for a constituent."""
    chain: int = 0
    """How many of those that `Bounds` limits are in a row up to here."""
    last: int = END
    """The kind of the last action, `END` before the first."""


@dataclass(frozen=True, slots=True)
class Linearisation(ABC):
    """An order of actions."""

    tags: bool = True
    """Whether the sequences tell tags."""
    name: ClassVar[str]

    def encode(self, tree: Tree) -> list[str]:
        """The actions that make this tree of its words."""
        if isinstance(tree, Leaf):
            raise DataError(f"the tree is a word alone, {tree.word}; put it under a label")
        actions = []
        waiting: list[Tree | str] = [tree]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                actions.append(one)
            elif isinstance(one, Leaf):
                actions.append(f"_{one.tag}" if self.tags else "_")
            else:
                waiting += reversed(self._order(one))
        return actions

    def decode(self, actions: Sequence[str], words: Sequence[str]) -> Node:
        """The tree the actions make; `DataError` if it is none, or not over just these words."""
        made: list[Tree] = []  # parts of the constituents still open
        open_: list[tuple[str, int]] = []  # labels, and where in `made` their children begin
        state = State(len(words))
        for place, action in enumerate(actions, start=1):
            kind = self.kind(action)
            after = self._after(state, kind, chain=len(actions))
            if after is None:
                raise DataError(
                    f"no tree of {len(words)} words: action {place} of {len(actions)}, {action}, "
                    "has no place there"
                )
            if kind == WORD:
                made.append(Leaf(action[1:] or NO_TAG, words[-state.left]))
            else:
                self._make(action, made, open_)
            state = after
        root = made[0] if made else None
        if not isinstance(root, Node) or self._fewest(state, (WORD, 1, 2)) > 0:
            raise DataError(
                f"no tree of {len(words)} words: after {len(actions)} actions it is not whole, "
                f"and {state.left} words are left"
            )
        return root

    def kind(self, action: str) -> int:
        """All that the grammar sees of an action."""
        kind = _BRACKETS.get(action[:1])
        if kind is None or (kind == CLOSE and len(action) > 1):
            raise DataError(f"{action!r} is no action of the order {self.name}")
        return kind

    def longest_chain(self, kinds: Sequence[int]) -> int:
        """Of what `Bounds.chain` limits, the most in a row in a whole tree's actions."""
        longest, state = 1, State(kinds.count(WORD))
        for kind in kinds:
            after = self._after(state, kind, chain=len(kinds))
            assert after is not None, "not the actions of a tree"
            longest, state = max(longest, after.chain), after
        return longest

    def missing(self, actions: Sequence[str]) -> list[str]:
        """Actions to add to these, the most frequent first, lest a sentence have no tree."""
        return []

    def allowed(self, prefix: Iterable[int], words: int, room: int, bounds: Bounds) -> set[int]:
        """The kinds of action that may follow these; `END` among them where the tree is whole.

        Whichever is chosen, the tree can be finished with at most `room` actions in all. Nothing
        follows a prefix that is itself not allowed.
        """
        state = State(words)
        for kind in prefix:
            after = self._after(state, kind, bounds.chain)
            if after is None:
                return set()
            state = after
        found = {END} if self._fewest(state, bounds.kinds) == 0 else set()
        for kind in bounds.kinds:
            after = self._after(state, kind, bounds.chain)
            if after is not None and self._fewest(after, bounds.kinds) < room:
                found.add(kind)
        return found

    def least_room(self, words: int, bounds: Bounds) -> int:
        """The fewest actions that make a tree of so many words, at least one."""
        return self._fewest(State(words), bounds.kinds)

    @abstractmethod
    def _order(self, node: Node) -> list[Tree | str]:
        """A constituent's children and its own actions."""

    @abstractmethod
    def _make(self, action: str, made: list[Tree], open_: list[tuple[str, int]]) -> None:
        """What an action that is no word's, and that may come, does to the parts."""

    @abstractmethod
    def _after(self, state: State, kind: int, chain: int) -> State | None:
        """Where an action leads; None if it may not come, however much room there is."""

    @abstractmethod
    def _fewest(self, state: State, kinds: tuple[int, ...]) -> int:
        """The fewest actions from here to a whole tree."""


class Brackets(Linearisation):
    """From the top down."""

    __slots__ = ()
    name = "brackets"
    _before: ClassVar[int] = 0  # children that come before the name

    def _order(self, node: Node) -> list[Tree | str]:
        return [f"({node.label}", *node.children, ")"]

    def _make(self, action: str, made: list[Tree], open_: list[tuple[str, int]]) -> None:
        if action != ")":
            open_.append((action[1:], len(made) - self._before))
        else:
            label, start = open_.pop()
            made[start:] = [Node(label, tuple(made[start:]))]

    def _after(self, state: State, kind: int, chain: int) -> State | None:
        left, depth, begun, last = state
        inside = depth > 0
        if kind == WORD and left and inside:
            return State(left - 1, depth, 0, WORD)
        if kind == OPEN and left and (inside or last == END) and begun < chain:
            return State(left, depth + 1, begun + 1, OPEN)
        if kind == CLOSE and inside and last != OPEN and (depth > 1 or not left):
            return State(left, depth - 1, 0, CLOSE)
        return None

    def _fewest(self, state: State, kinds: tuple[int, ...]) -> int:
        return state.left + (2 if state.last == END else state.depth)


class InOrder(Brackets):
    """A constituent's first child, its name, its other children."""

    __slots__ = ()
    name = "in-order"
    _before = 1

    def _order(self, node: Node) -> list[Tree | str]:
        first, *others = node.children
        return [first, f"({node.label}", *others, ")"]

    def _after(self, state: State, kind: int, chain: int) -> State | None:
        left, depth, single, last = state
        if kind == WORD and left and (depth or last == END):
            return State(left - 1, depth, 0, WORD)
        # With no word left, what is opened gets no second child.
        if kind == OPEN and last in (WORD, CLOSE) and (left or single < chain):
            return State(left, depth + 1, single, OPEN)
        if kind == CLOSE and depth and (last != OPEN or single < chain):
            return State(left, depth - 1, single + 1 if last == OPEN else 0, CLOSE)
        return None

    def _fewest(self, state: State, kinds: tuple[int, ...]) -> int:
        if state.depth:
            return state.left + state.depth
        whole = state.last == CLOSE and not state.left
        return 0 if whole else state.left + 2


class BottomUp(Linearisation):
    """Words are shifted, and the last so many parts become a constituent."""

    __slots__ = ()
    name = "bottom-up"

    def kind(self, action: str) -> int:
        """0 for a word, otherwise the number of children."""
        if action[:1] == "_":
            return WORD
        arity = _arity(action)
        if arity == 0:
            raise DataError(f"{action!r} is no action of the order {self.name}")
        return arity

    def missing(self, actions: Sequence[str]) -> list[str]:
        """One and two children for the most frequent label, if these numbers do not occur."""
        there = set(map(self.kind, actions))
        label = next(action.rpartition("/")[0] for action in actions if self.kind(action) != WORD)
        return [f"{label}/{arity}" for arity in (1, 2) if arity not in there]

    def _order(self, node: Node) -> list[Tree | str]:
        return [*node.children, f"){node.label}/{len(node.children)}"]

    def _make(self, action: str, made: list[Tree], open_: list[tuple[str, int]]) -> None:
        arity = _arity(action)
        made[-arity:] = [Node(action[1 : action.rindex("/")], tuple(made[-arity:]))]

    def _after(self, state: State, kind: int, chain: int) -> State | None:
        left, depth, single, _ = state
        if kind == WORD:
            return State(left - 1, depth + 1, 0, WORD) if left else None
        if kind > depth or (kind == 1 and single == chain):
            return None
        return State(left, depth + 1 - kind, single + 1 if kind == 1 else 0, kind)

    def _fewest(self, state: State, kinds: tuple[int, ...]) -> int:
        parts = state.left + state.depth
        if parts <= 1:
            return 0 if state.last > WORD else state.left + 1
        return state.left + merges_table(kinds, parts)[parts - 1]


@lru_cache(maxsize=4096)
def _arity(action: str) -> int:
    """The 2 of `)NP/2`; 0 if there is none."""
    label, _, arity = action.rpartition("/")
    return int(arity) if label[:1] == ")" and arity.isdecimal() else 0


def merges_table(kinds: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """At i, the fewest constituents that make i + 1 parts one, for up to `parts` parts or more."""
    return _merges_table(kinds, 1 << parts.bit_length())  # so that few sizes are ever asked for


@lru_cache(maxsize=64)
def _merges_table(kinds: tuple[int, ...], size: int) -> tuple[int, ...]:
    steps = [arity - 1 for arity in kinds if arity > 1]  # parts fewer after each
    table = [0]
    for parts in range(1, size):
        table.append(1 + min(table[parts - step] for step in steps if step <= parts))
    return tuple(table)


LINEARISATIONS: Final[dict[str, type[Linearisation]]] = {
    order.name: order for order in (Brackets, InOrder, BottomUp)
}
"""All orders, by name."""


def linearisation(name: str, *, tags: bool = True) -> Linearisation:
    """The order of this name."""
    if name not in LINEARISATIONS:
        raise ConfigError(
            f"there is no linearisation {name!r}; choose one of {', '.join(LINEARISATIONS)}"
        )
    return LINEARISATIONS[name](tags)
