"""A file is known by its first bytes, so that one with a wrong name gets a message saying so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.errors import DataError

_SIGNATURES: Final = (
    (b"%PDF-", "a PDF"),
    (b"{\\rtf", "an RTF file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"<?xml", "an XML file"),
    (b"\xef\xbb\xbf<?xml", "an XML file"),
)
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS: Final = (
    ("EncryptedPackage", "protected by a password; remove it and try again"),
    ("WordDocument", "an old .doc file; save it as .docx"),
    ("PowerPoint Document", "an old .ppt file; save it as .pptx"),
    ("Workbook", "an old .xls file"),
)
"""What an office file of the kind used before 2007 is, by the name of one of its streams."""


def refuse_other_files(content: bytes, wanted: str, expected: Sequence[str] = ()) -> None:
    """Raise DataError if a file is not what is wanted, as in "a web page", by its first bytes.

    What `recognize` may return for one that is wanted is in `expected`.
    """
    found, _, advice = recognize(content).partition("; ")
    if not found or found in expected:
        return
    told = "" if found.startswith("protected") else f", not {wanted}"
    raise DataError(f"the file is {found}{told}" + (f"; {advice}" if advice else ""))


def recognize(content: bytes) -> str:
    """Return what a file is, as "a PDF", if its first bytes say so."""
    if content.startswith(_OLE):
        for stream, kind in _OLE_STREAMS:
            if stream.encode("utf-16-le") in content:
                return kind
        return "an old office file"
    for signature, kind in _SIGNATURES:
        if content.startswith(signature):
            return kind
    start = content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return "a web page" if start.startswith((b"<!doctype html", b"<html")) else ""
