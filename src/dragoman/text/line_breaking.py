"""A line may be broken at spaces and, in some scripts, between any two characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from dragoman.text.lazy_patterns import lazy_pattern

_BREAKS_ANYWHERE: Final = lazy_pattern("[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
"""The lines of these scripts may be broken between any two characters."""
NOT_FIRST: Final = frozenset(
    "、。，．：；！？）」』】〉》〕］｝ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々…‥"
)
"""No line begins with one of these."""
_NOT_LAST: Final = frozenset("（「『【〈《〔［｛")

_BREAKABLE: Final = lazy_pattern(r"[ \t\n\r\f\v]+")


def breaks_anywhere(character: str) -> bool:
    """Return whether a character is of a script whose lines may be broken anywhere."""
    return _BREAKS_ANYWHERE.match(character) is not None


def can_break(before: str, after: str) -> bool:
    """Return whether a line may end between two characters that have no space between them."""
    free = breaks_anywhere(before) or breaks_anywhere(after)
    return free and after not in NOT_FIRST and before not in _NOT_LAST


def columns(text: str) -> int:
    """Return how many columns a text takes: two for a wide character, none for a mark on one."""
    if text.isascii():
        return len(text)
    return sum(
        2 if unicodedata.east_asian_width(one) in "WF" else not unicodedata.combining(one)
        for one in text
    )


def wrap(text: str, width: int, offset: int, indent: int) -> list[str]:
    """Break a text into lines of at most `width` columns where it can be broken."""
    lines: list[str] = []
    line, used = "", offset
    for piece, space in _pieces(text):
        needed = columns(piece)
        if line and used + space + needed > width:
            lines.append(line)
            line, used, space = "", indent, 0
        elif not line:
            space = 0
        line += " " * space + piece
        used += space + needed
    return [*lines, line]


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """Yield what must not be broken, each with whether a space stands before it."""
    for word in filter(None, _BREAKABLE.split(text)):  # not at no-break spaces
        space, start = 1, 0
        for at in range(1, len(word)):
            if can_break(word[at - 1], word[at]):
                yield word[start:at], space
                space, start = 0, at
        yield word[start:], space
