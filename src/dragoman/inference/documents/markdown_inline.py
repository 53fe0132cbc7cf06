"""Inline Markdown (emphasis, links, images, code, escapes) is read as tokens of a text.

markdown-it finds the blocks of a document, but does not say where in them inline elements stand,
so that these are found here, by CommonMark's rules.
"""

from __future__ import annotations

import html
import re
import string
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from dragoman.inference.documents.document import Unit
from dragoman.inference.documents.file_text import has_letters
from dragoman.inference.documents.inline_tags import Kind, TaggedText, Token, tag_token

_MAX_NESTING: Final = 20
_LINK: Final = "\ue011"
"""This stands for the bracket that opens a link, which is told apart from those of the text."""
_PATTERNS: Final = re.compile(
    r"""
    (?P<escape>\\[!-/:-@\[-`{-~])
    | (?P<code>`+)
    | (?P<comment><!--.{0,5000}?-->)
    | (?P<word>
        <[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*> | <[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+>
      | \{\{(?:(?!\{\{).){0,500}?\}\} | \{%(?:(?!\{%).){0,500}?%\}
      | \$\$[^$]+\$\$ | \$(?![\s$])[^$]*[^\s$\\]\$(?![\d$])
      | (?:https?|ftp)://[^\s<>]*[^\s<>.,;:!?)\]'"*_`]
      | (?<![\w.+-])[\w.+-]{1,64}@\w[\w-]*(?:\.\w[\w-]*)+
      | \[\[[^\[\]|]*\]\]
      | <(?P<code_tag>code|kbd|samp|var|math|svg)\b[^<>]*>[^<>]*</(?P=code_tag)\s*>
    )
    | (?P<tag></?[A-Za-z][A-Za-z0-9.-]*(?:\s[^<>]*)?/?>)
    | (?P<empty>\[\^[^\]\s]+\] | \{[#.:][^{}]*\} | (?<!\w):[a-z][a-z0-9_+-]*:(?!\w))
    | (?P<image>!\[)
    | (?P<link>\[)
    | (?P<entity>&(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)
    | (?P<delimiter>\*+|_+|~~(?!~))
    """,
    re.VERBOSE | re.DOTALL,
)
_PATTERNS_OF_MDX: Final = re.compile(
    rf"{_PATTERNS.pattern} | (?P<expression>\{{[^{{}}]*\}})", re.VERBOSE | re.DOTALL
)
_DESTINATION: Final = re.compile(
    r"""\(\s*(?:<[^<>\n]*>|(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.|\([^\s()]*\))*\))*)"""
    r"""(?:\s+(?P<quote>["'(])(?P<title>(?:[^"'()\\]|\\.|(?!(?P=quote))["'])*)["')])?\s*\)"""
)
_LABEL: Final = re.compile(r"\[((?:[^\[\]\\]|\\.)*)\]")


def normalize_label(label: str) -> str:
    """Return the label of a reference as CommonMark compares it."""
    return " ".join(label.split()).casefold().upper()


@dataclass(slots=True, eq=False)
class _Run:
    """Hold a run of characters that may open or close emphasis."""

    character: str
    count: int
    opens: bool
    closes: bool
    closing: list[Token] = field(default_factory=list)
    opening: list[Token] = field(default_factory=list)


