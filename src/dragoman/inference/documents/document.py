"""Every document format gives the texts to translate, and the file with translations in it.

A text of a document is a unit: a paragraph, a heading, a cell, a subtitle, a message. What formats
words inside a unit (bold, links, inline tags, line breaks, images) is kept as marks beside the
text, so that the model sees words alone, and is put on the words it belongs to by their alignment.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoman.errors import DataError

PLACEHOLDER: Final = re.compile(r"\{ ?(\d{1,6}) ?\}")
"""This stands for something that is not translated; protection keeps it."""


class DocumentTooLargeError(DataError):
    """Raised for a document that would take more memory than is allowed."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Say that something holds for the characters from `start` to `end` of a unit's text.

    Marks nest or are apart; of two that hold for the same characters the outer one comes first. One
    with `start` equal to `end` stands between characters: an image, a note. One on a placeholder
    ({1}, {2}, …) or on a line break or tab is on exactly that in a translation, too: what cannot be
    translated (inline code, a page number) is written where its placeholder comes out.
    """

    start: int
    end: int
    key: int
    """The format knows by this number what the mark is."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Hold a text that is translated as a whole, and what marks words in it."""

    text: str
    marks: tuple[Mark, ...] = ()


class Document(ABC):
    """Hold a file whose texts are to be translated."""

    units: list[Unit]
    """These are the texts to translate, in reading order; each has a letter in it."""

    @abstractmethod
    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with a translation in place of each unit, everything else as it was.

        Each mark of a unit occurs once in its translation. Filled with its own units, the document
        is equal in content to the file that was read.
        """
