"""Subtitles keep everything but their words, and sentences that go on are one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.inference.documents.document import Mark, Unit
from dragoman.inference.documents.subtitles import divide_unit, wrap_unit
from dragoman.text.line_breaking import columns

from .filling import copy, fill_with, read, shout, texts

TIMES = "00:00:01,000 --> 00:00:02,500"


def cue(number: int, begin: int, *lines: str) -> str:
    text = "\n".join(lines)
    return f"{number}\n00:00:{begin:02},000 --> 00:00:{begin + 1:02},900\n{text}\n\n"


FILES = [
    "",
    "\n\n",
    f"1\n{TIMES}\nhello\n",
    f"\ufeff1\r\n{TIMES}\r\nhello\r\nworld\r\n\r\n2\r\n{TIMES}\r\nbye",
    f"1\n{TIMES} X1:1 X2:2\n{{\\an8}}<i>hello</i>\n\n\n\n7\n{TIMES}\n\n",
    f"1\n{TIMES}\n- Hi.\n- Hello.\n\n",
    f"{TIMES}\nno number\n\n{TIMES}\nnone either\n",
    f"1\n{TIMES}\n♪ la la ♪\n[door opens]\n(SIGHS)\n",
    f'1\n{TIMES}\n<font color="#fff">a <b>b</b> c</font>\n',
    f"1\n{TIMES}\nfirst\n\nafter a blank line\n\n2\n{TIMES}\n42\n",
    f"1\n{TIMES}\n<i>never closed\n",
    f"1\n{TIMES}\n{{\\i1}}slanted{{\\i0}} {{y:b}}bold\n",
]


@pytest.mark.parametrize("text", FILES)
def test_a_file_filled_with_its_own_texts_is_itself(text: str) -> None:
    assert copy("srt", text) == text.encode()


@pytest.mark.parametrize("text", FILES)
def test_only_words_change(text: str) -> None:
    shouted = shout("srt", text)
    assert shouted.lower() == text.lower() or len(shouted.split()) == len(text.split())
    for mark in (TIMES, "<i>", "</i>", "{\\an8}", '<font color="#fff">', "{\\i1}", "♪", "X2:2"):
        assert shouted.count(mark) == text.count(mark)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["<i>hello</i>"], ["hello"]),
        (["- Hi.", "- Hello there."], ["Hi.", "Hello there."]),
        (["-Hi", "you", "-Hello"], ["Hi you", "Hello"]),
        (["Where were you?", "- At home."], ["Where were you?", "At home."]),
        (["a well", "- known man"], ["a well - known man"]),
        (["one", "two"], ["one two"]),
        (["[door opens] Who is it?"], ["door opens", "Who is it?"]),
        (["♪ la la ♪", "♪ lo lo ♪"], ["la la", "lo lo"]),
        (["(SIGHS)"], ["SIGHS"]),
        (["-5 degrees"], ["-5 degrees"]),
        (["{\\an8}- <i>Yes</i>"], ["Yes"]),
        (["1984"], []),
    ],
)
def test_lines_are_joined_unless_they_are_apart(lines: list[str], expected: list[str]) -> None:
    assert texts("srt", cue(1, 1, *lines)) == expected


def test_a_sentence_that_goes_on_is_translated_as_a_whole() -> None:
    text = cue(1, 1, "When he came,") + cue(2, 3, "<i>the house was empty.</i>")
    text += cue(3, 5, "Nobody knew.")
    assert texts("srt", text) == ["When he came, the house was empty.", "Nobody knew."]
    document = read("srt", text)
    filled = fill_with(document, lambda one: "Als er kam, war das ganze Haus schon leer.")
    assert filled.split("\n")[2] == "Als er kam,"
    assert filled.split("\n")[6] == "<i>war das ganze Haus schon leer.</i>"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("He came.", "the house was empty."),
        ("- Is it you,", "- No."),
        ("♪ la la ♪", "and so on."),
        ("[door opens]", "and so on."),
    ],
)
def test_what_is_finished_is_not_joined(first: str, second: str) -> None:
    assert len(texts("srt", cue(1, 1, first) + cue(2, 3, second))) == 2


def test_a_sentence_is_not_joined_over_a_long_pause() -> None:
    assert len(texts("srt", cue(1, 1, "When he came,") + cue(2, 40, "the house was empty."))) == 2


def test_a_long_translation_has_as_many_lines_of_about_equal_width() -> None:
    document = read("srt", cue(1, 1, "short", "and short"))
    long = "a translation that is so much longer than what was said there"
    lines = fill_with(document, lambda _: long).split("\n")[2:4]
    assert " ".join(lines) == long
    assert max(map(len, lines)) <= 42
    assert abs(len(lines[0]) - len(lines[1])) < 12


def test_a_line_that_is_too_long_becomes_two() -> None:
    document = read("srt", cue(1, 1, "short"))
    filled = fill_with(document, lambda _: "word " * 14 + "end").split("\n")[2:-2]
    assert len(filled) == 2
    assert max(map(len, filled)) <= 42


def test_a_word_for_two_subtitles_is_shown_in_both() -> None:
    document = read("srt", cue(1, 1, "When he came,") + cue(2, 3, "he went."))
    assert fill_with(document, lambda _: "Gone").count("Gone") == 2


def test_chinese_lines_are_broken_between_characters() -> None:
    unit = wrap_unit(
        Unit("我们明天早上去北京看望我们的老朋友，然后一起吃午饭，再去公园散步。"), 1, 42
    )
    assert unit.text.count("\n") == 1
    assert all(columns(line) <= 42 for line in unit.text.split("\n"))


def test_marks_stay_on_their_words_when_a_text_is_divided_and_wrapped() -> None:
    unit = Unit("one two three four", (Mark(4, 13, 0),))
    first, second = divide_unit(unit, [7, 10])
    assert (first.text, second.text) == ("one two", "three four")
    assert first.marks == (Mark(4, 7, 0),)
    assert second.marks == (Mark(0, 5, 0),)
    wrapped = wrap_unit(Unit("漢字漢字", (Mark(2, 4, 0),)), 2, 42)
    assert wrapped == Unit("漢字\n漢字", (Mark(3, 5, 0),))


VTT = """WEBVTT - some title
Kind: captions

