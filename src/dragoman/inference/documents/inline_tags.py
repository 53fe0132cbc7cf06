"""A text with tags and placeholders in it becomes a unit, and its translation such a text again.

Tags are the marks of the unit. What stands for a word (a variable, inline code, an image in a
sentence) becomes a numbered placeholder, {1}, {2}, …, which protection keeps, whatever it was. All
of them are in the text that is written, even where a translation has lost one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Final, NamedTuple

from dragoman.inference.documents.document import PLACEHOLDER, Mark, Unit
from dragoman.inference.documents.file_text import has_letters

_MAX_NESTING: Final = 100
"""Tags that are deeper in others are not told apart, so that time stays in proportion."""


class Kind(Enum):
    """Say what a token of a text with markup is."""

    TEXT = "text"
    OPEN = "opening tag"
    CLOSE = "closing tag"
    EMPTY = "tag without content"
    WORD = "stands for a word"
    BREAK = "line break"


class Token(NamedTuple):
    """Hold a part of a text with markup."""

    kind: Kind
    raw: str
    """Text is given as it reads, without the file's escapes; all else as the file has it."""
    name: str = ""
    """A tag that closes ends the last one of its name that opened."""


_FIRST_WORD_KEY: Final = 1 << 32  # far from the keys of tags
_FIRST_BREAK_KEY: Final = 1 << 33
_TABS: Final = "tabs of the text"
"""A line break of this name is written as text is."""


@dataclass(slots=True)
class _Tag:
    opening: str
    closing: str = ""
    above: frozenset[int] = frozenset()
    """The tags of these keys were around it."""


@dataclass(slots=True)
class _Numbered:
    """Hold a token, and the key of the tag that it opens, closes or is."""

    token: Token
    key: int = -1


