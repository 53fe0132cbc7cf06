"""Files of text: what of them is to be translated, and the file again around it."""

from __future__ import annotations

import io
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from dragoman.serve.errors import Refusal

__all__ = ["KINDS", "Document", "opened"]

KINDS: Final = {
    "txt": "text/plain; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "srt": "application/x-subrip; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
"""By the end of the name."""


class Document(ABC):
    """A file."""

    html = False
    """Whether its texts have tags."""
    texts: list[str]
    """What is to be translated, none of more than a line."""

    @abstractmethod
    def filled(self, found: Sequence[str]) -> bytes:
        """The file with a translation for each text."""


def opened(kind: str, content: bytes, most: int) -> Document:
    """A file of one of the kinds; of one that is packed, at most 8 × `most` bytes are unpacked."""
    if kind == "docx":
        return _Word(content, 8 * most)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(400, f"the file is not UTF-8 (byte {error.start})") from None
    if kind == "html":
        return _Html(text)
    return _Parts(text, _SPLIT[kind])


class _Html(Document):
    html = True

    def __init__(self, text: str) -> None:
        self.texts = [text] if text.strip() else []
        self._text = text

    def filled(self, found: Sequence[str]) -> bytes:
        return (found[0] if found else self._text).encode()


_SPLIT: Final = {
    "txt": re.compile(r"(\r?\n)"),
    "tsv": re.compile(r"(\r?\n|\t)"),
    # A subtitle's number and times stay, and so do the lines between subtitles.
    "srt": re.compile(r"(\r?\n|^\d+\s*$|^[\d:,. ]+-->.*$|</?[a-z][^<>\n]*>)", re.MULTILINE),
}


class _Parts(Document):
    """Text between what is left as it is."""

    def __init__(self, text: str, between: re.Pattern[str]) -> None:
        self._parts = between.split(text)
        self._places = [
            n for n in range(0, len(self._parts), 2) if any(map(str.isalpha, self._parts[n]))
        ]
        self.texts = [self._parts[n] for n in self._places]

    def filled(self, found: Sequence[str]) -> bytes:
        parts = list(self._parts)
        for place, text in zip(self._places, found, strict=True):
            parts[place] = text
        return "".join(parts).encode()


class _Word(Document):
    """Paragraph by paragraph; a paragraph's first letters say how all of it looks."""

    def __init__(self, content: bytes, most: int) -> None:
        try:
            import docx
        except ImportError:
            raise Refusal(400, "this server does not read docx (it lacks python-docx)") from None
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                if sum(one.file_size for one in packed.infolist()) > most:
                    raise Refusal(413, f"the file unpacks to more than {most} bytes")
            self._document: Any = docx.Document(io.BytesIO(content))
            self._paragraphs = [one for one in self._all() if any(map(str.isalpha, one.text))]
        except Refusal:
            raise
        except Exception:
            raise Refusal(400, "the file is no docx") from None
        self.texts = [" ".join(one.text.split()) for one in self._paragraphs]

    def _all(self) -> list[Any]:
        cells = [
            cell for table in self._document.tables for row in table.rows for cell in row.cells
        ]
        seen: dict[Any, Any] = {}
        for home in (self._document, *cells):
            for paragraph in home.paragraphs:
                seen.setdefault(paragraph._p, paragraph)  # a merged cell comes more than once
        return list(seen.values())

    def filled(self, found: Sequence[str]) -> bytes:
        for paragraph, text in zip(self._paragraphs, found, strict=True):
            first, *others = [run for run in paragraph.runs if run.text] or [paragraph.add_run()]
            first.text = text
            for run in others:
                run.text = ""
        out = io.BytesIO()
        self._document.save(out)
        return out.getvalue()
