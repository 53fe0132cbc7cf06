"""Edited texts know where their words are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.inference.protection.text_edits import (
    Edit,
    apply_edits,
    overlaps,
    words_after,
    words_before,
)

TEXT = "the old dog sees"
EDITS = [Edit(8, 11, "big bad wolf"), Edit(0, 0, "so "), Edit(0, 4, "")]


def test_edits_are_applied_in_the_order_of_their_places() -> None:
    assert apply_edits(TEXT, EDITS) == "so old big bad wolf sees"
    assert apply_edits("ab", [Edit(1, 1, "x"), Edit(1, 1, "y")]) == "axyb"


def test_words_are_followed_through_edits() -> None:
    assert words_after(TEXT, EDITS)[1:] == [1, 2, 5]
    assert words_before(TEXT, EDITS)[1:] == [1, 2, 2, 2, 3]


def test_what_an_edit_replaces_overlaps_with_it() -> None:
    assert overlaps(EDITS, 3, 9)
    assert overlaps(EDITS, 10, 12)
    assert not overlaps(EDITS, 4, 8)
    assert not overlaps([Edit(3, 3, "x")], 3, 5)


@given(
    text=st.text("ab ", max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=4),
    new=st.text("x ", max_size=3),
)
def test_every_word_has_one_on_the_other_side(text: str, cuts: list[int], new: str) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts})
    edits = [Edit(a, b, new) for a, b in zip(places[::2], places[1::2], strict=False)]
    edited = apply_edits(text, edits)
    after, before = words_after(text, edits), words_before(text, edits)
    assert len(after) == len(text.split())
    assert len(before) == len(edited.split())
    assert all(0 <= word < max(1, len(edited.split())) for word in after)
    assert all(0 <= word < max(1, len(text.split())) for word in before)
