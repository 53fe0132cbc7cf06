"""In Markdown, paragraphs, headings, lists, tables and notes are translated where they stand.

markdown-it finds the blocks. Code, links' addresses, raw HTML, mathematics, templates and the
front matter but for its title and description stay; a paragraph that was wrapped is wrapped again.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.file_text import LINE, decode_file, has_letters, replace_spans
from dragoman.inference.documents.inline_tags import TaggedText, split_tokens
from dragoman.inference.documents.markdown_inline import MarkdownText, normalize_label
from dragoman.inference.documents.message_text import MessageText
from dragoman.text.sentence_splitting import ends_sentence

Span = tuple[int, int]


class _Part(Protocol):
    """Hold a part of the file that is translated by itself."""

    span: Span
    units: list[Unit]

    def fill(self, coming: Iterator[Unit]) -> str:
        """Return what to write in its place, with the next translations."""


class _Lines:
    """Hold lines that were joined, and are wrapped again."""

    def __init__(
        self,
        text: str,
        spans: Sequence[Span],
        parse: Callable[[str], MarkdownText],
        *,
        begins_block: bool = True,
    ) -> None:
        self.span = spans[0][0], spans[-1][1]
        self._raw = text[slice(*self.span)]
        self._between = [text[a:b] for (_, a), (b, _) in pairwise(spans)]
        self._width = max(b - a for a, b in spans)
        self._markdown = parse(" ".join(text[a:b] for a, b in spans))
        self._protect = _protect_start if begins_block else str
        self.units = self._markdown.units

    def fill(self, coming: Iterator[Unit]) -> str:
        taken = [next(coming) for _ in self.units]
        if taken == self.units:
            return self._raw
        filled = self._markdown.fill(iter(taken))
        lines = [filled] if not self._between else _wrap(filled, self._width)
        parts = [self._protect(lines[0])]
        for number, line in enumerate(lines[1:]):
            parts += [self._between[min(number, len(self._between) - 1)], self._protect(line)]
        return "".join(parts).replace("\ue010", " ")


_BEGINS_HTML: Final = re.compile(r"<[A-Za-z/!?]")
"""At the beginning of a line this could begin a block of HTML."""


def _wrap(text: str, width: int) -> list[str]:
    """Return a text in lines of at most a width, if it can be; words stay whole."""
    lines = [""]
    for word in text.split(" "):
        if not lines[-1]:
            lines[-1] = word
        elif len(lines[-1]) + 1 + len(word) <= width or _BEGINS_HTML.match(word):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _protect_start(line: str) -> str:
    """Return a line that does not begin a list, a heading or a quote by chance."""
    if re.match(r"(?:[-+*:]|#{1,6}|=+|-{2,})(?:[ \ue010]|$)|>|~~~|:::", line):
        return f"\\{line}"
    return re.sub(r"^(\d{1,9})([.)])(?=[ \ue010]|$)", r"\1\\\2", line)


class _TableCell:
    """Hold a cell of a table, whose column keeps its width if it can."""

    def __init__(self, text: str, span: Span, parse: Callable[[str], MarkdownText]) -> None:
        cell = text[slice(*span)]
        start = span[0] + len(cell) - len(cell.lstrip())
        self._inside = cell.strip()
        self.span = start, max(start, span[1])
        self._after = text[start + len(self._inside) : self.span[1]]
        self._markdown = parse(self._inside.replace("\\|", "|"))
        self.units = self._markdown.units

    def fill(self, coming: Iterator[Unit]) -> str:
        taken = [next(coming) for _ in self.units]
        if taken == self.units:
            return self._inside + self._after
        filled = self._markdown.fill(iter(taken)).replace("\ue010", " ").replace("|", "\\|")
        spare = len(self._inside) + len(self._after) - len(filled)
        return filled + " " * max(spare, min(1, len(self._after)))


class _Plain:
    """Hold a text that is written in its own way: a value of the front matter, text in HTML."""

    def __init__(
        self, span: Span, message: MessageText | TaggedText, raw: str, write: Callable[[str], str]
    ) -> None:
        self.span, self._message, self._raw, self._write = span, message, raw, write
        if isinstance(message, MessageText):
            self.units = message.units
        else:
            self.units = [message.unit] if message.unit is not None else []

    def fill(self, coming: Iterator[Unit]) -> str:
        taken = [next(coming) for _ in self.units]
        if taken == self.units:
            return self._raw
        if isinstance(self._message, MessageText):
            return self._write(self._message.fill(iter(taken)))
        return self._message.render(taken[0], self._write)


class MarkdownDocument(Document):
    """Hold a Markdown file."""

    def __init__(self, content: bytes, *, max_bytes: int, mdx: bool = False) -> None:
        """Read a file; in MDX what is in braces, and what is imported and exported, is code."""
        from markdown_it import MarkdownIt

        self._file = decode_file(content, max_bytes=max_bytes)
        self._text = self._file.text
        self._mdx = mdx
        parts: list[_Part] = []
        start = 0
        if matter := _FRONT_MATTER.match(self._text):
            parts += _read_front_matter(self._text, matter)
            start = matter.end()
        parser: Any = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        parser.disable(["inline"])
        environment: dict[str, Any] = {}
        try:
            tokens = parser.parse(self._text[start:], environment)
        except RecursionError:
            raise DataError("the Markdown is nested too deeply") from None
        references = environment.get("references", {})
        self._labels = {normalize_label(match[1]) for match in _DEFINITION.finditer(self._text)}
        self._lines = [match.span(1) for match in LINE.finditer(self._text, start)]
        block, in_row = "", False
        for one in tokens:
            if one.type in ("tr_open", "tr_close"):
                in_row = one.type == "tr_open"
            if one.type != "inline" or not in_row:
                parts += self._read_block(one, heading=block == "heading_open")
            block = one.type
        for label, reference in references.items():
            if label.startswith("^"):  # a note of one word, which looks like a reference
                parts += self._read_lines(*reference["map"], prefix=_NOTE)
        self._parts = sorted((part for part in parts if part.units), key=lambda one: one.span)
        self.units = [unit for part in self._parts for unit in part.units]

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with translations in it."""
        coming = iter(translations)
        replacements = [(*part.span, part.fill(coming)) for part in self._parts]
        assert next(coming, None) is None
        return self._file.encode(replace_spans(self._text, replacements))

    def _parse(self, raw: str) -> MarkdownText:
        return MarkdownText(raw, self._labels, expressions=self._mdx)

    def _read_block(self, token: Any, *, heading: bool) -> Iterator[_Part]:
        """Yield what is translated of a block."""
        if token.type == "tr_open":
            yield from self._read_row(token.map[0])
        elif token.type == "html_block":
            span = self._lines[token.map[0]][0], self._lines[token.map[1] - 1][1]
            yield from _read_html(self._text, span)
        elif token.type == "inline" and token.map:
            first, end = token.map
            lines = token.content.split("\n")
            if len(lines) == end - first:
                found = [self._locate(first + n, line.strip()) for n, line in enumerate(lines)]
                spans = [span for span in found if span is not None]
                if heading and spans:
                    yield _Lines(self._text, spans, self._parse, begins_block=False)
                elif spans:
                    yield from self._read_paragraph(spans)

    def _locate(self, number: int, content: str) -> Span | None:
        """Return where a line's content stands in it, after the signs of quotes and lists."""
        start, end = self._lines[number]
        line = self._text[start:end].rstrip()
        place = len(line) - len(content) if line.endswith(content) else line.find(content)
        return (start + place, start + place + len(content)) if place >= 0 and content else None

    def _read_lines(self, first: int, end: int, *, prefix: re.Pattern[str]) -> Iterator[_Part]:
        spans: list[Span] = []
        for a, b in self._lines[first:end]:
            match = prefix.match(self._text, a, b) if not spans else None
            spans.append((match.end() if match else a, b))
        yield from self._read_paragraph(spans)

    def _read_paragraph(self, spans: Sequence[Span]) -> Iterator[_Part]:
        """Yield the parts of a paragraph: lines up to one that ends with a hard break."""
        run: list[Span] = []
        in_formula, alone = False, _one_sentence_a_line(self._text, spans)
        for n, (a, b) in enumerate(spans):
            line = self._text[a:b]
            literal = in_formula or _LITERAL_LINE.match(line) or _DEFINITION.fullmatch(line)
            if self._mdx and re.match(r"(?:import|export)\b", line):
                literal = True
            if line.count("$$") % 2:
                in_formula, literal = not in_formula, True
            prefix = _PREFIX.match(line)
            if literal or (prefix and prefix.end()):
                yield from self._finish(run)
                run = []
            if literal:
                continue
            a += prefix.end() if prefix else 0
            end = b - len(line) + len(line.rstrip("\\").rstrip())
            hard = end < b or _HARD_BREAK.match(self._text, b) or _BREAK_TAG.search(line)
            if a < end:
                run.append((a, end))
            if (hard and n + 1 < len(spans)) or alone:
                yield from self._finish(run)
                run = []
        yield from self._finish(run)

    def _finish(self, run: Sequence[Span]) -> Iterator[_Part]:
        if run:
            yield _Lines(self._text, run, self._parse)

    def _read_row(self, number: int) -> Iterator[_Part]:
        start, end = self._lines[number]
        line = self._text[start:end]
        prefix = re.match(r"[\s>]*(?:(?:[-+*]|\d{1,9}[.)])\s+)?[\s>]*\|?", line)
        begin = start + (prefix.end() if prefix else 0)
        for match in re.compile(r"((?:[^|\\]|\\.)*)(\||\Z|$)").finditer(self._text, begin, end):
            if match[1].strip():
                yield _TableCell(self._text, match.span(1), self._parse)


