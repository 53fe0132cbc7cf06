"""The numbers of a text are found, read, and written as another language writes them.

A number is plain, a date or a time, or has a scale word (1.5 million, 150만). Whether a translation
has the numbers of its source is decided in `number_check`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Final

from dragoman.inference.protection.text_edits import Edit, apply_edits
from dragoman.text.clock_times import ClockTime, find_clock_times
from dragoman.text.languages import primary_code
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.numbers import (
    NumberReading,
    joins_range,
    number_format,
    read_number,
    scale_after,
)

_HAS_DIGIT: Final = lazy_pattern(r"\d")
_NUMBER: Final = lazy_pattern(
    r"""(?<![A-Za-z\u00c0-\u024f_\d])(?<!\d[.,])
    (?: (?P<date>\d{1,2}\.\ ?\d{1,2}\.\ ?(?:\d{4}|\d{2})(?![\d.])
        |\d{4}\.\ ?\d{1,2}\.\ ?\d{1,2}(?!\d)
        |\d{1,2}\.(?:0?[1-9]|1[0-2])\.(?!\d)
        |\d{1,4}([/-])\d{1,2}\2\d{1,4}(?!\d))
      | (?P<score>\d{1,2}:\d{2}(?![\d:]))
      | (?P<spaced>\d{1,3}(?:[\u00a0\u202f\u2009\x20]\d{3})+(?!\d)(?:[.,]\d+(?![\d.,]*\d))?)
      | (?P<plain>\d+(?:['’]\d{3})*(?:[.,]\d+)*)
    )""",
    re.VERBOSE,
)
_ARTICLE: Final = lazy_pattern(r"제\s?$")
"""제5조 is Article 5, and not five trillion; without 제 it may be both."""
LONGEST_NUMBER: Final = 40
"""A longer row of digits is a code, and has no value."""


@dataclass(slots=True)
class NumberToken:
    """Hold a number in a text."""

    start: int
    end: int
    text: str
    kind: str
    readings: list[NumberReading] = field(default_factory=list)
    power: int = 0
    """A scale word after it means ten to the power of this."""
    scale_end: int = 0
    """The scale word ends here; where it is the next number's (12 to 16 thousand), the number."""
    own_power: int = 0
    """Its own text ends in a scale word that means this: 150만."""
    parts: list[int] = field(default_factory=list)
    """These are the numbers of a date, a time or a score."""
    clock: ClockTime | None = None
    """It is this time of the day."""
    _values: set[Decimal] | None = None

    @property
    def digits(self) -> str:
        """Return the digits of the number, without separators."""
        return re.sub(r"\D", "", self.text)

    @property
    def values(self) -> set[Decimal]:
        """Return the values it can have, with and without its scale."""
        if self._values is None:
            found = {reading.value for reading in self.readings}
            self._values = found | {value.scaleb(self.power) for value in found}
        return self._values


def find_numbers(text: str, language: str, hidden: Sequence[tuple[int, int]]) -> list[NumberToken]:
    """Return the numbers of a text that are not in what is hidden, in order."""
    if _HAS_DIGIT.search(text) is None:
        return []
    text = hide_spans(text, hidden)
    clocks = find_clock_times(text, language)
    found = [_time_token(one, text, language) for one in clocks]
    others = hide_spans(text, [(one.start, one.end) for one in clocks])
    for match in _NUMBER.finditer(others):
        kind = match.lastgroup or ("date" if match["date"] else "plain")
        token = NumberToken(match.start(), match.end(), match.group(), kind)
        if match["date"] or match["score"]:
            token.kind = "date" if match["date"] else "score"
            token.parts = [int(part) for part in re.findall(r"\d+", token.text)]
            if token.text[-1] == ".":  # 24.12. or, at the end of a sentence, version 1.1
                token.readings = read_number(token.text[:-1], language)
        else:
            if len(token.text) <= LONGEST_NUMBER:
                token.readings = read_number(token.text, language)
            if not _ARTICLE.search(text[max(0, token.start - 2) : token.start]):
                token.power, token.scale_end = scale_after(text, token.end, language)
            _include_scale(token, text)
        found.append(token)
    found.sort(key=lambda token: token.start)
    if primary_code(language) in ("ko", "ja", "zh"):
        found = _join_scaled(found, text)
    _share_scales(found, text)
    return found


def _time_token(clock: ClockTime, text: str, language: str) -> NumberToken:
    token = NumberToken(clock.start, clock.end, text[clock.start : clock.end], "time", clock=clock)
    token.parts = [clock.hour] if clock.minute is None else [clock.hour, clock.minute]
    if int(token.digits) == clock.hour:  # which may be a number as well: 5 h, 5시 반
        token.readings = read_number(str(clock.hour), language)
    elif clock.minute == 30 and clock.named and not clock.half:  # 1h30 may be 1.5 hours
        token.readings = [NumberReading(str(clock.hour), "5")]
    return token


def hide_spans(text: str, hidden: Sequence[tuple[int, int]]) -> str:
    """Return a text of the same length in which no number is found where it is hidden."""
    return apply_edits(text, [Edit(start, end, "\0" * (end - start)) for start, end in hidden])


def _include_scale(token: NumberToken, text: str) -> None:
    """Make 150만 one number: such a word is part of the number, and has no like elsewhere."""
    if token.power and token.readings and text[token.scale_end - 1] >= "\u2e80":
        if token.readings[0].fraction.endswith("0"):  # 2.0만: only 2.0
            token.power = 0
            return
        value = token.readings[0].value.scaleb(token.power)
        if value == value.to_integral_value():
            also = token.readings if text[token.end : token.scale_end].strip() == "조" else []
            token.readings = [NumberReading(str(int(value)), "", True), *also]
            token.end, token.text = token.scale_end, text[token.start : token.scale_end]
            token.own_power, token.power = token.power, 0


def _join_scaled(tokens: Sequence[NumberToken], text: str) -> list[NumberToken]:
    """Return 3억 5천만, 5천4백만 and 1만 2345 as one number."""
    joined: list[NumberToken] = []
    for token in tokens:
        last = joined[-1] if joined else None
        total = None if last is None else _sum_scaled(last, token, text)
        if last is None or total is None:
            joined.append(token)
        else:
            last.readings = [NumberReading(str(int(total)), "", True)]
            last.end, last.own_power = token.end, token.own_power
            last.text = text[last.start : last.end]
    return joined


def _share_scales(tokens: Sequence[NumberToken], text: str) -> None:
    """Let the scale word after a range count for both of its numbers: 12 to 16 thousand, 1~2만."""
    for token, following in reversed(list(pairwise(tokens))):
        power = following.power or following.own_power
        plain = token.readings and not (token.power or token.own_power or token.parts)
        if plain and power and joins_range(text[token.end : following.start]):
            token.power = power


def _sum_scaled(one: NumberToken, other: NumberToken, text: str) -> Decimal | None:
    """Return what a number with a scale means together with the next, if they are one."""
    if not one.own_power or not other.readings or text[one.end : other.start].strip():
        return None
    first, second = one.readings[0].value, other.readings[0].value
    small = other.own_power % 4  # of 백만: 백
    if one.own_power < 4 <= other.own_power and small < one.own_power:
        return first.scaleb(other.own_power - small) + second  # 5천4백만: 천 counts 만, too
    follows = other.own_power < one.own_power if other.own_power else one.own_power == 4
    fits = second == second.to_integral_value() and second.adjusted() < one.own_power
    return first + second if follows and fits else None


def localize_number(text: str, languages: tuple[str, str]) -> str:
    """Return a number of the source language as the target language writes it."""
    tokens = find_numbers(text, languages[0], ())
    if len(tokens) == 1 and (clock := tokens[0].clock) is not None:
        whole = text in (tokens[0].text, f"{tokens[0].text}.")  # p.m.
        return clock.write(languages[1]) if clock.named and whole else text
    if len(tokens) > 1:
        return apply_edits(text, localize_numbers(text, languages, ()))
    readings = tokens[0].readings if len(tokens) == 1 and tokens[0].text == text else []
    return readings[0].write(languages[1]) if readings and number_format(languages[1]) else text


def localize_numbers(
    text: str, languages: tuple[str, str], hidden: Sequence[tuple[int, int]]
) -> list[Edit]:
    """Return the edits that write a text's numbers as the target language does."""
    edits = []
    form = number_format(languages[1])
    for token in find_numbers(text, languages[0], hidden):
        if token.readings and not token.clock and form and number_format(languages[0]):
            edits.append(Edit(token.start, token.end, localize_number(token.text, languages)))
            percent = re.compile(r"[ \u00a0\u202f]?%(?!\w)").match(text, token.end)
            if percent:
                edits.append(Edit(token.end, percent.end(), f"{form.percent_space}%"))
    return [edit for edit in edits if text[edit.start : edit.end] != edit.text]
