"""The vocabulary of actions: what a parser's target side is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dragoman.errors import DataError
from dragoman.text.special_tokens import UNK
from dragoman.trees.linearization import Bounds, Linearisation, linearisation

__all__ = ["Actions"]


@dataclass(frozen=True, slots=True)
class Actions:
    """The actions of a training set, the most frequent first, and what a grammar must know of them.

    In a model's vocabulary they are the ids from some `first` on, in this order.
    """

    order: Linearisation
    names: tuple[str, ...]
    longest_chain: int
    """In a row, in a tree: see `Bounds.chain`."""
    kinds: tuple[int, ...] = field(init=False)
    """Of each action, as its order numbers them."""
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
        """From the sequences of a training set.

        What these lack that some sentence could not do without is added at the end.
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
        return cls(order, (*names, *order.missing(names)), longest)

    def __len__(self) -> int:
        return len(self.names)

    def ids(self, sequence: Iterable[str], first: int) -> list[int]:
        """The model's ids of actions.

        An action that is not here, such as a label only a dev set has, becomes `UNK`: every model
        gives it a probability, none learns it, and no search produces it.
        """
        index = self._index
        return [first + index[name] if name in index else UNK for name in sequence]

    def sequence(self, ids: Iterable[int], first: int) -> list[str]:
        """The actions of a model's ids."""
        found = []
        for id_ in ids:
            if not first <= id_ < first + len(self.names):
                raise DataError(
                    f"id {id_} is no action; these are {first} to {first + len(self.names) - 1}"
                )
            found.append(self.names[id_ - first])
        return found

    def unknown(self, sequences: Iterable[Sequence[str]]) -> Counter[str]:
        """The actions that are not here, and how often they occur."""
        return Counter(name for names in sequences for name in names if name not in self._index)

    def allowed(self, prefix: Iterable[int], words: int, room: int) -> set[int]:
        """The kinds that may follow actions given by their places here: see `Linearisation`."""
        kinds = [self.kinds[index] for index in prefix]
        return self.order.allowed(kinds, words, room, self.bounds)

    def least_room(self, words: int) -> int:
        """The fewest actions that make a tree of so many words."""
        return self.order.least_room(words, self.bounds)

    def to_data(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        return {
            "linearisation": self.order.name,
            "tags": self.order.tags,
            "longest_chain": self.longest_chain,
            "names": list(self.names),
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Actions:
        """What `to_data` gave."""
        order = linearisation(data["linearisation"], tags=data["tags"])
        return cls(order, tuple(data["names"]), data["longest_chain"])
