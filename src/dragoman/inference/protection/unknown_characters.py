"""Some characters have no piece in a model's tokeniser: emoji, other scripts, rare letters.

A model sees such a character as bytes that mean nothing to it, and says others. So the word it
stands in is kept as it is. What looks the same or is not seen at all (a ligature, a soft hyphen) is
written as what the tokeniser knows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from dragoman.inference.protection.protected_items import AMOUNT_SIGNS, Item
from dragoman.text.languages import primary_code
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.normalization import normalize
from dragoman.text.scripts import has_no_spaces
from dragoman.text.special_tokens import UNK
from dragoman.text.tokenizer import Tokenizer

_BASE: Final = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_MODIFIER: Final = "[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
_ONE_EMOJI: Final = (
    rf"(?:{_BASE}|[0-9#*](?=\ufe0f?\u20e3)){_MODIFIER}*(?:\u200d{_BASE}{_MODIFIER}*)*"
)
_EMOJI: Final = lazy_pattern(rf"{_ONE_EMOJI}(?: ?{_ONE_EMOJI})*")

_OWN_LETTERS: Final = {
    "cs": "áčďéěíňóřšťúůýž",
    "da": "æøåé",
    "de": "äöüßéèà",
    "en": "éèêïöôçñ",
    "es": "áéíóúüñ",
    "et": "äöõüšž",
    "fi": "äöåšž",
    "fr": "àâæçéèêëîïôœùûüÿ",
    "hr": "čćđšž",
    "hu": "áéíóöőúüű",
    "it": "àèéìîòóùú",
    "lt": "ąčęėįšųūž",
    "lv": "āčēģīķļņšūž",
    "nb": "æøåéèòó",
    "nl": "áéëïóöüè",
    "no": "æøåéèòó",
    "pl": "ąćęłńóśźż",
    "pt": "áâãàçéêíóôõúü",
    "ro": "ăâîșțşţ",
    "sk": "áäčďéíĺľňóôŕšťúýž",
    "sl": "čšž",
    "sv": "åäöé",
    "tr": "çğıİöşüâî",
    "vi": "\u00c0-\u024f\u1ea0-\u1eff",
    # Scripts so large that a tokeniser leaves out rare letters.
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff\u4e00-\u9fff",
    "ja": "\u3000-\u301f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff",
    "zh": "\u3000-\u301f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff",
}
"""A model may know these letters of its source in bytes, where they are too rare for a piece."""
_SCRIPTS: Final = {
    code: script
    for script, codes in {
        "ARABIC": "ar fa ur",
        "CYRILLIC": "be bg kk ky mk mn ru sr uk uz",
        "DEVANAGARI": "hi mr ne",
        "GREEK": "el",
        "HANGUL CJK": "ko",
        "HEBREW": "he yi",
        "CJK HIRAGANA KATAKANA IDEOGRAPHIC": "ja zh",
    }.items()
    for code in codes.split()
} | dict.fromkeys(["am", "bn", "hy", "ka", "km", "lo", "my", "pa", "ta", "te", "th", "ti"], "")
"""Where other letters come out, bytes were broken; all may be where the script is not given."""
_DIRECTIONS: Final = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""They say in which direction the letters beside them run, where some run to the left."""
_RIGHT_TO_LEFT: Final = lazy_pattern("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_TOKEN: Final = lazy_pattern(r"\S+")
_PART: Final = lazy_pattern(r"[^-/]+")
DAMAGED: Final = "\ufffd\u2047"
"""Tokenisers write these for bytes that are no character, and for a piece that they do not know."""


class UnknownCharacters:
    """Find the characters that a tokeniser has no piece for."""

    def __init__(self, tokenizer: Tokenizer, source: str = "", target: str = "") -> None:
        """Take the codes of the model's languages, whose rare letters it may know in bytes."""
        self._tokenizer = tokenizer
        self._known: set[str] = set()
        self._unknown: dict[str, str] = {}
        """These become what the value says: nothing, something known, or themselves."""
        self._own = _own_letters(source)
        self._scripts = _SCRIPTS.get(primary_code(target), "LATIN" if target else "").split()

    def replace_lookalikes(self, text: str) -> str:
        """Return the text with what the tokeniser knows for what looks the same or is not seen."""
        strange = self._strange(text)
        if not strange:
            return text
        if any(unicodedata.combining(character) for character in strange):
            text = unicodedata.normalize("NFC", text)
            strange = self._strange(text)
        changed = {c: self._unknown[c] for c in strange if self._unknown[c] != c}
        if _RIGHT_TO_LEFT.search(text):
            changed = {c: known for c, known in changed.items() if c not in _DIRECTIONS}
        if not changed:
            return text
        parts, end = [], 0
        table = str.maketrans(changed)
        for match in _EMOJI.finditer(text):  # whose joiners and selectors belong to them
            parts += [text[end : match.start()].translate(table), match.group()]
            end = match.end()
        return normalize("".join([*parts, text[end:].translate(table)]), "none")

    def find(self, text: str, items: Sequence[Item], *, strict: bool = False) -> list[Item]:
        """Return what is unknown in a text beside its items: emoji, marks, and whole words.

        Rare letters of the source's own language are unknown only if `strict`.
        """
        strange = self._strange(text)
        if not strict:
            strange = {c for c in strange if not self._own.match(c) and c not in AMOUNT_SIGNS}
        if not strange:
            return []
        free = _outside(text, items)
        found = []
        for start, end in free:
            position = start
            for match in _EMOJI.finditer(text, start, end):
                if strange.intersection(match.group()):
                    found += self._find_words(text, position, match.start(), strange)
                    found.append(Item(match.start(), match.end(), match.group(), "emoji"))
                    position = match.end()
            found += self._find_words(text, position, end, strange)
        return found

    def _find_words(self, text: str, start: int, end: int, strange: set[str]) -> list[Item]:
        spans: list[tuple[int, int, str]] = []
        for token in _TOKEN.finditer(text, start, end):
            if strange.intersection(token.group()):
                spans += _unknown_parts(token.group(), token.start(), strange)
        merged: list[tuple[int, int, str]] = []
        for first, last, kind in spans:
            if (
                merged
                and kind == merged[-1][2] == "unknown"
                and text[merged[-1][1] : first] in ("", " ")
            ):
                merged[-1] = merged[-1][0], last, kind
            else:
                merged.append((first, last, kind))
        return [Item(first, last, text[first:last], kind) for first, last, kind in merged]

    def find_damage(self, output: str, source: str) -> list[tuple[int, int]]:
        """Return where a translation has characters that only broken bytes can have made."""
        if output.isascii():
            return []
        strange = set(output).intersection(DAMAGED)
        if self._tokenizer.byte_ids:
            strange |= {c for c in self._strange(output) if not self._may_be_said(c)}
        wrong = strange.difference(source)
        return [(n, n + 1) for n, c in enumerate(output) if c in wrong] if wrong else []

    def _may_be_said(self, character: str) -> bool:
        """Return whether a model may well spell a character in bytes: a rare letter, a currency."""
        category = unicodedata.category(character)
        if category[0] == "L":
            script = unicodedata.name(character, "").partition(" ")[0]
            return script in ("LATIN", *self._scripts) or not self._scripts
        return category[0] in "PNMZ" or category == "Sc" or character in AMOUNT_SIGNS

    def _strange(self, text: str) -> set[str]:
        strange = set(text) - self._known
        for character in [c for c in strange if c not in self._unknown]:
            if self._encodes(character):
                self._known.add(character)
            else:
                self._unknown[character] = self._lookalike(character)
        return {c for c in strange if c not in self._known}

    def _encodes(self, character: str) -> bool:
        ids = self._tokenizer.encode(character)
        return UNK not in ids and self._tokenizer.byte_ids.isdisjoint(ids)

    def _lookalike(self, character: str) -> str:
        category = unicodedata.category(character)
        if category == "Cf" or "\ufe00" <= character <= "\ufe0f":
            return ""
        forms = [normalize(character, "plain")]
        special = unicodedata.decomposition(character).startswith(("<super>", "<sub>"))
        special |= "\u2100" <= character <= "\u214f"  # ℝ is no R
        if (category[0] == "L" or "\uff01" <= character <= "\uff5e") and not special:
            forms.append(unicodedata.normalize("NFKC", character))
        for form in forms:
            if form and form != character and all(map(self._encodes, form)):
                return form
        return character


def _own_letters(code: str) -> re.Pattern[str]:
    letters = _OWN_LETTERS.get(primary_code(code))
    return re.compile(f"[{letters}]", re.IGNORECASE) if letters else re.compile(r"(?!)")


def _outside(text: str, items: Sequence[Item]) -> list[tuple[int, int]]:
    """Return what is not in any item."""
    free, end = [], 0
    for item in items:
        free.append((end, item.start))
        end = item.end
    return [*free, (end, len(text))]


def _unknown_parts(token: str, offset: int, strange: set[str]) -> list[tuple[int, int, str]]:
    """Return what to keep of a word by white space: marks at its ends, runs of letters, or all."""
    first, last = 0, len(token)
    found = []
    while first < last and not _in_word(token[first]):
        if token[first] in strange:
            found.append((offset + first, offset + first + 1, "mark"))
        first += 1
    tail = []
    while last > first and not _in_word(token[last - 1]):
        if token[last - 1] in strange:
            tail.append((offset + last - 1, offset + last, "mark"))
        last -= 1
    inner = token[first:last]
    unknown = [place for place, character in enumerate(inner) if character in strange]
    if unknown and all(map(has_no_spaces, (inner[place] for place in unknown))):
        start = unknown[0]
        runs = []
        for place, after in zip(unknown, [*unknown[1:], -1], strict=True):
            if after != place + 1:
                runs.append((offset + first + start, offset + first + place + 1, "unknown"))
                start = after
        found += runs
    else:  # of a compound only the parts that have one
        found += [
            (offset + first + part.start(), offset + first + part.end(), "unknown")
            for part in _PART.finditer(inner)
            if strange.intersection(part.group())
        ]
    return [*found, *reversed(tail)]


def _in_word(character: str) -> bool:
    """Return whether it is a letter, digit or mark on one, of private use, or says a direction."""
    return (
        unicodedata.category(character)[0] in "LNM"
        or unicodedata.category(character) == "Co"
        or character in _DIRECTIONS
    )
