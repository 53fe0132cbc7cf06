"""The extension of a file's name says which format reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any, Final

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, DocumentTooLargeError
from dragoman.inference.documents.options import NO_OPTIONS, DocumentOptions

__all__ = ["EXTENSIONS", "MEDIA_TYPES", "DocumentTooLargeError", "open_document"]


@dataclass(frozen=True, slots=True)
class _Format:
    media_type: str
    module: str
    reader: str
    """This class or function of the module reads a document."""
    settings: tuple[tuple[str, Any], ...] = ()


_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT: Final = "application/vnd.oasis.opendocument"
_HTML: Final = _Format("text/html; charset=utf-8", "html", "HtmlDocument")
_MARKDOWN: Final = _Format("text/markdown; charset=utf-8", "markdown", "MarkdownDocument")
_PO: Final = _Format("text/x-gettext-translation; charset=utf-8", "gettext", "GettextDocument")
_XLIFF: Final = _Format("application/xliff+xml; charset=utf-8", "xliff", "XliffDocument")
_JSON: Final = _Format("application/json", "json_strings", "JsonDocument")
_JSON_LINES: Final = _Format("application/jsonl", "tables", "JsonLinesDocument")
_FORMATS: Final = {
    "txt": _Format("text/plain; charset=utf-8", "plain_text", "PlainTextDocument"),
    "md": _MARKDOWN,
    "markdown": _MARKDOWN,
    "mdx": _Format("text/mdx; charset=utf-8", "markdown", "MarkdownDocument", (("mdx", True),)),
    "html": _HTML,
    "htm": _HTML,
    "xhtml": _Format("application/xhtml+xml; charset=utf-8", "html", "HtmlDocument"),
    "docx": _Format(f"{_OFFICE}.wordprocessingml.document", "word", "WordDocument"),
    "pptx": _Format(f"{_OFFICE}.presentationml.presentation", "powerpoint", "PowerPointDocument"),
    "odt": _Format(f"{_OPEN_DOCUMENT}.text", "opendocument", "OpenDocumentText"),
    "odp": _Format(f"{_OPEN_DOCUMENT}.presentation", "opendocument", "OpenDocumentText"),
    "ods": _Format(f"{_OPEN_DOCUMENT}.spreadsheet", "opendocument", "OpenDocumentText"),
    "epub": _Format("application/epub+zip", "epub", "EpubDocument"),
    "srt": _Format("application/x-subrip; charset=utf-8", "subtitles", "SubRipDocument"),
    "vtt": _Format("text/vtt; charset=utf-8", "subtitles", "WebVttDocument"),
    "po": _PO,
    "pot": _PO,
    "xliff": _XLIFF,
    "xlf": _XLIFF,
    "json": _JSON,
    "arb": _JSON,
    "jsonl": _JSON_LINES,
    "ndjson": _JSON_LINES,
    "csv": _Format("text/csv; charset=utf-8", "tables", "CsvDocument"),
    "tsv": _Format("text/tab-separated-values; charset=utf-8", "tables", "read_tsv"),
    "properties": _Format("text/plain; charset=utf-8", "resource_strings", "PropertiesDocument"),
    "strings": _Format("text/plain; charset=utf-8", "resource_strings", "AppleStringsDocument"),
    "xml": _Format("application/xml; charset=utf-8", "resource_strings", "AndroidStringsDocument"),
    "eml": _Format("message/rfc822", "plain_text", "MailDocument"),
}
MEDIA_TYPES: Final = {extension: one.media_type for extension, one in _FORMATS.items()}
"""The media type of each format that can be read, by its file name extension."""
EXTENSIONS: Final = tuple(MEDIA_TYPES)


def open_document(
    name: str, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
) -> Document:
    """Read a document of the format that a file's name, or its extension alone, tells.

    Raise DataError for one that is broken or of a format that is not read here, and
    DocumentTooLargeError for one that would take more than `max_bytes`.
    """
    extension = name.rpartition(".")[2].strip().lower()
    one = _FORMATS.get(extension)
    if one is None:
        what = f".{extension} files cannot be read" if extension else "the file has no extension"
        raise DataError(f"{what}; use one of {', '.join(f'.{known}' for known in EXTENSIONS)}")
    reader: Callable[..., Document] = getattr(
        import_module(f"dragoman.inference.documents.{one.module}"), one.reader
    )
    known = signature(reader).parameters
    settings: dict[str, Any] = dict(one.settings)
    if "options" in known:
        settings["options"] = options
    if "target_language" in known:
        settings["target_language"] = options.target_language
    try:
        return reader(content, max_bytes=max_bytes, **settings)
    except RecursionError:
        raise DataError("the file is nested too deeply to be read") from None
