"""In HTML, texts between tags and in attributes are units; all else stays, byte for byte.

Text between block tags is one unit, and inline tags are marks on it. A page is read tag by tag and
not as a tree, so that whatever is between the texts, broken or not, is written as it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape, unescape
from typing import Final

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, DocumentTooLargeError, Unit
from dragoman.inference.documents.file_signatures import refuse_other_files
from dragoman.inference.documents.file_text import FileText, decode_text, has_letters
from dragoman.inference.documents.inline_tree import (
    LINE_BREAK,
    MAX_DEPTH,
    WORD,
    Group,
    InlineTree,
    Node,
    Object,
    Text,
    collapse_markup_spaces,
    has_letters_in,
)
from dragoman.inference.documents.unit_translation import UnitTexts
from dragoman.inference.documents.xml_positions import write_text
from dragoman.inference.join_translations import get_alternative
from dragoman.inference.translation_types import Translation

_TOKEN: Final = re.compile(
    r"<!--.*?(?:-->|$)|<!\[CDATA\[.*?(?:\]\]>|$)|<\?[^>]*>|<![^<>]*>"
    r"|<(?P<end>/?)(?P<name>[A-Za-z][^\s<>/\"'=]*)"
    r"(?P<rest>(?:[^\"'<>]++|\"[^\"]*+\"|'[^']*+')*>|[^<>]*>)",
    re.DOTALL,
)
_ATTRIBUTE: Final = re.compile(
    r"(?<=[\s\"'/])([^\s=<>\"'/]+)(\s*=\s*)(\"[^\"]*\"|'[^']*'|[^\s\"'<>=`]+)"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BLOCKS: Final = _words(
    "address applet article aside audio base blockquote body button caption center col colgroup "
    "datalist dd details dialog dir div dl dt fieldset figcaption figure footer form frame "
    "frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe label legend li link main map "
    "marquee menu menuitem meta nav noframes noscript object ol optgroup option output p param "
    "picture plaintext pre search section select source summary table tbody td template textarea "
    "tfoot th thead title tr track ul video xmp"
)
_VOID: Final = _words("area base br col embed hr img input link meta param source track wbr")
_RAW: Final = _words(
    "script style textarea xmp iframe noembed noframes plaintext object canvas svg pre"
)
"""What is in these elements is left as it is; what their attributes say is translated."""
_KEPT_WORDS: Final = _words("code kbd samp math")
"""These too, and they stand for a word where they are in a sentence."""
_RUBY: Final = frozenset(("rt", "rp"))
_FORMATTING: Final = _words("a b big em font i nobr s small span strike strong tt u")
_ATTRIBUTES: Final = _words(
    "alt title placeholder aria-label aria-description aria-placeholder aria-roledescription "
    "aria-valuetext label summary standby"
)
_DESCRIPTIONS: Final = _words(
    "description og:title og:description og:image:alt twitter:title twitter:description "
    "twitter:image:alt dc.title dc.description dcterms.title dcterms.description headline "
    "dc.description.abstract abstract"
)
"""What `<meta>` elements of these names say is translated."""
_FILE_NAME: Final = re.compile(r"\S+\.\w{2,4}|\w+://\S+")
_UNIT_OF_MEASURE: Final = re.compile(r"(?:\d|\b[munpkcdMG]?[mgslLAJWVN]|\bft|\byd|\bmi|\bin)$")
_SPACES: Final = " \t\r\n\f"
_MAX_PIECES: Final = 2000
"""Tags and texts in a paragraph are no more than so many."""


@dataclass(slots=True)
class _Attribute:
    """Hold a translatable attribute's value."""

    number: int
    """It is this unit of the page."""
    raw: str
    quote: str


_Pieces = list["str | _Attribute"]


@dataclass(slots=True)
class _Tag:
    """Hold an inline element's tags."""

    name: str
    opening: _Pieces
    closing: str = ""
    start: int = 0
    """It begins at this piece of its paragraph."""
    end: int = 0


@dataclass(slots=True)
class _Paragraph:
    """Hold a unit of the page and what it was read from."""

    number: int
    tree: InlineTree
    raw: _Pieces


@dataclass(slots=True)
class _Open:
    """Hold what has been read since the last block tag."""

    root: Group = field(default_factory=lambda: Group(None))
    stack: list[Group] = field(default_factory=list)
    raw: _Pieces = field(default_factory=list)
    last_space: str = ""
    """The last text ended with this white space."""
    spaced: bool = True
    """The text so far ends with a space, or there is none yet."""
    text: str = ""
    """This is the text so far, or its end."""
    breaks: int = 0
    """So many line breaks came since the last text."""


