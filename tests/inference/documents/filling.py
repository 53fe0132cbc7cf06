"""Fill documents with what a translator could say, to see what changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.formats import open_document
from dragoman.inference.documents.options import DocumentOptions

MAX_BYTES = 1 << 20


def read(extension: str, text: str | bytes, **options: Any) -> Document:
    content = text.encode() if isinstance(text, str) else text
    return open_document(
        extension, content, max_bytes=MAX_BYTES, options=DocumentOptions(**options)
    )


def texts(extension: str, text: str | bytes, **options: Any) -> list[str]:
    return [unit.text for unit in read(extension, text, **options).units]


def fill_with(document: Document, change: Callable[[str], str]) -> str:
    """Fill a document with changed texts as long as its own, so that marks stay where they are."""
    return document.fill([Unit(change(unit.text), unit.marks) for unit in document.units]).decode()


def swap_case(text: str) -> str:
    return "".join(swapped if len(swapped := letter.swapcase()) == 1 else letter for letter in text)


def shout(extension: str, text: str | bytes, **options: Any) -> str:
    """Translate with a translator that only swaps the case of letters."""
    return fill_with(read(extension, text, **options), swap_case)


def copy(extension: str, text: str | bytes, **options: Any) -> bytes:
    """Translate with a translator that gives back what it gets."""
    document = read(extension, text, **options)
    return document.fill(document.units)
