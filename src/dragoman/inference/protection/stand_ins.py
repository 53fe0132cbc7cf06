"""Words that a model copies stand for what it would damage.

Models differ in what they copy: one that has read web pages copies {1}, another only names. A few
of each kind are tried once, in a few short sentences.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoman.inference.translation_types import Request, TranslateFunction
from dragoman.text.languages import primary_code

_FAMILIES: Final = (
    ("{1}", "{2}", "{3}", "{4}", "{5}", "{6}", "{7}", "{8}"),
    ("ABC", "XYZ", "PQR", "XB", "QX", "DEF", "ZK", "XA"),
    ("Anna", "Peter", "Maria", "Martin", "Julia", "Thomas", "London", "Berlin", "Paris"),
)
"""Placeholders, abbreviations and names; the earlier harm the words around them less."""
_OWN_WORDS: Final = 64
"""So many capitalised words of the vocabulary are tried where a model copies none of these."""
_ENOUGH: Final = 4
_MOST: Final = 8
_CARRIERS: Final = {
    "de": "Bitte öffnen Sie {} und {}.",
    "en": "Please open {} and {}.",
    "es": "Por favor, abra {} y {}.",
    "fr": "Veuillez ouvrir {} et {}.",
    "it": "Si prega di aprire {} e {}.",
    "ja": "{}と{}を開いてください。",
    "ko": "{}, {} 파일을 여세요.",
    "nl": "Open {} en {}.",
    "pl": "Proszę otworzyć {} i {}.",
    "pt": "Abra {} e {}.",
    "ru": "Откройте {} и {}.",
    "zh": "请打开{}和{}。",
}


@dataclass(frozen=True, slots=True)
class StandIns:
    """Hold what a model copies."""

    placeholders: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def usable(self, text: str, kind: str) -> list[str]:
        """Return what can stand for an item of a kind in a text, the best first.

        A name is best replaced by a word.
        """
        lists = (
            (self.words, self.placeholders)
            if kind in ("unknown", "name", "hashtag")
            else (self.placeholders, self.words)
        )
        lowered = text.lower()
        return [name for several in lists for name in several if name.lower() not in lowered]


def choose_stand_ins(
    run: TranslateFunction, language: str, vocabulary: Sequence[str] = ()
) -> StandIns:
    """Return what the model copies of the usual stand-ins, or of its own capitalised words."""
    placeholders, abbreviations = (_copied(family, run, language) for family in _FAMILIES[:2])
    words = abbreviations
    if len(words) < _ENOUGH:
        words += _copied(_FAMILIES[2], run, language)
    if len(words) + len(placeholders) < _ENOUGH:
        own = [word for word in vocabulary if len(word) > 2 and word.isalpha() and word.istitle()]
        words += _copied([word for word in own if word not in words][:_OWN_WORDS], run, language)
    return StandIns(tuple(placeholders[:_MOST]), tuple(words[:_MOST]))


def _copied(candidates: Sequence[str], run: TranslateFunction, language: str) -> list[str]:
    """Return those that come out just once, alone and two in a sentence."""
    carrier = _CARRIERS.get(primary_code(language), "{}, {}.")
    pairs = list(zip(candidates[::2], candidates[1::2], strict=False))
    asked = [f"{one}." for one in candidates] + [carrier.format(*pair) for pair in pairs]
    contents = [(one,) for one in candidates] + pairs
    lost = {
        one
        for names, found in zip(contents, run([Request(text) for text in asked]), strict=True)
        for one in names
        if len(find_copies(one, found.text)) != 1
    }
    return [one for one in candidates if one not in lost]


def find_copies(text: str, output: str) -> list[tuple[int, int]]:
    """Return where a text occurs in an output, with no word of its own script going on.

    A Korean particle may follow a Latin word; capitals do not matter.
    """
    found = []
    for match in re.finditer(re.escape(text), output, re.IGNORECASE):
        start, end = match.span()
        if not (start and joins(output[start - 1], output[start])) and not (
            end < len(output) and joins(output[end - 1], output[end])
        ):
            found.append((start, end))
    return found


def joins(left: str, right: str) -> bool:
    """Return whether two characters belong to one word."""
    kinds = _script(left), _script(right)
    return bool(kinds[0] and kinds[1]) and (kinds[0] == kinds[1] or "mark" in kinds)


def _script(character: str) -> str:
    """Return what a character continues: a word of large letters, of others, or none."""
    if character == "_" or character.isdigit():
        return "letter"
    category = unicodedata.category(character)
    if category[0] == "M":
        return "mark"
    if category[0] != "L":
        return ""
    return "asian" if "\u1100" <= character <= "\u11ff" or character >= "\u2e80" else "letter"