class HtmlText:
    """Hold a text with tags, as units and what stands between them."""

    def __init__(self, text: str, *, xml: bool = False, language: str | None = None) -> None:
        """Read a page or a part of one.

        With `xml` it is XHTML. A `language` is what a page says to be in afterwards.
        """
        self.text = text
        self.units: list[Unit] = []
        """These are to be translated."""
        self._xml, self._language = xml, language
        self._layout: list[str | _Attribute | _Paragraph] = []
        self._open = _Open()
        self._closes = self._find_closing_tags()
        self._read()

    def fill(self, translations: Sequence[Unit]) -> str:
        """Return the text with translations in place of its units."""
        if len(translations) != len(self.units):
            raise ValueError(f"{len(translations)} translations for {len(self.units)} units")
        self._translations = translations
        parts: list[str] = []
        for part in self._layout:
            if isinstance(part, _Paragraph):
                translation = translations[part.number]
                if translation == self.units[part.number]:
                    parts += map(self._write_piece, part.raw)
                else:
                    parts += self._write(part.tree.to_nodes(translation), last=True)
            else:
                parts.append(self._write_piece(part))
        return "".join(parts)

    # --- reading ---

    def _find_closing_tags(self) -> dict[str, int]:
        """Return where the last closing tag of each element begins."""
        return {
            match[1].lower(): match.start()
            for match in re.finditer(r"</([A-Za-z][^\s<>/]*)", self.text)
        }

    def _read(self) -> None:
        text, done = self.text, 0
        while match := _TOKEN.search(text, done):
            self._add_text(text[done : match.start()])
            done = match.end()
            name = match["name"]
            if len(self._open.raw) > _MAX_PIECES:
                self._finish_paragraph()
            if name is None:
                done = self._read_other(match)
            elif match["end"]:
                self._close(name.lower(), match.group())
            else:
                done = self._read_tag(match, name.lower())
        self._add_text(text[done:])
        self._finish_paragraph()

    def _read_other(self, match: re.Match[str]) -> int:
        """Read a comment, a declaration or the like; return where it ends."""
        raw = match.group()
        if self._xml and raw.startswith("<![CDATA["):
            # It is text, which is written with escapes if it is translated.
            inner = raw[9 : -3 if raw.endswith("]]>") else None]
            self._add_text(raw, inner)
        elif raw.startswith("<!--") or raw.startswith("<![") or raw.startswith("<?"):
            self._add_object([raw])
        else:
            self._add_block([raw])
        return match.end()

    def _read_tag(self, match: re.Match[str], name: str) -> int:
        """Read an opening tag, with what is in it if that stays; return where that ends."""
        raw, end = match.group(), match.end()
        empty = name in _VOID or (raw.endswith("/>") and (self._xml or name not in _BLOCKS))
        if self._xml and name not in _VOID:
            empty = raw.endswith("/>")
        left_alone = _is_left_alone(raw)
        stop: int | None = None
        if not empty and (left_alone or name in _RAW or name in _KEPT_WORDS or name in _RUBY):
            stop = self._find_end(name, end)
        if name == "html" and self._language:
            raw = _set_language(raw, self._language, xml=self._xml)
        if name in _BLOCKS or "-" in name:
            self._finish_paragraph()
        pieces: _Pieces = [raw] if left_alone else self._read_attributes(name, raw)
        if stop is not None:
            self._add_untouched(name, [*pieces, self.text[end:stop]])
            return stop
        if name == "br":
            self._add_break(pieces)
        elif name in _BLOCKS or "-" in name:
            self._layout += pieces
        elif empty:
            self._add_object(pieces)
        elif name == "sup" and (stop := self._find_note(end)) is not None:
            self._add_object([self.text[match.start() : stop]])
            return stop
        else:
            self._add_group(name, pieces)
        return end

    def _find_end(self, name: str, start: int, within: int | None = None) -> int | None:
        """Return where an element ends; None if it never does, or not within so many characters."""
        if self._closes.get(name, -1) < start:
            return None
        depth, found = 1, None
        # In these there are no tags.
        nests = name not in ("script", "style", "textarea", "xmp", "iframe", "title")
        for match in re.compile(rf"<(/?){re.escape(name)}(?![\w:.-])[^<>]*>", re.I).finditer(
            self.text, start, len(self.text) if within is None else start + within
        ):
            if match[1]:
                depth -= 1
            elif nests and not match.group().endswith("/>"):
                depth += 1
            found = match.end() if match[1] else found
            if not depth:
                break
        return found

    def _find_note(self, start: int) -> int | None:
        """Return where a superscript ends that refers to a note; None if it is none."""
        end = self._find_end("sup", start, 400)
        if end is None:
            return None
        inner = self.text[start:end]
        words = unescape(re.sub(r"<[^<>]*>", "", inner))
        if len(words.strip()) > 8 or re.search(r"[^\W\d_]{2}", words):
            return None
        before = self._open.text
        linked = re.search(r"<a\b", inner, re.IGNORECASE)
        if not linked and (_UNIT_OF_MEASURE.search(before) or re.search(r"[^\W\d_]", words)):
            return None
        return end if linked or before[-1:].isalpha() or before[-1:] in ".,;:!?)" else None

    def _read_attributes(self, name: str, raw: str) -> _Pieces:
        """Return a tag with its translatable attributes as units."""
        if "=" not in raw:
            return [raw]
        found = list(_ATTRIBUTE.finditer(raw))
        values = {match[1].lower(): unescape(_unquote(match[3])) for match in found}
        pieces: _Pieces = []
        done = 0
        for match in found:
            text = collapse_markup_spaces(values[match[1].lower()]).strip()
            if (
                _is_translatable(name, match[1].lower(), values)
                and has_letters(text)
                and not _FILE_NAME.fullmatch(text)
            ):
                quote = match[3][0] if match[3][0] in _ESCAPES else ""
                pieces += [
                    raw[done : match.start(3)],
                    _Attribute(len(self.units), match[3], quote),
                ]
                self.units.append(Unit(text))
                done = match.end(3)
        return [*pieces, raw[done:]]

    def _add_text(self, raw: str, text: str | None = None) -> None:
        if not raw:
            return
        now = self._open
        now.raw.append(raw)
        text = collapse_markup_spaces(unescape(raw) if text is None else text)
        nodes = now.stack[-1].children if now.stack else now.root.children
        if now.spaced and text.startswith(" "):
            space = raw[: len(raw) - len(raw.lstrip(_SPACES))]
            if nodes and isinstance(nodes[-1], Object) and isinstance(nodes[-1].content, list):
                nodes[-1].content.append(space)
            elif not now.text:
                nodes.append(Object([space]))
            text = text[1:]
        if text:
            nodes.append(Text(text))
            now.text = (now.text + text)[-40:]
            now.spaced = text.endswith(" ")
            now.last_space = raw[len(raw.rstrip(_SPACES)) :]
            now.breaks = 0

    def _add_object(self, pieces: _Pieces, stands_for: str = "") -> None:
        now = self._open
        now.raw += pieces
        nodes = now.stack[-1].children if now.stack else now.root.children
        nodes.append(Object(list(pieces), stands_for))
        if stands_for == WORD:
            now.spaced, now.text, now.breaks = False, "{}", 0

    def _add_break(self, pieces: _Pieces) -> None:
        now = self._open
        self._add_object(pieces, LINE_BREAK)
        now.breaks += 1
        now.spaced = True
        if now.breaks > 1:
            self._finish_paragraph()

    def _add_untouched(self, name: str, pieces: _Pieces) -> None:
        if name in _BLOCKS:
            self._add_block(pieces)
        else:
            self._add_object(pieces, "" if name in _RAW or name in _RUBY else WORD)

    def _add_group(self, name: str, pieces: _Pieces) -> None:
        now = self._open
        if len(now.stack) >= MAX_DEPTH:
            self._add_object(pieces)
            return
        group = Group(_Tag(name, pieces, start=len(now.raw)))
        now.raw += pieces
        (now.stack[-1].children if now.stack else now.root.children).append(group)
        now.stack.append(group)

    def _close(self, name: str, raw: str) -> None:
        """Read a closing tag; formatting that it wrongly ends as well begins again."""
        now = self._open
        names = [group.content.name for group in now.stack]
        if name not in names:
            if name in _BLOCKS or "-" in name:
                self._add_block([raw])
            else:
                self._add_object([raw])
            return
        now.raw.append(raw)
        place = len(names) - 1 - names[::-1].index(name)
        closed, others = now.stack[place], now.stack[place + 1 :]
        closed.content.closing = raw
        for group in now.stack[place:]:
            group.content.end = len(now.raw)
        del now.stack[place:]
        for group in others:
            group.content.closing = f"</{group.content.name}>"
            if group.content.name in _FORMATTING:
                again = Group(_Tag(group.content.name, group.content.opening, start=len(now.raw)))
                (now.stack[-1].children if now.stack else now.root.children).append(again)
                now.stack.append(again)

    def _add_block(self, pieces: _Pieces) -> None:
        self._finish_paragraph()
        self._layout += pieces

    def _finish_paragraph(self) -> None:
        now, self._open = self._open, _Open()
        for group in now.stack:
            group.content.end = len(now.raw)
        done = 0
        for start, end, nodes in _find_parts(now.root.children, len(now.raw)):
            _set_last_space_apart(nodes, now.last_space)
            tree = InlineTree(nodes)
            if not tree.is_translatable:
                continue
            self._layout += now.raw[done:start]
            self._layout.append(_Paragraph(len(self.units), tree, now.raw[start:end]))
            self.units.append(tree.unit)
            done = end
        self._layout += now.raw[done:]

    # --- writing ---

    def _write_piece(self, piece: str | _Attribute) -> str:
        if isinstance(piece, str):
            return piece
        translation = self._translations[piece.number].text
        if translation == self.units[piece.number].text:
            return piece.raw
        quote = piece.quote or '"'
        return quote + self._escape(translation).replace(quote, _ESCAPES[quote]) + quote

    def _escape(self, text: str) -> str:
        text = write_text(text) if self._xml else escape(text, quote=False)
        text = text.replace("\xa0", "&#160;" if self._xml else "&nbsp;")
        return text.replace("\xad", "&#173;" if self._xml else "&shy;")

    def _write(self, nodes: Sequence[Node], *, last: bool) -> list[str]:
        """Write nodes; `last` says that no text comes after them in the paragraph."""
        parts: list[str] = []
        for i, node in enumerate(nodes):
            if isinstance(node, Text):
                parts.append(self._escape(node.text))
            elif isinstance(node, Object):
                parts += map(self._write_piece, node.content)
            else:
                tag = node.content
                at_end = last and all(isinstance(other, Object) for other in nodes[i + 1 :])
                parts += map(self._write_piece, tag.opening)
                parts += self._write(node.children, last=at_end)
                # An element that was not closed before the next block is not closed now.
                parts.append(tag.closing or ("" if at_end else f"</{tag.name}>"))
        return parts


