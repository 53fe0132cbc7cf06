"""The numbers of a text must be in its translation, as the target language writes them.

The model translates numbers as they are. Afterwards each number of the source is looked for in the
translation: the same value in any spelling of the target language, in words, or with another scale
(1.5 million, 150만). What is there in the source's spelling is written in the target's; what is
missing takes the place of a number that came from nowhere, if that looks like it. How numbers are
found and written stands in `numbers_in_text`, what must stand beside them in `unit_check`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import SequenceMatcher
from typing import Final

from dragoman.inference.protection.numbers_in_text import (
    LONGEST_NUMBER,
    NumberToken,
    find_numbers,
    hide_spans,
    localize_number,
)
from dragoman.inference.protection.text_edits import Edit
from dragoman.inference.protection.unit_check import check_units, is_measured
from dragoman.text.clock_times import HALF_DAY, ClockTime, may_be_late
from dragoman.text.languages import primary_code
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.numbers import (
    LARGEST_UNCHECKED_WORD,
    NumberReading,
    knows_number_words,
    number_format,
    number_words,
    says_scale,
    write_large,
)

_MONTHS: Final = {
    "en": "jan feb mar apr may jun jul aug sep oct nov dec",
    "de": "jan feb mär apr mai jun jul aug sep okt nov dez",
    "fr": "janv févr mars avr mai juin juil août sept oct nov déc",
}
_CLOCK_WORDS: Final = lazy_pattern(
    r"\bhalf|\bquarter|\bhalb|viertel|\bdemie|\bquart|o'clock|\bnoon|midnight|mittag|\bmitternacht"
    r"|\bmidi|minuit|반|정오|자정",
    re.IGNORECASE,
)
_DECADE: Final = lazy_pattern(r"(?:er|ers|s|'s|年代|년대)(?![^\W_])")
_DECADE_BEFORE: Final = lazy_pattern(r"(?:années|anni|años|anos)\s$")
_MONTH: Final = lazy_pattern(r"\s?[월月]")
_HOUR_ALONE: Final = lazy_pattern(r"(\d{1,2})(?:\.?(\d{2}))?")
"""A number may be a time though nothing says so: at 5, at 2.30, at 0230."""
_LIKE_ENOUGH: Final = 0.5
"""Numbers whose digits are this much alike may be one that was changed into the other."""
_MUCH_ALIKE: Final = 0.8
_MAX_COMPARED: Final = 1000
"""Where so many pairs would have to be compared, the translation is no good anyway."""
_LONGEST_SHORTENED: Final = 3
"""A number of more digits does not leave its scale to the next one, as in 12 to 16 thousand."""
_ROMAN_DIGITS: Final = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_RUN: Final = lazy_pattern(r"(?<!\d)(?<!\d[.,])\d++(?:[.,]\d++)*(?:[/:^–-]\d++(?:[.,]\d++)*)+")
"""Numbers that are written together."""


@dataclass(slots=True)
class NumberReport:
    """Say what to change in a translation for its numbers, and what is missing."""

    edits: list[Edit] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    """These numbers of the source had become others, and were put right."""
    lost: list[NumberToken] = field(default_factory=list)
    """These numbers of the source are not there."""


def check_numbers(
    source: str,
    target: str,
    languages: tuple[str, str],
    hidden: tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]] = ((), ()),
) -> NumberReport:
    """Compare the numbers of a text with those of its translation, but for what is hidden."""
    wanted = find_numbers(source, languages[0], hidden[0])
    if not wanted:
        return NumberReport()
    report = _Comparison(
        source, target, languages, wanted, find_numbers(target, languages[1], hidden[1])
    ).report()
    report.lost = (
        _with_neighbours(report.lost, hide_spans(source, hidden[0])) if report.lost else []
    )
    return report


def _with_neighbours(lost: Sequence[NumberToken], text: str) -> list[NumberToken]:
    """Return lost numbers with those they are written together with: all of 50/50, 16:9, 25–30."""
    runs = [match.span() for match in _RUN.finditer(text)]
    starts = [start for start, _ in runs]
    found: dict[int, NumberToken] = {}
    for token in lost:
        run = runs[place] if (place := bisect_right(starts, token.start) - 1) >= 0 else (0, 0)
        if token.start < run[1] and token.end <= run[1]:
            found[run[0]] = NumberToken(*run, text[run[0] : run[1]], "run")
        else:
            found[token.start] = token
    return list(found.values())


def _sorted_parts(token: NumberToken) -> tuple[int, ...]:
    """Return the numbers of a date or a time in a common order; years may have two digits."""
    return tuple(sorted(part % 100 for part in token.parts))


def _count_parts(token: NumberToken) -> int:
    """Return how many rows of digits a number's separators divide it into."""
    return len(re.findall(r"\d+", token.text))


