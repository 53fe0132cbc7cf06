"""These trees remember which part of the meaning each leaf expresses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Key: TypeAlias = tuple[int, str]  # the id of a meaning node, and the part of it: "verb", "noun", …
PUNCTUATION = frozenset(",.?")


class Leaf:
    """Hold one token: its part of speech, its text and what it expresses."""

    __slots__ = ("keys", "tag", "text")

    def __init__(self, tag: str, text: str, *keys: Key) -> None:
        self.tag = tag
        self.text = text
        self.keys = keys

    def write(self, out: list[str], leaves: list[Leaf]) -> None:
        """Append the bracketing of this leaf, and the leaf."""
        out.append(f" ({self.tag} {self.text})")
        leaves.append(self)


class Node:
    """Hold a constituent: its label, and the words or constituents it is made of."""

    __slots__ = ("children", "label")

    def __init__(self, label: str, children: Iterable[Tree]) -> None:
        self.label = label
        self.children = list(children)

    def write(self, out: list[str], leaves: list[Leaf]) -> None:
        """Append the pieces of the bracketing of this constituent, and its leaves."""
        out.append(f" ({self.label}")
        for child in self.children:
            child.write(out, leaves)
        out.append(")")


Tree: TypeAlias = Leaf | Node


def leaves_and_bracketing(tree: Tree) -> tuple[list[Leaf], str]:
    """Return the leaves from left to right, and the tree on one line in the Penn Treebank's way."""
    pieces: list[str] = []
    leaves: list[Leaf] = []
    tree.write(pieces, leaves)
    return leaves, "".join(pieces)[1:]


def capitalise(tree: Tree) -> None:
    """Give the first leaf a capital letter."""
    while isinstance(tree, Node):
        tree = tree.children[0]
    tree.text = tree.text[0].upper() + tree.text[1:]


def text(tokens: Iterable[Leaf]) -> str:
    """Return the sentence as it is written: punctuation follows its word without a space."""
    joined = " ".join([leaf.text for leaf in tokens])
    return joined.replace(" ,", ",").replace(" .", ".").replace(" ?", "?")


def align(source: Iterable[Leaf], target: Iterable[Leaf]) -> tuple[tuple[int, int], ...]:
    """Return pairs of whitespace-separated words that express a common part of the meaning."""
    words_of: dict[Key, list[int]] = {}
    index = -1
    for leaf in source:
        index += leaf.text not in PUNCTUATION
        for key in leaf.keys:
            words_of.setdefault(key, []).append(index)
    links: set[tuple[int, int]] = set()
    index = -1
    for leaf in target:
        index += leaf.text not in PUNCTUATION
        for key in leaf.keys:
            for word in words_of.get(key, ()):
                links.add((word, index))
    return tuple(sorted(links))