NOTE
This is not shown.

STYLE
::cue { color: red }

REGION
id:fred

intro
00:01.000 --> 00:04.000 align:start line:0%
<v Roger Bingham>We are &amp; were in <c.loud>New York</c> <00:00:02.000>City

00:05.000 --> 00:06.000
- yes
- no
"""


def test_webvtt_keeps_notes_styles_and_settings() -> None:
    assert texts("vtt", VTT) == ["We are & were in New York City", "yes", "no"]
    assert copy("vtt", VTT) == VTT.encode()
    shouted = shout("vtt", VTT)
    assert (
        "<v Roger Bingham>wE ARE &amp; WERE IN <c.loud>nEW yORK</c> <00:00:02.000>cITY" in shouted
    )
    head = VTT.index("<v")
    assert shouted[:head] == VTT[:head]


@pytest.mark.parametrize(
    ("extension", "text"),
    [
        ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\none\n00:02.000 --> 00:03.000\ntwo\n"),
        ("srt", "1\n00:00:01,000 --> 00:00:02:500\none\n\n2\n00:00:02 --> 00:00:03\ntwo\n"),
        ("srt", "1\n00:00:01,000 --> 00:00:02.5.00\none\ttwo\n"),
    ],
)
def test_a_line_of_times_is_never_text(extension: str, text: str) -> None:
    assert " ".join(texts(extension, text)) == "one two"
    assert copy(extension, text) == text.encode()


def test_what_a_translation_says_is_escaped_in_webvtt() -> None:
    document = read("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n")
    assert "a &lt;b&gt; &amp; c" in fill_with(document, lambda _: "a <b> & c")


@pytest.mark.parametrize(
    ("extension", "content"),
    [
        ("srt", b"some text\nwithout times"),
        ("srt", b"\xff\xfe\xfd"),
        ("srt", b"1\n\0\n"),
        ("vtt", b"1\n00:01.000 --> 00:02.000\nhello"),
        ("vtt", b"\x80WEBVTT"),
    ],
)
def test_other_files_are_refused_in_one_line(extension: str, content: bytes) -> None:
    with pytest.raises(DataError) as raised:
        read(extension, content)
    assert "\n" not in str(raised.value)


words = st.text("aäb <>/i{}\\-[]♪.,!\n", min_size=1, max_size=40)


@given(st.lists(words, min_size=1, max_size=4))
def test_any_lines_of_a_subtitle_come_back(lines: list[str]) -> None:
    text = "".join(cue(n, 2 * n, line) for n, line in enumerate(lines))
    assert copy("srt", text) == text.encode()
    document = read("srt", text)
    filled = fill_with(document, lambda one: "x" * len(one))
    assert filled.count(" --> ") == len(lines)
