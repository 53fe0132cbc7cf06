"""File formats of documents: reading the texts to translate, and writing the document again."""

from __future__ import annotations

import io
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from dragoman.errors import ConfigError, DataError

MEDIA_TYPES: Final = {
    "txt": "text/plain; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "srt": "application/x-subrip; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
"""The media type of each format that can be read, by its file name extension."""


class DocumentTooLargeError(DataError):
    """Raised for a document that would take more memory than is allowed."""


class Document(ABC):
    """A file whose texts are to be translated."""

    is_html = False
    """Whether its texts have tags."""
    texts: list[str]
    """The texts to translate, none of more than a line; those of HTML are whole pages."""

    @abstractmethod
    def fill(self, translations: Sequence[str]) -> bytes:
        """Return the file with a translation in place of each text."""


def open_document(extension: str, content: bytes, max_bytes: int) -> Document:
    """Read a document of the format that a file name extension names.

    Raise DocumentTooLargeError for a compressed one that would unpack to more than `max_bytes`.
    """
    if extension not in MEDIA_TYPES:
        raise DataError(f"file format not supported; use one of {', '.join(MEDIA_TYPES)}")
    if extension == "docx":
        return _WordDocument(content, max_bytes)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"the file is not UTF-8 (byte {error.start})") from None
    if extension == "html":
        return _HtmlDocument(text)
    return _TextDocument(text, _SEPARATORS[extension])


_SEPARATORS: Final = {
    "txt": re.compile(r"(\r?\n)"),
    "tsv": re.compile(r"(\r?\n|\t)"),
    # A subtitle's number and times stay, and so do the lines between subtitles.
    "srt": re.compile(r"(\r?\n|^\d+\s*$|^[\d:,. ]+-->.*$|</?[a-z][^<>\n]*>)", re.MULTILINE),
}


class _TextDocument(Document):
    """Text between separators, which are left as they are."""

    def __init__(self, text: str, separator: re.Pattern[str]) -> None:
        self._parts = separator.split(text)
        self._indices = [i for i in range(0, len(self._parts), 2) if _has_letters(self._parts[i])]
        self.texts = [self._parts[i] for i in self._indices]

    def fill(self, translations: Sequence[str]) -> bytes:
        parts = list(self._parts)
        for i, text in zip(self._indices, translations, strict=True):
            parts[i] = text
        return "".join(parts).encode()


class _HtmlDocument(Document):
    """A web page, which is one text with tags."""

    is_html = True

    def __init__(self, text: str) -> None:
        self.texts = [text] if text.strip() else []
        self._text = text

    def fill(self, translations: Sequence[str]) -> bytes:
        return (translations[0] if translations else self._text).encode()


class _WordDocument(Document):
    """A Word document, paragraph by paragraph; each keeps the formatting of its first letters."""

    def __init__(self, content: bytes, max_bytes: int) -> None:
        try:
            import docx
        except ImportError:
            raise ConfigError("reading .docx files needs python-docx, not installed here") from None
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                if sum(one.file_size for one in packed.infolist()) > max_bytes:
                    raise DocumentTooLargeError(f"the file unpacks to more than {max_bytes} bytes")
            self._document: Any = docx.Document(io.BytesIO(content))
            self._paragraphs = [one for one in self._find_paragraphs() if _has_letters(one.text)]
        except DocumentTooLargeError:
            raise
        except Exception:
            raise DataError("the file is not a .docx document") from None
        self.texts = [" ".join(one.text.split()) for one in self._paragraphs]

    def _find_paragraphs(self) -> list[Any]:
        cells = [
            cell for table in self._document.tables for row in table.rows for cell in row.cells
        ]
        found: dict[Any, Any] = {}
        for container in (self._document, *cells):
            for paragraph in container.paragraphs:
                found.setdefault(paragraph._p, paragraph)  # a merged cell comes more than once
        return list(found.values())

    def fill(self, translations: Sequence[str]) -> bytes:
        for paragraph, text in zip(self._paragraphs, translations, strict=True):
            first, *others = [run for run in paragraph.runs if run.text] or [paragraph.add_run()]
            first.text = text
            for run in others:
                run.text = ""
        out = io.BytesIO()
        self._document.save(out)
        return out.getvalue()


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))
