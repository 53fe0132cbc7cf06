"""Times of the day are found and written as people do."""

from __future__ import annotations

import pytest

from dragoman.text.clock_times import ClockTime, find_clock_times, may_be_late


@pytest.mark.parametrize(
    ("text", "code", "minutes"),
    [
        ("5:30 p.m.", "en", [17 * 60 + 30]),
        ("5:30pm today", "en", [17 * 60 + 30]),
        ("5 P.M. sharp", "en", [17 * 60]),
        ("12 a.m.", "en", [0]),
        ("12 pm", "en", [12 * 60]),
        ("12:05 AM", "en", [5]),
        ("5:30", "en", [5 * 60 + 30, 17 * 60 + 30]),
        ("17:30", "en", [17 * 60 + 30]),
        ("24:00 Uhr", "de", [0]),
        ("17.30 Uhr", "de", [17 * 60 + 30]),
        ("8 Uhr abends", "de", [20 * 60]),
        ("1 Uhr nachts", "de", [60]),
        ("11 Uhr nachts", "de", [23 * 60]),
        ("12 Uhr nachts", "de", [0]),
        ("3 in the afternoon", "en", [15 * 60]),
        ("17 h 30", "fr", [17 * 60 + 30]),
        ("17h05", "fr", [17 * 60 + 5]),
        ("5 heures 30 du soir", "fr", [17 * 60 + 30]),
        ("오후 5시 30분에", "ko", [17 * 60 + 30]),
        ("오후 5:30", "ko", [17 * 60 + 30]),
        ("오전 12시", "ko", [0]),
        ("낮 12시", "ko", [12 * 60]),
        ("밤 11시 반", "ko", [23 * 60 + 30]),
        ("午後3時15分", "ja", [15 * 60 + 15]),
        ("下午3点", "zh", [15 * 60]),
    ],
)
def test_a_time_means_a_minute_of_the_day(text: str, code: str, minutes: list[int]) -> None:
    [found] = find_clock_times(text, code)
    assert sorted(found.moments(both=True)) == minutes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("5.30", "en"),
        ("86:91", "en"),
        ("10:20:30", "en"),
        ("Platz 5 am Fenster", "de"),
        ("5시간 동안", "ko"),
        ("5時間", "ja"),
        ("3点建议", "zh"),
        ("5 of them", "en"),
        ("v5:30", "en"),
    ],
)
def test_other_numbers_are_no_times(text: str, code: str) -> None:
    assert find_clock_times(text, code) == []


def test_the_end_of_a_range_tells_what_its_start_is() -> None:
    first, second = find_clock_times("open from 5 to 7 p.m. daily", "en")
    assert (first.start, first.end, first.half) == (10, 11, "pm")
    assert second.hour == 7
    first, _ = find_clock_times("11–3 p.m.", "en")
    assert sorted(first.moments(both=True)) == [11 * 60, 23 * 60]


def test_a_full_stop_that_ends_the_text_is_not_part_of_a_time() -> None:
    text = "Come at 5 p.m. or at 6 p.m."
    assert [text[one.start : one.end] for one in find_clock_times(text, "en")] == [
        "5 p.m.",
        "6 p.m",
    ]


@pytest.mark.parametrize(
    ("code", "afternoon", "hour", "untold"),
    [
        ("en", "5:30 p.m.", "5 p.m.", "8:05"),
        ("de", "17:30 Uhr", "17 Uhr", "8:05 Uhr"),
        ("fr", "17\u00a0h\u00a030", "17\u00a0h", "8\u00a0h\u00a005"),
        ("ko", "오후 5시 30분", "오후 5시", "8시 5분"),
        ("ja", "午後5時30分", "午後5時", "8時5分"),
        ("zh", "下午5点30分", "下午5点", "8点5分"),
        ("ru", "17:30", "17:00", "8:05"),
    ],
)
def test_languages_write_times_in_their_ways(
    code: str, afternoon: str, hour: str, untold: str
) -> None:
    assert ClockTime(0, 0, 5, 30, "pm", named=True).write(code) == afternoon
    assert ClockTime(0, 0, 5, None, "pm", named=True).write(code) == hour
    assert ClockTime(0, 0, 8, 5, named=True).write(code) == untold
    assert ClockTime(0, 0, 17, 30).write(code) == "17:30"


def test_words_say_that_it_is_late() -> None:
    assert may_be_late("heute Abend um 5", "de")
    assert not may_be_late("um 5 Uhr morgens", "de")
    assert may_be_late("в 5", "ru")