class MarkdownText:
    """Hold inline Markdown of joined lines, with the texts of its images and titles."""

    def __init__(
        self, raw: str, references: Collection[str] = (), *, expressions: bool = False
    ) -> None:
        """Take inline Markdown; `references` are the labels that the document defines.

        With `expressions` what is in braces is code, as in MDX.
        """
        self._raw = raw
        self._references = references
        self._expressions = expressions
        self._nested: list[MarkdownText] = []
        self._pairs = 0
        self._text = TaggedText(self._set_edges_free(self._tokenize(raw, 0)))
        self.units = [self._text.unit] if self._text.unit is not None else []
        """These are to be translated: the text first."""
        for one in self._nested:
            self.units += one.units

    def fill(self, coming: Iterator[Unit]) -> str:
        """Return the Markdown with the next translations in it; the spaces in markup are U+E010."""
        taken = [next(coming) for _ in self.units]
        if taken == self.units:
            return self._raw
        following = iter(taken)
        unit = next(following) if self._text.unit is not None else None
        text = self._text.render(unit, escape_markdown)
        # A link that comes right after an exclamation mark would be an image.
        text = text.replace(f"!{_LINK}", f"\\!{_LINK}").replace(_LINK, "[")
        nested = [one.fill(following).replace(" ", "\ue010") for one in self._nested]
        return re.sub("\ue000(\\d+)\ue001", lambda match: nested[int(match[1])], text)

    def _nest(self, raw: str) -> str:
        """Return what stands for a text inside markup, which is translated by itself."""
        self._nested.append(MarkdownText(raw, self._references, expressions=self._expressions))
        return f"\ue000{len(self._nested) - 1}\ue001"

    def _set_edges_free(self, tokens: list[Token]) -> list[Token]:
        """Make tags of images and code that stand before or after all text."""
        is_text = [token.kind is Kind.TEXT and bool(token.raw.strip()) for token in tokens]
        if True not in is_text:
            return tokens
        first, last = is_text.index(True), len(tokens) - 1 - is_text[::-1].index(True)
        return [
            token._replace(kind=Kind.EMPTY)
            if token.raw.startswith("![") and token.kind is Kind.WORD and not first < n < last
            else token
            for n, token in enumerate(tokens)
        ]

    def _tokenize(self, raw: str, depth: int) -> list[Token]:
        parts: list[Token | _Run] = []
        at = done = 0
        code = _CodeSpans(raw)
        brackets = _match_brackets(raw, code)

        def add_text(end: int) -> None:
            if end > done:
                parts.append(Token(Kind.TEXT, raw[done:end]))

        patterns = _PATTERNS_OF_MDX if self._expressions else _PATTERNS
        while match := patterns.search(raw, at):
            group, start, end = match.lastgroup, match.start(), match.end()
            found: list[Token | _Run] | None = None
            if group == "escape":
                found = [Token(Kind.TEXT, match.group()[1])]
            elif group == "entity":
                found = [Token(Kind.TEXT, html.unescape(match.group()))]
            elif group == "code":
                if (closing := code.find_end(start)) >= 0:
                    end = closing
                    found = [_markup(Kind.WORD, raw[start:end])]
            elif group in ("word", "expression"):
                found = [_markup(Kind.WORD, match.group())]
            elif group in ("empty", "comment"):
                found = [_markup(Kind.EMPTY, match.group())]
            elif group == "tag":
                token = tag_token(match.group())
                found = [token._replace(raw=token.raw.replace(" ", "\ue010"))]
            elif group == "delimiter":
                found = [_make_run(raw, start, end)]
            elif group in ("image", "link"):
                close = brackets.get(end - 1, -1)
                link = self._read_link(raw, end, close, depth, image=group == "image")
                if link is not None:
                    found, end = link
            if found is not None:
                add_text(start)
                parts += found
                done = end
            at = end
        add_text(len(raw))
        return self._pair_delimiters(parts)

    def _read_link(
        self, raw: str, inside: int, close: int, depth: int, *, image: bool
    ) -> tuple[list[Token | _Run], int] | None:
        """Return the tokens of a link or image and where it ends, or None if it is none."""
        if close < 0 or depth >= _MAX_NESTING:
            return None
        label, after = raw[inside:close], close + 1
        if (match := _DESTINATION.match(raw, after)) and after < len(raw):
            end = match.end()
            target = raw[close:end]
            if has_letters(match["title"]):
                a, b = match.span("title")
                target = (
                    raw[close:a].replace(" ", "\ue010") + self._nest(match["title"]) + raw[b:end]
                )
        elif match := _LABEL.match(raw, after):
            end = match.end()
            target = raw[close:end] if match[1].strip() else f"][{label}]"
            if normalize_label(match[1].strip() or label) not in self._references:
                return None
        elif normalize_label(label) in self._references:
            end, target = after, f"][{label}]"
        else:
            return None
        target = target.replace(" ", "\ue010")
        if image:
            return [Token(Kind.WORD, f"![{self._nest(label)}{target}")], end
        self._pairs += 1
        name = f"link {self._pairs}"
        opening, closing = Token(Kind.OPEN, _LINK, name), Token(Kind.CLOSE, target, name)
        return [opening, *self._tokenize(label, depth + 1), closing], end

    def _pair_delimiters(self, parts: list[Token | _Run]) -> list[Token]:
        """Find what emphasis each run opens and closes, as CommonMark says."""
        runs = [part for part in parts if isinstance(part, _Run)]
        openers: list[_Run] = []
        original = {id(run): run.count for run in runs}
        for run in runs:
            while run.closes and run.count:
                opener = next(
                    (
                        one
                        for one in reversed(openers)
                        if one.character == run.character
                        and one.count
                        and not (
                            (one.closes or run.opens)
                            and (original[id(one)] + original[id(run)]) % 3 == 0
                            and (original[id(one)] % 3 or original[id(run)] % 3)
                        )
                    ),
                    None,
                )
                if opener is None:
                    break
                del openers[openers.index(opener) + 1 :]
                size = 2 if opener.count >= 2 and run.count >= 2 else 1
                if run.character == "~":
                    size = 2
                self._pairs += 1
                name, raw = f"emphasis {self._pairs}", run.character * size
                opener.opening.append(Token(Kind.OPEN, raw, name))
                run.closing.append(Token(Kind.CLOSE, raw, name))
                opener.count -= size
                run.count -= size
                if opener.count <= 0:
                    openers.remove(opener)
            if run.opens and run.count > 0:
                openers.append(run)
                del openers[:-200]  # a limit, so that time stays in proportion
        tokens: list[Token] = []
        for part in parts:
            if isinstance(part, Token):
                tokens.append(part)
                continue
            tokens += part.closing
            if part.count > 0:
                tokens.append(Token(Kind.TEXT, part.character * part.count))
            tokens += reversed(part.opening)
        return tokens


