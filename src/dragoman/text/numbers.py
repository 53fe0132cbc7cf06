"""Languages write numbers with their separators, scale words and number words.

`1,499.00` in English is `1.499,00` in German and `1 499,00` in French. Where a spelling has two
readings ("3.000" is three in English and three thousand in German) the language decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Final

from dragoman.text.languages import primary_code
from dragoman.text.lazy_patterns import lazy_pattern


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NARROW_SPACE: Final = "\u202f"
NO_BREAK_SPACE: Final = "\u00a0"

_POINT: Final = _words("ar bn cy en ga he hi ja km ko lo mr ms mt my ne pa sw ta te th tl ur zh zu")
_COMMA: Final = _words("az bs ca da de el es eu fo gl hr id is it lb mk nl pt ro sl sr tr vi")
_SPACE: Final = _words(
    "af be bg cs eo et fi fr hu hy ka kk ky lt lv mn nb nn no pl ru sk sq sv tk uk uz xh"
)
_PERCENT_APART: Final = _words(
    "be bg cs da de es et fi fr hr hu lb lt lv nb nn no pl ro ru sk sl sr sv uk"
)


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """Say how a language writes numbers."""

    decimal: str
    group: str
    percent_space: str = ""
    """This stands between a number and its percent sign."""
    lakhs: bool = False
    """Groups are of two digits before the last three: 12,34,567."""


@cache
def number_format(code: str | None) -> NumberFormat | None:
    """Return how the language of a code writes numbers, or None where that is not known here."""
    language = primary_code(code)
    region = (code or "").replace("_", "-").partition("-")[2].upper()
    percent = NO_BREAK_SPACE if language in _PERCENT_APART else ""
    if language == "fr":
        percent = NARROW_SPACE
    if region.endswith(("CH", "LI")) and language in ("de", "fr", "it", "rm"):
        return NumberFormat(".", "’", percent if language != "it" else "")
    if region in ("MX", "US", "GT", "HN", "NI", "SV", "PA", "DO") and language == "es":
        return NumberFormat(".", ",", percent)
    if language == "hi" or (region in ("IN", "PK", "BD", "NP") and language in _POINT):
        return NumberFormat(".", ",", percent, lakhs=True)
    if language in _POINT:
        return NumberFormat(".", ",", percent)
    if language in _COMMA:
        return NumberFormat(",", ".", percent)
    if language in _SPACE:
        return NumberFormat(",", NARROW_SPACE if language == "fr" else NO_BREAK_SPACE, percent)
    return None


@dataclass(frozen=True, slots=True)
class NumberReading:
    """Hold what a spelling of a number means."""

    whole: str
    """These are the digits before the decimal separator, as they were written."""
    fraction: str = ""
    grouped: bool = False
    """Its thousands were separated."""

    @property
    def value(self) -> Decimal:
        """Return the number as a decimal."""
        return Decimal(f"{self.whole}.{self.fraction or 0}")

    @property
    def digits(self) -> str:
        """Return all digits, without separators."""
        return self.whole + self.fraction

    def write(self, code: str | None) -> str:
        """Return it as the language of a code writes it; thousands are separated if they were."""
        form = number_format(code) or NumberFormat(".", ",")
        whole = self.whole
        if self.grouped and len(whole) > 3:
            size = 2 if form.lakhs else 3
            head, groups = whole[:-3], [whole[-3:]]
            while head:
                groups.insert(0, head[-size:])
                head = head[:-size]
            whole = form.group.join(groups)
        return whole + (form.decimal + self.fraction if self.fraction else "")


_GROUP_MARKS: Final = lazy_pattern("[\u0020\u00a0\u202f\u2009'’]")
_GROUPS: Final = lazy_pattern(r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}")


def read_number(text: str, code: str | None) -> list[NumberReading]:
    """Return what a spelling can mean, what the language says first; nothing for 1.2.3 or 1,2."""
    plain = _GROUP_MARKS.sub("", text)
    spaced = plain != text
    kinds = {character for character in plain if character in ".,"}
    if not kinds:
        return [NumberReading(plain, grouped=spaced)]
    if len(kinds) == 2:
        last = max(plain.rfind("."), plain.rfind(","))
        head, tail = plain[:last], plain[last + 1 :]
        if plain[last] in head or not _GROUPS.fullmatch(head):
            return []
        return [NumberReading(re.sub(r"\D", "", head), tail, True)]
    mark = kinds.pop()
    head, _, tail = plain.partition(mark)
    if mark in tail:
        whole = _GROUPS.fullmatch(plain)
        return [NumberReading(plain.replace(mark, ""), "", True)] if whole else []
    as_decimal = NumberReading(head, tail, spaced)
    if spaced or not _GROUPS.fullmatch(plain) or head.startswith("0"):
        return [as_decimal]
    as_group = NumberReading(head + tail, "", True)
    form = number_format(code)
    if form is None:
        return [as_group, as_decimal]
    if form.decimal != mark:
        return [as_group]
    # Three digits after a comma are mostly a decimal's; 15,000 may be as English has it.
    return [as_decimal, as_group] if mark == "," and tail.endswith("00") else [as_decimal]


# --- scale words ---

_SCALES: Final = {
    word: power
    for power, several in {
        2: "hundred hundert",
        3: "thousand tausend tsd mille mila mil duizend",
        5: "lakh",
        6: "million millions millionen mio mill mn millón millones milione milioni milhão milhões "
        "miljoen",
        7: "crore",
        9: "milliarde milliarden mrd milliard milliards md miliardi miljard bn",
        12: "trillion trillions billionen",
    }.items()
    for word in several.split()
}
_ABBREVIATED: Final = frozenset({"mio", "mrd", "tsd", "mill"})
_BILLION: Final = frozenset({"billion", "billions"})
_ASIAN_POWERS: Final = {
    character: power
    for power, several in {
        1: "십十",
        2: "백百",
        3: "천千",
        4: "만万萬",
        8: "억億亿",
        12: "조兆",
    }.items()
    for character in several
}
"""The first three may stand before one of the others: 천만, 千億."""
_ASIAN: Final = "[십백천十百千]?[만억조万萬億亿兆](?!큼)|[백천百千]"
_LARGE_GROUPS: Final = {"ko": "만억조", "ja": "万億兆", "zh": "万亿"}
"""These name ten thousand and its powers."""
_SCALE_AFTER_NUMBER: Final = re.compile(
    "[일이삼사오육칠팔구십백천몇수一二三四五六七八九十百千数幾几0-9] ?[백천만억조百千万萬億亿兆]"
)
_WITH_SCALES: Final = frozenset(_words("de en es fr it ja ko nl pt zh"))
_SCALE_LETTER: Final = lazy_pattern(r"\d ?(?:[kKmMbBT]|bn)(?![^\W_])")
_SCALE: Final = lazy_pattern(rf"[\s\u00a0\u202f-]?(?:({_ASIAN})|([^\W\d_]+))")


def scale_after(text: str, end: int, code: str | None) -> tuple[int, int]:
    """Return the power of ten of the scale word that follows a number, and where that ends."""
    match = _SCALE.match(text, end)
    if match is None:
        return 0, end
    if match[1]:
        return sum(map(_ASIAN_POWERS.__getitem__, match[1])), match.end()
    word = match[2].lower()
    if word in _BILLION:
        return (9 if primary_code(code) in ("en", "") else 12), match.end()
    power = _SCALES.get(word, 0)
    if not power:
        return 0, end
    return power, match.end() + (
        word in _ABBREVIATED and text[match.end() : match.end() + 1] == "."
    )


_RANGE: Final = lazy_pattern(
    r"\s?(?:[-–—~〜～/]|to|or|and|bis|oder|und|à|ou|et|o|y|e|a|al|내지|에서|부터|또는|から|到|至|或)\s?"
)


def joins_range(between: str) -> bool:
    """Return whether what stands between two numbers makes one range of them: 12 to 16 thousand."""
    return _RANGE.fullmatch(between) is not None


def says_scale(text: str, power: int, code: str | None) -> bool:
    """Return whether a text may say a power of ten in words, or with a letter: 5 Mio., 5M, 5천.

    Where the scale words of the language are not known here, it may.
    """
    if primary_code(code) not in _WITH_SCALES or _SCALE_LETTER.search(text):
        return True
    if primary_code(code) in _LARGE_GROUPS:
        return _SCALE_AFTER_NUMBER.search(text) is not None
    words = sorted(_words_of_power(power), key=len, reverse=True)
    short = "|".join(word for word in words if len(word) < 4)  # which others may contain
    long = "|".join(word for word in words if len(word) >= 4)  # as in sechzehntausend
    said = rf"(?<![^\W\d_])(?:{short or '(?!)'})(?![^\W_])|(?:{long})"
    return re.search(said, text.lower()) is not None


def write_large(value: int, code: str | None) -> str:
    """Return a whole number as a language writes large ones: 350만 in Korean, 3,500,000 in English.

    Groups of four digits have names where 만 is counted; elsewhere the thousands are separated.
    """
    groups = _LARGE_GROUPS.get(primary_code(code))
    if groups is None or not 10**4 <= value < 10 ** (4 * (len(groups) + 1)):
        return NumberReading(str(value), "", True).write(code)
    parts = []
    for power in range(len(groups), 0, -1):
        count, value = divmod(value, 10 ** (4 * power))
        parts += [f"{count}{groups[power - 1]}"] if count else []
    return (" " if primary_code(code) == "ko" else "").join(
        [*parts, *([str(value)] if value else [])]
    )


@cache
def _words_of_power(power: int) -> frozenset[str]:
    words = {word for word, each in _SCALES.items() if each == power}
    return frozenset(words | _BILLION if power in (9, 12) else words)


# --- number words ---

_ENGLISH: Final = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_ENGLISH_TENS: Final = _words("twenty thirty forty fifty sixty seventy eighty ninety")
_GERMAN: Final = _words(
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn "
    "sechzehn siebzehn achtzehn neunzehn"
)
_GERMAN_TENS: Final = _words("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
_FRENCH: Final = _words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
    "dix-sept dix-huit dix-neuf"
)
_FRENCH_TENS: Final = _words("vingt trente quarante cinquante soixante")
_KOREAN_DIGITS: Final = _words("영 일 이 삼 사 오 육 칠 팔 구")
_KOREAN_NATIVE: Final = (
    "", "하나 한", "둘 두", "셋 세 석", "넷 네 넉", "다섯", "여섯", "일곱", "여덟", "아홉",
)  # fmt: skip
_KOREAN_TENS: Final = (
    "", "열", "스물 스무", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔",
)  # fmt: skip
_HAN_DIGITS: Final = "〇一二三四五六七八九"

_OTHER_WORDS: Final[dict[str, dict[int, str]]] = {
    "en": {
        0: "no none nil",
        1: "a an first single once half another",
        2: "second both double twice pair couple half binary",
        3: "third thrice triple",
        4: "quarter",
        5: "fifth",
        6: "sixth",
        8: "eighth octal",
        9: "ninth",
        10: "tenth decade decimal",
        12: "dozen twelfth",
        16: "hexadecimal",
        50: "half",
        100: "hundred century",
        1000: "thousand millennium",
        1_000_000: "million",
        1_000_000_000: "billion",
    },
    "de": {
        0: "kein",
        1: "eine eins erst halb hälfte",
        2: "zwo beide doppel paar halb hälfte",
        3: "dritt",
        7: "siebt",
        10: "jahrzehnt",
        11: "elft",
        12: "dutzend",
        30: "dreissig",
        50: "hälfte",
        100: "hundert jahrhundert",
        1000: "tausend jahrtausend",
        1_000_000: "million",
        1_000_000_000: "milliarde",
    },
    "fr": {
        0: "aucun",
        1: "une premi demi moitié",
        2: "second deuxi double demi moitié couple",
        3: "tiers",
        4: "quart",
        5: "cinqui",
        6: "sixi",
        9: "neuvi",
        10: "dixi décennie",
        50: "moitié",
        100: "cent",
        1000: "mille millier",
        1_000_000: "million",
        1_000_000_000: "milliard",
    },
    "ko": {1: "첫 반", 2: "둘째 반 양 쌍", 50: "절반", 100: "백", 1000: "천", 10_000: "만"},
    "zh": {2: "两 兩 双", 100: "百", 1000: "千", 10_000: "万 萬"},
    "ja": {1: "ひと", 2: "ふた", 100: "百", 1000: "千", 10_000: "万"},
}
_WITH_WORDS: Final = frozenset({"en", "de", "fr", "ko", "zh", "ja"})
LARGEST_UNCHECKED_WORD: Final = 12
"""Numbers up to this one may be words of a language whose number words are not known here."""


def knows_number_words(code: str | None) -> bool:
    """Return whether the number words of a language are known here."""
    return primary_code(code) in _WITH_WORDS


@cache
def number_words(value: int, code: str | None) -> tuple[str, ...]:
    """Return how words for a number begin in a language, in lower case: 3 is "three", "third".

    Cardinals, ordinals and fractions are given, and those like "dozen"; nothing above 99 but powers
    of ten.
    """
    language = primary_code(code)
    found: list[str] = []
    if language == "en":
        found += _compose(value, _ENGLISH, _ENGLISH_TENS, ("-", " "))
    elif language == "de":
        if value < 20:
            found.append(_GERMAN[value])
        elif value < 100:
            tens, one = divmod(value, 10)
            found.append((_GERMAN[one] + "und" if one else "") + _GERMAN_TENS[tens - 2])
    elif language == "fr":
        found += _french(value)
    elif language == "ko" and value < 100:
        found += _korean(value)
    elif language in ("zh", "ja") and value < 100:
        tens, one = divmod(value, 10)
        head = ("" if tens == 1 else _HAN_DIGITS[tens]) + "十" if tens else ""
        found.append(head + (_HAN_DIGITS[one] if one or not tens else ""))
    found += _OTHER_WORDS.get(language, {}).get(value, "").split()
    return tuple(dict.fromkeys(found))


def _compose(
    value: int, small: Sequence[str], tens: Sequence[str], joints: Iterable[str]
) -> list[str]:
    if value < 20:
        return [small[value]]
    if value >= 100:
        return []
    ten, one = divmod(value, 10)
    round_number = tens[ten - 2]
    if one:
        return [f"{round_number}{joint}{small[one]}" for joint in joints]
    return [round_number, f"{round_number[:-1]}ie"]  # twenty, twentieth, twenties


def _french(value: int) -> list[str]:
    if value < 20:
        return [_FRENCH[value]]
    if value >= 100:
        return []
    ten, one = divmod(value, 10)
    if value >= 70:
        head, rest = ("soixante", value - 60) if value < 80 else ("quatre-vingt", value - 80)
        forms = [f"{head}-{_FRENCH[rest]}", f"{head}-et-{_FRENCH[rest]}"] if rest else [head]
    else:
        head = _FRENCH_TENS[ten - 2]
        forms = [f"{head}-{_FRENCH[one]}", f"{head}-et-{_FRENCH[one]}"] if one else [head]
    return [*forms, *(form.replace("-", " ") for form in forms)]


def _korean(value: int) -> list[str]:
    ten, one = divmod(value, 10)
    sino = ("" if ten == 1 else _KOREAN_DIGITS[ten]) + "십" if ten else ""
    sino += _KOREAN_DIGITS[one] if one or not ten else ""
    tens = _KOREAN_TENS[ten].split() or [""]
    ones = _KOREAN_NATIVE[one].split() or [""]
    native = [f"{a}{b}" for a in tens[: 1 if one else 2] for b in ones]
    return [sino, *(word for word in native if word)]
