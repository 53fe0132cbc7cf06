"""Trees are drawn as people draw them, for a terminal or as an SVG picture.

A tree may be as deep as a sentence is long, so nothing here recurses. nltk's tree drawing is not
used: it counts characters where a terminal counts columns, so that Korean words do not line up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Final

from rich.cells import cell_len

from dragoman.trees.tree import Leaf, Node, Tree, leaves

# What would move a terminal's cursor, or may not stand in XML.
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def draw_tree(tree: Tree, width: int = 100) -> str:
    """Draw a tree for a terminal of so many columns.

    Where it fits, the root is above and the sentence is the last line. Where not, the root is at
    the left, and the sentence is read downwards.
    """
    boxes = _arrange(tree, cell_len, gap=2)
    return _draw_downwards(boxes) if boxes[0].width <= width else _draw_sideways(tree, width)


def draw_tree_svg(tree: Tree) -> str:
    """Draw a tree as an SVG file: labels above their children, the words on one line below.

    The picture has a ground of its own, light or dark as its viewer prefers. The same tree is
    always the same text.
    """
    boxes = _arrange(tree, _pixels, gap=16)
    bottom = _Y + max(box.depth for box in boxes) * _STEP
    width, height = boxes[0].width + 2 * _EDGE, bottom + _WORD + _EDGE
    lines, texts = [], []
    for box in boxes:
        x, y = _EDGE + box.x, _Y + box.depth * _STEP
        if box.parent is not None:
            # Slanting for one step only and upright from there, a line meets nothing on its way.
            upright = f"V{bottom - _ABOVE}" if box.word is not None and y < bottom else ""
            start = f"M{_EDGE + box.parent.x} {y - _STEP + _BELOW}"
            lines.append(f"{start}L{x} {y - _ABOVE}{upright}")
        if box.word is None:
            texts.append(_svg_text("label", x, y, box.label))
        else:
            texts.append(_svg_text("tag", x, bottom, box.label))
            texts.append(_svg_text("word", x, bottom + _WORD, box.word))
    sentence = " ".join(_printable(leaf.word) for leaf in leaves(tree))
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" class="dragoman-tree" role="img" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
            f"<title>{escape(sentence)}</title>",
            f"<style>{_STYLE}</style>",
            '<rect class="ground" width="100%" height="100%" rx="8"/>',
            f'<path class="lines" d="{"".join(lines)}"/>',
            *texts,
            "</svg>\n",
        ]
    )


# ------------------------------------------------------------------------------ where all stands


@dataclass(slots=True, eq=False, repr=False)
class _Box:
    """Hold a constituent, or a word under its tag, and the room it takes with all below it."""

    label: str
    word: str | None
    parent: _Box | None
    depth: int
    children: list[_Box] = field(default_factory=list)
    left: int = 0
    width: int = 0
    middle: int = 0
    """Where the label stands, from the left edge of this box."""

    @property
    def x(self) -> int:
        """Return where the label stands in the drawing."""
        return self.left + self.middle


def _arrange(tree: Tree, measure: Callable[[str], int], gap: int) -> list[_Box]:
    """Put each constituent above the middle of its children; parents first, the root at 0."""
    boxes = _boxes(tree)
    for box in reversed(boxes):  # children before their parent
        own = max(measure(box.label), measure(box.word or ""))
        right = -gap
        for child in box.children:
            child.left = right + gap
            right = child.left + child.width
        middles = [child.x for child in box.children] or [own // 2]
        box.middle = sum(middles) // len(middles)
        lacking = max(0, own // 2 - box.middle)  # for a label wider than what it is above
        for child in box.children:
            child.left += lacking
        box.middle += lacking
        box.width = max(lacking + right, box.middle + own - own // 2)
    for box in boxes:
        if box.parent is not None:
            box.left += box.parent.left
    return boxes


def _boxes(tree: Tree) -> list[_Box]:
    boxes: list[_Box] = []
    waiting: list[tuple[Tree, _Box | None]] = [(tree, None)]
    while waiting:
        one, parent = waiting.pop()
        depth = parent.depth + 1 if parent else 0
        if isinstance(one, Leaf):
            box = _Box(_printable(one.tag), _printable(one.word), parent, depth)
        else:
            box = _Box(_printable(one.label), None, parent, depth)
            waiting.extend((child, box) for child in reversed(one.children))
        boxes.append(box)
        if parent:
            parent.children.append(box)
    return boxes


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text) or "·"


# ---------------------------------------------------------------------------------- for a terminal

_UNDER_LABEL: Final = {"─": "┴", "┌": "├", "┬": "┼", "┐": "┤"}


def _draw_downwards(boxes: list[_Box]) -> str:
    bottom = 2 * max(box.depth for box in boxes)  # a row of labels, a row of lines
    rows = [[" "] * boxes[0].width for _ in range(bottom + 2)]

    def put(row: int, x: int, text: str) -> None:
        cells = cell_len(text)
        # A text is one piece: what it covers becomes empty, however wide its letters are.
        rows[row][x - cells // 2 : x - cells // 2 + cells] = [text] + [""] * (cells - 1)

    for box in boxes:
        if box.word is not None:
            for row in range(2 * box.depth, bottom):
                rows[row][box.x] = "│"
            put(bottom, box.x, box.label)
            put(bottom + 1, box.x, box.word)
            continue
        put(2 * box.depth, box.x, box.label)
        _join(rows[2 * box.depth + 1], [child.x for child in box.children], box.x)
    return "\n".join("".join(row).rstrip() for row in rows)


def _join(row: list[str], below: list[int], above: int) -> None:
    if len(below) == 1:
        row[above] = "│"
        return
    row[below[0] : below[-1]] = "─" * (below[-1] - below[0])
    for x in below:
        row[x] = "┬"
    row[below[0]], row[below[-1]] = "┌", "┐"
    row[above] = _UNDER_LABEL[row[above]]


def _draw_sideways(tree: Tree, width: int) -> str:
    """Draw each word and constituent, or a constituent with just words, on a line of its own."""
    lines = []
    waiting = [(tree, "", "")]
    while waiting:
        one, before, under = waiting.pop()
        text = before
        while isinstance(one, Node) and isinstance(one.children[0], Node) and len(one.children) < 2:
            text += f"{_printable(one.label)} ── "
            one = one.children[0]
        if isinstance(one, Leaf):
            lines.append(f"{text}{_leaf(one)}")
            continue
        text += _printable(one.label)
        words = [_leaf(child) for child in one.children if isinstance(child, Leaf)]
        whole = f"{text} ── {' · '.join(words)}"
        if len(words) == len(one.children) and (len(words) == 1 or cell_len(whole) <= width):
            lines.append(whole)
            continue
        lines.append(text)
        *others, last = one.children
        waiting.append((last, f"{under}└─ ", f"{under}   "))
        waiting.extend((child, f"{under}├─ ", f"{under}│  ") for child in reversed(others))
    return "\n".join(lines)


def _leaf(leaf: Leaf) -> str:
    return f"{_printable(leaf.tag)} {_printable(leaf.word)}"


# ----------------------------------------------------------------------------------- as a picture

_EDGE: Final = 20
_STEP: Final = 46  # from a label to those below it
_Y: Final = _EDGE + 14  # the first line of text
_WORD: Final = 22  # from a tag to its word
_ABOVE: Final = 17  # what lines leave free of a text
_BELOW: Final = 6
_STYLE: Final = (
    ".dragoman-tree text{font:15px system-ui,'Helvetica Neue',Arial,'Noto Sans',"
    "'Apple SD Gothic Neo','Malgun Gothic','Noto Sans CJK KR',sans-serif;text-anchor:middle}"
    ".dragoman-tree .ground{fill:#fff}"
    ".dragoman-tree .lines{fill:none;stroke:#9aa4b2;stroke-width:1.2;stroke-linejoin:round}"
    ".dragoman-tree .label{fill:#1f5fa8;font-weight:600}"
    ".dragoman-tree .tag{fill:#6b7585;font-size:12px}"
    ".dragoman-tree .word{fill:#27303f}"
    "@media(prefers-color-scheme:dark){"
    ".dragoman-tree .ground{fill:#161a21}"
    ".dragoman-tree .lines{stroke:#5b6675}"
    ".dragoman-tree .label{fill:#8ab8f0}"
    ".dragoman-tree .tag{fill:#9aa4b2}"
    ".dragoman-tree .word{fill:#e6e9ef}}"
)
_NARROW: Final = frozenset("fijlrtI.,:;'`|!()[]{}/\\- ")
_BROAD: Final = frozenset("mwMW%@&")


def _pixels(text: str) -> int:
    """Guess how wide a text is in the sans serif faces that are common."""
    cells = cell_len(text)
    if cells != len(text):  # wide letters, or some that combine
        return 8 * cells
    narrow, broad, upper = (
        sum(map(kind, text)) for kind in (_NARROW.__contains__, _BROAD.__contains__, str.isupper)
    )
    return round(8.8 * len(text) - 3.3 * narrow + 4 * broad + 2 * upper)


def _svg_text(kind: str, x: int, y: int, text: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'
