"""A text of several lines becomes paragraphs to translate, and what stays as it is between them.

A line is a paragraph by itself, unless the lines after it only go on because somebody's editor
broke them at a width (mail, a README, a book, a subtitle): then they are one. A list, an address, a
poem, code or a table must never be joined, so lines are joined only where three things agree: each
line was full (the next word did not fit), few sentences end at line ends, and lines go on in lower
case where the script has one, or end with a word that something must follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import Final, TypeAlias

from dragoman.text.languages import primary_code, written_without_spaces
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.line_breaking import NOT_FIRST, breaks_anywhere, columns, wrap
from dragoman.text.sentence_splitting import ends_sentence

_LINE: Final = lazy_pattern(
    r"([^\n\r\x0b\x0c\x85\u2028\u2029]*)(\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]|\Z)"
)
_QUOTED: Final = lazy_pattern(r"[ \t]{0,3}(?:>[ \t]?)+")
_MARKER: Final = lazy_pattern(
    r"(?:[-*+•·‣⁃◦▪▫●○■□◆◇★☆➤►▶✓✔✗✘☐☑☒–—※][ \t]+|\[[ xX]\][ \t]+|#{1,6}[ \t]+|[①-⑳][ \t]*"
    r"|\[\d[\d:./, apmAPM-]*\][ \t]+"  # the time of what was said in a chat
    r"|[([]?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[)\]][ \t]+)+"
)
_NUMBERED: Final = lazy_pattern(
    r"(\d{1,3})(?:\.[ \t]+|(?:[ \t]{2,}|\t)(?=[^\W\d_]))"
    r"|(\d{1,3}(?:\.\d{1,3}){1,5})(?:\.?[ \t]+)(?=[^\W\d_a-zà-ÿ])"
)
"""Such a number is a list's only where its neighbour's follows: "3. Mai" is a date."""
_FENCE: Final = lazy_pattern(r"\s*(```|~~~)[\w+-]*\s*$")
"""Between two such lines there is code."""
_HEADING: Final = lazy_pattern(r"#{1,6}[ \t]")
_TIMING: Final = lazy_pattern(r"\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}\s*-->\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}")
_COLUMNS: Final = lazy_pattern(r"\t|[^\s.!?:] {3,}\S|\S {2,}\S.*[^\s.!?:] {2,}\S|\|.*\|")
_CODE: Final = lazy_pattern(
    r"[;{}]\s*$|^\s*(?:[\w.\[\]]+ = \S|[#%;|=~^]|\$|>>>|//|/\*|#!|#include|@\w+$"
    r"|import \w|from \w+ import|def \w+\(|class \w+[:(]|return\b.*;?$"
    r"|if ?\(.*\)|for ?\(.*\)|</?\w+[^>]*>\s*$)|[=!<>]==?.*[()]|\w\(\)|=> |->"
)
_KEY_AND_VALUE: Final = lazy_pattern(r"[^\W\d_][\w -]{0,20}:\s")
_SIGNATURE: Final = lazy_pattern(r"--\s?$")
_PROSE: Final = lazy_pattern(r"[^\W\d_][.!?]['\"”’»«“)]*(?:\s|$)|[。！？]")
"""Of a few lines one sentence must end somewhere, or they may as well be a list."""
_OPEN_WORDS: Final = {
    "en": """the a an of to in on at by for with from into about over under between and or but nor
        as than if that which who whose because when while is are was were be been has have had
        will would can could may might must should my your his her its our their this these""",
    "de": """der die das den dem des ein eine einen einem einer eines und oder aber mit von vom zu
        zum zur in im am an auf für bei beim nach aus über unter zwischen durch ohne gegen dass ob
        wenn weil als wie ist sind war waren wird werden hat haben kann mein meine sein seine""",
    "fr": """le la les un une des de du et ou mais à au aux en dans sur sous pour par avec sans que
        qui dont est sont était a ont son sa ses leur leurs mon ma mes ce cette ces si comme""",
}
"""After these words a sentence goes on; no line of a list, an address or a title ends with them."""
_SLACK: Final = 4
"""A line counts as full though a word so much shorter would have fitted: people break lines too."""
_NARROWEST, _WIDEST = 45, 110
"""Lines are wrapped within these widths, in columns."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Hold one text to translate, and how it stood on its lines."""

    text: str
    """The words alone: no indentation, no list marker, and no line ends."""
    original: str
    """What stood in the text, from the first word to the last, line ends and prefixes included."""
    width: int = 0
    """The widest of its lines had so many columns; 0 for a paragraph on one line."""
    offset: int = 0
    """So many columns stand before it on its first line."""
    prefix: str = ""
    """Its other lines begin with this."""
    newline: str = "\n"
    lines: int = 0
    """It may stand on no more lines than these, however wide; 0 means any number."""

    def lay_out(self, translation: str) -> str:
        """Return a translation of `text` on lines as wide as the original's."""
        if translation == self.text:
            return self.original
        if not self.width:
            return translation
        indent, width = columns(self.prefix), self.width
        wrapped = wrap(translation, width, self.offset, indent)
        while self.lines and len(wrapped) > self.lines:
            width += 1
            wrapped = wrap(translation, width, self.offset, indent)
        return (self.newline + self.prefix).join(wrapped)


