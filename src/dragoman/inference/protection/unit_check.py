"""What stands beside a number, its sign, currency or unit, stands beside it in the translation.

It may be a word there (5 %, fünf Prozent; 25 °C, 25 degrees), or stand elsewhere in the sentence.
What is gone is put back, and one unit that became another is put right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from dragoman.inference.protection.numbers_in_text import NumberToken
from dragoman.inference.protection.text_edits import Edit
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.numbers import number_format
from dragoman.text.units import find_unit, says_unit

_MINUS_SIGNS: Final = "-−–"
_MINUS_WORDS: Final = lazy_pattern(
    r"minus|below|under|negativ|unter|moins|menos|영하|마이너스|マイナス|零下|负|負", re.IGNORECASE
)
_CURRENCIES: Final = "$€£¥₩"
_SIGN_WORDS: Final = {
    "$": r"\$|dollar|usd|달러|ドル|美元|dólar",
    "€": r"€|euro|eur|유로|ユーロ|欧元",
    "£": r"£|pound|gbp|pfund|livre|sterling|파운드|ポンド|英镑",
    "¥": r"[¥￥]|yen|jpy|yuan|cny|rmb|엔|円|위안|元",
    "₩": r"₩|won|krw|원|ウォン|韩元",
    "%": r"%|percent|per cent|prozent|pour[ -]?cent|pct|procent|por ciento|per cento"
    r"|퍼센트|프로|パーセント|百分之",
    "°": r"[°º℃℉]|degree|grad|degré|도|度",
}
_SIGN_PATTERNS: Final = {sign: lazy_pattern(p, re.IGNORECASE) for sign, p in _SIGN_WORDS.items()}
_MONEY_BEFORE: Final = lazy_pattern(r"(?:[€$£¥₩]|EUR|USD|GBP)\s?$")
_MONEY_AFTER: Final = lazy_pattern(r"\s?(?:[%‰€$£¥₩°]|EUR|USD|GBP|Euro|Dollar)")
_DEGREE: Final = lazy_pattern(r"\s?°(?!\s?[CFK])")
_NOTHING_AFTER: Final = lazy_pattern(r"(?:\s+(?!\S{0,4}/)|[.,;:!?)\]\"”’]|$)")
"""After a number with any other mark or letter there may be a unit that is not known here."""


def says_sign(sign: str, text: str) -> bool:
    """Return whether a currency, percent or degree sign is in a text, or a word for it."""
    return _SIGN_PATTERNS[sign].search(text) is not None


def is_measured(text: str, token: NumberToken) -> bool:
    """Return whether a scale word, a unit or a currency stands beside a number."""
    before = text[max(0, token.start - 5) : token.start]
    return bool(
        token.power
        or find_unit(text, token.start, token.end)[0]
        or _MONEY_AFTER.match(text, token.end)
        or _MONEY_BEFORE.search(before)
    )


@dataclass(slots=True)
class UnitReport:
    """Say what to change in a translation for what stands beside its numbers."""

    edits: list[Edit] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    """These numbers with units had become others, and were put right."""


def check_units(
    source: str,
    target: str,
    language: str,
    pairs: Iterable[tuple[NumberToken, NumberToken]],
) -> UnitReport:
    """Compare what stands beside numbers and beside those of a translation into a language."""
    checker = _Checker(source, target, language)
    for token, other in pairs:
        checker.check(token, other)
    return checker.result


class _Checker:
    """Check the numbers of one translation."""

    def __init__(self, source: str, target: str, language: str) -> None:
        self._source, self._target, self._language = source, target, language
        self._format = number_format(language)
        self._says_minus = _MINUS_WORDS.search(target) is not None
        self._signs = {sign for sign in _SIGN_PATTERNS if says_sign(sign, target)}
        self.result = UnitReport()

    def check(self, token: NumberToken, other: NumberToken) -> None:
        """Put back what is gone beside one number."""
        before = self._source[max(0, token.start - 2) : token.start]
        if (
            before[-1:] in ("-", "−")
            and (len(before) < 2 or before[0] in " ([\"'“„")
            and not (other.start and self._target[other.start - 1] in _MINUS_SIGNS)
            and not self._says_minus
        ):
            self._insert(other.start, before[-1])
        unit, end = find_unit(self._source, token.start, token.end)
        if unit and not (token.clock or token.power or other.clock or other.power):
            written = self._source[token.end : end]
            speed = unit == "km/h" and written.strip() == "km"  # 시속 100km
            self._check_unit(token, other, unit, f" {unit}" if speed else written)
        near = before + "\0" + ("" if unit else self._source[token.end : token.end + 2])
        for sign in _SIGN_PATTERNS:
            if sign in near and sign not in self._signs:
                self._insert_sign(sign, other)

    def _check_unit(self, token: NumberToken, other: NumberToken, unit: str, written: str) -> None:
        there, end = find_unit(self._target, other.start, other.end)
        if there == unit:
            return
        if unit[0] == "°" and (degree := _DEGREE.match(self._target, other.end)):
            there, end = "°", degree.end()
        if not there and (
            says_unit(unit, self._target, self._language)
            or not _NOTHING_AFTER.match(self._target, other.end)
        ):
            return
        self.result.edits.append(Edit(other.end, end, written))
        self.result.repaired.append(token.text + written)

    def _insert_sign(self, sign: str, other: NumberToken) -> None:
        if sign in _CURRENCIES and self._format is not None and self._format.decimal == ".":
            self._insert(other.start, sign)
        elif sign in _CURRENCIES:
            self._insert(max(other.end, other.scale_end), f"\u00a0{sign}")
        else:
            space = self._format.percent_space if self._format and sign == "%" else ""
            self._insert(other.end, space + sign)

    def _insert(self, place: int, text: str) -> None:
        self.result.edits.append(Edit(place, place, text))
