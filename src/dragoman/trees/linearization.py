"""A linearisation writes a tree as a sequence of actions, and makes the tree again with its words.

(S (NP (DT the) (NN dog)) (VP (VBZ barks))) becomes, in three orders to choose from,

    brackets   (S (NP _DT _NN ) (VP _VBZ ) )   a constituent is named before its children,
    in-order   _DT (NP _NN ) (S _VBZ (VP ) )   after the first of them,
    bottom-up  _DT _NN )NP/2 _VBZ )VP/1 )S/2   after all, with how many they are.

The first character says what an action is, so that tags and labels may be any text. Without tags
every word is `_`, and the tree made of it has the tag XX. Brackets are what §6.3 of the paper takes
from Vinyals et al. (2015); in-order is Liu and Zhang's (2017).

An order is also a grammar: it says which kinds of action may follow others, such that a tree over
just the words there are can always be finished. Here it is written to be read;
`dragoman.trees.grammar` has it for batches. `Actions` is the vocabulary of a treebank in one order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, ClassVar, Final, NamedTuple

from dragoman.errors import ConfigError, DataError
from dragoman.text.special_tokens import UNK
from dragoman.trees.tree import Leaf, Node, Tree

NO_TAG: Final = "XX"
"""The tag of a word where the actions have no tags."""

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
    """Hold what a grammar takes from the trees it was made for, so that it allows all of them."""

    chain: int
    """The most constituents in a row with one child each. For brackets, the most that begin at
    the same word: while they are open, nothing says how many children they will have."""
    kinds: tuple[int, ...]
    """All kinds of action there are. From bottom up, 1 and 2 must be among them."""


class State(NamedTuple):
    """Hold where a sequence of actions has come to."""

    words_left: int
    """How many words are still to come."""
    depth: int = 0
    """How many constituents are open; from bottom up, how many parts wait for a constituent."""
    chain: int = 0
    """How many of those that `Bounds` limits are in a row up to here."""
    last: int = END
    """The kind of the last action, `END` before the first."""


@dataclass(frozen=True, slots=True)
class Linearisation(ABC):
    """Put a tree's actions in one order, and know what may follow what in it."""

    tags: bool = True
    """Whether the actions of words hold their tags."""
    name: ClassVar[str]

    def encode(self, tree: Tree) -> list[str]:
        """Return the actions that make this tree of its words."""
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
        """Return the tree the actions make; raise DataError if it is none over just these words."""
        made: list[Tree] = []  # parts of the constituents still open
        open_: list[tuple[str, int]] = []  # labels, and where in `made` their children begin
        state = State(len(words))
        for place, action in enumerate(actions, start=1):
            kind = self.kind(action)
            after = self._after(state, kind, chain=len(actions))
            if after is None:
                raise DataError(
                    f"no tree of {len(words)} words: action {place} of {len(actions)}, {action}, "
                    "cannot stand there"
                )
            if kind == WORD:
                made.append(Leaf(action[1:] or NO_TAG, words[-state.words_left]))
            else:
                self._make(action, made, open_)
            state = after
        root = made[0] if made else None
        if not isinstance(root, Node) or self._fewest(state, (WORD, 1, 2)) > 0:
            raise DataError(
                f"no tree of {len(words)} words: after {len(actions)} actions it is not whole, "
                f"and {state.words_left} words are left"
            )
        return root

    def kind(self, action: str) -> int:
        """Return the kind of an action, which is all that the grammar sees of it."""
        kind = _BRACKETS.get(action[:1])
        if kind is None or (kind == CLOSE and len(action) > 1):
            raise DataError(f"{action!r} is not an action of the order {self.name}")
        return kind

    def longest_chain(self, kinds: Sequence[int]) -> int:
        """Return the most in a row of what `Bounds.chain` limits, in a whole tree's actions."""
        longest, state = 1, State(kinds.count(WORD))
        for kind in kinds:
            after = self._after(state, kind, chain=len(kinds))
            assert after is not None, "not the actions of a tree"
            longest, state = max(longest, after.chain), after
        return longest

    def missing_actions(self, actions: Sequence[str]) -> list[str]:
        """Return what must be added to these, most frequent first, lest a sentence have no tree."""
        return []

    def allowed(self, prefix: Iterable[int], words: int, room: int, bounds: Bounds) -> set[int]:
        """Return the kinds of action that may follow these; `END` is one where the tree is whole.

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

    def fewest_actions(self, words: int, bounds: Bounds) -> int:
        """Return the fewest actions that make a tree of so many words, at least one."""
        return self._fewest(State(words), bounds.kinds)

    @abstractmethod
    def _order(self, node: Node) -> list[Tree | str]:
        """Return a constituent's children and its own actions, in this order."""

    @abstractmethod
    def _make(self, action: str, made: list[Tree], open_: list[tuple[str, int]]) -> None:
        """Do to the parts what an action does that is no word's and that may stand here."""

    @abstractmethod
    def _after(self, state: State, kind: int, chain: int) -> State | None:
        """Return where an action leads; None if it may not come, however much room there is."""

    @abstractmethod
    def _fewest(self, state: State, kinds: tuple[int, ...]) -> int:
        """Return the fewest actions from here to a whole tree."""


