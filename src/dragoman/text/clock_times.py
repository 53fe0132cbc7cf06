"""Times of the day are found and written as people do: 5:30 p.m., 17.30 Uhr, 오후 5시 30분.

A time whose half of the day is told means one minute of the day, 5:30 p.m. and 17:30 the same. One
that tells none may mean two, where people have twelve hours on their clocks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dragoman.text.languages import primary_code
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.numbers import joins_range

HALF_DAY: Final = 12 * 60
"""So many minutes the hand of a clock goes round in."""
_WORDS_BEFORE: Final = {
    word: half
    for half, words in {
        "am": "오전 아침 새벽 午前 朝 上午 早上 早晨 凌晨",
        "pm": "오후 저녁 낮 午後 夕方 下午 中午 傍晚",
        "night": "밤 한밤 夜 晚上 深夜",
    }.items()
    for word in words.split()
}
_WORDS_AFTER: Final = {
    "morgens": "am",
    "früh": "am",
    "vormittags": "am",
    "mittags": "pm",
    "nachmittags": "pm",
    "abends": "pm",
    "nachts": "night",
    "in the morning": "am",
    "in the afternoon": "pm",
    "in the evening": "pm",
    "at night": "night",
    "du matin": "am",
    "de l'après-midi": "pm",
    "du soir": "pm",
}
"""At night it is twelve, then one in the morning, and eleven before that."""
_TIME: Final = rf"""
    (?:(?P<before>{"|".join(_WORDS_BEFORE)})\s?)?
    (?<![A-Za-z\u00c0-\u024f_\d])(?<!\d[.,:/])
    (?P<hour>\d{{1,2}})
    (?: \ ?(?P<clock>[시時时点點])(?!간|間|间)
        (?:\ ?(?:(?P<asian>\d{{1,2}})\ ?[분分]|(?P<half>반|半)))?
      | \ ?(?:h|heures?)\ ?(?P<french>\d{{2}})(?!\d)(?:\ (?P<then>WORDS)\b)?
      | (?:(?P<mark>[:.])(?P<minute>\d{{2}})(?!\d|[:.,]\d))?
        (?: \ ?(?P<meridiem>MERIDIEM)\b(?:\.(?!\s*$))?
          | \ ?(?P<named>Uhr|uhr|o['’]clock|h\b|heures?\b)
        )?
        (?:\ (?P<after>WORDS)\b)?
    )""".replace("WORDS", "|".join(map(re.escape, _WORDS_AFTER)))
_MERIDIEM: Final = r"[ap]\.?\ ?m|[AP]\.?\ ?M"
_PATTERN: Final = lazy_pattern(_TIME.replace("MERIDIEM", _MERIDIEM), re.VERBOSE)
_GERMAN: Final = lazy_pattern(_TIME.replace("MERIDIEM", f"(?!am){_MERIDIEM}"), re.VERBOSE)
"""In German "5 am" may be "Platz 5 am Fenster"."""
_LATE: Final = lazy_pattern(
    r"nachmittag|abend|nacht|afternoon|evening|night|soir|après-midi|nuit|오후|저녁|밤|午後|夕|夜|晩"
    r"|下午|傍晚|晚上",
    re.IGNORECASE,
)
"""Where one of these is said, a time may be one of the later half of the day."""
_WITH_LATE_WORDS: Final = frozenset({"de", "en", "fr", "ja", "ko", "zh"})
_HALVES: Final = {
    "ko": ("오전 {}", "오후 {}"),
    "ja": ("午前{}", "午後{}"),
    "zh": ("上午{}", "下午{}"),
}
_HOURS: Final = {"ko": ("시", " ", "분"), "ja": ("時", "", "分"), "zh": ("点", "", "分")}
_RANGE_BEFORE: Final = lazy_pattern(
    r"(?<![A-Za-z\u00c0-\u024f_\d])(?<!\d[.,:/])(\d{1,2})(?:[:.](\d{2}))?(\s?[^\s\d]{1,5}\s?)$"
)
_LONGEST_RANGE: Final = 14


@dataclass(frozen=True, slots=True)
class ClockTime:
    """Hold a time of the day in a text."""

    start: int
    end: int
    hour: int
    minute: int | None = None
    """None where only the hour is said."""
    half: str = ""
    """The half of the day that is told: am, pm, night, or none."""
    named: bool = False
    """A word beside it says that it is a time."""

    def moments(self, *, both: bool) -> frozenset[int]:
        """Return the minutes of the day it can mean; with `both`, of both halves if none is told.

        What is no time of a day means none.
        """
        minutes = self.minute or 0
        if self.hour > 24 or minutes > 59:
            return frozenset()
        if self.hour > 12 or self.hour == 0:
            return frozenset([(60 * self.hour + minutes) % (2 * HALF_DAY)])
        early = 60 * (self.hour % 12) + minutes
        if self.half:
            late = self.half == "pm" or (self.half == "night" and 6 <= self.hour < 12)
            return frozenset([early + HALF_DAY * late])
        if both:
            return frozenset([early, early + HALF_DAY])
        return frozenset([60 * self.hour + minutes])

    def write(self, code: str | None) -> str:
        """Return it as the language of a code writes it, with what says that it is a time."""
        language = primary_code(code)
        moments = self.moments(both=True)
        told = len(moments) == 1
        hour = next(iter(moments)) // 60 if told else self.hour
        bare = str(hour) if self.minute is None else f"{hour}:{self.minute:02}"
        if not self.named or not moments:
            return bare
        if language in _HOURS:
            return self._write_asian(language, hour)
        if language == "en":
            if told:
                twelve = (hour - 1) % 12 + 1
                said = str(twelve) if self.minute is None else f"{twelve}:{self.minute:02}"
                return said + (" p.m." if hour >= 12 else " a.m.")
            return f"{bare} o'clock" if self.minute is None else bare
        if language == "de":
            return f"{bare} Uhr"
        if language == "fr":
            return f"{hour}\u00a0h" + ("" if self.minute is None else f"\u00a0{self.minute:02}")
        return f"{hour}:{self.minute or 0:02}"

    def _write_asian(self, language: str, hour: int) -> str:
        hours, space, minutes = _HOURS[language]
        shown = (hour - 1) % 12 + 1 if self.half else hour
        text = f"{shown}{hours}"
        if self.minute is not None:
            text += f"{space}{self.minute}{minutes}"
        return _HALVES[language][hour >= 12].format(text) if self.half else text


def find_clock_times(text: str, code: str | None) -> list[ClockTime]:
    """Return the times of the day in a text, in order.

    Digits are a time where a colon divides them or a word beside them says so.
    """
    found: list[ClockTime] = []
    for match in (_GERMAN if primary_code(code) == "de" else _PATTERN).finditer(text):
        one = _read(match)
        if one is None:
            continue
        if one.named and (first := _read_range_start(text, one, found[-1:])):
            found.append(first)
        found.append(one)
    return found


def may_be_late(text: str, code: str | None) -> bool:
    """Return whether a text says that it is afternoon or night, or may, in words not known here."""
    return primary_code(code) not in _WITH_LATE_WORDS or _LATE.search(text) is not None


def _read(match: re.Match[str]) -> ClockTime | None:
    meridiem, before = match["meridiem"], match["before"]
    after = match["after"] or match["then"]
    half = _WORDS_BEFORE.get(before, "") or _WORDS_AFTER.get(after, "")
    if meridiem:
        half = "am" if meridiem[0] in "aA" else "pm"
    clock = match["clock"]
    if clock in ("点", "點") and not (before or match["asian"] or match["half"]):
        return None  # 3点 is also three points
    named = bool(clock or match["french"] or meridiem or match["named"] or after or before)
    if not named and match["mark"] != ":":
        return None
    minutes = (
        match["minute"] or match["asian"] or match["french"] or ("30" if match["half"] else "")
    )
    one = ClockTime(
        match.start(),
        match.end(),
        int(match["hour"]),
        int(minutes) if minutes else None,
        half,
        named,
    )
    return one if one.moments(both=True) else None


def _read_range_start(text: str, one: ClockTime, last: list[ClockTime]) -> ClockTime | None:
    """Return what a time ends the range of, if that is told by it alone: 5 in "5 to 7 p.m."."""
    begin = max(last[0].end if last else 0, one.start - _LONGEST_RANGE)
    match = _RANGE_BEFORE.search(text[begin : one.start])
    if match is None or not joins_range(match[3]):
        return None
    hour, minute = int(match[1]), int(match[2]) if match[2] else None
    half = one.half if hour % 12 < one.hour % 12 else ""  # not of "11 to 3 p.m."
    first = ClockTime(begin + match.start(), begin + match.start(3), hour, minute, half)
    return first if first.moments(both=True) else None
