"""Cutting long lines."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig
from dragoman.text.long_sentences import split_lines
from dragoman.text.sentence_splitting import sentence_spans
from dragoman.text.tokenizer import Tokenizer


@cache
def tokenizer(kind: str) -> Tokenizer:
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdeinrst", k=draw.randint(1, 7))) for _ in range(200)]
    lines = [" ".join(draw.choices(words, k=8)) + "." for _ in range(300)]
    config = TokenizerConfig(vocabulary=340, kind=kind)  # type: ignore[arg-type]
    return Tokenizer.train(lines, config)


def split(
    line: str, limit: int, count: Callable[[str], int] = len, longest: int = 1
) -> tuple[list[str], bool]:
    """One line; a piece is a character, for tests that count by hand."""
    [found] = split_lines([line], lambda texts: list(map(count, texts)), limit, lambda: longest)
    return found


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

    segments, _ = split(text, limit, count, cutter.longest_piece)
    assert bare("".join(segments)) == bare(text)
    assert all(count(segment) <= limit for segment in segments)
    assert all(segments) or segments == [""]


@settings(deadline=None)
@given(lines, st.integers(20, 60))
def test_a_cut_inside_a_sentence_is_always_said(line: str, limit: int) -> None:
    cutter = tokenizer("bpe")
    text = cutter.normalize(line)
    segments, forced = split(
        text, limit, lambda part: len(cutter.encode(part)), cutter.longest_piece
    )
    # Positions are counted without spaces, which segments do not keep.
    ends = {len(bare(text[:end])) for _, end in sentence_spans(text)}
    cuts = {len(bare("".join(segments[: n + 1]))) for n in range(len(segments) - 1)}
    assert forced or cuts <= ends


def test_a_short_line_is_left_as_it_is() -> None:
    assert split("One. Two.  Three.", 100) == (["One. Two.  Three."], False)
    assert split("", 100) == ([""], False)


def test_sentences_are_put_together_while_they_fit() -> None:
    line = "Aaaa. Bbbb! Cccc? Dddd."
    assert split(line, 11) == (["Aaaa. Bbbb!", "Cccc? Dddd."], False)
    assert split(line, 5) == (["Aaaa.", "Bbbb!", "Cccc?", "Dddd."], False)


def test_quotes_and_brackets_stay_with_the_sentence_they_close() -> None:
    line = "“I see.” (It is so.) He left."
    assert split(line, 12) == (["“I see.”", "(It is so.)", "He left."], False)


def test_sentences_without_spaces_between_them_are_cut_too() -> None:
    assert split("犬が見る。猫が食べる。", 7) == (
        ["犬が見る。", "猫が食べる。"],
        False,
    )


def test_a_point_inside_a_number_or_a_word_ends_no_sentence() -> None:
    segments, forced = split("It is 3.14159265 long. Yes.", 23)
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
    assert split(line, 11) == (segments, True)


def test_lines_are_counted_together_and_only_where_it_is_needed() -> None:
    asked: list[list[str]] = []

    def count(texts: Sequence[str]) -> list[int]:
        asked.append(list(texts))
        return [len(text.split()) for text in texts]

    lines = ["a b c d e f", "abcd", "a b c d e", "", "a b c d e", "a b c de"]
    found = split_lines(lines, count, 5, lambda: 2)
    assert [segments for segments, _ in found] == [
        ["a b c d e", "f"],
        ["abcd"],
        ["a b c d e"],
        [""],
        ["a b c d e"],
        ["a b c de"],
    ]
    assert sorted(asked[0]) == ["a b c d e", "a b c de"], "not the short one nor the long one"


ENDLESS: dict[str, Callable[[], str]] = {
    "one word": lambda: "a" * 2_500_000,
    "no spaces": lambda: "犬が見る" * 600_000,
    "many sentences": lambda: "The dog sees a cat. A cat sees. " * 80_000,
    "marks": lambda: ".,!?" * 600_000,
    "spaces between letters": lambda: "a " * 1_250_000,
    "many words": lambda: " ".join(map(str, range(60_000))),
    "many clauses": lambda: ", ".join(map(str, range(60_000))),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_line_of_megabytes_is_counted_a_few_times_and_no_more(kind: str) -> None:
    line = ENDLESS[kind]().strip()
    counted = 0

    def count(texts: Sequence[str]) -> list[int]:
        nonlocal counted
        counted += sum(map(len, texts))
        return [-(-len(text) // 3) for text in texts]

    [(segments, forced)] = split_lines([line], count, 100, lambda: 3)
    assert counted <= 4 * len(line), "time is in proportion to the line"
    assert sum(len(one) - one.count(" ") for one in segments) == len(line) - line.count(" ")
    assert max(map(len, segments)) <= 300
    assert forced == (kind != "many sentences")


def test_the_longest_piece_is_not_asked_for_where_lines_are_short() -> None:
    def ask() -> int:
        raise AssertionError("it takes a while to find out")

    assert split_lines(["short"], lambda texts: [], 100, ask) == [(["short"], False)]