class Brackets(Linearisation):
    """Name a constituent before its children: from the top down."""

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
        return state.words_left + (2 if state.last == END else state.depth)


class InOrder(Brackets):
    """Name a constituent after its first child."""

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
            return state.words_left + state.depth
        whole = state.last == CLOSE and not state.words_left
        return 0 if whole else state.words_left + 2


class BottomUp(Linearisation):
    """Name a constituent after its children, with how many they are."""

    __slots__ = ()
    name = "bottom-up"

    def kind(self, action: str) -> int:
        """Return 0 for a word, otherwise the number of children."""
        if action[:1] == "_":
            return WORD
        arity = _arity(action)
        if arity == 0:
            raise DataError(f"{action!r} is not an action of the order {self.name}")
        return arity

    def missing_actions(self, actions: Sequence[str]) -> list[str]:
        """Return the most frequent label with one and two children, if these do not occur."""
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
        parts = state.words_left + state.depth
        if parts <= 1:
            return 0 if state.last > WORD else state.words_left + 1
        return state.words_left + merges_table(kinds, parts)[parts - 1]


@lru_cache(maxsize=4096)
def _arity(action: str) -> int:
    """Return the 2 of `)NP/2`, or 0 if there is none."""
    label, _, arity = action.rpartition("/")
    return int(arity) if label[:1] == ")" and arity.isdecimal() else 0


def merges_table(kinds: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """Return a table of the fewest constituents that make i + 1 parts one, for i below `parts`."""
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
"""All orders of actions, by name."""


def get_linearisation(name: str, *, tags: bool = True) -> Linearisation:
    """Return the order of this name."""
    if name not in LINEARISATIONS:
        raise ConfigError(
            f"there is no linearisation {name!r}; choose one of {', '.join(LINEARISATIONS)}"
        )
    return LINEARISATIONS[name](tags)


@dataclass(frozen=True, slots=True)
class Actions:
    """Hold a training set's actions, most frequent first, and what a grammar must know of them.

    In a model's vocabulary they are the ids from some `first` on, in this order.
    """

    order: Linearisation
    names: tuple[str, ...]
    longest_chain: int
    """The most in a row, in a tree, of what `Bounds.chain` limits."""
    kinds: tuple[int, ...] = field(init=False)
    """The kind of each action, as its order numbers them."""
    bounds: Bounds = field(init=False)
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kinds = tuple(map(self.order.kind, self.names))
        object.__setattr__(self, "kinds", kinds)
        bounds = Bounds(self.longest_chain, tuple(sorted(set(kinds))))
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "_index", {name: i for i, name in enumerate(self.names)})

    @classmethod
    def build(cls, order: Linearisation, sequences: Iterable[Sequence[str]]) -> Actions:
        """Take the actions of a training set's sequences.

        What these lack and some sentence could not do without is added at the end.
        """
        counts: Counter[str] = Counter()
        longest = 1
        kind = cache(order.kind)
        for actions in sequences:
            counts.update(actions)
            longest = max(longest, order.longest_chain(list(map(kind, actions))))
        if not counts:
            raise DataError("there are no trees to take actions from; give at least one")
        names = sorted(counts, key=lambda name: (-counts[name], name))
        return cls(order, (*names, *order.missing_actions(names)), longest)

    def __len__(self) -> int:
        return len(self.names)

    def ids(self, sequence: Iterable[str], first: int) -> list[int]:
        """Return the model's ids of actions.

        An action that is not here, such as a label only a dev set has, becomes `UNK`: every model
        gives it a probability, none learns it, and no search produces it.
        """
        index = self._index
        return [first + index[name] if name in index else UNK for name in sequence]

    def sequence(self, ids: Iterable[int], first: int) -> list[str]:
        """Return the actions of a model's ids."""
        found = []
        for id_ in ids:
            if not first <= id_ < first + len(self.names):
                raise DataError(
                    f"id {id_} is not an action; actions have ids {first} to "
                    f"{first + len(self.names) - 1}"
                )
            found.append(self.names[id_ - first])
        return found

    def unknown(self, sequences: Iterable[Sequence[str]]) -> Counter[str]:
        """Count the actions that are not here."""
        return Counter(name for names in sequences for name in names if name not in self._index)

    def allowed(self, prefix: Iterable[int], words: int, room: int) -> set[int]:
        """Return the kinds that may follow actions given by their indices: see `Linearisation`."""
        kinds = [self.kinds[index] for index in prefix]
        return self.order.allowed(kinds, words, room, self.bounds)

    def fewest_actions(self, words: int) -> int:
        """Return the fewest actions that make a tree of so many words."""
        return self.order.fewest_actions(words, self.bounds)

    def to_data(self) -> dict[str, Any]:
        """Return everything, as JSON can hold it."""
        return {
            "linearisation": self.order.name,
            "tags": self.order.tags,
            "longest_chain": self.longest_chain,
            "names": list(self.names),
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Actions:
        """Make the actions from what `to_data` gave."""
        order = get_linearisation(data["linearisation"], tags=data["tags"])
        return cls(order, tuple(data["names"]), data["longest_chain"])