_ESCAPES: Final = {'"': "&quot;", "'": "&#39;"}


def _unquote(value: str) -> str:
    """Return the value of an attribute without the quotes around it."""
    return value[1:-1] if value[0] in _ESCAPES else value


def _is_left_alone(raw: str) -> bool:
    """Return whether a tag says that its element is not to be translated."""
    if "translate" not in raw.lower():
        return False
    values = {match[1].lower(): _unquote(match[3]) for match in _ATTRIBUTE.finditer(raw)}
    return values.get("translate", "").lower() == "no" or any(
        name in ("notranslate", "no-translate") for name in values.get("class", "").lower().split()
    )


def _is_translatable(name: str, attribute: str, values: dict[str, str]) -> bool:
    if attribute == "content":
        kinds = (values.get(key, "").lower() for key in ("name", "property", "itemprop"))
        return name == "meta" and any(kind in _DESCRIPTIONS for kind in kinds)
    if attribute == "value":
        return name == "input" and values.get("type", "").lower() in ("button", "submit", "reset")
    if attribute == "label":
        return name in ("option", "optgroup", "track", "menu", "menuitem")
    if attribute == "title":
        return name not in ("link", "style")
    return attribute in _ATTRIBUTES


def _set_language(raw: str, language: str, *, xml: bool) -> str:
    """Return an `<html>` tag that says another language."""
    names = []

    def change(match: re.Match[str]) -> str:
        name = match[1].lower()
        if name not in ("lang", "xml:lang"):
            return match.group()
        names.append(name)
        return f'{match[1]}{match[2]}"{language}"'

    changed = _ATTRIBUTE.sub(change, raw)
    if not names:
        attribute = "xml:lang" if xml else "lang"
        changed = f'{raw[:5]} {attribute}="{language}"{raw[5:]}'
    return changed


