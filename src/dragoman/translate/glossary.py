"""A glossary: how certain words and phrases of the source are to be translated."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.readers import open_text
from dragoman.errors import DataError

__all__ = ["Entry", "Glossary"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A term, its translation, and the line of the file they stand on."""

    term: str
    translation: str
    line: int

    @property
    def any_case(self) -> bool:
        """A term in small letters is meant in any case; one with a capital only as it is."""
        return self.term == self.term.lower()


class Glossary:
    """Terms and their translations, checked."""

    def __init__(
        self, entries: Iterable[tuple[str, str, int]], *, name: str = "the glossary"
    ) -> None:
        """Term, translation and line number of each entry; no term has two translations."""
        known: dict[str, Entry] = {}
        for term, translation, line in entries:
            entry = Entry(" ".join(term.split()), " ".join(translation.split()), line)
            if not entry.term or not entry.translation:
                side = "translation" if entry.term else "term"
                raise DataError(f"{name}, line {line}: the {side} is empty; fill it in")
            first = known.setdefault(entry.term, entry)
            if first.translation != entry.translation:
                raise DataError(
                    f"{name}, lines {first.line} and {line}: '{entry.term}' is to be "
                    f"'{first.translation}' and '{entry.translation}'; keep one"
                )
        self.entries: tuple[Entry, ...] = tuple(known.values())

    @classmethod
    def read(cls, path: Path | str) -> Glossary:
        """A file of terms and translations: TSV, or CSV if its name ends so.

        Blank lines and lines that begin with # say nothing.
        """
        comma = str(path).lower().endswith(".csv")
        return cls(_rows(path, "," if comma else "\t"), name=str(path))


def _rows(path: Path | str, separator: str) -> Iterator[tuple[str, str, int]]:
    for number, line in enumerate(open_text(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            columns = next(csv.reader([line])) if separator == "," else line.split(separator)
        except csv.Error:
            columns = []
        if len(columns) != 2:
            name = "a comma" if separator == "," else "a tab"
            raise DataError(
                f"{path}, line {number}: not a term and its translation with {name} between them"
            )
        yield columns[0], columns[1], number
