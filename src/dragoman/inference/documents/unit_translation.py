"""The texts of units are translated, equal ones once, and become units with marks again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.inference.documents.document import Unit
from dragoman.inference.documents.file_text import has_letters
from dragoman.inference.documents.mark_projection import project_marks
from dragoman.inference.translation_types import Translation


class UnitTexts:
    """Hold what is to be translated of some units, equal texts once, and assemble units again."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = list(units)
        self._places: list[tuple[bool, int] | None] = []
        texts: tuple[dict[str, int], dict[str, int]] = {}, {}
        for unit in self._units:
            marked = has_inner_marks(unit)
            text = _to_send(unit)
            if not has_letters(text):
                self._places.append(None)
            else:
                table = texts[marked]
                self._places.append((marked, table.setdefault(text, len(table))))
        self.plain = list(texts[False])
        """These texts have no marks inside."""
        self.marked = list(texts[True])
        """These have; they are to be translated with alignments."""

    def __len__(self) -> int:
        return len(self.plain) + len(self.marked)

    def assemble(self, plain: Sequence[Translation], marked: Sequence[Translation]) -> list[Unit]:
        """Return the translation of each unit, given those of the texts."""
        found = plain, marked
        return [
            unit if place is None else _to_unit(unit, found[place[0]][place[1]])
            for unit, place in zip(self._units, self._places, strict=True)
        ]


def translate_units(
    units: Sequence[Unit], translate: Callable[[list[str], bool], list[Translation]]
) -> list[Unit]:
    """Return the translations of units, each with the marks of its unit.

    `translate` gets texts, and whether to align them; it is called at most twice. A unit without
    letters stays as it is.
    """
    texts = UnitTexts(units)
    plain = translate(texts.plain, False) if texts.plain else []
    marked = translate(texts.marked, True) if texts.marked else []
    return texts.assemble(plain, marked)


def has_inner_marks(unit: Unit) -> bool:
    """Return whether a mark begins or ends between words, so that an alignment is needed."""
    start, end = len(unit.text) - len(unit.text.lstrip()), len(unit.text.rstrip())
    return any(start < place < end for mark in unit.marks for place in (mark.start, mark.end))


_WRAPPED: Final = re.compile(r"(?<=[^\W\d_])(,?)\n(?=[^\W\d_])")


def _to_send(unit: Unit) -> str:
    """Return what the translator gets: without outer white space and soft hyphens.

    A tab divides like a line break does. A line break in a sentence is a space.
    """
    text = unit.text.strip().replace("\xad", "").replace("\t", "\n")
    return _WRAPPED.sub(
        lambda match: f"{match[1]} " if text[match.end()].islower() else match[0], text
    )


def _to_unit(unit: Unit, translation: Translation) -> Unit:
    """Return a translation with a unit's outer white space, no-break spaces and marks."""
    text = unit.text
    body = _restore_no_break_spaces(text, translation.text.strip())
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    return project_marks(unit, text[:start] + body + text[end:], translation.alignment)


def _restore_no_break_spaces(source: str, text: str) -> str:
    """Return a translation with no-break spaces between words that have one in the source."""
    if "\xa0" not in source:
        return text
    wanted = {
        (_compare(before), _compare(after))
        for before, after in re.findall(r"([^\s]+)\xa0(?=([^\s]+))", source)
    }
    return re.sub(
        r"(\S+) (?=(\S+))",
        lambda match: (
            f"{match[1]}\xa0"
            if (_compare(match[1]), _compare(match[2])) in wanted
            else match.group()
        ),
        text,
    )


def _compare(word: str) -> str:
    """Return a word without punctuation; numbers are written otherwise in other languages."""
    return re.sub(r"\W", "", word) or word
