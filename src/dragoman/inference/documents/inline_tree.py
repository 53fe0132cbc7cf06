"""A paragraph's texts, what groups them, and things between them are read as one unit.

A format reads a paragraph as a tree of texts with their formatting, groups (links, content
controls, tags) and objects (images, notes, line breaks, code). The tree becomes a unit with marks;
a translation of the unit becomes such a tree again, which the format writes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from dragoman.inference.documents.document import PLACEHOLDER, Mark, Unit
from dragoman.inference.documents.file_text import has_letters
from dragoman.inference.documents.mark_projection import MarkTree, nest_marks

LINE_BREAK: Final = "\n"
TAB: Final = "\t"
WORD: Final = "word"
"""This stands for a word in a sentence: code, a page number, a formula."""
MAX_DEPTH: Final = 40
"""What is nested deeper in a paragraph is left as it is."""


@dataclass(slots=True)
class Text:
    """Hold text, and how it is formatted."""

    text: str
    format: Hashable = None


@dataclass(slots=True)
class Object:
    """Hold something that is not translated."""

    content: Any
    """The format knows what this is."""
    stands_for: str = ""
    """LINE_BREAK, TAB or WORD; otherwise the text goes on as if it were not there."""


@dataclass(slots=True)
class Group:
    """Hold what something is around."""

    content: Any
    children: list[Node] = field(default_factory=list)
    format: Hashable = None
    """Text in it that has no mark is formatted so; this is found by `InlineTree`."""
    before: list[Node] = field(default_factory=list)
    """These objects come first in it, and belong to it rather than to words."""
    after: list[Node] = field(default_factory=list)
    """These come last in it."""


@dataclass(slots=True)
class _Format:
    """Be the content of a group that is there only for the formatting of its texts."""


Node = Text | Object | Group


@dataclass(slots=True)
class Around:
    """Be the content of a group that is no element but begins and ends with objects: a bookmark."""

    before: list[Node]
    after: list[Node]


_MAX_RANGES: Final = 30


def group_ranges(
    nodes: list[Node], find_end: Callable[[Object], tuple[str, bool] | None]
) -> list[Node]:
    """Make groups of what is between two objects that belong together, such as a bookmark's ends.

    `find_end` returns what an object begins or ends, and whether it begins it. What would cross
    another stays two objects, and so do all beyond the first few.
    """
    opened: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for i, node in enumerate(nodes):
        end = find_end(node) if isinstance(node, Object) and not node.stands_for else None
        if end is not None and end[1]:
            opened[end[0]] = i
        elif end is not None and end[0] in opened:
            spans.append((opened.pop(end[0]), i))
    taken: dict[int, int] = {}
    for start, stop in sorted(spans[:_MAX_RANGES], key=lambda span: span[1] - span[0]):
        if not any(a < start < b < stop or start < a < stop < b for a, b in taken.items()):
            taken[start] = stop
    return _nest_ranges(nodes, 0, len(nodes), taken)


def _nest_ranges(nodes: list[Node], start: int, end: int, spans: dict[int, int]) -> list[Node]:
    found: list[Node] = []
    at = start
    while at < end:
        last = spans.get(at)
        if last is None:
            found.append(nodes[at])
        else:
            children = _nest_ranges(nodes, at + 1, last, spans)
            found.append(Group(Around([nodes[at]], [nodes[last]]), children))
            at = last
        at += 1
    return found


def set_code_apart(nodes: Sequence[Node], is_code: Callable[[Hashable], bool]) -> list[Node]:
    """Make an object, whose content is a text, of each text whose format is one for code."""
    found: list[Node] = []
    for format_, some in groupby(nodes, lambda node: isinstance(node, Text) and node.format):
        stretch = list(some)
        text = "".join(node.text for node in stretch if isinstance(node, Text))
        core = text.strip()
        if core and is_code(format_):
            start, end = text.split(core, 1)
            code = Object(Text(core, format_), WORD)
            stretch = [Text(start, format_), code, Text(end, format_)]
        found += stretch
    return [node for node in found if not isinstance(node, Text) or node.text]


class InlineTree:
    """Hold a paragraph's tree as a unit."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._root = Group(None, list(nodes))
        _mark_formats(self._root)
        _set_edges_apart(self._root)
        self._nodes: list[Group | Object] = []
        self._placeholders: dict[int, str] = {}
        taken = {int(match[1]) for match in PLACEHOLDER.finditer(_read_text(self._root))}
        self._numbers = iter(range(max(taken, default=0) + 1, 1_000_000))
        self._text = ""
        self._marks: list[Mark | None] = []
        self._add(self._root.children)
        self.unit = Unit(self._text, tuple(mark for mark in self._marks if mark is not None))
        """This is what to translate."""

    def _add(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Text):
                self._text += node.text
                continue
            key, start = len(self._nodes), len(self._text)
            self._nodes.append(node)
            self._marks.append(None)  # an outer mark comes before those in it
            if isinstance(node, Group):
                self._add(node.children)
            elif node.stands_for == WORD:
                self._placeholders[key] = f"{{{next(self._numbers)}}}"
                self._text += self._placeholders[key]
            else:
                self._text += node.stands_for
            self._marks[key] = Mark(start, len(self._text), key)

    @property
    def is_translatable(self) -> bool:
        """Return whether there are letters in it."""
        return has_letters(self.unit.text)

    def to_nodes(self, translation: Unit, *, partial: bool = False) -> list[Node]:
        """Return the tree of a translation, each text with its formatting.

        Groups that are only there for formatting are gone; all others and all objects are there,
        with `partial` those alone that have marks.
        """
        marks = {
            mark.key: mark for mark in translation.marks if mark.key in range(len(self._nodes))
        }
        end = len(translation.text)
        keys = () if partial else range(len(self._nodes))
        missing = [Mark(end, end, key) for key in keys if key not in marks]
        whole = Unit(translation.text, (*marks.values(), *missing))
        nodes = self._to_nodes(whole.text, nest_marks(whole), self._root)
        return _unwrap([*self._root.before, *nodes, *self._root.after])

    def _to_nodes(self, text: str, tree: MarkTree, around: Group) -> list[Node]:
        found: list[Node] = []
        done = tree.mark.start
        for child in tree.children:
            found.append(Text(text[done : child.mark.start], around.format))
            done = child.mark.end
            node = self._nodes[child.mark.key]
            inner = self._to_nodes(text, child, node if isinstance(node, Group) else around)
            if isinstance(node, Object):
                found.append(node)
                # What is there beside the placeholder is never lost.
                covered = self._placeholders.get(child.mark.key, node.stands_for)
                found += [
                    one
                    for one in inner
                    if not isinstance(one, Text) or (one.text != covered and one.text.strip())
                ]
            else:
                children = [*node.before, *inner, *node.after]
                found.append(Group(node.content, children, node.format))
        found.append(Text(text[done : tree.mark.end], around.format))
        return [one for one in found if not isinstance(one, Text) or one.text]