class _Comparison:
    """Compare the numbers of one text with those of its translation."""

    def __init__(
        self,
        source: str,
        target: str,
        languages: tuple[str, str],
        wanted: list[NumberToken],
        there: list[NumberToken],
    ) -> None:
        self.source, self.target, self.languages = source, target, languages
        self.wanted, self.there = wanted, there
        self.matched: dict[int, int] = {}  # of the wanted to those that are there
        self.accepted: set[int] = set()  # of the wanted: in words, or in parts
        self.free = set(range(len(there)))
        self.reworded: set[int] = set()
        self.result = NumberReport()
        self._may_be_late = may_be_late(target, languages[1])
        self._index = self._make_index()
        self._lowered = target.lower()
        self._said: dict[str, bool] = {}
        names = _MONTHS.get(primary_code(languages[1]), "").split()
        self._knows_months = bool(names)
        self._months = {
            n for n, name in enumerate(names, 1) if re.search(rf"\b{name}", self._lowered)
        }
        self._romans = set(re.findall(r"\b[IVX]+\b", target))
        self._says_clock = _CLOCK_WORDS.search(target) is not None

    def _make_index(self) -> dict[tuple[str, object], list[int]]:
        """Return where numbers of the translation are by what each way of matching looks for.

        So a text of thousands of numbers takes no longer than in proportion to them.
        """
        index: dict[tuple[str, object], list[int]] = {}
        for place, token in enumerate(self.there):
            numbers = [*token.parts, *(int(value) for value in token.values)]
            keys: list[tuple[str, object]] = [
                ("text", token.text),
                ("digits", token.digits),
                *(("value", value) for value in token.values),
                *(("hundredth", n % 100) for n in numbers),
            ]
            if token.clock is not None:
                keys += [("moment", m) for m in token.clock.moments(both=self._may_be_late)]
                keys += [("dial", m % HALF_DAY) for m in token.clock.moments(both=False)]
            elif not token.parts and (hour := _HOUR_ALONE.fullmatch(token.text)):
                time = ClockTime(0, 0, int(hour[1]), int(hour[2] or 0))
                keys += [("alone", m) for m in time.moments(both=self._may_be_late)]
                if len(token.text) < 4 or "." in token.text:
                    keys += [("dial alone", m % HALF_DAY) for m in time.moments(both=False)]
            if token.parts:
                keys.append(("parts", _sorted_parts(token)))
            if _DECADE.match(self.target, token.end):
                keys.append(("decade", token.digits[-2:]))
            following = self.there[place + 1] if place + 1 < len(self.there) else None
            if following is not None and following.start == token.end + 1:
                keys.append(("divided", token.digits + following.digits))
            for key in dict.fromkeys(keys):
                index.setdefault(key, []).append(place)
        return index

    def _first(self, *keys: tuple[str, object], taken: Collection[int] = ()) -> int | None:
        """Return the first number of the translation with one of the keys that is still free."""
        found = None
        for key in keys:
            places = self._index.get(key, [])
            while places and places[0] not in self.free:
                del places[0]
            free = (place for place in places if place in self.free and place not in taken)
            place = next(free, None)
            if place is not None and (found is None or place < found):
                found = place
        return found

    def report(self) -> NumberReport:
        """Return what to change and what is missing."""
        for match in (
            self._same_month,
            self._same_time,
            self._same_value,
            self._same_digits,
            self._same_hour,
            self._same_dial,
            self._same_parts,
            self._same_decade,
        ):
            for number, token in enumerate(self.wanted):
                if number not in self.matched and number not in self.accepted:
                    match(number, token)
        for number, token in enumerate(self.wanted):
            if number not in self.matched and number not in self.accepted and self._in_words(token):
                self.accepted.add(number)
        for number, place in self.matched.items():
            token, other = self.wanted[number], self.there[place]
            if number not in self.reworded and not self._write_right_scale(token, other):
                self._write_as_target(token, other)
        self._replace_strangers()
        pairs = [(self.wanted[number], self.there[place]) for number, place in self.matched.items()]
        beside = check_units(self.source, self.target, self.languages[1], pairs)
        self.result.edits += beside.edits
        self.result.repaired += beside.repaired
        return self.result

    def _match(self, number: int, place: int, *, written: bool = True) -> None:
        """Take one number for another; if not `written`, it says the same in another way."""
        self.matched[number] = place
        self.free.discard(place)
        if not written:
            self.reworded.add(number)

    def _same_time(self, number: int, token: NumberToken) -> None:
        """Accept 17:30 Uhr for 5:30 p.m., and 오후 3시 for 15 Uhr."""
        if token.clock is not None:
            place = self._first(*(("moment", m) for m in token.clock.moments(both=True)))
            if place is not None:
                self._match(number, place, written=False)

    def _same_value(self, number: int, token: NumberToken) -> None:
        if token.clock is not None:
            return
        place = self._first(("text", token.text), *(("value", value) for value in token.values))
        if place is not None:
            self._match(number, place)

    def _same_digits(self, number: int, token: NumberToken) -> None:
        """Accept what the model copied without a thought for separators: 25.400,000."""
        if token.clock is not None:
            return
        if len(token.digits) > 1:
            place = self._first(("digits", token.digits))
            if place is not None:
                self._match(number, place)
                return
        place = self._first(("divided", token.digits))
        if place is not None and place + 1 in self.free:
            self._join_next(place)
            self._match(number, place)

    def _join_next(self, place: int) -> None:
        """Make two numbers one where a space only has come between its digits: 1168 000."""
        one, other = self.there[place], self.there[place + 1]
        one.end, one.text = other.end, self.target[one.start : other.end]
        one.readings, one.power, one.scale_end = [], other.power, other.scale_end
        self.free.discard(place + 1)

    def _same_parts(self, number: int, token: NumberToken) -> None:
        """Accept a date whose numbers are all there, one of them perhaps as a month."""
        if token.clock is not None:
            self._same_clock_parts(number, token.clock)
            return
        if not token.parts:
            if token.kind == "spaced":
                self._same_pieces(number, token)
            return
        place = self._first(("parts", _sorted_parts(token)))
        if place is not None:
            self._match(number, place)
            return
        if token.kind == "date" and self._knows_months and not self._months:
            return
        taken: set[int] = set()
        for part in token.parts:
            place = self._first(("hundredth", part % 100), taken=taken)
            if place is not None:
                taken.add(place)
            elif not (
                part in self._months
                or not self._knows_months
                or any(self._says(word) for word in number_words(part, self.languages[1]))
            ):
                return
        self.free -= taken
        self.accepted.add(number)

    def _same_pieces(self, number: int, token: NumberToken) -> None:
        """Accept 10 300 as two numbers, if both are there."""
        taken: set[int] = set()
        for piece in token.text.split():
            place = self._first(("digits", re.sub(r"\D", "", piece)), taken=taken)
            if place is None:
                return
            taken.add(place)
        self.free -= taken
        self.accepted.add(number)

    def _same_month(self, number: int, token: NumberToken) -> None:
        """Accept November for 11월."""
        if token.values & self._months and _MONTH.match(self.source, token.end):
            self.accepted.add(number)

    def _same_hour(self, number: int, token: NumberToken) -> None:
        """Accept 5 for 5 Uhr, 2.30 for 2:30, and 1.5 hours for 1h30."""
        if token.clock is not None:
            hours = [("alone", m) for m in token.clock.moments(both=True)]
            values = [("value", v) for v in token.values if v % 1]
            place = self._first(*hours, *values)
            if place is not None:
                self._match(number, place, written=False)

    def _same_dial(self, number: int, token: NumberToken) -> None:
        """Put right a time of the wrong half of the day: 5:30 Uhr for 5:30 p.m."""
        if token.clock is None or len(moments := token.clock.moments(both=True)) != 1:
            return
        dial = next(iter(moments)) % HALF_DAY
        place = self._first(("dial", dial))
        if place is None and not self._says_clock:
            place = self._first(("dial alone", dial))
        if place is None:
            return
        other = self.there[place]
        named = token.clock.named or (other.clock is not None and other.clock.named)
        text = replace(token.clock, named=named).write(self.languages[1])
        if text.endswith(".") and self.target[other.end : other.end + 1] == ".":
            text = text[:-1]
        self._match(number, place, written=False)
        self._write(other, text)
        self.result.repaired.append(token.text)

    def _same_clock_parts(self, number: int, clock: ClockTime) -> None:
        """Accept a time whose hour and minutes are there apart, or in words: half past eight."""
        hours = {m // 60 for m in clock.moments(both=True)}
        if self._may_be_late:
            hours |= {(hour - 1) % 12 + 1 for hour in hours}
        taken: set[int] = set()
        for values in (hours, {clock.minute} if clock.minute else ()):
            place = self._first(*(("hundredth", value) for value in values), taken=taken)
            if place is not None:
                taken.add(place)
            elif values and not (self._says_clock or self._says_any(values)):
                return
        self.free -= taken
        self.accepted.add(number)

    def _says_any(self, values: Collection[int]) -> bool:
        """Return whether one of some small numbers is there in words, or may be."""
        language = self.languages[1]
        return not knows_number_words(language) or any(
            self._says(word) for value in values for word in number_words(value, language)
        )

    def _same_decade(self, number: int, token: NumberToken) -> None:
        """Accept the 1960s for the 60s, and the 60s for the 1960s."""
        before = self.source[max(0, token.start - 8) : token.start]
        if _DECADE.match(self.source, token.end) or _DECADE_BEFORE.search(before):
            place = self._first(("decade", token.digits[-2:]))
            if place is not None:
                self._match(number, place, written=False)

    # --- words ---

    def _in_words(self, token: NumberToken) -> bool:
        if not token.readings:
            return False
        for value in token.values:
            if value != value.to_integral_value():
                continue
            if self._says_number(int(value)) or self._says_roman(int(value)):
                return True
            if not knows_number_words(self.languages[1]) and value <= LARGEST_UNCHECKED_WORD:
                return True
        return False

    def _says_number(self, value: int) -> bool:
        """Return whether there are words for a number: twelve, or two million."""
        thousands = [
            10**power for power in (9, 6, 3) if value > 10**power and not value % 10**power
        ]
        parts = (value // thousands[0], thousands[0]) if thousands else (value,)
        return all(
            any(self._says(word) for word in number_words(part, self.languages[1]))
            for part in parts
        )

    def _says_roman(self, value: int) -> bool:
        """Return whether a small number is there as in World War II."""
        if not 2 <= value < 40:
            return False
        roman = "X" * (value // 10) + _ROMAN_DIGITS[value % 10]
        return roman in self._romans

    def _says(self, word: str) -> bool:
        """Return whether a word of the translation begins so; a short one is the whole word."""
        if word not in self._said:
            self._said[word] = self._find_word(word)
        return self._said[word]

    def _find_word(self, word: str) -> bool:
        ends = r"\b" if len(word) < 4 and word.isascii() else ""
        begins = r"(?<![^\W_])" if word.isascii() or primary_code(self.languages[1]) == "de" else ""
        return re.search(begins + re.escape(word) + ends, self._lowered) is not None

    # --- putting right ---

    def _write_as_target(self, token: NumberToken, other: NumberToken) -> None:
        """Write a number that is there as the target language does, where it is surely one."""
        if not token.readings and _count_parts(token) != _count_parts(other):
            # the digits are the same, but 3.10.2024 is not 310.2024
            self._write(other, token.text)
            self.result.repaired.append(token.text)
            return
        if not token.readings or number_format(self.languages[1]) is None:
            return
        if other.clock is not None or (other.parts and other.readings):
            return
        reading = token.readings[0]
        strict = other.readings[:1]
        right = bool(strict) and strict[0].value in token.values
        if right and not self._is_foreign(token, other):
            return
        if strict and right and strict[0].value != reading.value:
            return  # with another scale, and right
        scaled = other.power or other.own_power
        if not right and scaled and any(value in token.values for value in other.values):
            return
        if not right and other.power and token.own_power:  # 350만 is not 350 million
            self._write_in_full(other, int(reading.value))
            self.result.repaired.append(token.text)
        else:
            self._write(other, reading.write(self.languages[1]))

    def _write_right_scale(self, token: NumberToken, other: NumberToken) -> bool:
        """Write a number in full whose scale word is gone or another, and say so.

        5 million is not 5, and not 5만.
        """
        value = self._scaled_value(token)
        if value is None or value in other.values:
            return False
        has_scale = other.power or other.own_power
        if not has_scale and says_scale(self.target, token.power, self.languages[1]):
            return False
        self._write_in_full(other, value)
        self.result.repaired.append(self.source[token.start : max(token.end, token.scale_end)])
        return True

    @staticmethod
    def _scaled_value(token: NumberToken) -> int | None:
        """Return what a number means with its scale word, if it has one and that is whole."""
        if not token.power or not token.readings:
            return None
        if token.scale_end <= token.end and len(token.digits) > _LONGEST_SHORTENED:
            return None  # 2012 and 16 million
        value = token.readings[0].value.scaleb(token.power)
        return int(value) if value == value.to_integral_value() else None

    def _write_in_full(self, other: NumberToken, value: int) -> None:
        """Write a number in place of another, and of the scale word after that unless it fits."""
        language = self.languages[1]
        end = max(other.end, other.scale_end) if other.power else other.end
        scaled = Decimal(value).scaleb(-other.power).normalize()
        if end > other.end and 1 <= scaled < 1000 and len(scaled.as_tuple().digits) <= 4:
            whole, _, fraction = f"{scaled:f}".partition(".")
            self._write(other, NumberReading(whole, fraction).write(language))
        else:
            self.result.edits.append(Edit(other.start, end, write_large(value, language)))

    def _is_foreign(self, token: NumberToken, other: NumberToken) -> bool:
        """Return whether a right number is spelled as only another language does."""
        form = number_format(self.languages[1])
        marks = [character for character in other.text if character in ".,"]
        if form is None or not marks:
            return False
        if len(marks) > 1:
            last_mark = marks[-1] if len(set(marks)) == 2 else ""
            return (last_mark or form.decimal) != form.decimal or (
                not last_mark and marks[0] == form.decimal
            )
        if marks[0] == form.decimal or not other.readings[0].fraction:
            return False
        # 99.99 in German may be an amount or a version; 99,99 from German is no version.
        source = number_format(self.languages[0])
        surely = marks[0] == "," and source is not None and source.decimal == ","
        measured = is_measured(self.target, other) or is_measured(self.source, token)
        return surely or other.readings[0].grouped or measured

    def _write(self, other: NumberToken, text: str) -> None:
        if self.target[other.start : other.end] != text:
            self.result.edits.append(Edit(other.start, other.end, text))

    def _replace_strangers(self) -> None:
        """Put what is missing in place of numbers that came from nowhere and look like it."""
        missing = [
            n for n in range(len(self.wanted)) if n not in self.matched and n not in self.accepted
        ]
        if len(missing) * len(self.free) > _MAX_COMPARED:
            self.result.lost += [self.wanted[number] for number in missing]
            return
        single = len(missing) == len(self.free) == 1
        for number in missing:
            token = self.wanted[number]
            free = [
                (self._likeness(token, self.there[place], single), -place)
                for place in sorted(self.free)
            ]
            best, place = max(free, default=(0.0, 0))
            if best < _LIKE_ENOUGH:
                self.result.lost.append(token)
                continue
            other = self.there[-place]
            self._match(number, -place)
            self.result.repaired.append(token.text)
            value = self._scaled_value(token)
            if value is None and token.own_power and other.power:
                value = int(token.readings[0].value)
            if value is not None and other.power != token.power:
                self._write_in_full(other, value)
                continue
            text = localize_number(token.text, self.languages)
            if other.power and not token.power:
                self.result.edits.append(Edit(other.start, other.scale_end, text))
            else:
                self._write(other, text)

    @staticmethod
    def _likeness(token: NumberToken, other: NumberToken, single: bool) -> float:
        """Return how much alike two numbers look; single ones of a digit or two are alike."""
        lengths = len(token.digits), len(other.digits)
        if single and max(lengths) <= 2 and not token.parts and not other.parts:
            return _LIKE_ENOUGH
        if min(lengths) == 1 or max(lengths) > LONGEST_NUMBER:
            return 0.0
        alike = SequenceMatcher(None, token.digits, other.digits, autojunk=False).ratio()
        differ = bool(token.parts) != bool(other.parts)  # a date and something else
        return 0.0 if differ and alike < _MUCH_ALIKE else alike