def _find_parts(nodes: list[Node], size: int) -> list[tuple[int, int, list[Node]]]:
    """Return where units begin and end in a paragraph's pieces; a list of links is several."""
    groups = [node for node in nodes if isinstance(node, Group) and has_letters_in(node)]
    only_groups = len(groups) == sum(map(has_letters_in, nodes))
    if only_groups and len(groups) == 1 and groups[0].content.name != "a":
        inner = _find_parts(groups[0].children, size)
        if len(inner) > 1:
            return inner
    if only_groups and len(groups) > 1 and all(group.content.name == "a" for group in groups):
        return [(one.content.start, one.content.end, [one]) for one in groups]
    return [(0, size, nodes)]


def _set_last_space_apart(nodes: list[Node], space: str) -> None:
    """Make an object of the white space at the end of a paragraph."""
    for i in range(len(nodes) - 1, -1, -1):
        node = nodes[i]
        if isinstance(node, Group) and node.children:
            _set_last_space_apart(node.children, space)
            return
        if isinstance(node, Text):
            text = node.text.rstrip(" ")
            if text != node.text:
                nodes[i : i + 1] = [Text(text), Object([space])]
            if text:
                return
        elif isinstance(node, Object) and node.stands_for == WORD:
            return


# --- several texts with alternatives ---


