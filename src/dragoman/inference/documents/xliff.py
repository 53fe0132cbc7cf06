"""In XLIFF 1.2 and 2.x, each segment's target is filled beside its source, which stays.

The file is edited in place. The translate-toolkit, which knows XLIFF too, is GPL and not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.file_text import replace_spans
from dragoman.inference.documents.inline_tags import Kind, TaggedText, Token
from dragoman.inference.documents.message_text import message_tokens
from dragoman.inference.documents.options import NO_OPTIONS, DocumentOptions
from dragoman.inference.documents.xml_positions import (
    Element,
    decode_xml,
    parse_xml,
    read_text,
    set_attribute,
    write_text,
)

_PAIRED: Final = frozenset({"g", "pc", "mrk"})
"""Text in these elements is text; in others (bpt, ph, it) it is another format's code."""
_FINAL_STATES: Final = frozenset({"final", "signed-off", "reviewed"})
_UNFINISHED_STATES: Final = frozenset({"new", "needs-translation", "initial"})


@dataclass(slots=True)
class _Segment:
    """Hold a source that needs a target."""

    source: Element
    target: Element | None
    owner: Element
    """The trans-unit or segment that both are in."""
    pieces: list[str | TaggedText]
    """The content of the target to be: markup between parts that are translated."""