_DEFINITION: Final = re.compile(
    r"""^[ >]*\[(?!\^)((?:[^\[\]\\]|\\.)+)\]:[ \t]+\S+(?:[ \t]+["'(].*)?$""", re.MULTILINE
)
_LITERAL_LINE: Final = re.compile(
    r":{3,}|\[!\w+\]\s*$|!!!\s|\?\?\?\+?\s|\{%.*%\}\s*$|\[TOC\]\s*$|\[\[.*\]\]\s*$|</?[A-Z]\w*[^<>]*>\s*$"
)
"""Such lines belong to extensions of Markdown: admonitions, alerts, templates, components."""
_PREFIX: Final = re.compile(r"(?:\[\^[^\]\s]+\]:\s*|\[[ xX]\]\s+|:\s+)?")
_NOTE: Final = re.compile(r"[\s>]*\[\^[^\]\s]+\]:\s*")
_HARD_BREAK: Final = re.compile(r" {2,}\r?\n")
_BREAK_TAG: Final = re.compile(r"<br\s*/?>\s*$", re.IGNORECASE)


def _one_sentence_a_line(text: str, spans: Sequence[Span]) -> bool:
    """Return whether each line of a paragraph ends like a sentence: such lines stay lines."""
    return len(spans) > 1 and all(ends_sentence(text[a:b].rstrip(), also=":;") for a, b in spans)


