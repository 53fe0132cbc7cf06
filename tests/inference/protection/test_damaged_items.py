"""What became of an item is found if it looks like it."""

from __future__ import annotations

import pytest

from dragoman.inference.protection.damaged_items import find_damaged
from dragoman.inference.protection.protected_items import find_items


@pytest.mark.parametrize(
    ("source", "output", "damaged"),
    [
        (
            "See https://a.com/haus/seite now",
            "Siehe https://a.com/house/page.",
            "https://a.com/house/page",
        ),
        (
            "See http://www.example.com/a",
            "Siehe Visa:///www.example.com/a!",
            "Visa:///www.example.com/a",
        ),
        (
            "DE89 3704 0044 0532 0130 00",
            "DE89 3704 004 0532 0130 00",
            "DE89 3704 004 0532 0130 00",
        ),
        ("On 2024-11-16 it", "Am 2024-16 es", "2024-16"),
        ("See {name}", "Siehe {Name}.", "{Name}"),
        ("See {name}", "Siehe den Hund", None),
        ("See max@haus.de", "Siehe dich", None),
    ],
)
def test_the_damaged_form_is_found(source: str, output: str, damaged: str | None) -> None:
    [item] = find_items(source)
    span = find_damaged(item, output, [], source)
    assert (None if span is None else output[slice(*span)]) == damaged


def test_what_belongs_to_another_item_or_stands_in_the_source_is_left() -> None:
    [first, second] = find_items("{name1} and {name2}")
    assert find_damaged(first, "{name2}", [], "{name1} and {name2}") is None
    assert find_damaged(second, "{name3}", [(0, 7)], "{name1} and {name2}") is None