def _unwrap(nodes: Sequence[Node]) -> list[Node]:
    """Return nodes with groups that had no text as groups, and those that are no elements open."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Object) and isinstance(node.content, Group):
            node = node.content
        if not isinstance(node, Group):
            found.append(node)
            continue
        children = _unwrap([*node.before, *node.children, *node.after])
        if isinstance(node.content, Around):
            found += _unwrap([*node.content.before, *children, *node.content.after])
        elif isinstance(node.content, _Format):
            found += children
        else:
            found.append(Group(node.content, children, node.format))
    return found


def _read_text(node: Node) -> str:
    if isinstance(node, Text):
        return node.text
    return "".join(map(_read_text, node.children)) if isinstance(node, Group) else ""


def _mark_formats(group: Group) -> None:
    """Give a group the usual formatting of its text, and other text groups of its own."""
    sizes: Counter[Hashable] = Counter()
    for node in group.children:
        if isinstance(node, Text):
            sizes[node.format] += len(node.text.strip())
    if sizes:
        # Of those that much of the text has, the plainest, so that bold is what gets marks.
        least = max(sizes.values()) / 3
        usual = [one for one, size in sizes.most_common() if size >= least]
        group.format = min(usual, key=lambda one: len(repr(one)))
    children: list[Node] = []
    waiting: list[Node] = []  # objects and spaces that may be in a group or after it
    current: Group | None = None
    for node in group.children:
        if isinstance(node, Group):
            _mark_formats(node)
        if isinstance(node, Object) or (isinstance(node, Text) and not node.text.strip()):
            waiting.append(node)
            continue
        if isinstance(node, Text) and node.format != group.format:
            if current is not None and current.format == node.format:
                current.children += [*waiting, node]
            else:
                current = Group(_Format(), [node], node.format)
                children += [*waiting, current]
        else:
            current = None
            children += [*waiting, node]
        waiting = []
    group.children = [*children, *waiting]
    if not sizes:
        inner = (node.format for node in children if isinstance(node, Group))
        group.format = next((one for one in inner if one is not None), None)


def has_text(node: Node) -> bool:
    """Return whether there are characters in a node, or something stands for a word."""
    if isinstance(node, Text):
        return bool(node.text.strip())
    if isinstance(node, Object):
        return node.stands_for == WORD
    return any(map(has_text, node.children))


def has_letters_in(node: Node) -> bool:
    """Return whether there is anything to translate in a node."""
    if isinstance(node, Text):
        return has_letters(node.text)
    return isinstance(node, Group) and any(map(has_letters_in, node.children))


def _set_edges_apart(
    group: Group, *, first: bool = True, last: bool = True, before: str = "", after: str = ""
) -> None:
    """Take objects at the beginning and end of a group out of its text; so all others are inside.

    A group without text becomes an object. `first` and `last` say that no text of the paragraph
    comes before it and after it; `before` and `after` are the texts right beside it.
    """
    size = len(group.children)
    filled = [i for i, node in enumerate(group.children) if has_text(node)]
    begin, end = (filled[0], filled[-1] + 1) if filled else (0, 0)
    for i, node in enumerate(group.children):
        if isinstance(node, Group):
            if has_text(node):
                _set_edges_apart(
                    node,
                    first=first and i == begin,
                    last=last and i == end - 1,
                    before=_read_text(group.children[i - 1]) if i else before,
                    after=_read_text(group.children[i + 1]) if i + 1 < size else after,
                )
            else:
                group.children[i] = Object(node)
    objects = [i for i, node in enumerate(group.children) if isinstance(node, Object)]
    breaks = [
        i
        for i, node in enumerate(group.children)
        if isinstance(node, Object) and node.stands_for in (LINE_BREAK, TAB)
    ]
    # White space at an edge is text if a word is beyond it, or no object is.
    word_before, word_after = before[-1:].isalnum(), after[:1].isalnum()
    leading = [i for n, i in enumerate(objects) if i < begin and (i == n or not word_before)]
    trailing = [
        i for n, i in enumerate(objects[::-1], 1) if i >= end and (i == size - n or not word_after)
    ]
    start, stop = max(leading, default=-1) + 1, min(trailing, default=size)
    # A number before a tab, or a page number after one, is not part of the text.
    letters = [i for i, node in enumerate(group.children) if has_letters_in(node)]
    if letters and first:
        start = max([start, *(i + 1 for i in breaks if i < letters[0])])
    if letters and last:
        stop = min([stop, *(i for i in breaks if i > letters[-1])])
    group.before, group.after = group.children[:start], group.children[stop:]
    group.children = group.children[start:stop]
    if not group.children:
        return
    # Nor is white space between such an object and the text.
    if group.before and not word_before and isinstance(node := group.children[0], Text):
        core = node.text.lstrip()
        if core != node.text:
            group.before.append(Text(node.text[: len(node.text) - len(core)], node.format))
            group.children[0] = Text(core, node.format)
    if group.after and not word_after and isinstance(node := group.children[-1], Text):
        core = node.text.rstrip()
        if core != node.text:
            group.after.insert(0, Text(node.text[len(core) :], node.format))
            group.children[-1] = Text(core, node.format)


def collapse_markup_spaces(text: str) -> str:
    """Return a text with each stretch of white space as one space; no-break spaces stay."""
    return re.sub(r"[ \t\r\n\f]+", " ", text)