# --- front matter ---

_FRONT_MATTER: Final = re.compile(
    r"(?P<fence>---|\+\+\+)[ \t]*(?:\r\n|\n)(?P<body>(?:.*?(?:\r\n|\n))??)"
    r"(?P=fence)[ \t]*(?:\r\n|\n|\Z)",
    re.DOTALL,
)
_KEYS: Final = (
    "title|description|subtitle|summary|excerpt|tagline|lead|abstract|linkTitle|sidebar_label"
)
_VALUE: Final = re.compile(
    rf"^(?:{_KEYS})[ \t]*(?P<sign>[:=])[ \t]*(?P<value>\S[^\r\n]*?)[ \t]*$", re.MULTILINE
)
_BLOCK_VALUE: Final = re.compile(r"[|>][+-]?\d?")


def _read_front_matter(text: str, matter: re.Match[str]) -> Iterator[_Part]:
    """Yield the title, the description and the like, each on one line."""
    for match in _VALUE.finditer(text, *matter.span("body")):
        raw, span = match["value"], match.span("value")
        if match["sign"] == "=" and not raw.startswith(('"', "'")):
            continue
        if _BLOCK_VALUE.fullmatch(raw):
            spans = _find_indented(text, match.end(), matter.end("body"))
            if raw[0] == ">" and spans:
                yield _Lines(text, spans, MarkdownText, begins_block=False)
            else:
                yield from (_Lines(text, [one], MarkdownText, begins_block=False) for one in spans)
        elif raw[0] == '"' and raw[-1] == '"' and len(raw) > 1:
            try:
                value = json.loads(raw)
            except ValueError:
                continue
            yield _Plain(span, MessageText(value), raw, _write_double_quoted)
        elif raw[0] == "'" and raw[-1] == "'" and len(raw) > 1:
            value = raw[1:-1].replace("''", "'")
            yield _Plain(span, MessageText(value), raw, _write_single_quoted)
        elif raw[0] not in "\"'[]{}&*!|>%@`#" and " #" not in raw:
            yield _Plain(span, MessageText(raw), raw, _write_bare)


