"""Cutting long lines."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.text.tokenizer import Tokenizer
from dragoman.translate.segments import split_line


@cache
def tokenizer(kind: str) -> Tokenizer:
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdeinrst", k=draw.randint(1, 7))) for _ in range(200)]
    lines = [" ".join(draw.choices(words, k=8)) + "." for _ in range(300)]
    config = TokenizerConfig(vocabulary=340, kind=kind)  # type: ignore[arg-type]
    return Tokenizer.train(lines, config)


def letters(text: str) -> int:
    """A piece a character, for tests that count by hand."""
    return len(text)


def bare(text: str) -> str:
    return "".join(text.split())


# Text with everything lines are cut at, and things they are not.
LATIN = ["The dog sees", "a cat", " ", ". ", "! ", "? ", "… ", ".) ", '." ', ", ", "; ", ": "]
OTHER = [
    "3.14",
    "e.g.",
    "。",
    "！",
    "、",
    "，",
    "」",
    "犬が見る",
    "ab" * 30,
    "한국어",
    "🦜",
    "\u0301",
]
parts = st.sampled_from(LATIN + OTHER)
lines = st.lists(parts | st.text(max_size=12), max_size=25).map("".join)


@settings(deadline=None)
@given(lines, st.integers(5, 60), st.sampled_from(["bpe", "unigram"]))
def test_nothing_is_lost_and_every_segment_fits(line: str, limit: int, kind: str) -> None:
    cutter = tokenizer(kind)
    text = cutter.normalize(line)

    def count(part: str) -> int:
        return len(cutter.encode(part))

    segments, _ = split_line(text, count, limit)
    assert bare("".join(segments)) == bare(text)
    assert all(count(segment) <= limit for segment in segments)
    assert all(segments) or segments == [""]


@settings(deadline=None)
@given(lines, st.integers(20, 60))
def test_a_cut_inside_a_sentence_is_always_said(line: str, limit: int) -> None:
    cutter = tokenizer("bpe")
    text = cutter.normalize(line)
    segments, forced = split_line(text, lambda part: len(cutter.encode(part)), limit)
    ends = [segment.rstrip("\"')]»”’」』") for segment in segments[:-1]]
    at_ends = all(end.endswith((".", "!", "?", "…", "。", "！", "？")) for end in ends)
    assert forced or at_ends


def test_a_short_line_is_left_as_it_is() -> None:
    assert split_line("One. Two.  Three.", letters, 100) == (["One. Two.  Three."], False)
    assert split_line("", letters, 100) == ([""], False)


def test_sentences_are_put_together_while_they_fit() -> None:
    line = "Aaaa. Bbbb! Cccc? Dddd."
    assert split_line(line, letters, 11) == (["Aaaa. Bbbb!", "Cccc? Dddd."], False)
    assert split_line(line, letters, 5) == (["Aaaa.", "Bbbb!", "Cccc?", "Dddd."], False)


def test_quotes_and_brackets_stay_with_the_sentence_they_close() -> None:
    line = "“I see.” (It is so.) He left."
    assert split_line(line, letters, 12) == (["“I see.”", "(It is so.)", "He left."], False)


def test_sentences_without_spaces_between_them_are_cut_too() -> None:
    assert split_line("犬が見る。猫が食べる。", letters, 7) == (
        ["犬が見る。", "猫が食べる。"],
        False,
    )


def test_a_point_inside_a_number_or_a_word_ends_no_sentence() -> None:
    segments, forced = split_line("It is 3.14159265 long. Yes.", letters, 23)
    assert (segments, forced) == (["It is 3.14159265 long.", "Yes."], False)


@pytest.mark.parametrize(
    ("line", "segments"),
    [
        ("aaaa, bbbb, cccc, dddd", ["aaaa, bbbb,", "cccc, dddd"]),
        ("aaaa bbbb cccc dddd", ["aaaa bbbb", "cccc dddd"]),
        ("a" * 30, ["aa"] * 15),  # room for four bytes a character
    ],
)
def test_a_sentence_too_long_is_cut_between_clauses_then_words_then_characters(
    line: str, segments: list[str]
) -> None:
    assert split_line(line, letters, 11) == (segments, True)


def test_a_line_of_a_megabyte_is_cut_in_seconds() -> None:
    count = len(line := "The dog sees a cat. " * 50_000)
    segments, forced = split_line(line, lambda part: len(part.split()), 100)
    assert not forced
    assert sum(map(len, segments)) + len(segments) == count
    assert max(len(segment.split()) for segment in segments) == 100