class XliffDocument(Document):
    """Hold an XLIFF file."""

    def __init__(
        self, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
    ) -> None:
        """Read a file; its segments without a target are to be translated.

        With `options.overwrite` those with one are too, unless it is approved or final.
        """
        self._file = decode_xml(content, max_bytes=max_bytes)
        self._text = self._file.text
        self._root = parse_xml(self._text)
        if self._root.name != "xliff":
            raise DataError(f"the root is <{self._root.name}>; this is not an XLIFF file")
        version = self._root.attributes.get("version", "")
        self._version_2 = version.startswith("2")
        if not self._version_2 and not version.startswith("1"):
            raise DataError(
                f"XLIFF {version or 'without a version'} is not supported; use 1.2 or 2.0"
            )
        self._language = options.target_language
        self._segments = list(self._find_segments(self._root, options.overwrite, True))
        self.units = [
            piece.unit
            for segment in self._segments
            for piece in segment.pieces
            if isinstance(piece, TaggedText) and piece.unit is not None
        ]

    def _find_segments(
        self, element: Element, overwrite: bool, translate: bool
    ) -> Iterator[_Segment]:
        translate = element.attributes.get("translate", "yes" if translate else "no") != "no"
        names = ("segment",) if self._version_2 else ("trans-unit",)
        if element.name in names:
            source, target = element.find("source"), element.find("target")
            if source is not None and translate and self._wants_target(element, target, overwrite):
                pieces = self._read_content(element.find("seg-source") or source)
                if any(isinstance(one, TaggedText) and one.unit is not None for one in pieces):
                    yield _Segment(source, target, element, pieces)
            return
        for child in element.children:
            if child.name not in ("alt-trans", "header", "notes", "matches", "skeleton"):
                yield from self._find_segments(child, overwrite, translate)

    def _wants_target(self, owner: Element, target: Element | None, overwrite: bool) -> bool:
        if target is None or not self._text[target.inside : target.inside_end].strip():
            return owner.attributes.get("approved") != "yes"
        state = target.attributes.get("state") or owner.attributes.get("state", "")
        if owner.attributes.get("approved") == "yes" or state in _FINAL_STATES:
            return False
        return overwrite or state in _UNFINISHED_STATES

    def _read_content(self, source: Element) -> list[str | TaggedText]:
        """Return the content of a source: its segments, if these are marked, or all of it."""
        segments = [
            child
            for child in source.children
            if child.name == "mrk" and child.attributes.get("mtype") == "seg"
        ]
        if not segments:
            return [TaggedText(self._tokens(source))]
        parts: list[str | TaggedText] = []
        done = source.inside
        for one in segments:
            parts += [self._text[done : one.inside], TaggedText(self._tokens(one))]
            done = one.inside_end
        return [*parts, self._text[done : source.inside_end]]

    def _tokens(self, element: Element) -> Iterator[Token]:
        """Yield the parts of an element's content."""
        done = element.inside
        for child in element.children:
            yield from _text_tokens(self._text[done : child.start])
            done = child.end
            raw = self._text[child.start : child.end]
            protected = child.attributes.get("translate") == "no" or (
                child.attributes.get("mtype") == "protected"
            )
            if child.name in _PAIRED and not child.is_empty and not protected:
                name = f"{child.name} {child.start}"
                yield Token(Kind.OPEN, self._text[child.start : child.inside], name)
                yield from self._tokens(child)
                yield Token(Kind.CLOSE, self._text[child.inside_end : child.end], name)
            else:
                yield self._code_token(child, raw, protected)
        yield from _text_tokens(self._text[done : element.inside_end])

    def _code_token(self, child: Element, raw: str, protected: bool) -> Token:
        """Return a code as an opening or closing tag, an empty one, or what stands for a word."""
        attributes = child.attributes
        number = attributes.get("rid") or attributes.get("id", "")
        if child.name in ("bx", "bpt", "sc", "sm"):
            return Token(
                Kind.OPEN, raw, f"code {attributes.get('id', '') if self._version_2 else number}"
            )
        if child.name in ("ex", "ept", "ec", "em"):
            start = attributes.get("startRef", number)
            return Token(Kind.CLOSE, raw, f"code {start}")
        name = attributes.get("id", "")
        if match := re.fullmatch(r"(START|CLOSE)_(\w+?)(?:_\d+)?", name):  # as Angular names them
            kind = Kind.OPEN if match[1] == "START" else Kind.CLOSE
            return Token(kind, raw, f"element {match[2]}")
        label = f"{name} {attributes.get('ctype', '')} {attributes.get('equiv-text', '')}".lower()
        if not protected and re.search(r"line_break|\blb\b|<br", label):
            return Token(Kind.BREAK, raw)
        if not protected and re.search(r"image|x-html-img", label):
            return Token(Kind.EMPTY, raw)
        before, after = self._text[child.start - 1], self._text[child.end]
        if not protected and (before.isalnum() or after.isalnum()):
            return Token(Kind.EMPTY, raw)
        return Token(Kind.WORD, raw)

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with a target for each segment that was without one."""
        coming = iter(translations)
        replacements: list[tuple[int, int, str]] = []
        for segment in self._segments:
            content = "".join(
                piece
                if isinstance(piece, str)
                else piece.render(next(coming) if piece.unit is not None else None, write_text)
                for piece in segment.pieces
            )
            replacements += self._write_target(segment, content)
        assert next(coming, None) is None
        if replacements and self._language:
            replacements += self._write_language(self._language)
        return self._file.encode(replace_spans(self._text, sorted(replacements)))

    def _write_target(self, segment: _Segment, content: str) -> Iterator[tuple[int, int, str]]:
        source, target, owner = segment.source, segment.target, segment.owner
        prefix = re.match(r"<([\w.-]+:)?", self._text[source.start :])
        name = f"{prefix[1] or ''}target" if prefix else "target"
        opening = f"<{name}>"
        if target is not None:
            opening = self._text[target.start : target.inside]
            opening = re.sub(r"\s*/>$", ">", opening)
        if self._version_2:
            if "state" in owner.attributes:
                tag = self._text[owner.start : owner.inside]
                yield owner.start, owner.inside, set_attribute(tag, "state", "translated")
        else:
            opening = set_attribute(opening, "state", "translated")
            opening = set_attribute(opening, "state-qualifier", "mt-suggestion")
        written = f"{opening}{content}</{name}>"
        if target is not None:
            yield target.start, target.end, written
        else:
            after = owner.find("seg-source") or source
            space = re.search(r"\s*\Z", self._text[owner.start : source.start])
            yield after.end, after.end, (space.group() if space else "") + written

    def _write_language(self, language: str) -> Iterator[tuple[int, int, str]]:
        owners = [self._root] if self._version_2 else self._root.children
        name = "trgLang" if self._version_2 else "target-language"
        for one in owners:
            if one.attributes.get(name) != language and (self._version_2 or one.name == "file"):
                tag = self._text[one.start : one.inside]
                yield one.start, one.inside, set_attribute(tag, name, language)


def _text_tokens(raw: str) -> Iterator[Token]:
    """Yield the parts of a text without elements; tags of another format in it are escaped."""
    for token in message_tokens(read_text(raw)):
        if token.kind is Kind.TEXT:
            yield token
        else:
            yield token._replace(raw=write_text(token.raw))