def _find_indented(text: str, start: int, end: int) -> list[Span]:
    """Return where the indented lines after | or > stand."""
    spans = []
    line = re.compile(r"(?:\r\n|\n)(?:[ \t]+(\S[^\r\n]*)|[ \t]*(?=[\r\n]))")
    while match := line.match(text, start, end):
        start = match.end()
        if match[1]:
            spans.append(match.span(1))
    return spans


def _write_double_quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_single_quoted(value: str) -> str:
    return "'{}'".format(value.replace("'", "''"))


def _write_bare(value: str) -> str:
    """Return a value of YAML, in quotes if it would mean something else without."""
    if re.search(r":(?:\s|$)|\s#|^[\"'\[\]{}&*!|>%@`#,?-]|^[\d.]+$|^\s|\s$", value) or (
        value.lower() in ("yes", "no", "true", "false", "null", "on", "off", "~")
    ):
        return _write_double_quoted(value)
    return value


# --- HTML blocks ---

_HTML: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|pre|code|kbd|samp|svg|math|textarea)\b.*?(?:</\1\s*>|\Z)"
    r"|</?(?P<name>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?>|<[!?][^<>]*>",
    re.DOTALL | re.IGNORECASE,
)
_INLINE_NAMES: Final = (
    "a abbr b bdi bdo big cite del dfn em font i ins mark q s small span strong sub sup time tt u "
    "var"
)
_INLINE_TAGS: Final = frozenset(_INLINE_NAMES.split())
_INLINE_MARKUP: Final = re.compile(r"(?P<tag></?[A-Za-z][^<>]*>)")
_ATTRIBUTE: Final = re.compile(r"""\s(?:alt|title)=(["'])(?P<value>[^"'<>]*)\1""", re.IGNORECASE)


def _read_html(text: str, span: Span) -> Iterator[_Part]:
    """Yield the text between the tags of raw HTML, and the texts of its images."""
    start = span[0]
    for match in _HTML.finditer(text, *span):
        name = (match["name"] or "").lower()
        if name in _INLINE_TAGS:
            continue
        yield from _read_html_text(text, start, match.start())
        for attribute in _ATTRIBUTE.finditer(text, *match.span()) if name else ():
            value = MessageText(html.unescape(attribute["value"]))
            yield _Plain(attribute.span("value"), value, attribute["value"], html.escape)
        start = match.end()
    yield from _read_html_text(text, start, span[1])


def _read_html_text(text: str, start: int, end: int) -> Iterator[_Part]:
    raw = text[start:end]
    if not has_letters(_INLINE_MARKUP.sub("", raw)):
        return
    core = raw.strip()
    start += raw.find(core)
    if re.search(r"\n[ \t]*>", core):
        return  # in a quote, whose signs are between the lines
    joined = re.sub(r"\s*\n\s*", " ", core)
    inline = TaggedText(split_tokens(joined, _INLINE_MARKUP, html.unescape))
    yield _Plain(
        (start, start + len(core)), inline, core, lambda value: html.escape(value, quote=False)
    )