class InlineText:
    """Hold a text without line breaks as one unit, and what is around it."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        """Take the parts of a text in order; tags that have no partner count as empty ones."""
        numbered, self._tags = _pair_tags(tokens)
        start, end = _find_inside(numbered)
        self._before, self._inside, self._after = (
            [one.token for one in some]
            for some in (numbered[:start], numbered[start:end], numbered[end:])
        )
        self._words: dict[int, str] = {}
        self._breaks: list[Token] = []
        unit = self._make_unit(numbered[start:end])
        self.unit = unit if has_letters(PLACEHOLDER.sub("", unit.text)) else None
        """This is what to translate; None if there is no letter in it."""

    def _make_unit(self, tokens: Sequence[_Numbered]) -> Unit:
        plain = "".join(one.token.raw for one in tokens if one.token.kind is Kind.TEXT)
        number = max((int(one) for one in PLACEHOLDER.findall(plain)), default=0)
        parts: list[str] = []
        size = 0
        starts: dict[int, int] = {}
        marks: list[Mark] = []
        for one in tokens:
            kind, text = one.token.kind, ""
            if kind is Kind.TEXT:
                text = one.token.raw
            elif kind is Kind.WORD:
                number += 1
                self._words[number] = one.token.raw
                text = f"{{{number}}}"
                # The mark makes sure that the placeholder is in the translation, once.
                marks.append(Mark(size, size + len(text), _FIRST_WORD_KEY + number))
            elif kind is Kind.BREAK:
                text = "\n"
                marks.append(Mark(size, size + 1, _FIRST_BREAK_KEY + len(self._breaks)))
                self._breaks.append(one.token)
            elif kind is Kind.OPEN:
                starts[one.key] = size
            else:
                marks.append(Mark(starts.get(one.key, size), size, one.key))
            parts.append(text)
            size += len(text)
        return Unit("".join(parts), tuple(sorted(marks, key=lambda mark: mark.key)))

    def render(
        self, translation: Unit | None, escape: Callable[[str], str] = lambda text: text
    ) -> str:
        """Return the text as the file has it, with a translation in place of the unit.

        `escape` writes what is neither tag nor placeholder as the file needs it.
        """
        if self.unit is None or translation is None:
            inside = _join(self._inside, escape)
        else:
            inside = self.render_inside(translation, escape)
        return self.put_around(inside, escape)

    def render_inside(
        self, translation: Unit, escape: Callable[[str], str] = lambda text: text
    ) -> str:
        """Return a translation as the file has it, without what is around the unit."""
        text = translation.text
        present = {int(one) for one in PLACEHOLDER.findall(text)}
        for number in self._words:
            if number not in present:
                text = f"{text} {{{number}}}"
        written = "".join(self._write(text, translation.marks, escape))
        if not self._breaks:
            return written
        breaks = [_write_token(one, escape) for one in self._breaks]
        coming = iter(breaks)
        return re.sub("\n", lambda _: next(coming, breaks[-1]), written)

    def put_around(self, inside: str, escape: Callable[[str], str] = lambda text: text) -> str:
        """Return something with what is around the unit."""
        return _join(self._before, escape) + inside + _join(self._after, escape)

    @classmethod
    def join(cls, texts: Sequence[InlineText]) -> InlineText:
        """Return the units of several texts as one, with a space between them."""
        tokens: list[Token] = []
        for text in texts:
            tokens += [*([Token(Kind.TEXT, " ")] if tokens else []), *text._inside]
        return cls(tokens)

    def _write(
        self, text: str, marks: Sequence[Mark], escape: Callable[[str], str]
    ) -> Iterator[str]:
        marks = _nest([mark for mark in marks if mark.key in self._tags], len(text))
        places = sorted({0, len(text), *(p for mark in marks for p in (mark.start, mark.end))})
        still_open: list[Mark] = []
        beginning: dict[int, list[Mark]] = {}
        for mark in marks:
            beginning.setdefault(mark.start, []).append(mark)
        for place, following in pairwise([*places, len(text)]):
            here = [mark for mark in beginning.get(place, ()) if mark.end == place]
            while still_open and still_open[-1].end == place:
                mark = still_open.pop()
                yield from self._write_empty(
                    [one for one in here if mark.key in self._tags[one.key].above]
                )
                here = [one for one in here if mark.key not in self._tags[one.key].above]
                yield self._tags[mark.key].closing
            for mark in beginning.get(place, ()):
                if place < mark.end:
                    yield from self._write_empty(
                        [one for one in here if mark.key not in self._tags[one.key].above]
                    )
                    here = [one for one in here if mark.key in self._tags[one.key].above]
                    yield self._tags[mark.key].opening
                    still_open.append(mark)
            yield from self._write_empty(here)
            yield from self._write_text(text[place:following], escape)

    def _write_empty(self, marks: Sequence[Mark]) -> Iterator[str]:
        """Write tags that have nothing between them, one in another as they were."""
        still_open: list[int] = []
        for mark in sorted(marks, key=lambda mark: mark.key):
            while still_open and still_open[-1] not in self._tags[mark.key].above:
                yield self._tags[still_open.pop()].closing
            yield self._tags[mark.key].opening
            still_open.append(mark.key)
        while still_open:
            yield self._tags[still_open.pop()].closing

    def _write_text(self, text: str, escape: Callable[[str], str]) -> Iterator[str]:
        done = 0
        for match in PLACEHOLDER.finditer(text):
            if (word := self._words.get(int(match[1]))) is not None:
                yield self._write_lines(text[done : match.start()], escape)
                yield word
                done = match.end()
        yield self._write_lines(text[done:], escape)

    def _write_lines(self, text: str, escape: Callable[[str], str]) -> str:
        """Return escaped text; line breaks that are to be replaced are not escaped."""
        return "\n".join(map(escape, text.split("\n"))) if self._breaks else escape(text)


def _join(tokens: Iterable[Token], escape: Callable[[str], str]) -> str:
    return "".join(_write_token(one, escape) for one in tokens)


def _write_token(token: Token, escape: Callable[[str], str]) -> str:
    return escape(token.raw) if token.kind is Kind.TEXT or token.name == _TABS else token.raw


def _split_at_tabs(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield tokens in which tabs of the text are line breaks, as which they divide it."""
    for token in tokens:
        if token.kind is not Kind.TEXT or "\t" not in token.raw:
            yield token
            continue
        for part in re.split("(\t+)", token.raw):
            if part:
                yield Token(Kind.BREAK, part, _TABS) if part[0] == "\t" else Token(Kind.TEXT, part)


def _move_spaces(tokens: Iterable[Token]) -> list[Token]:
    """Return tokens in which spaces around a line break are the break's.

    So is the space after an empty tag, if there is one before it too.
    """
    found = list(_split_at_tabs(tokens))
    for place in range(1, len(found) - 1):
        before, tag, after = found[place - 1 : place + 2]
        if tag.kind is Kind.BREAK and before.kind is after.kind is Kind.TEXT:
            start, end = before.raw.rstrip(), after.raw.lstrip()
            spaces = before.raw[len(start) :], after.raw[: len(after.raw) - len(end)]
            found[place] = tag._replace(raw=tag.raw.join(spaces))
            found[place - 1], found[place + 1] = before._replace(raw=start), after._replace(raw=end)
        elif (
            tag.kind is Kind.EMPTY
            and before.kind is after.kind is Kind.TEXT
            and before.raw.endswith(" ")
            and after.raw.startswith(" ")
        ):
            found[place] = tag._replace(raw=f"{tag.raw} ")
            found[place + 1] = after._replace(raw=after.raw[1:])
    return found


