"""A text is edited, and it is known where its words are afterwards."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from dragoman.text.lazy_patterns import lazy_pattern

_WORD: Final = lazy_pattern(r"\S+")


@dataclass(frozen=True, slots=True)
class Edit:
    """Say that the characters from `start` to `end` are replaced by `text`."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with edits that do not overlap; those at one place stay in their order."""
    parts, end = [], 0
    for edit in _in_order(edits):
        parts += [text[end : edit.start], edit.text]
        end = edit.end
    return "".join([*parts, text[end:]])


def overlaps(edits: Sequence[Edit], start: int, end: int) -> bool:
    """Return whether one of the edits replaces some of the characters from `start` to `end`."""
    return any(edit.start < end and start < edit.end for edit in edits)


class OffsetsAfter:
    """Say where places of a text are after its edits."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        """Take edits that do not overlap."""
        ordered = _in_order(edits)
        self._ends = [edit.end for edit in ordered]
        longer = (len(edit.text) - (edit.end - edit.start) for edit in ordered)
        self._moved = list(accumulate(longer, initial=0))

    def __getitem__(self, offset: int) -> int:
        """Return where a place is; one inside what is replaced moves as if that stayed."""
        return offset + self._moved[bisect_right(self._ends, offset)]


def words_after(text: str, edits: Sequence[Edit]) -> list[int]:
    """Return, for each word of the text by white space, which word of the edited text it is."""
    places = _places(text, edits)
    begins = [match.start() for match in _WORD.finditer(apply_edits(text, edits))]
    return [
        _last_at(begins, max(places[match.start() : match.end()])) for match in _WORD.finditer(text)
    ]


def words_before(text: str, edits: Sequence[Edit]) -> list[int]:
    """Return, for each word of the edited text by white space, which word of the text it was."""
    edited = apply_edits(text, edits)
    before = [0] * (len(edited) + 1)
    place = end = 0
    for edit in [*_in_order(edits), Edit(len(text), len(text), "")]:
        for offset in range(end, edit.start):
            before[place] = offset
            place += 1
        for _ in edit.text:
            before[place] = edit.start
            place += 1
        end = edit.end
    begins = [match.start() for match in _WORD.finditer(text)]
    return [_last_at(begins, before[match.start()]) for match in _WORD.finditer(edited)]


def _in_order(edits: Sequence[Edit]) -> list[Edit]:
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


def _places(text: str, edits: Sequence[Edit]) -> list[int]:
    """Return where each character is in the edited text; those replaced, where that begins."""
    places: list[int] = []
    size = end = 0
    for edit in [*_in_order(edits), Edit(len(text), len(text), "")]:
        places += range(size, size + edit.start - end)
        size += edit.start - end
        places += [size] * (edit.end - edit.start)
        size += len(edit.text)
        end = edit.end
    return places


def _last_at(begins: Sequence[int], place: int) -> int:
    """Return the last word that begins at a place or before."""
    return max(0, bisect_right(begins, place) - 1)
