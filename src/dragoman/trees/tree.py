"""A constituency tree has words under tags, and tags under labels.

A tree may be as deep as a sentence is long, so nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True)
class Leaf:
    """Hold a word and its part of speech."""

    tag: str
    word: str
    """The word as the text has it: brackets are not escaped."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Hold a constituent, which has at least one child."""

    label: str
    children: tuple[Tree, ...]


Tree: TypeAlias = Leaf | Node


class Span(NamedTuple):
    """Hold a constituent by where it stands: the words from `start` until before `end`."""

    label: str
    start: int
    end: int


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Yield the leaves from left to right."""
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Leaf):
            yield one
        else:
            waiting.extend(reversed(one.children))


def spans(tree: Tree) -> list[Span]:
    """Return the span of every constituent, not of tags; a parent comes before its children."""
    found: list[Span] = []
    open_: list[tuple[int, Node]] = []  # places in `found` that still lack their end
    place = 0
    waiting: list[Tree | None] = [tree]  # None closes the constituent opened last
    while waiting:
        one = waiting.pop()
        if one is None:
            index, node = open_.pop()
            found[index] = Span(node.label, found[index].start, place)
        elif isinstance(one, Leaf):
            place += 1
        else:
            open_.append((len(found), one))
            found.append(Span(one.label, place, place))
            waiting.append(None)
            waiting.extend(reversed(one.children))
    return found
