"""A text is taken apart into sentences to translate, and put together as it was laid out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.inference.joining import Between, join_translations
from dragoman.inference.translation_types import Translation
from dragoman.text.languages import written_without_spaces
from dragoman.text.sentence_splitting import sentence_spans

_LINE_END: Final = re.compile(r"(\r\n|[\n\r\x0b\x0c\x85\u2028\u2029])")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class TextLayout:
    """Hold the sentences of a text, and what stands between them."""

    def __init__(self, text: str, source: str, target: str, *, lines: bool = False) -> None:
        """Take apart a text of one language that becomes one of another.

        With `lines` each line is translated as a whole, and none is joined with the next.
        """
        self.text = text
        text = _SURROGATE.sub("\ufffd", text)
        self._spaces = not written_without_spaces(source), not written_without_spaces(target)
        self._parts: list[Between | str] = []
        for place, line in enumerate(_LINE_END.split(text)):
            if place % 2:
                self._parts.append(Between(line, line))
                continue
            start, end = len(line) - len(line.lstrip()), len(line.rstrip())
            if not any(map(str.isalnum, line)):
                self._parts.append(Between(line, line))
                continue
            self._parts.append(Between(line[:start], line[:start]))
            self._parts += [line[start:end]] if lines else self._split(line[start:end], source)
            self._parts.append(Between(line[end:], line[end:]))
        self._parts = [part for part in self._parts if part != Between("", "")]
        self.sentences = [part for part in self._parts if isinstance(part, str)]
        """These are to be translated, in order."""

    def _split(self, text: str, language: str) -> list[Between | str]:
        """Return the sentences of a paragraph, and the spacing between them."""
        parts: list[Between | str] = []
        last = 0
        for start, end in sentence_spans(text, language):
            if parts:
                parts.append(self._between(text[last:start]))
            parts.append(text[start:end])
            last = end
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
        """Return the translation of the text, given those of its sentences."""
        coming = iter(translations)
        parts = [next(coming) if isinstance(part, str) else part for part in self._parts]
        if not parts:
            return Translation(self.text, self.text, 0.0, ())
        return join_translations(self.text, parts, normalize)
