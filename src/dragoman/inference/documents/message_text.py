"""Messages of software are strings with variables, tags, several lines, and ICU's plural forms.

What stands for a value ({name}, %s, ${x}, %1$s, {{user}}, `code`) is kept; of ICU's plural and
select each branch is translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dragoman.inference.documents.document import Unit
from dragoman.inference.documents.inline_tags import Kind, TaggedText, Token, split_tokens
from dragoman.text.paragraphs import Paragraph, split_paragraphs

_ITEMS: Final = re.compile(
    r"""
    (?P<tag></?[A-Za-z][\w:.-]*(?:\s[^<>]*|/)?>|<!--.*?-->)
    | (?P<word>
        \ue000\d+\ue001 | \ue002
      | `[^`\n]+`
      | \{\{(?:(?!\{\{).){0,200}?\}\}
      | [$\#%]\{[^{}\n]{0,200}\}
      | \$t\([^()]*\)
      | (?<!')'[{}][^']*'(?!')
      | \{[^{}\n]{0,200}\}
      | %\([\w.-]+\)[-+0\#]*\d*(?:\.\d+)?[sdifgrxXeouc]
      | %(?:\d+\$)?[-+0\#']*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|q|L|j|z|t)?
        [diouxXeEfFgGaAcCsSpn@](?![^\W\d_])
      | %L?\d{1,2}(?!\d*%)
      | (?<![\w$])\$[A-Za-z_]\w*
      | (?:https?|ftp)://[^\s<>"]*[^\s<>".,;:!?)\]']
      | (?<![\w.+-])[\w.+-]{1,64}@\w[\w-]*(?:\.\w[\w-]*)+
    )""",
    re.VERBOSE,
)
_HTML_TAG_NAMES: Final = (
    "a abbr b bdi bdo big br center cite code del dfn div em font g h1 h2 h3 h4 h5 h6 hr i img ins "
    "kbd li mark nobr ol p pre q s samp small span strike strong sub sup table tbody td th thead "
    "time tr tt u ul var wbr x xliff:g"
)
_HTML_TAGS: Final = frozenset(_HTML_TAG_NAMES.split())


def message_tokens(text: str) -> list[Token]:
    """Return the parts of a line of a message: text, tags, and what stands for a word."""
    tokens = split_tokens(text, _ITEMS)
    closed = {token.name for token in tokens if token.kind is Kind.CLOSE}
    return [
        # A name in angle brackets that no tag closes is a variable: copy <source> <target>.
        token._replace(kind=Kind.WORD)
        if token.kind is Kind.OPEN and token.name not in closed and token.name not in _HTML_TAGS
        else token
        for token in tokens
    ]


class MessageText:
    """Hold a message as the units that are to be translated and what stands between them."""

    def __init__(
        self,
        text: str,
        *,
        icu: bool = False,
        number_sign: bool = False,
        doubled_quotes: bool = False,
        language: str | None = None,
    ) -> None:
        """Take a message without its file's escapes, and its language.

        With `icu` there may be plurals in it; in a branch of one, `number_sign` says, # is a word.
        With `doubled_quotes` an apostrophe is written twice, as Java wants it beside {0}.
        """
        self._text = text
        self._arguments: list[list[str | MessageText]] = []
        private = any(mark in text for mark in _PRIVATE)
        if icu and not private:
            text, self._arguments = _take_out_branches(text)
        self._doubled = "%%" in text and not private
        self._quoted = doubled_quotes or ("''" in text and icu)
        self._number_sign = number_sign and not private
        several = "\n" in text or "\r" in text
        self._parts = [
            part if isinstance(part, str) else (part, self._read_paragraph(part.text))
            for part in (split_paragraphs(text, language) if several else [Paragraph(text, text)])
        ]
        self._icu = bool(self._arguments) or number_sign
        self.units = [
            part[1].unit
            for part in self._parts
            if not isinstance(part, str) and part[1].unit is not None
        ]
        """These are to be translated."""
        for argument in self._arguments:
            for part in argument:
                if isinstance(part, MessageText):
                    self.units += part.units

    def _read_paragraph(self, line: str) -> TaggedText:
        if self._number_sign:
            line = line.replace("#", "\ue002")
        if self._doubled:
            line = line.replace("%%", "\ue003")
        tokens = []
        for token in message_tokens(line):
            raw = token.raw.replace("\ue002", "#")
            if token.kind is Kind.TEXT:
                raw = raw.replace("\ue003", "%")
                raw = raw.replace("''", "'") if self._quoted else raw
            tokens.append(token._replace(raw=raw.replace("\ue003", "%%")))
        return TaggedText(tokens)

    def _write_text(self, text: str) -> str:
        if self._doubled:
            text = text.replace("%", "%%")
        if self._quoted:
            text = text.replace("'", "''")
        elif self._icu:
            text = _BEFORE_SYNTAX.sub("''", text)
        return text

    def _fill_part(self, part: str | tuple[Paragraph, TaggedText], coming: Iterator[Unit]) -> str:
        if isinstance(part, str):
            return part
        paragraph, inline = part
        if inline.unit is None:
            return paragraph.original
        unit = next(coming)
        if unit == inline.unit:
            return paragraph.original
        return paragraph.lay_out(inline.render(unit, self._write_text))

    def fill(self, translations: Iterator[Unit]) -> str:
        """Return the message with the next translations in place of its units."""
        taken = [next(translations) for _ in self.units]
        if taken == self.units:
            return self._text
        coming = iter(taken)
        text = "".join(self._fill_part(part, coming) for part in self._parts)
        arguments = [
            "".join(one if isinstance(one, str) else one.fill(coming) for one in argument)
            for argument in self._arguments
        ]
        return _ARGUMENT.sub(lambda match: arguments[int(match[1])], text) if arguments else text


_PRIVATE: Final = "\ue000\ue001\ue002\ue003"
"""These characters stand for other things here while a message is read."""
_ARGUMENT: Final = re.compile("\ue000(\\d+)\ue001")
_BEFORE_SYNTAX: Final = re.compile(r"'(?=[{}#|]|$)")
_BRANCHES: Final = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal)\s*,")
_BRANCH_NAME: Final = re.compile(r"\s*(?:offset:\s*\d+\s*)?(?:=\d+|[\w-]+)\s*\{")


def _take_out_branches(text: str) -> tuple[str, list[list[str | MessageText]]]:
    """Return a message with a mark for each argument that has branches, and those arguments.

    What is not ICU's syntax after all is left as it is.
    """
    arguments: list[list[str | MessageText]] = []
    parts: list[str] = []
    done = 0
    while match := _BRANCHES.search(text, done):
        found = _read_argument(text, match.start(), match.end())
        if found is None:
            break
        parts += [text[done : match.start()], f"\ue000{len(arguments)}\ue001"]
        argument, done = found
        arguments.append(argument)
    return "".join([*parts, text[done:]]), arguments


def _read_argument(text: str, start: int, at: int) -> tuple[list[str | MessageText], int] | None:
    """Return the parts of an argument with branches and where it ends, or None if it does not."""
    argument: list[str | MessageText] = []
    done = start
    while match := _BRANCH_NAME.match(text, at):
        end = _find_brace(text, match.end())
        if end < 0:
            return None
        argument += [
            text[done : match.end()],
            MessageText(text[match.end() : end], icu=True, number_sign=True),
        ]
        done, at = end, end + 1
    close = re.compile(r"\s*\}").match(text, at)
    if close is None or not argument:
        return None
    return [*argument, text[done : close.end()]], close.end()


def _find_brace(text: str, at: int) -> int:
    """Return where the brace closes that was opened before `at`, or -1."""
    depth = 1
    for match in re.compile(r"'[{}][^']*'|[{}]").finditer(text, at):
        if match.group() == "{":
            depth += 1
        elif match.group() == "}":
            depth -= 1
            if not depth:
                return match.start()
    return -1