def _markup(kind: Kind, raw: str) -> Token:
    return Token(kind, raw.replace(" ", "\ue010"))


def _make_run(raw: str, start: int, end: int) -> _Run:
    """Return a run of delimiters with what it can do, by what stands on its sides."""
    before, after = raw[start - 1 : start] or " ", raw[end : end + 1] or " "
    spaces = before.isspace(), after.isspace()
    marks = _is_punctuation(before), _is_punctuation(after)
    left = not spaces[1] and (not marks[1] or spaces[0] or marks[0])
    right = not spaces[0] and (not marks[0] or spaces[1] or marks[1])
    character = raw[start]
    if character == "_":
        return _Run(
            "_", end - start, left and (not right or marks[0]), right and (not left or marks[1])
        )
    return _Run(character, end - start, left, right)


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character)[0] in "PS"


class _CodeSpans:
    """Find where a run of backticks is closed by one as long."""

    def __init__(self, raw: str) -> None:
        self._runs: dict[int, list[int]] = {}
        for match in re.finditer(r"`+", raw):
            self._runs.setdefault(len(match.group()), []).append(match.start())
        self._sizes = {start: size for size, starts in self._runs.items() for start in starts}

    def find_end(self, start: int) -> int:
        """Return where the code ends that a run opens, or -1."""
        size = self._sizes.get(start, 0)
        starts = self._runs.get(size, [])
        place = bisect_right(starts, start)
        return starts[place] + size if place < len(starts) else -1


def _match_brackets(raw: str, code: _CodeSpans) -> dict[int, int]:
    """Return for each opening bracket where it is closed; brackets in code are none."""
    found: dict[int, int] = {}
    still_open: list[int] = []
    done = 0
    for match in re.finditer(r"\\.|`+|[\[\]]", raw, re.DOTALL):
        if match.start() < done:
            continue
        sign = match.group()
        if sign[0] == "`":
            done = max(done, code.find_end(match.start()))
        elif sign == "[":
            still_open.append(match.start())
        elif sign == "]" and still_open:
            found[still_open.pop()] = match.start()
    return found


_SPECIAL: Final = re.compile(
    r"(?P<always>[\\`])|(?P<tag><(?=[A-Za-z/!?]))|(?P<entity>&(?=#?\w+;))"
    r"|(?P<star>\*+)|(?P<low>_+)|(?P<wave>~~+)"
    r"|(?P<pair>\[(?!\^)[^\[\]\\`<]*\](?![(\[:]))|(?P<bracket>[\[\]])"
)


def escape_markdown(text: str) -> str:
    """Return a text as Markdown that reads as the text does."""

    def escape(match: re.Match[str]) -> str:
        if match.lastgroup == "entity":
            return "&amp;"
        if match.lastgroup == "pair":  # no link, and none is ended by it
            return f"[{escape_markdown(match.group()[1:-1])}]"
        if match.lastgroup in ("star", "low"):
            run = _make_run(text, match.start(), match.end())
            if not run.opens and not run.closes:
                return match.group()
        return "".join(f"\\{character}" for character in match.group())

    return _SPECIAL.sub(escape, text)
