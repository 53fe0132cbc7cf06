"""Numbers stand in messages as people write them."""

from __future__ import annotations

import pytest

from dragoman.messages import counted, duration


@pytest.mark.parametrize(
    ("count", "nouns", "expected"),
    [
        (0, ("step",), "0 steps"),
        (1, ("step",), "1 step"),
        (2000, ("step",), "2,000 steps"),
        (1, ("entry", "entries"), "1 entry"),
        (3, ("entry", "entries"), "3 entries"),
    ],
)
def test_a_noun_agrees_with_its_number(count: int, nouns: tuple[str, ...], expected: str) -> None:
    assert counted(count, *nouns) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.2, "1 s"),
        (59, "59 s"),
        (59.7, "1 min"),
        (100, "2 min"),
        (3600, "1 h"),
        (12_000, "3 h 20 min"),
        (23.9 * 3600, "23 h 54 min"),
        (86_399, "1 day"),
        (86_400 + 2 * 3600, "1 day 2 h"),
        (3 * 86_400, "3 days"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected
