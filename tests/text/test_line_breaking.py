"""Where a line may be broken, and how many columns it takes."""

from __future__ import annotations

import pytest

from dragoman.text.line_breaking import can_break, columns, wrap


@pytest.mark.parametrize(
    ("text", "width"),
    [("Haus", 4), ("한국어", 6), ("日本語", 6), ("e\u0301t\u00e9", 3), ("ｶﾅ", 2)],
)
def test_wide_characters_take_two_columns_and_marks_on_letters_none(text: str, width: int) -> None:
    assert columns(text) == width


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("漢", "字", True),
        ("字", "A", True),
        ("字", "。", False),
        ("（", "字", False),
        ("き", "ゃ", False),
        ("한", "국", False),
        ("a", "b", False),
    ],
)
def test_lines_break_between_characters_of_some_scripts(
    before: str, after: str, expected: bool
) -> None:
    assert can_break(before, after) is expected


def test_lines_are_wrapped_at_spaces_and_between_characters() -> None:
    assert wrap("one two three", 7, 0, 0) == ["one two", "three"]
    assert wrap("これは長い文です。", 8, 0, 0) == ["これは長", "い文で", "す。"]
