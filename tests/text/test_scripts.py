"""Scripts without spaces are those of the languages without spaces."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dragoman.text.languages import written_without_spaces
from dragoman.text.scripts import CODE_POINTS, characters_of, code_ranges, has_no_spaces


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Haus", "de"),
        ("дом", "ru"),
        ("บ้าน", "th"),
        ("ເຮືອນ", "lo"),
        ("ཁང་པ", "bo"),
        ("အိမ်", "my"),
        ("ផ្ទះ", "km"),
        ("집", "ko"),
        ("いえ", "ja"),
        ("ｲｴ", "ja"),
        ("房屋", "zh"),
        ("𠮷々〇", "zh"),
        ("घर", "hi"),
    ],
)
def test_characters_have_spaces_where_their_language_has(text: str, language: str) -> None:
    assert {has_no_spaces(character) for character in text} == {written_without_spaces(language)}


def test_no_character_is_of_two_scripts() -> None:
    ranges = sorted(both for script in CODE_POINTS for both in code_ranges(script))
    assert all(last < first for (_, last), (first, _) in pairwise(ranges))


def test_ranges_stand_in_a_class_of_a_pattern() -> None:
    assert characters_of("Thai", "Khmer") == "\u0e00-\u0e7f\u1780-\u17ff"
