"""A line too long for the model is cut at sentence ends, or where that fails at the next best."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.sentence_splitting import sentence_spans

CountPieces: TypeAlias = Callable[[Sequence[str]], list[int]]
"""Counts the pieces of each text."""

_AFTER_CLAUSE: Final = lazy_pattern(r"(?<=[,;:–—])\s+|(?<=[、，；：])")


def split_lines(
    lines: Sequence[str], count: CountPieces, limit: int, longest: Callable[[], int]
) -> list[tuple[list[str], bool]]:
    """Cut each line into segments of at most `limit` pieces; joined they are the line, but spaces.

    A line is cut at sentence ends where possible; True says that it was not, and a sentence was cut
    between clauses, words or, in a word without end, characters. A piece has at most `longest()`
    characters, which is asked for only where a line is long.
    """
    # A piece is at least one byte of the text: short lines need not be counted.
    doubtful = {line for line in lines if len(line.encode("utf-8", "replace")) >= limit}
    if not doubtful:
        return [([line], False) for line in lines]
    cutter = _Cutter(count, limit, longest())
    fits = dict(cutter.check_fit(list(doubtful)))
    return [([line], False) if fits.get(line, True) else cutter.split(line) for line in lines]


class _Cutter:
    """Cut texts in time proportional to them: what is far too long is cut without being counted."""

    def __init__(self, count: CountPieces, limit: int, longest: int) -> None:
        self._count, self._limit, self._most = count, limit, limit * longest

    def split(self, line: str) -> tuple[list[str], bool]:
        """Return the segments of a line that does not fit, and whether a sentence had to be cut."""
        segments: list[str] = []
        forced = False
        for sentence, fits in self._merge([line[a:b] for a, b in sentence_spans(line)]):
            if fits:
                segments.append(sentence)
            else:
                forced = True
                segments += self._cut_sentence(sentence)
        return segments, forced

    def check_fit(self, texts: Sequence[str]) -> list[tuple[str, bool]]:
        """Return the texts, each with whether it fits."""
        return [
            (text, n <= self._limit) for text, n in zip(texts, self._pieces(texts), strict=True)
        ]

    def _cut_sentence(self, sentence: str) -> Iterator[str]:
        for clause, fits in self._merge(_cut(sentence, _AFTER_CLAUSE)):
            if fits:
                yield clause
                continue
            for words, fit in self._merge(clause.split()):
                if fit:
                    yield words
                else:
                    yield from self._cut_characters(words)

    def _merge(self, parts: Sequence[str]) -> list[tuple[str, bool]]:
        """Put neighbours together again while they fit; say of each result whether it fits."""
        merged: list[list[str]] = []
        room = 0
        for part, pieces in zip(parts, self._pieces(parts), strict=True):
            if merged and pieces <= room:
                merged[-1].append(part)
                room -= pieces
            else:
                merged.append([part])
                room = self._limit - pieces
        return self.check_fit([" ".join(some) for some in merged])

    def _pieces(self, texts: Sequence[str]) -> list[int]:
        """Count each text's pieces; what is too long for its length alone has one more than fit."""
        known = dict.fromkeys(text for text in texts if len(text) <= self._most)
        counted = dict(zip(known, self._count(list(known)), strict=True)) if known else {}
        return [counted.get(text, self._limit + 1) for text in texts]

    def _cut_characters(self, text: str) -> list[str]:
        # Byte fallback makes up to four pieces of a character, and one more for the space before.
        size = max(1, (self._limit - 1) // 4)
        return [text[i : i + size] for i in range(0, len(text), size)]


def _cut(text: str, boundary: re.Pattern[str]) -> list[str]:
    """Return the parts between boundaries; what closes a quote or bracket stays with it."""
    parts, start = [], 0
    for match in boundary.finditer(text):
        end = match.start() + len(match.group().rstrip())
        parts.append(text[start:end].strip())
        start = match.end()
    parts.append(text[start:].strip())
    return list(filter(None, parts))
