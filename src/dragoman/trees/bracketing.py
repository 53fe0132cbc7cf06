r"""Trees are read and written in the Penn Treebank's brackets, as in ``(S (NP …) (VP …))``.

A round bracket cannot stand in a word, so ``-LRB-`` and ``-RRB-`` stand for it. ``-LSB-``,
``-RSB-``, ``-LCB-`` and ``-RCB-`` are read as square and curly brackets, which are written as they
are. A backslash takes a meaning away: ``\-LRB-`` is the text "-LRB-" itself, and ``\\`` is "\". In
labels and tags ``-LRB-`` means what it spells; a bracket there is written ``\<`` or ``\>``.

Only ASCII white space separates; a no-break space belongs to its word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from sys import intern
from typing import Final, NamedTuple

from dragoman.errors import DataError
from dragoman.trees.tree import Leaf, Node, Tree

_COMMENTS: Final = ("#", "%%", "*x*", "<")
"""Comments between trees start so in NEGRA, Switchboard and the Chinese treebank."""

# A whole leaf, or what opens a constituent; or else a closing bracket or a word.
_TOKEN: Final = re.compile(r"\(\s*+([^\s()]*+)(?:\s++([^\s()]++)\s*+\))?|(\)|[^\s()]++)", re.ASCII)


def read_trees(
    lines: Iterable[str],
    name: str = "<trees>",
    *,
    on_error: Callable[[DataError], None] | None = None,
) -> Iterator[Tree]:
    """Yield every tree in the lines, as it stands there; `name` is the file's, for messages.

    A tree may go over several lines and several may stand on one. Lines between trees may be blank
    or comments. The bracket around ``( (S …))`` is a constituent with an empty label. With
    `on_error`, a tree that cannot be read is reported and left out, and reading goes on with the
    next line that starts with a bracket. Leaves that are equal may be one object.
    """
    return _read(enumerate(lines, 1), name, on_error)


def _read(
    lines: Iterable[tuple[int, str]],
    name: str,
    on_error: Callable[[DataError], None] | None,
    *,
    ends_trees: bool = False,
) -> Iterator[Tree]:
    """Read numbered lines; with `ends_trees`, one that starts with a bracket ends an open tree."""
    reader = _Reader()
    lost = False
    since: list[tuple[int, str]] = []  # the lines of the tree that is open
    for number, line in lines:
        if lost and not line.startswith("("):
            continue
        lost = False
        if ends_trees and reader.open and line.startswith("("):
            _handle_error(on_error, _unclosed_error(name, reader.open))
            reader = _Reader()
        if not reader.open:
            since.clear()
            if line.lstrip().startswith(_COMMENTS):
                continue
        if on_error is not None:
            since.append((number, line))
        try:
            yield from reader.trees(line, number)
        except _MalformedError as error:
            _handle_error(
                on_error, DataError(f"{name}, line {number}, column {error.column}: {error}")
            )
            reader, lost = _Reader(), True
    if reader.open:
        if len(since) > 1 and not ends_trees:  # a lost bracket must not cost all that follows
            before = reader.open[0].column - 1
            since[0] = (since[0][0], " " * before + since[0][1][before:])
            yield from _read(since, name, on_error, ends_trees=True)
        else:
            _handle_error(on_error, _unclosed_error(name, reader.open))


class _MalformedError(Exception):
    def __init__(self, token: re.Match[str], message: str) -> None:
        super().__init__(message)
        self.column = token.start() + 1


class _Open(NamedTuple):
    label: str
    children: list[Tree]
    line: int
    column: int


class _Reader:
    """Remember what is open between one line and the next."""

    def __init__(self) -> None:
        self.open: list[_Open] = []
        self.word = ""  # of a leaf whose closing bracket comes next

    def trees(self, line: str, number: int) -> Iterator[Tree]:
        """Yield the trees that end on this line."""
        open_ = self.open
        for token in _TOKEN.finditer(line):
            tree: Tree
            label, word, other = token.groups()
            if self.word and other != ")":
                raise _MalformedError(token, _second_item_message(open_[-1], self.word, other))
            if word:
                tree = _read_leaf(label, word)
            elif other is None:
                open_.append(_Open(_read_label(label), [], number, token.start() + 1))
                continue
            elif other == ")":
                tree = self._close(token)
            elif open_ and not open_[-1].children:
                if open_[-1].label:
                    self.word = other
                else:  # the line broke after the bracket
                    open_[-1] = open_[-1]._replace(label=_read_label(other))
                continue
            else:
                raise _MalformedError(token, _stray_word_message(open_, other))
            if open_:
                open_[-1].children.append(tree)
            else:
                yield tree

    def _close(self, token: re.Match[str]) -> Tree:
        if not self.open:
            raise _MalformedError(token, "one closing bracket too many; remove it")
        label, children, _, _ = self.open.pop()
        if children:
            return Node(label, tuple(children))
        if not self.word:
            raise _MalformedError(token, _empty_bracket_message(label))
        leaf = Leaf(label, _read_word(self.word))
        self.word = ""
        return leaf


def parse_tree(text: str) -> Tree:
    """Return the one tree in the text."""
    trees = list(read_trees(text.split("\n"), "<text>"))
    if len(trees) != 1:
        raise DataError(f"expected one tree, found {len(trees)}; use read_trees for several")
    return trees[0]


def write_tree(tree: Tree) -> str:
    """Return the tree on one line, from which `parse_tree` reads it exactly."""
    parts: list[str] = []
    waiting: list[Tree | None] = [tree]  # None closes a bracket
    while waiting:
        one = waiting.pop()
        if one is None:
            parts.append(")")
        elif isinstance(one, Leaf):
            parts.append(f" {_leaf(one)}")
        else:
            parts.append(f" ({_write_label(one.label)}")
            waiting.append(None)
            waiting.extend(reversed(one.children))
    return "".join(parts)[1:]


_WORD_ESCAPES: Final = {"(": "-LRB-", ")": "-RRB-", "-": r"\-", "\\": r"\\"}
_WORD_MEANINGS: Final = {escape: text for text, escape in _WORD_ESCAPES.items()} | {
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    r"\/": "/",  # the Wall Street Journal part has 1\/2 and \*
    r"\*": "*",
}
_LABEL_ESCAPES: Final = {"(": r"\<", ")": r"\>", "\\": r"\\"}
_LABEL_MEANINGS: Final = {escape: text for text, escape in _LABEL_ESCAPES.items()}

# A hyphen needs its backslash only where a bracket's name follows; the name's own hyphen at the
# end must not be asked for, or "-LRB" and "(" together would read as "(LRB-".
_TO_ESCAPE: Final = re.compile(r"[\\()]|-(?=[LR][RSC]B)")
_ESCAPED: Final = re.compile(r"\\[\\/*-]|-[LR][RSC]B-")
_WRITABLE: Final = re.compile(r"\S+", re.ASCII)


# Most leaves of a treebank have been seen before.
@lru_cache(1 << 16)
def _read_leaf(tag: str, word: str) -> Leaf:
    return Leaf(_read_label(tag), _read_word(word))


def _read_word(text: str) -> str:
    return _ESCAPED.sub(lambda match: _WORD_MEANINGS[match[0]], text)


@lru_cache(1 << 12)
def _read_label(text: str) -> str:
    return intern(re.sub(r"\\[\\<>]", lambda match: _LABEL_MEANINGS[match[0]], text))


def _leaf(leaf: Leaf) -> str:
    if not leaf.tag:
        raise DataError(f"the word '{leaf.word}' has no tag; give it one, such as XX")
    return f"({_write_label(leaf.tag)} {_write_word(leaf.word)})"


def _write_word(word: str) -> str:
    if word.isalnum():
        return word
    if not _WRITABLE.fullmatch(word):
        raise DataError(f"a word of a tree cannot be empty or have white space: {word!r}")
    return _TO_ESCAPE.sub(lambda match: _WORD_ESCAPES[match[0]], word)


def _write_label(label: str) -> str:
    if label.isalnum() or not label:
        return label
    if not _WRITABLE.fullmatch(label):
        raise DataError(f"a label of a tree cannot have white space: {label!r}")
    return re.sub(r"[\\()]", lambda match: _LABEL_ESCAPES[match[0]], label)


def _second_item_message(leaf: _Open, word: str, other: str | None) -> str:
    if other:
        return (
            f"two words, '{word}' and '{other}', in one bracket; each has its own, as in "
            f"({leaf.label} {word}) ({leaf.label} {other})"
        )
    return (
        f"a bracket opens beside the word '{word}'; a bracket holds one word or constituents, so "
        f"give the word its own, as in (XX {word})"
    )


def _stray_word_message(open_: list[_Open], word: str) -> str:
    if open_:
        return f"the word '{word}' stands beside constituents; give it a tag, as in (XX {word})"
    return (
        f"'{word}' stands outside of every tree; a tree starts with a bracket, as in (XX {word}), "
        "and a comment with # at the start of its line"
    )


def _empty_bracket_message(label: str) -> str:
    if not label:
        return "an empty bracket; remove it"
    return (
        f"({label}) holds neither a word nor constituents; write it as ({label} word) or remove it"
    )


def _unclosed_error(name: str, open_: list[_Open]) -> DataError:
    more = len(open_) - 1
    what = f"this bracket and {more} in it are" if more else "this bracket is"
    return DataError(
        f"{name}, line {open_[0].line}, column {open_[0].column}: {what} still open at the end; "
        "add what closes it, or the lines that are missing"
    )


def _handle_error(on_error: Callable[[DataError], None] | None, error: DataError) -> None:
    if on_error is None:
        raise error from None
    on_error(error)
