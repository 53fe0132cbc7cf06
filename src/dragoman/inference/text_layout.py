"""A text is taken apart into sentences to translate, and put together as it was laid out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.inference.joining import Between, join_translations
from dragoman.inference.translation_types import Translation
from dragoman.text.languages import written_without_spaces

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
            self._parts += [
                Between(line[:start], line[:start]),
                line[start:end],
                Between(line[end:], line[end:]),
            ]
        self._parts = [part for part in self._parts if part != Between("", "")]
        self.sentences = [part for part in self._parts if isinstance(part, str)]
        """These are to be translated, in order."""

    def join(
        self, translations: Sequence[Translation], normalize: Callable[[str], str]
    ) -> Translation:
        """Return the translation of the text, given those of its sentences."""
        coming = iter(translations)
        parts = [next(coming) if isinstance(part, str) else part for part in self._parts]
        if not parts:
            return Translation(self.text, self.text, 0.0, ())
        return join_translations(self.text, parts, normalize)
