"""An item that is not in a translation as it was is found there as what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from dragoman.inference.protection.protected_items import Item, find_items
from dragoman.inference.protection.stand_ins import find_copies
from dragoman.text.lazy_patterns import lazy_pattern

_TOKEN: Final = lazy_pattern(r"\S+")
_MARKS: Final = ".,;:!?\"'()[]“”„«»…"
_LIKE_ENOUGH: Final = 0.65
"""A part of the output this much like an item is what became of it."""
_SAME_KIND: Final = 0.4
"""One of the item's own kind need not be so much like it."""


def find_damaged(
    item: Item, output: str, taken: Sequence[tuple[int, int]], source: str
) -> tuple[int, int] | None:
    """Return the part of an output that an item has become, or None.

    What is `taken`, or stands in the source as it is, is something else.
    """
    candidates = [
        (other.start, other.end, _SAME_KIND)
        for other in find_items(output)
        if other.kind == item.kind
    ]
    words = [match.span() for match in _TOKEN.finditer(output)]
    size = len(item.text.split())
    for first in range(len(words)):
        for count in {max(1, size - 1), size, size + 1}:
            if first + count <= len(words):
                start, end = words[first][0], words[first + count - 1][1]
                candidates.append((*_without_marks(output, start, end, item.text), _LIKE_ENOUGH))
    best: tuple[float, tuple[int, int] | None] = 0.0, None
    for start, end, least in candidates:
        part = output[start:end]
        if start >= end or any(a < end and start < b for a, b in taken):
            continue
        if part in source and any(source[a:b] == part for a, b in find_copies(part, source)):
            continue
        matcher = SequenceMatcher(None, item.text.lower(), part.lower(), autojunk=False)
        if (
            matcher.real_quick_ratio() >= max(least, best[0])
            and (alike := matcher.ratio()) >= least
        ):
            best = max(best, (alike, (start, end)))
    return best[1]


def _without_marks(output: str, start: int, end: int, item: str) -> tuple[int, int]:
    """Return a span without marks around it that the item does not have."""
    while start < end and output[start] in _MARKS and output[start] != item[0]:
        start += 1
    while start < end and output[end - 1] in _MARKS and output[end - 1] != item[-1]:
        end -= 1
    return start, end
