"""A text with tags and placeholders in it becomes a unit, and its translation such a text again.

A format gives the text as tokens; tags that belong together are groups of an inline tree. What
stands for a word (a variable, inline code, an image in a sentence) becomes a numbered placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from dragoman.inference.documents.document import Unit
from dragoman.inference.documents.inline_tree import (
    LINE_BREAK,
    MAX_DEPTH,
    WORD,
    Group,
    InlineTree,
    Node,
    Object,
    Text,
    has_text,
)

_MAX_OPEN: Final = 100
"""A closing tag is looked for among so many that are open, so that time stays in proportion."""


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


_TABS: Final = "tabs of the text"
"""A line break of this name is written as text is."""
Escape = Callable[[str], str]


def _as_it_is(text: str) -> str:
    return text


class TaggedText:
    """Hold a text without line breaks as one unit, and what is around it."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        """Take the parts of a text in order; tags that have no partner count as empty ones."""
        self._before: list[Node] = []
        self._after: list[Node] = []
        self._inside = self._set_edges_apart(_make_nodes(_pair_tags(_move_spaces(tokens))))
        self._tree = InlineTree(_copy(self._inside))
        self.unit = self._tree.unit if self._tree.is_translatable else None
        """This is what to translate; None if there is no letter in it."""

    def _set_edges_apart(self, nodes: list[Node]) -> list[Node]:
        """Return what is translated: without white space and tags around all of it."""
        filled = [place for place, node in enumerate(nodes) if has_text(node)]
        if not filled:
            self._before += nodes
            return []
        start, end = filled[0], filled[-1] + 1
        self._before += nodes[:start]
        self._after[:0] = nodes[end:]
        only = nodes[start]
        if len(filled) > 1 or not isinstance(only, Group):
            return nodes[start:end]
        opening, closing = only.content
        self._before.append(Object(opening))
        self._after.insert(0, Object(closing))
        return self._set_edges_apart(only.children)

    def render(self, translation: Unit | None, escape: Escape = _as_it_is) -> str:
        """Return the text as the file has it, with a translation in place of the unit.

        `escape` writes what is neither tag nor placeholder as the file needs it.
        """
        if self.unit is None or translation is None:
            return self.put_around(_write(self._inside, escape), escape)
        return self.put_around(_write(self._tree.to_nodes(translation), escape), escape)

    def render_part(self, translation: Unit, escape: Escape = _as_it_is) -> str:
        """Return a part of a translation with the tags in it, without what is around the unit."""
        return _write(self._tree.to_nodes(translation, partial=True), escape)

    def put_around(self, inside: str, escape: Escape = _as_it_is) -> str:
        """Return something with what is around the unit."""
        return _write(self._before, escape) + inside + _write(self._after, escape)

    @classmethod
    def join(cls, texts: Sequence[TaggedText]) -> TaggedText:
        """Return the units of several texts as one, with a space between them."""
        joined = cls([])
        for text in texts:
            joined._inside += [*([Text(" ")] if joined._inside else []), *text._inside]
        joined._tree = InlineTree(_copy(joined._inside))
        joined.unit = joined._tree.unit
        return joined


def _copy(nodes: Sequence[Node]) -> list[Node]:
    """Return nodes whose groups can be changed."""
    return [
        Group(node.content, _copy(node.children)) if isinstance(node, Group) else node
        for node in nodes
    ]


def _write(nodes: Sequence[Node], escape: Escape) -> str:
    parts: list[str] = []
    for node in nodes:
        if isinstance(node, Object) and not isinstance(node.content, Text):
            parts.append(node.content)
        elif isinstance(node, Group):
            opening, closing = node.content
            parts += [opening, _write(node.children, escape), closing]
        else:
            parts.append(escape((node.content if isinstance(node, Object) else node).text))
    return "".join(parts)


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


def _pair_tags(tokens: Iterable[Token]) -> list[Token]:
    """Return tokens in which tags that nothing closes, or that close nothing, are empty ones."""
    found: list[Token] = []
    still_open: list[int] = []
    for token in tokens:
        if token.kind is Kind.OPEN:
            still_open.append(len(found))
        if token.kind is Kind.CLOSE:
            near = range(len(still_open))[-_MAX_OPEN:]
            names = (one for one in reversed(near) if found[still_open[one]].name == token.name)
            if (last := next(names, None)) is not None:
                opening = still_open[last]
                found[opening] = found[opening]._replace(kind=Kind.OPEN)
                del still_open[last:]
                found.append(token)
                continue
        unpaired = token.kind in (Kind.OPEN, Kind.CLOSE)
        found.append(token._replace(kind=Kind.EMPTY) if unpaired else token)
    return found


def _make_nodes(tokens: Iterable[Token]) -> list[Node]:
    """Return the tree of paired tokens; white space around words is set apart."""
    levels: list[Group] = [Group(None)]
    deeper = 0
    for token in tokens:
        nodes = levels[-1].children
        if token.kind is Kind.TEXT:
            nodes += [Text(part) for part in re.split(r"\A(\s+)|(\s+)\Z", token.raw) if part]
        elif token.kind is Kind.OPEN and len(levels) <= MAX_DEPTH:
            levels.append(Group((token.raw, "")))
            nodes.append(levels[-1])
        elif token.kind is Kind.CLOSE and not deeper:
            group = levels.pop()
            group.content = group.content[0], token.raw
        elif token.kind is Kind.BREAK:
            content = Text(token.raw) if token.name == _TABS else token.raw
            nodes.append(Object(content, LINE_BREAK))
        else:
            deeper += (token.kind is Kind.OPEN) - (token.kind is Kind.CLOSE)
            nodes.append(Object(token.raw, WORD if token.kind is Kind.WORD else ""))
    return levels[0].children


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