Parts: TypeAlias = list[str | Paragraph]


def split_paragraphs(text: str, language: str | None = None, *, join_lines: bool = True) -> Parts:
    """Return the paragraphs of a text and, between them, the strings that stay as they are.

    Without `join_lines` every line with a word in it is a paragraph.
    """
    lines = [_Line(m[1], m[2]) for m in _LINE.finditer(text) if m[0]]
    if join_lines:
        _find_code(lines)
    _find_list_numbers(lines)
    _find_timings(lines)
    spaces = not written_without_spaces(language)
    parts: Parts = []
    for run in _Runs(lines, language).split() if join_lines else [[line] for line in lines]:
        first, last = run[0], run[-1]
        if not first.words:
            parts.append(first.content + first.newline)
            continue
        parts.append(first.content[: first.start])
        if len(run) == 1:
            parts.append(Paragraph(first.words, first.words))
        else:
            parts.append(_joined(run, text, spaces))
        parts.append(last.content[last.end :] + last.newline)
    return _merge_strings(parts)


def assemble(parts: Sequence[str | Paragraph], translations: Sequence[str]) -> str:
    """Return the text with each paragraph replaced by its translation, in order."""
    paragraphs = [part for part in parts if isinstance(part, Paragraph)]
    laid_out = (
        paragraph.lay_out(translation)
        for paragraph, translation in zip(paragraphs, translations, strict=True)
    )
    return "".join([part if isinstance(part, str) else next(laid_out) for part in parts])


class _Line:
    """Hold one line: what quotes it, its indentation and marker, and its words."""

    __slots__ = ("content", "cue", "end", "marker", "newline", "quote", "start", "words")

    def __init__(self, content: str, newline: str) -> None:
        self.content, self.newline = content, newline
        self.quote = self.marker = self.words = ""
        """`words` is what is to be translated, if anything."""
        self.start, self.end = 0, len(content)
        self.cue = False
        """This is what a subtitle says."""
        if not content or content.isspace():
            return
        if ">" in content and (quoted := _QUOTED.match(content)):
            self.quote = quoted[0]
        at = len(self.quote)
        self.start = len(content) - len(content[at:].lstrip())
        self.end = len(content.rstrip())
        if _has_words(content):
            self.words = content[self.start : self.end]
            if found := _MARKER.match(content, self.start):
                self.set_marker(found[0])

    def set_marker(self, marker: str) -> None:
        """Take what a list item begins with out of the words, if any word is left."""
        words = self.content[self.start + len(marker) : self.end].lstrip()
        if _has_words(words):
            self.marker += marker
            self.start = self.end - len(words)
            self.words = words

    @property
    def quote_level(self) -> int:
        return self.quote.count(">")

    @property
    def item_column(self) -> int:
        """Return where the marker or, without one, the text begins."""
        return columns(self.content[: self.start - len(self.marker)])

    @property
    def text_column(self) -> int:
        return columns(self.content[: self.start])

    @property
    def width(self) -> int:
        return columns(self.content[: self.end])


def _find_code(lines: list[_Line]) -> None:
    """Let code between two fences stay as it is."""
    fences = [
        (index, found[1])
        for index, line in enumerate(lines)
        if (found := _FENCE.match(line.content[len(line.quote) :]))
    ]
    while len(fences) > 1:
        (first, mark), *fences = fences
        last = next((index for index, other in fences if other == mark), None)
        if last is not None:
            for line in lines[first : last + 1]:
                line.words = ""
            fences = [fence for fence in fences if fence[0] > last]


def _find_list_numbers(lines: list[_Line]) -> None:
    """Take "1. " and "2. ", or "1.1 " and "1.2 ", for list markers where they follow each other."""
    numbered = [
        (line, tuple(map(int, (found[1] or found[2]).split("."))), found[0])
        for line in lines
        if line.words and not line.marker and (found := _NUMBERED.match(line.content, line.start))
    ]
    for index, (line, number, marker) in enumerate(numbered):
        before = index > 0 and _follows(numbered[index - 1][1], number)
        after = index + 1 < len(numbered) and _follows(number, numbered[index + 1][1])
        if before or after:
            line.set_marker(marker)


