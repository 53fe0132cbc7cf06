"""A text tells its language among several, or that it is in another than the one expected."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final

from dragoman.text.languages import (
    choose_language,
    identify_language,
    language_name,
    primary_code,
)
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.scripts import CODE_POINTS, code_ranges

_LANGUAGES: Final = {
    "Greek": "el",
    "Cyrillic": "ru uk bg sr mk be kk ky mn",
    "Armenian": "hy",
    "Hebrew": "he yi",
    "Arabic": "ar fa ur",
    "Devanagari": "hi mr ne",
    "Bengali": "bn",
    "Gurmukhi": "pa",
    "Gujarati": "gu",
    "Tamil": "ta",
    "Telugu": "te",
    "Kannada": "kn",
    "Malayalam": "ml",
    "Sinhala": "si",
    "Thai": "th",
    "Lao": "lo",
    "Tibetan": "bo",
    "Burmese": "my",
    "Georgian": "ka",
    "Hangul": "ko",
    "Ethiopic": "am",
    "Khmer": "km",
    "Kana": "ja",
    "Han": "zh",
}
"""These languages are written in each script, the commonest first; Latin has all the others."""
_LETTERS_OF: Final = {"Hangul": 2.5, "Kana": 2.0, "Han": 2.5}
"""A character of these stands for so many letters of an alphabet."""
_ALSO_LATIN: Final = frozenset({"kk", "mn", "sr"})
_RANGES: Final = [
    (first, last + 1, name) for name in CODE_POINTS for first, last in code_ranges(name)
]
_EDGES: Final = {0: ""} | {end: "" for _, end, _ in _RANGES} | {at: name for at, _, name in _RANGES}
_SCRIPT_STARTS: Final = sorted(_EDGES)
_LATIN_CODES: Final = "ca cs da de en es et fi fr hr hu id it lt lv nl no pl pt ro sk sl sv tr vi"
"""A text may be said to be in one of these; rarer ones are found in too many names and titles."""
_RELATED: Final = tuple(
    frozenset(group.split())
    for group in (
        "af nl",
        "az tr",
        "be bg mk ru sr uk",
        "bs hr sl sr",
        "ca es gl pt",
        "cs sk",
        "da nb nn no",
        "de lb",
        "hi mr ne",
        "id ms",
    )
)
"""Between these the identifier must be sure twice over."""
_SAME_BUT_FOR_THE_NAME: Final = frozenset({"nb", "nn", "no"})
_NO_LANGUAGE: Final = lazy_pattern(r"\S*[\d_@/\\{}<>=%$#|~^*]\S*|\b\w+(?:\.\w+)+|&\w+;")
"""Addresses, code, placeholders and numbers."""
_CODE_SIGN: Final = lazy_pattern(
    r";\s*$|\w\(\w*[);,]|&&|\|\||(?<!\w)--?\w|==|=>|->|::|\s=\s|[{}<>]|\(\)", re.MULTILINE
)
_JUDGED: Final = 3000
"""So many characters of a text are enough to judge it."""
_FEWEST_LETTERS, _ENOUGH_LETTERS, _MANY_HAN = 25, 40, 20
_TELLING_WORDS: Final = {
    "en": "the and of that with this you they have which would from there what",
    "de": "und nicht ist ich das für auch wird sich einen sind werden wurde über zum",
}
"""These words are in most sentences of a language, and in hardly any of another."""
_COMMON_WORDS: Final = {
    "en": "are were been has his their our your its she when who how these those could should "
    "about because into other than not but said more it to be was",
    "de": "eine einer eines mit auf von im vom zur dass wir hat haben bei nach aus wie aber oder "
    "noch nur kein keine zu sie ein der dem",
}
"""Two of these, or of those above, are in most sentences of a language, and seldom in another's."""
_COMMON_SHARE, _COMMON_COUNT = 0.15, 2
"""A text with so large a share of them, and so many, is in the language, whatever else it holds."""
_MARGIN, _WIDE_MARGIN = 2.5, 5.0
"""Another language must be likelier by this, in nats by the square root of the bytes; by the second
where letters are few or the languages close."""


def recognize_language(text: str, languages: Sequence[str]) -> str:
    """Return which of `languages` a text is taken to be in; there must be one at least.

    Where only one of them is written in the text's script, or it has only the common words of one,
    nothing else is looked at: the tables take half a second to load. Raise DataError where none of
    them can be detected.
    """
    letters = _count_scripts(text[:_JUDGED])
    if letters:
        script, _ = max(letters.items(), key=lambda one: one[1] * _LETTERS_OF.get(one[0], 1))
        written = [code for code in languages if script in _scripts_of(primary_code(code))]
        languages = written or languages
    telling = {code: _TELLING_WORDS.get(primary_code(code)) for code in languages}
    if len(languages) > 1:
        spoken = [
            code for code, words in telling.items() if words and _count_words(text[:_JUDGED], words)
        ]
        if len(spoken) == 1 and all(telling.values()):
            return spoken[0]
    return choose_language(text[:_JUDGED], languages)[0]