class HtmlTexts:
    """Hold some texts with tags as one list of texts to translate."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [HtmlText(text) for text in texts]
        self._units = [UnitTexts(text.units) for text in self._texts]
        self.plain = [text for units in self._units for text in units.plain]
        """These have no tags inside."""
        self.tagged = [text for units in self._units for text in units.marked]
        """These had; they must be aligned."""

    def __len__(self) -> int:
        return len(self.plain) + len(self.tagged)

    def assemble(
        self, plain: Sequence[Translation], tagged: Sequence[Translation]
    ) -> list[Translation]:
        """Return the translation of each text, given those of what it was divided into."""
        coming_plain, coming_tagged = iter(plain), iter(tagged)
        results = []
        for text, units in zip(self._texts, self._units, strict=True):
            found = (
                [next(coming_plain) for _ in units.plain],
                [next(coming_tagged) for _ in units.marked],
            )
            most = max((len(one.alternatives) for side in found for one in side), default=0)
            score = sum(one.score for side in found for one in side)
            best, *others = (
                Translation(
                    text.text,
                    text.fill(
                        units.assemble(
                            *([get_alternative(one, rank) for one in side] for side in found)
                        )
                    ),
                    score,
                    (),
                )
                for rank in range(most + 1)
            )
            results.append(replace(best, alternatives=tuple(others)))
        return results


# --- files ---

_ENCODINGS: Final = {
    # What browsers take these names for (https://encoding.spec.whatwg.org).
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "iso-8859-9": "cp1254",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "unicode": "utf-8",
    "utf-16": "utf-8",  # a page that can be read without knowing so is not
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
}
_CHARSET: Final = re.compile(
    rb"<meta[^<>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)"
    rb"|^\s*<\?xml[^<>]{0,100}?encoding\s*=\s*[\"']([A-Za-z0-9_.-]+)",
    re.IGNORECASE,
)


def decode_page(content: bytes) -> FileText:
    """Return a page's text: by its byte order mark, by the charset it names, else as UTF-8."""
    match = _CHARSET.search(content[:4096])
    named = ((match[1] or match[2]).decode("ascii").lower() if match else "utf-8").strip()
    encoding = _ENCODINGS.get(named, named)
    try:
        return decode_text(content, encoding, markup=True)
    except DataError:
        if encoding != "cp1252":
            raise
        return decode_text(content, "latin-1", markup=True)  # five bytes are control characters


class HtmlDocument(Document):
    """Hold a web page."""

    def __init__(
        self, content: bytes, *, max_bytes: int, target_language: str | None = None
    ) -> None:
        if len(content) > max_bytes:
            raise DocumentTooLargeError(f"the file has more than {max_bytes} bytes")
        refuse_other_files(content, "a web page", ("an XML file", "a web page"))
        self._page = decode_page(content)
        xml = bool(re.match(r"\s*<\?xml", self._page.text))
        self._text = HtmlText(self._page.text, xml=xml, language=target_language)
        self.units = self._text.units

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the page with a translation in place of each unit."""
        return self._page.encode(self._text.fill(translations))