def _follows(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether a number comes after another: 1.1 or 2 after 1, 1.3 or 2 after 1.2."""
    if other == (*one, 1):
        return True
    same = len(other) - 1
    return len(other) <= len(one) and other == (*one[:same], one[same] + 1)


def _find_timings(lines: list[_Line]) -> None:
    """Let the numbers and times of subtitles stay as they are."""
    cue = False
    for index, line in enumerate(lines):
        if "-->" in line.content and _TIMING.match(line.content):
            line.words, cue = "", True
            if index and lines[index - 1].content.strip().isdigit():
                lines[index - 1].words = ""
        else:
            cue = cue and bool(line.content.strip())
            line.cue = cue


class _Runs:
    """Decide which lines belong together."""

    def __init__(self, lines: list[_Line], language: str | None) -> None:
        self._lines = lines
        self._open_words = frozenset(_OPEN_WORDS.get(primary_code(language or ""), "").split())

    def split(self) -> list[list[_Line]]:
        """Return the lines in runs: those of a run make one paragraph."""
        blocks = list(self._blocks())
        found = [self._join_block(block) for block in blocks]
        # What was surely wrapped tells the width at which shorter paragraphs were.
        width = max(
            (one.width for runs in found for r in runs if len(r) > 2 for one in r), default=0
        )
        if width:
            for index, block in enumerate(blocks):
                if len(found[index]) == len(block):
                    found[index] = self._join_block(block, width)
        return [run for runs in found for run in runs]

    def _blocks(self) -> Iterator[list[_Line]]:
        """Cut the text where nothing can go on: at empty lines, markers, changes of quoting."""
        block: list[_Line] = []
        signature = False
        for line in self._lines:
            if not line.words:
                signature = bool(_SIGNATURE.match(line.content[len(line.quote) :]))
            if block and (
                not line.words
                or not block[-1].words
                or line.marker
                or signature
                or line.quote_level != block[-1].quote_level
                or line.newline not in (block[-1].newline, "")
                or _HEADING.match(block[-1].marker)
            ):
                yield block
                block = []
            block.append(line)
        if block:
            yield block

    def _join_block(self, block: list[_Line], known: int = 0) -> list[list[_Line]]:
        alone = [[line] for line in block]
        if len(block) == 1:
            return alone
        if block[0].cue:
            return self._join_cue(block)
        texts = [line.words for line in block]
        if any(map(_COLUMNS.search, texts)) or any(map(_CODE.search, texts)):
            return alone
        if sum(bool(_KEY_AND_VALUE.match(text)) for text in texts) > 1:
            return alone
        spaces = sum(text.count(" ") for text in texts)
        if spaces < 2 * len(texts) and not any(map(breaks_anywhere, chain.from_iterable(texts))):
            return alone  # without words a line is always full
        width = max(line.width for line in block)
        if not _NARROWEST <= max(width, known) <= _WIDEST:
            return self._join_hanging(block)
        # Some editors count characters where others count columns.
        for measure in (columns,) if all(map(str.isascii, texts)) else (columns, len):
            joined = [
                part
                for run in self._full_runs(block, known if measure is columns else 0, measure)
                for part in (
                    [run]
                    if self._goes_on(run) or _is_wrapped(run, block, known)
                    else [[line] for line in run]
                )
            ]
            if len(joined) < len(block):
                return joined
        return alone

    # --- wrapped at a width ---

    def _full_runs(
        self, block: list[_Line], known: int, measure: Callable[[str], int]
    ) -> list[list[_Line]]:
        """Cut a block after each line that had room for the next word, or whose indent changes."""
        runs = [[block[0]]]
        widths = [measure(line.content[: line.end]) for line in block]
        widest = max(known, *widths)
        for width, (line, following) in zip(widths, pairwise(block), strict=False):
            capital = _first_letter(following.words).isupper()
            slack = 0 if capital and not self._is_open(line) else _SLACK
            cut = line.words[-1] == "-" and width >= 0.8 * widest
            if (
                (width + _next_width(following.words, measure) > widest - slack or cut)
                and not line.content.endswith(("  ", "\\"))
                and self._indents_agree(runs[-1], following)
            ):
                runs[-1].append(following)
            else:
                runs.append([following])
        return runs

    def _is_open(self, line: _Line) -> bool:
        """Return whether a line ends with a word that no sentence ends with."""
        return line.words.rsplit(None, 1)[-1].lower() in self._open_words

    def _goes_on(self, run: list[_Line]) -> bool:
        """Return whether a sentence goes on at every end of a line, and surely at one."""
        opens = [self._is_open(line) for line in run[:-1]]
        return any(opens) and all(
            is_open or (_first_letter(following.words).islower() and not ends_sentence(line.words))
            for is_open, (line, following) in zip(opens, pairwise(run), strict=True)
        )

    @staticmethod
    def _indents_agree(run: list[_Line], following: _Line) -> bool:
        """Return whether a line stands where one that goes on would: as the second, or hanging."""
        if len(run) > 1:
            return following.text_column == run[1].text_column
        first = run[0]
        if first.marker:
            return first.item_column <= following.text_column <= first.text_column + 1
        return following.text_column <= first.text_column

    # --- wrapped otherwise ---

    @staticmethod
    def _join_hanging(block: list[_Line]) -> list[list[_Line]]:
        """Join a list item of narrow lines with those that hang below its text and go on."""
        runs = [[block[0]]]
        for line, following in pairwise(block):
            hangs = block[0].marker and following.text_column == block[0].text_column
            if (
                hangs
                and _first_letter(following.words).islower()
                and not ends_sentence(line.words, also=":")
                and following.text_column > block[0].item_column
            ):
                runs[-1].append(following)
            else:
                runs.append([following])
        return runs

    @staticmethod
    def _join_cue(block: list[_Line]) -> list[list[_Line]]:
        """Join a subtitle's lines where a sentence goes on, but not the turns of two speakers."""
        runs = [[block[0]]]
        for line, following in pairwise(block):
            if ends_sentence(line.words, also=":") or _first_letter(following.words).isupper():
                runs.append([following])
            else:
                runs[-1].append(following)
        return runs


def _is_wrapped(run: list[_Line], block: list[_Line], known: int) -> bool:
    """Return whether full lines read like one text; `known` is a width the text is wrapped at."""
    if len(run) == 1:
        return True
    breaks = len(run) - 1
    ends = sum(ends_sentence(line.words, also=":") for line in run[:-1])
    starts = [_first_letter(line.words) for line in run[1:]]
    lower, upper = sum(map(str.islower, starts)), sum(map(str.isupper, starts))
    if breaks == 1:
        first, second = run
        finished = ends_sentence(second.words, also=":")
        if ends:
            return False
        if known:
            return first.width >= 0.8 * known and (bool(lower) or finished)
        return len(block) == 2 and 60 <= first.width <= 90 and not upper and finished
    if 2 * ends > breaks or (breaks == 2 and ends and upper and not known):
        return False
    text = " ".join(line.words for line in run)
    if breaks < 4 and (not _PROSE.search(text) or max(line.width for line in run) < 55):
        return False
    if not (lower or upper) or text.isupper():
        return True  # letters without case, or capitals alone, tell nothing
    return lower >= max(1, (lower + upper) / 5)


def _joined(run: list[_Line], text: str, spaces: bool) -> Paragraph:
    """Make one paragraph of the lines of a run."""
    words = run[0].words
    for line in run[1:]:
        following = line.words
        if breaks_anywhere(words[-1]) and breaks_anywhere(following[0]) and not spaces:
            words += following
        elif re.search(r"[^\W\d_]-$", words) and following[0].islower():
            words = _hyphenated(words, following, text)
        else:
            words += " " + following
    first, second, last = run[0], run[1], run[-1]
    original = [first.content[first.start :] + first.newline]
    original += [line.content + line.newline for line in run[1:-1]]
    original.append(last.content[: last.end])
    return Paragraph(
        words,
        "".join(original),
        width=max(line.width for line in run),
        offset=first.text_column,
        prefix=second.content[: second.start],
        newline=first.newline,
        lines=len(run) if first.cue else 0,
    )


def _hyphenated(words: str, following: str, text: str) -> str:
    """Join at a hyphen: it goes only where the word stands elsewhere in the text without it."""
    before, after = words[:-1].rsplit(None, 1)[-1], following.split(None, 1)[0].rstrip(".,;:!?")
    if after in ("und", "oder", "bzw", "and", "or"):
        return f"{words} {following}"
    if len(before) > 1 and before + after in text:
        return words[:-1] + following
    return words + following


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _merge_strings(parts: Parts) -> Parts:
    merged: Parts = []
    for kept, group in groupby(parts, lambda part: isinstance(part, str)):
        if not kept:
            merged += group
        elif joined := "".join(map(str, group)):
            merged.append(joined)
    return merged


def _first_letter(words: str) -> str:
    return next(filter(str.isalpha, words), "")


def _next_width(following: str, measure: Callable[[str], int]) -> int:
    """Return how much room the first word of the following line would have taken."""
    if not breaks_anywhere(following[:1]):
        return 1 + measure(following.split(None, 1)[0])
    # A mark that must not begin a line comes with the character before it, or hangs over the edge.
    return 4 + 2 * sum(one in NOT_FIRST for one in following[1:3])
