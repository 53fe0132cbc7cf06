"""Java's .properties, Apple's .strings and Android's strings.xml hold the strings of programs.

Keys, comments and layout stay; what stands for a value in a string stays too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.file_text import FileText, decode_file, replace_spans
from dragoman.inference.documents.inline_tags import Kind, TaggedText, Token
from dragoman.inference.documents.json_strings import is_code
from dragoman.inference.documents.message_text import MessageText, message_tokens
from dragoman.inference.documents.options import NO_OPTIONS, DocumentOptions
from dragoman.inference.documents.xml_positions import (
    Element,
    decode_xml,
    parse_xml,
    read_text,
    write_text,
)


class _String(NamedTuple):
    start: int
    end: int
    message: MessageText


class _StringsDocument(Document):
    """Hold a file of keys and strings."""

    _file: FileText
    _strings: list[_String]

    def _set_strings(
        self, found: Iterator[tuple[int, int, str]], *, icu: bool, language: str | None
    ) -> None:
        self._strings = [
            _String(
                start,
                end,
                MessageText(
                    value,
                    icu=icu,
                    doubled_quotes=icu and re.search(r"\{\d", value) is not None,
                    language=language,
                ),
            )
            for start, end, value in found
            if not is_code(value)
        ]
        self.units = [unit for one in self._strings for unit in one.message.units]

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with a translation in place of each string."""
        coming = iter(translations)
        text = self._file.text
        replacements = []
        for start, end, message in self._strings:
            taken = [next(coming) for _ in message.units]
            if taken != message.units:
                written = self._write(message.fill(iter(taken)), text[start:end])
                replacements.append((start, end, written))
        assert next(coming, None) is None
        return self._file.encode(replace_spans(text, replacements))

    def _write(self, value: str, like: str) -> str:
        raise NotImplementedError


# --- Java ---

_PROPERTY: Final = re.compile(
    r"^[ \t\f]*(?P<key>(?:[^\s:=#!\\]|\\.)(?:[^\s:=\\]|\\.)*)"
    r"(?P<sign>[ \t\f]*[:=][ \t\f]*|[ \t\f]+)"
    r"(?P<value>(?:[^\\\r\n]|\\(?:\r\n|[^\r]|\r))*)",
    re.MULTILINE,
)
_LINE_GOES_ON: Final = re.compile(r"\\(?:\r\n|\n|\r)[ \t\f]*")
_PROPERTY_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\(.)", re.DOTALL)
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesDocument(_StringsDocument):
    """Hold a .properties file; its encoding is UTF-8, or Latin-1 as it once had to be."""

    def __init__(
        self, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
    ) -> None:
        try:
            self._file = decode_file(content, max_bytes=max_bytes)
        except DataError:
            if b"\0" in content:
                raise
            self._file = decode_file(content, max_bytes=max_bytes, encoding="latin-1")
        text = self._file.text
        if text.strip() and "=" not in text and ":" not in text and not _PROPERTY.search(text):
            raise DataError("no line has a key and a value; this is not a .properties file")
        self._escapes = self._file.encoding == "latin-1" or bool(
            re.search(r"\\u[0-9A-Fa-f]{4}", text)
        )
        self._set_strings(_read_properties(text), icu=True, language=options.source_language)

    def _write(self, value: str, like: str) -> str:
        value = value.replace("\\", "\\\\")
        for letter, character in _CONTROLS.items():
            value = value.replace(character, f"\\{letter}")
        if value.startswith(" "):
            value = f"\\{value}"
        if self._escapes:
            return _escape_characters(value)
        return value


def _read_properties(text: str) -> Iterator[tuple[int, int, str]]:
    done = 0
    for match in _PROPERTY.finditer(text):
        if match.start() >= done and match["value"]:
            joined = _LINE_GOES_ON.sub("", match["value"])
            value = _PROPERTY_ESCAPE.sub(
                lambda one: chr(int(one[1], 16)) if one[1] else _CONTROLS.get(one[2], one[2]),
                joined,
            )
            value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            yield *match.span("value"), value
        done = match.end()


def _escape_characters(text: str) -> str:
    """Return a text with what is not ASCII as \\uXXXX, in halves where it must be."""
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[n : n + 2], "big") for n in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


# --- Apple ---

_PAIR: Final = re.compile(
    r'/\*.*?\*/|//[^\r\n]*|(?P<key>"(?:[^"\\]|\\.)*"|[\w.-]+)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*;',
    re.DOTALL,
)
_APPLE_ESCAPE: Final = re.compile(r"\\[Uu]([0-9A-Fa-f]{4})|\\(.)", re.DOTALL)


class AppleStringsDocument(_StringsDocument):
    """Hold a .strings file: lines of "key" = "value";."""

    def __init__(
        self, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
    ) -> None:
        self._file = decode_file(content, max_bytes=max_bytes)
        text = self._file.text
        rest = _PAIR.sub("", text).strip()
        if rest:
            line = text.count("\n", 0, text.find(rest.split("\n")[0].strip())) + 1
            raise DataError(f'line {line}: not of the form "key" = "value";')
        found = (
            (*match.span("value"), _APPLE_ESCAPE.sub(_read_apple_escape, match["value"]))
            for match in _PAIR.finditer(text)
            if match["value"]
        )
        self._set_strings(found, icu=False, language=options.source_language)

    def _write(self, value: str, like: str) -> str:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
        # A line break in the value is written as it was: as an escape, or as one.
        return value if "\n" in like else value.replace("\n", "\\n").replace("\r", "\\r")


def _read_apple_escape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _CONTROLS.get(match[2], match[2])


# --- Android ---

_ANDROID_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\(.)", re.DOTALL)
_ANDROID_PART: Final = re.compile(r'"|(?:\\n)+|(?:<[^<>]*>|[^"\\]|\\(?!n).)+|\\', re.DOTALL)
"""A string is made of quotes, line breaks, and text with escapes and tags."""


class AndroidStringsDocument(Document):
    """Hold Android's strings.xml: strings, plurals and arrays, but what is not translatable."""

    def __init__(
        self, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
    ) -> None:
        self._file = decode_xml(content, max_bytes=max_bytes)
        self._text = self._file.text
        root = parse_xml(self._text)
        if root.name != "resources":
            raise DataError(
                f"the root is <{root.name}>; of .xml files only Android's strings.xml is read"
            )
        found = [(one, TaggedText(self._tokens(one))) for one in _find_strings(root)]
        self._strings = [
            (element, inline)
            for element, inline in found
            if inline.unit is not None and not is_code(inline.unit.text)
        ]
        self.units = [inline.unit for _, inline in self._strings if inline.unit is not None]

    def _tokens(self, element: Element) -> Iterator[Token]:
        done = element.inside
        for child in element.children:
            yield from self._text_tokens(self._text[done : child.start])
            done = child.end
            name = f"{child.name} {child.start}"
            if child.name == "g" or child.is_empty:  # <xliff:g> is what must stay
                kind = Kind.WORD if child.name == "g" else Kind.EMPTY
                yield Token(kind, self._text[child.start : child.end])
                continue
            yield Token(Kind.OPEN, self._text[child.start : child.inside], name)
            yield from self._tokens(child)
            yield Token(Kind.CLOSE, self._text[child.inside_end : child.end], name)
        yield from self._text_tokens(self._text[done : element.inside_end])

    def _text_tokens(self, raw: str) -> Iterator[Token]:
        text = re.sub(r"\s*\n\s*", " ", read_text(raw))
        for part in _ANDROID_PART.findall(text):
            if part == '"':  # it keeps the spaces between it and the next, and is not shown
                yield Token(Kind.EMPTY, part)
            elif re.match(r"\\n", part):
                yield Token(Kind.BREAK, part)
            else:
                for token in message_tokens(_ANDROID_ESCAPE.sub(_read_android_escape, part)):
                    if token.kind is Kind.TEXT:
                        yield token
                    else:
                        yield token._replace(raw=_write_android(token.raw))

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with a translation in place of each string."""
        replacements = [
            # @ and ? at the beginning would name a resource.
            (
                element.inside,
                element.inside_end,
                re.sub(r"^([@?])", r"\\\1", inline.render(unit, _write_android)),
            )
            for (element, inline), unit in zip(self._strings, translations, strict=True)
            if unit != inline.unit
        ]
        return self._file.encode(replace_spans(self._text, replacements))


def _find_strings(element: Element) -> Iterator[Element]:
    if element.attributes.get("translatable") == "false":
        return
    if element.name in ("string", "item"):
        yield element
        return
    for child in element.children:
        yield from _find_strings(child)


def _read_android_escape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else {"t": "\t"}.get(match[2], match[2])


def _write_android(text: str) -> str:
    text = text.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"')
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    return write_text(text)
