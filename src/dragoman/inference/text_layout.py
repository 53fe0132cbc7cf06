"""A text is taken apart into sentences to translate, and put together as it was laid out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from dragoman.inference.join_translations import Between, join_translations
from dragoman.inference.translation_types import Translation
from dragoman.text.languages import written_without_spaces
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.paragraphs import Paragraph, split_paragraphs
from dragoman.text.sentence_splitting import sentence_spans

_DIVIDER: Final = lazy_pattern(
    r"(?<!\s)\s*(?:\t| {3,}|\.{4,}|(?:\. ){4,}|_{4,}|(?:(?<=\s)|^)\|(?=\s|$))\s*"
)
"""What divides the cells of a table or a form: tabs, wide gaps, leader dots, blanks to fill in, and
a vertical line between spaces."""
_COLUMN_GAP: Final = lazy_pattern(r"(?<![\s.!?:;,]) {2,}(?=\S)")
_COLUMN_DIVIDER: Final = lazy_pattern(_DIVIDER.pattern.replace(" {3,}", " {2,}"))
"""Where there are two gaps in a line or more, two spaces are one, too."""
_ROW: Final = lazy_pattern(r"\|.*\|", re.DOTALL)
_ROW_DIVIDER: Final = lazy_pattern(r"(?<!\s)\s*(?<!\\)\|\s*")
"""In a row between vertical lines all of them divide."""
_SURROGATE: Final = lazy_pattern("[\ud800-\udfff]")


def _cells(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the cells of a paragraph begin and end; most have one."""
    start = 0
    dividers = _DIVIDER
    if _ROW.fullmatch(text):
        dividers = _ROW_DIVIDER
    elif len(_COLUMN_GAP.findall(text)) > 1:
        dividers = _COLUMN_DIVIDER
    for divider in dividers.finditer(text):
        if divider.start() > start:
            yield start, divider.start()
        start = divider.end()
    if start < len(text):
        yield start, len(text)


class TextLayout:
    """Hold the sentences of a text, and what stands between them."""

    def __init__(self, text: str, source: str, target: str, *, lines: bool = False) -> None:
        """Take apart a text of one language that becomes one of another.

        With `lines` each line is translated as a whole, and none is joined with the next.
        """
        self.text = text
        self._spaces = not written_without_spaces(source), not written_without_spaces(target)
        self._parts: list[Between | _LaidOutParagraph] = []
        for part in split_paragraphs(_SURROGATE.sub("\ufffd", text), source, join_lines=not lines):
            if isinstance(part, str):
                self._parts.append(Between(part, part))
            else:
                self._parts.append(_LaidOutParagraph(part, self._split(part.text, source, lines)))
        self.sentences = [
            sentence
            for part in self._parts
            if isinstance(part, _LaidOutParagraph)
            for sentence in part.parts
            if isinstance(sentence, str)
        ]
        """These are to be translated, in order."""

    def _split(self, text: str, language: str, lines: bool) -> list[Between | str]:
        """Return the sentences of a paragraph, and the spacing between them; a tab divides, too."""
        parts: list[Between | str] = []
        last = 0
        for begin, stop in _cells(text):
            cell = text[begin:stop]
            spans = [(0, len(cell))] if lines else sentence_spans(cell, language)
            for start, end in spans:
                if parts or begin + start:
                    parts.append(self._between(text[last : begin + start]))
                parts.append(cell[start:end])
                last = begin + end
        if last < len(text):
            parts.append(Between(text[last:], text[last:]))
        return parts

    def _between(self, spacing: str) -> Between:
        """Return the spacing between two sentences; not all languages have any."""
        source_has_spaces, target_has_spaces = self._spaces
        if not spacing and target_has_spaces and not source_has_spaces:
            return Between(spacing, " ")
        if spacing == " " and source_has_spaces and not target_has_spaces:
            return Between(spacing, "")
        return Between(spacing, spacing)

    def join(
        self, translations: Sequence[Translation], normalize: Callable[[str], str]
    ) -> Translation:
        """Return the translation of the text, given those of its sentences.

        `normalize` is what the sentences went through before their words were counted.
        """
        coming = iter(translations)
        parts: list[Between | Translation] = []
        for part in self._parts:
            if isinstance(part, Between):
                parts.append(part)
            else:
                filled = [next(coming) if isinstance(one, str) else one for one in part.parts]
                parts.append(part.lay_out(join_translations(part.text, filled, normalize)))
        if not parts:
            return Translation(self.text, self.text, 0.0, ())
        whole = join_translations(self.text, parts, normalize)
        return replace(whole, sentences=tuple(translations))


class _LaidOutParagraph:
    """Hold a paragraph with its sentences and the spacing between them."""

    def __init__(self, paragraph: Paragraph, parts: list[Between | str]) -> None:
        self.parts, self.text = parts, paragraph.text
        self._paragraph = paragraph

    def lay_out(self, found: Translation) -> Translation:
        """Return a translation on lines like the paragraph's.

        Where lines were broken at spaces alone, words keep their numbers and so their alignment.
        """
        paragraph = self._paragraph
        if not paragraph.width:
            return found
        aligned = paragraph.text.split() == paragraph.original.split()
        laid_out = [
            replace(
                one,
                source=paragraph.original,
                text=paragraph.lay_out(one.text),
                alignment=one.alignment if aligned else (),
                alternatives=(),
            )
            for one in (found, *found.alternatives)
        ]
        return replace(laid_out[0], alternatives=tuple(laid_out[1:]))