def _pair_tags(tokens: Iterable[Token]) -> tuple[list[_Numbered], dict[int, _Tag]]:
    """Number the tags, those that open and close together alike; white space is set apart."""
    found: list[_Numbered] = []
    tags: dict[int, _Tag] = {}
    still_open: list[_Numbered] = []
    for token in _move_spaces(tokens):
        if token.kind is Kind.TEXT:
            core = token.raw.strip()
            start = token.raw.find(core) if core else len(token.raw)
            parts = token.raw[:start], core, token.raw[start + len(core) :]
            found += [_Numbered(Token(Kind.TEXT, part)) for part in parts if part]
            continue
        one = _Numbered(token)
        found.append(one)
        if token.kind is Kind.CLOSE:
            names = [other.token.name for other in still_open[-_MAX_NESTING:]]
            if token.name in names:
                place = len(still_open) - 1 - names[::-1].index(token.name)
                for other in still_open[place + 1 :]:
                    other.token = other.token._replace(kind=Kind.EMPTY)
                one.key = still_open[place].key
                tags[one.key].closing = token.raw
                del still_open[place:]
                continue
            one.token = token._replace(kind=Kind.EMPTY)
        if token.kind not in (Kind.WORD, Kind.BREAK):
            one.key = len(tags)
            tags[one.key] = _Tag(token.raw)
            if token.kind is Kind.OPEN:
                still_open.append(one)
    for other in still_open:
        other.token = other.token._replace(kind=Kind.EMPTY)
    around: list[int] = []
    for one in found:
        if one.token.kind is Kind.CLOSE:
            around.pop()
        elif one.key >= 0:
            tags[one.key].above = frozenset(around[-_MAX_NESTING:])
            if one.token.kind is Kind.OPEN:
                around.append(one.key)
    return found, tags


def _find_inside(tokens: Sequence[_Numbered]) -> tuple[int, int]:
    """Return where the unit begins and ends: without white space and tags around all of it."""

    def is_text(one: _Numbered) -> bool:
        return one.token.kind is Kind.WORD or (
            one.token.kind is Kind.TEXT and not one.token.raw.isspace()
        )

    filled = [place for place, one in enumerate(tokens) if is_text(one)]
    if not filled:
        return len(tokens), len(tokens)
    start, end = filled[0], filled[-1] + 1
    while True:
        before = {one.key for one in tokens[:start] if one.token.kind is Kind.OPEN}
        after = {one.key for one in tokens[end:] if one.token.kind is Kind.CLOSE}
        closed = {one.key for one in tokens[:start] if one.token.kind is Kind.CLOSE}
        opened = {one.key for one in tokens[end:] if one.token.kind is Kind.OPEN}
        alone = before - after - closed, after - before - opened
        if not alone[0] and not alone[1]:
            return start, end
        start = next((i for i in range(start) if tokens[i].key in alone[0]), start)
        end = next(
            (i + 1 for i in range(len(tokens) - 1, end - 1, -1) if tokens[i].key in alone[1]), end
        )


def _nest(marks: Sequence[Mark], size: int) -> list[Mark]:
    """Return marks in order, an outer one before an inner one; what crosses another is cut."""
    ordered = sorted(
        (
            replace(
                mark, start=min(max(0, mark.start), size), end=min(max(mark.start, mark.end), size)
            )
            for mark in marks
        ),
        key=lambda mark: (mark.start, -mark.end, mark.key),
    )
    found: list[Mark] = []
    around: list[Mark] = []
    for mark in ordered:
        while around and around[-1].end <= mark.start:
            around.pop()
        if around and mark.end > around[-1].end:
            mark = replace(mark, end=around[-1].end)
        found.append(mark)
        around.append(mark)
    return sorted(found, key=lambda mark: (mark.start, -mark.end, mark.key))


_TAG: Final = re.compile(r"<(?:(/)\s*)?([A-Za-z][\w:.-]*)(?:\s[^<>]*?|\s*)?(/?)>")
_EMPTY_TAGS: Final = frozenset({"hr", "img", "wbr", "input"})


def tag_token(raw: str) -> Token:
    """Return an XML or HTML tag as a token."""
    match = _TAG.fullmatch(raw)
    if match is None:
        return Token(Kind.EMPTY, raw)
    name = match[2].lower()
    if match[1]:
        return Token(Kind.CLOSE, raw, name)
    if name == "br":
        return Token(Kind.BREAK, raw)
    return Token(Kind.EMPTY if match[3] or name in _EMPTY_TAGS else Kind.OPEN, raw, name)


def split_tokens(
    text: str, pattern: re.Pattern[str], unescape: Callable[[str], str] = lambda text: text
) -> list[Token]:
    """Return the parts of a text: what the groups `tag` and `word` of a pattern match, and text."""
    tokens, done = [], 0
    for match in pattern.finditer(text):
        if match.start() > done:
            tokens.append(Token(Kind.TEXT, unescape(text[done : match.start()])))
        raw = match.group()
        tokens.append(tag_token(raw) if match.lastgroup == "tag" else Token(Kind.WORD, raw))
        done = match.end()
    if done < len(text):
        tokens.append(Token(Kind.TEXT, unescape(text[done:])))
    return tokens
