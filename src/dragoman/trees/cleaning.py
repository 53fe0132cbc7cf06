"""Trees are cleaned of what parsers do not learn: traces, function tags, the outermost bracket.

Unary chains are made one constituent and restored: ``(S (VP …))`` becomes ``(S+VP …)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeGuard

from dragoman.trees.tree import Leaf, Node, Tree

OUTER_LABELS: Final = frozenset({"", "ROOT", "TOP", "S1", "VROOT"})
"""The labels of the bracket that treebanks and parsers put around a whole sentence."""

_TRACE: Final = "-NONE-"
_BARE: Final = re.compile("[^-=]+")


def clean_tree(tree: Tree) -> Node | None:
    """Return the tree as parsers learn it, or None if it holds nothing but traces.

    Traces go, and the constituents that held nothing else. Labels and tags end before their first
    hyphen or equals sign, as EVALB has it, unless that is how they start: NP-SBJ-1 and NP=2 are NP;
    PRP$, -LRB- and ADVP|PRT stay. The outermost bracket goes where it holds one constituent; around
    several, or one word alone, there is one labelled TOP, which EVALB does not count. A constituent
    over one of its own label stays: EVALB counts both.
    """
    found = _rebuild(tree, _clean_leaf, _clean_node)
    while _is_outer(found) and isinstance(found.children[0], Node) and len(found.children) == 1:
        found = found.children[0]
    if _is_outer(found) or isinstance(found, Leaf):
        return add_root(found)
    return found


def add_root(tree: Tree, label: str = "TOP") -> Node:
    """Put the tree in an outermost bracket, as EVALB expects it; relabel one it has already.

    Without a label, "", it is the Penn Treebank's own.
    """
    return Node(label, tree.children if _is_outer(tree) else (tree,))


def _is_outer(tree: Tree | None) -> TypeGuard[Node]:
    return isinstance(tree, Node) and tree.label in OUTER_LABELS


def _clean_leaf(leaf: Leaf) -> Leaf | None:
    if leaf.tag == _TRACE:
        return None
    tag = _bare(leaf.tag)
    return leaf if tag == leaf.tag else Leaf(tag, leaf.word)


def _clean_node(label: str, children: tuple[Tree, ...]) -> Node | None:
    return Node(_bare(label), children) if children else None


@lru_cache(1 << 12)
def _bare(label: str) -> str:
    start = _BARE.match(label)
    return start[0] if start else label


def collapse_unary(tree: Tree) -> Tree:
    r"""Make each chain of constituents one: ``(S (VP (VB Go)))`` becomes ``(S+VP (VB Go))``.

    Words keep their tags. A label's own plus is spelled ``\p`` and its backslash ``\\``, in every
    label of the tree, so that `restore_unary` is exact.
    """

    def join(label: str, children: tuple[Tree, ...]) -> Node:
        label = label.replace("\\", r"\\").replace("+", r"\p")
        match children:
            case (Node(label=below, children=grandchildren),):
                return Node(f"{label}+{below}", grandchildren)
        return Node(label, children)

    return _not_none(_rebuild(tree, lambda leaf: leaf, join))


def restore_unary(tree: Tree) -> Tree:
    """Return the tree that `collapse_unary` made this one of."""

    def split(label: str, children: tuple[Tree, ...]) -> Node:
        first, *below = label.split("+")
        for one in reversed(below):
            children = (Node(_plain(one), children),)
        return Node(_plain(first), children)

    return _not_none(_rebuild(tree, lambda leaf: leaf, split))


def _plain(label: str) -> str:
    return re.sub(r"\\([\\p])", lambda match: "+" if match[1] == "p" else "\\", label)


def _rebuild(
    tree: Tree,
    of_leaf: Callable[[Leaf], Leaf | None],
    of_node: Callable[[str, tuple[Tree, ...]], Node | None],
) -> Tree | None:
    """Make the tree again from below, each constituent of its label and its new children.

    What becomes None is dropped; there may then be no children at all.
    """
    levels: list[list[Tree]] = [[]]  # the new children of what is open
    open_: list[str] = []
    waiting: list[Tree | None] = [tree]  # None closes the constituent opened last
    while waiting:
        one = waiting.pop()
        if isinstance(one, Node):
            open_.append(one.label)
            levels.append([])
            waiting.append(None)
            waiting.extend(reversed(one.children))
            continue
        made = of_node(open_.pop(), tuple(levels.pop())) if one is None else of_leaf(one)
        if made is not None:
            levels[-1].append(made)
    return levels[0][0] if levels[0] else None


def _not_none(tree: Tree | None) -> Tree:
    assert tree is not None  # nothing was taken out
    return tree
