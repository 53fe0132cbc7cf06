"""Scripts have code points, and some of them are written without spaces between words.

Which languages have no spaces is said in `dragoman.text.languages`.
"""

from __future__ import annotations

from typing import Final

from dragoman.text.lazy_patterns import lazy_pattern

CODE_POINTS: Final = {
    "Latin": "41-24f 1e00-1eff ff21-ff5a",
    "Greek": "370-3ff 1f00-1fff",
    "Cyrillic": "400-52f",
    "Armenian": "530-58f",
    "Hebrew": "590-5ff",
    "Arabic": "600-6ff 750-77f fb50-fdff fe70-feff",
    "Devanagari": "900-97f",
    "Bengali": "980-9ff",
    "Gurmukhi": "a00-a7f",
    "Gujarati": "a80-aff",
    "Tamil": "b80-bff",
    "Telugu": "c00-c7f",
    "Kannada": "c80-cff",
    "Malayalam": "d00-d7f",
    "Sinhala": "d80-dff",
    "Thai": "e00-e7f",
    "Lao": "e80-eff",
    "Tibetan": "f00-fff",
    "Burmese": "1000-109f",
    "Georgian": "10a0-10ff",
    "Hangul": "1100-11ff 3130-318f ac00-d7af",
    "Ethiopic": "1200-139f",
    "Khmer": "1780-17ff",
    "Kana": "3040-30ff 31f0-31ff ff66-ff9f",
    "Han": "2e80-2fdf 3005-3007 3400-4dbf 4e00-9fff f900-faff 20000-3ffff",
}
"""The code points of each script are ranges in hexadecimal numbers, both ends included."""


def code_ranges(script: str) -> list[tuple[int, int]]:
    """Return the first and the last code point of each range of a script."""
    pairs = (one.split("-") for one in CODE_POINTS[script].split())
    return [(int(first, 16), int(last, 16)) for first, last in pairs]


def characters_of(*scripts: str) -> str:
    """Return the characters of some scripts as they stand in a class of a regular expression."""
    ranges = (both for script in scripts for both in code_ranges(script))
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


SOUTHEAST_ASIAN: Final = characters_of("Thai", "Lao", "Tibetan", "Burmese", "Khmer")
CHINESE_AND_JAPANESE: Final = characters_of("Kana", "Han")
WITHOUT_SPACES: Final = SOUTHEAST_ASIAN + CHINESE_AND_JAPANESE
"""These characters, as in a class of a regular expression, have no spaces between words."""
_WITHOUT_SPACES: Final = lazy_pattern(f"[{WITHOUT_SPACES}]")


def has_no_spaces(character: str) -> bool:
    """Return whether a character is of a script that is written without spaces."""
    return _WITHOUT_SPACES.match(character) is not None
