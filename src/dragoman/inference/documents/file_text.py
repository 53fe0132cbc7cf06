"""The bytes of text files are decoded here, and parts of them are replaced."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman.errors import DataError
from dragoman.inference.documents.document import DocumentTooLargeError

BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""A file that begins with one of these is in that encoding."""


@dataclass(frozen=True, slots=True)
class FileText:
    """Hold the text of a file, and how it was encoded."""

    text: str
    encoding: str
    byte_order_mark: bytes = b""
    markup: bool = False
    """It is HTML or XML, which can hold &#…; for characters that the encoding lacks."""

    def encode(self, text: str) -> bytes:
        """Return another text as the file would hold it, or as UTF-8 if it cannot."""
        errors = "xmlcharrefreplace" if self.markup else "strict"
        try:
            return self.byte_order_mark + text.encode(self.encoding, errors)
        except UnicodeEncodeError:
            return text.encode("utf-8")


def decode_text(content: bytes, encoding: str = "utf-8", *, markup: bool = False) -> FileText:
    """Return a file's text; without a byte order mark it is in the given encoding.

    Raise DataError for an unknown encoding and for what is not in it.
    """
    mark, encoding = next(
        (one for one in BYTE_ORDER_MARKS if content.startswith(one[0])), (b"", encoding)
    )
    try:
        "".encode(encoding)
        text = content[len(mark) :].decode(encoding)
    except LookupError:
        raise DataError(f"the file names an unknown charset: {encoding}") from None
    except UnicodeError as error:
        name = "UTF-8" if encoding == "utf-8" else encoding
        place = f" (byte {len(mark) + getattr(error, 'start', 0)})"
        other = "name its charset" if markup else "e.g. iconv -f latin1 -t utf-8 FILE > fixed"
        advice = "" if mark else f"; save it as UTF-8, {'or ' * markup}{other}"
        raise DataError(f"the file is not {name}{place}{advice}") from None
    return FileText(text, encoding, mark, markup)


def decode_file(
    content: bytes, *, max_bytes: int, encoding: str = "utf-8", markup: bool = False
) -> FileText:
    """Return a file's text as `decode_text` does.

    Raise DataError also for what is no text, and DocumentTooLargeError for more than `max_bytes`.
    """
    if len(content) > max_bytes:
        raise DocumentTooLargeError(f"the file has more than {max_bytes} bytes")
    file = decode_text(content, encoding, markup=markup)
    if "\0" in file.text:
        before = file.text[: file.text.index("\0")].encode(file.encoding)
        place = len(file.byte_order_mark) + len(before)
        raise DataError(f"the file is not text: it has a NUL byte (byte {place})")
    return file


LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
"""This is a line of a text, and how it ends."""


def replace_spans(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with other strings in place of the characters from each start to each end.

    The spans are in order and apart.
    """
    parts, done = [], 0
    for start, end, new in replacements:
        assert done <= start <= end
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def line_ends(text: str) -> str:
    """Return how most of a text's lines end."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    if crlf > lf:
        return "\r\n"
    return "\r" if not lf and text.count("\r") else "\n"


def has_letters(text: str | None) -> bool:
    """Return whether there is anything to translate in a text."""
    return text is not None and any(map(str.isalpha, text))


def list_some(names: Sequence[str], most: int = 12) -> str:
    """Return names as a message lists them."""
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")
