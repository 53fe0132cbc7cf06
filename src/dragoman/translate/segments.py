"""Cutting a line too long for the model at sentence ends, or where that fails at the next best."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

__all__ = ["split_line"]

_AFTER_SENTENCE: Final = re.compile(r"(?<=[.!?…])(?:[\"')\]»”’]*)\s+|(?<=[。！？])(?![。！？」』])")
_AFTER_CLAUSE: Final = re.compile(r"(?<=[,;:–—])\s+|(?<=[、，；：])")
_BETWEEN_WORDS: Final = re.compile(r"\s+")


def split_line(line: str, count: Callable[[str], int], limit: int) -> tuple[list[str], bool]:
    """Segments of at most `limit` pieces that together are the line, but for white space.

    Cut at sentence ends where possible; True says that it was not, and a sentence was cut between
    clauses, words or, in a word without end, characters.
    """
    # A piece is at least one byte of the text: short lines need not be counted.
    if len(line.encode("utf-8", "replace")) < limit or count(line) <= limit:
        return [line], False
    segments: list[str] = []
    forced = False
    for sentence in _merge(_cut(line, _AFTER_SENTENCE), count, limit):
        if count(sentence) <= limit:
            segments.append(sentence)
            continue
        forced = True
        for clause in _merge(_cut(sentence, _AFTER_CLAUSE), count, limit):
            for words in _merge(_cut(clause, _BETWEEN_WORDS), count, limit):
                segments += _characters(words, count, limit)
    return segments, forced


def _cut(text: str, boundary: re.Pattern[str]) -> list[str]:
    """The parts between boundaries; quotes and brackets that close stay with what they close."""
    parts, start = [], 0
    for match in boundary.finditer(text):
        end = match.start() + len(match.group().rstrip())
        parts.append(text[start:end].strip())
        start = match.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _merge(parts: list[str], count: Callable[[str], int], limit: int) -> list[str]:
    """Neighbours put together again while they fit."""
    merged: list[str] = []
    room = 0
    for part in parts:
        pieces = count(part)
        if merged and pieces <= room:
            merged[-1] += " " + part
            room -= pieces
        else:
            merged.append(part)
            room = limit - pieces
    return merged


def _characters(text: str, count: Callable[[str], int], limit: int) -> list[str]:
    if count(text) <= limit:
        return [text]
    # Byte fallback makes up to four pieces of a character, and one more for the space before.
    size = max(1, (limit - 1) // 4)
    return [text[i : i + size] for i in range(0, len(text), size)]