def find_other_language(text: str, expected: str) -> str | None:
    """Return the language of a text that is surely not in the one expected, and else nothing.

    A whole text is judged, so that a foreign quotation or title in it says nothing. Another script
    tells at once; within a script, so do about forty letters. In doubt the text is as expected, and
    so it always is where the expected language is not known here.
    """
    expected = primary_code(expected)
    own_scripts = _scripts_of(expected)
    text = text[:_JUDGED]
    words = " ".join(_NO_LANGUAGE.sub(" ", text).split())
    letters = _count_scripts(words) or _count_scripts(text)
    if not own_scripts or not letters:
        return None
    total, own = letters.total(), sum(letters[script] for script in own_scripts)
    script, most = max(letters.items(), key=lambda one: one[1] * _LETTERS_OF.get(one[0], 1))
    if expected == "ja" and script == "Han" and not letters["Kana"]:
        return "zh" if most >= _MANY_HAN else None
    if expected == "zh" and letters["Kana"] >= max(4, 0.15 * total):
        return "ja"
    if script == "Han" and letters["Kana"]:
        script = "Kana"
    if script in (*own_scripts, "Latin") and _is_code(text):
        return None
    if script in own_scripts:
        return _find_within_script(words, expected, script)
    if script == "Latin":
        # Names, titles and code are written so everywhere.
        return _find_within_script(words, expected, script) if own <= 0.02 * total else None
    weight = most * _LETTERS_OF.get(script, 1)
    if weight < 4 or (own > 0.2 * total and weight < max(20, 1.2 * own)):
        return None
    candidates = _LANGUAGES[script].split()
    if len(candidates) == 1 or most < _FEWEST_LETTERS:
        return candidates[0]
    return _best_of(candidates, identify_language(text))


def _find_within_script(text: str, expected: str, script: str) -> str | None:
    """Return which other language a text of one script is in, if the letters alone tell."""
    count = sum(map(str.isalpha, text))
    if count < _FEWEST_LETTERS or _are_names(text) or _has_common_words(text, expected):
        return None
    scores = identify_language(text.lower() if text.isupper() else text)
    candidates = _LATIN_CODES.split() if script == "Latin" else _LANGUAGES[script].split()
    best = _best_of(candidates, scores)
    if best == expected or {best, expected} <= _SAME_BUT_FOR_THE_NAME:
        return None
    if expected not in scores and script in _scripts_of(expected):
        return None
    # "zxx" is what is no language at all: code, lists of names.
    lead = scores[best] - max(scores.get(code, -math.inf) for code in (expected, "zxx"))
    close = any({best, expected} <= group for group in _RELATED)
    needed = _WIDE_MARGIN if close or count < _ENOUGH_LETTERS else _MARGIN
    return best if lead > needed * math.sqrt(len(text.encode("utf-8", "replace"))) else None


def _has_common_words(text: str, code: str) -> bool:
    """Return whether the common words of a language alone tell that a text is in it."""
    count = _count_words(text, f"{_TELLING_WORDS.get(code, '')} {_COMMON_WORDS.get(code, '')}")
    return count >= max(_COMMON_COUNT, _COMMON_SHARE * len(text.split()))


def _count_words(text: str, wanted: str) -> int:
    """Count the words of a text that are among some."""
    known = frozenset(wanted.split())
    return sum(word.strip(".,;:!?()\"'„“”»«") in known for word in text.lower().split())


def _is_code(text: str) -> bool:
    return 10 * len(_CODE_SIGN.findall(text)) >= len(text.split())


def _are_names(text: str) -> bool:
    """Return whether a text is a list of names or labels, by its capitals."""
    words = [word for word in text.split() if word[0].isalpha()]
    capitals = sum(word[0].isupper() for word in words)
    return not text.isupper() and capitals > 0.85 * len(words)


def _best_of(candidates: Sequence[str], scores: dict[str, float]) -> str:
    return max(candidates, key=lambda code: scores.get(code, -math.inf))


@cache
def _scripts_of(code: str) -> frozenset[str]:
    """Return the scripts a language is written in, or none where the language is not known."""
    scripts = {name for name, languages in _LANGUAGES.items() if code in languages.split()}
    if code == "ja":
        scripts.add("Han")
    if code in _ALSO_LATIN or (not scripts and language_name(code) != code):
        scripts.add("Latin")
    return frozenset(scripts)


def _count_scripts(text: str) -> Counter[str]:
    """Count the letters of each script."""
    found: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if character.isalpha():
            at = bisect_right(_SCRIPT_STARTS, ord(character)) - 1
            found[_EDGES[_SCRIPT_STARTS[at]]] += count
    del found[""]
    return found
