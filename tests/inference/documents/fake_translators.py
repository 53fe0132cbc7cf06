"""Translators that tests of documents use: what they do to words can be seen and undone."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from dragoman.inference.documents.document import Unit
from dragoman.inference.documents.unit_translation import translate_units
from dragoman.inference.translation_types import Translation


def _translation(text: str, words: list[str], order: list[int]) -> Translation:
    pairs = tuple((s, t) for t, s in enumerate(order))
    return Translation(text, " ".join(words[i] for i in order), 0.0, (), pairs)


def shout_texts(texts: list[str], align: bool) -> list[Translation]:
    """Put words into capitals."""
    return [
        Translation(
            text, text.upper(), 0.0, (), tuple((i, i) for i in range(len(text.split()))) * align
        )
        for text in texts
    ]


def reverse_texts(texts: list[str], align: bool) -> list[Translation]:
    """Put words into capitals and into the reverse order; the last punctuation stays last."""
    found = []
    for text in texts:
        end = re.search(r"[.!?]?$", text)
        assert end is not None
        words = text[: end.start()].upper().split()
        one = _translation(text, words, list(range(len(words)))[::-1])
        found.append(Translation(text, one.text + end.group(), 0.0, (), one.alignment * align))
    return found


def shout(units: Sequence[Unit]) -> list[Unit]:
    return translate_units(units, shout_texts)


def reverse(units: Sequence[Unit]) -> list[Unit]:
    return translate_units(units, reverse_texts)


def rotate(units: Sequence[Unit]) -> list[Unit]:
    """Replace each ASCII letter by another; doing so twice gives the same text."""
    return [Unit(codecs.encode(unit.text, "rot13"), unit.marks) for unit in units]
