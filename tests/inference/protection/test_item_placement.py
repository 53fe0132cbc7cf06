"""What was taken out goes back beside the words it stood beside."""

from __future__ import annotations

import pytest

from dragoman.inference.protection.item_placement import (
    CutItem,
    cut_span,
    pair_tags,
    place_items,
)
from dragoman.inference.protection.protected_items import find_items
from dragoman.inference.protection.text_edits import Edit, apply_edits

STRAIGHT = [(n, n) for n in range(9)]
CROSSED = [(0, 1), (1, 0)]


def restored(source: str, target: str, alignment: list[tuple[int, int]]) -> str:
    """Take the items out of a text, and put them into its translation."""
    edits, items, moved = [], [], 0
    for item in find_items(source):
        start, end, gap, touches = cut_span(source, item.start, item.end, item.kind)
        items.append(CutItem(source[start:end].strip(), start + moved, touches, item.kind))
        edits.append(Edit(start, end, gap))
        moved += len(gap) - (end - start)
    pairs = [(s, t) for s, t in alignment if t < len(target.split())]
    return apply_edits(target, place_items(apply_edits(source, edits), target, items, pairs))


@pytest.mark.parametrize(
    ("source", "target", "alignment", "result"),
    [
        ("the <b>dog</b> sees", "der Hund sieht", STRAIGHT, "der <b>Hund</b> sieht"),
        ("<b>big dog</b> <i>x</i>", "x großer Hund", [(0, 1), (1, 2), (2, 0)],
         "<i>x</i> <b>großer Hund</b>"),
        ("<b>dog</b>.", "Hund.", STRAIGHT, "<b>Hund</b>."),
        ("<b>dog.</b>", "Hund.", STRAIGHT, "<b>Hund.</b>"),
        ("(<b>dog</b>)!", "(Hund)!", STRAIGHT, "(<b>Hund</b>)!"),
        ("<p><b>a</b> b</p>", "B A", CROSSED, "<p>B <b>A</b></p>"),
        ("<a href='x y'>a</a> b", "A B", STRAIGHT, "<a href='x y'>A</a> B"),
        ("a <br/> b", "A B", STRAIGHT, "A <br/> B"),
        ("a b <br/>", "A B", STRAIGHT, "A B <br/>"),
        ("to <b>save</b> it", "zum Speichern.", STRAIGHT, "zum <b>Speichern</b>."),
        ("<b>a", "A", STRAIGHT, "<b>A"),
        ("a</b>", "A", STRAIGHT, "A</b>"),
        ("<b>a</b> b", "A B", [], "<b>A</b> B"),
        ("un<i>believ</i>able", "unglaublich", STRAIGHT, "<i>unglaublich</i>"),
    ],
)  # fmt: skip
def test_tags_come_back_beside_the_words_they_belong_to(
    source: str, target: str, alignment: list[tuple[int, int]], result: str
) -> None:
    assert restored(source, target, alignment) == result


@pytest.mark.parametrize(
    ("source", "target", "result"),
    [
        ("{0} a", "A B", "{0} A B"),
        ("Go to {0}.", "Geh nach.", "Geh nach {0}."),
        ("Go to {0}", "Geh nach.", "Geh nach. {0}"),
        ("Go ({0}) now", "Geh jetzt", "Geh ({0}) jetzt"),
        ("In {0}, Berlin is big", "In, Berlin ist groß", "In {0}, Berlin ist groß"),
        ("Then Berlin {0} Paris", "Dann noch Berlin Paris", "Dann noch Berlin {0} Paris"),
        ("See {0} now", "现在看吧", "现在{0}看吧"),
        ("See {0} now", "", "{0}"),
    ],
)
def test_words_come_back_without_an_alignment(source: str, target: str, result: str) -> None:
    assert restored(source, target, []) == result


@pytest.mark.parametrize(
    ("source", "at", "touches", "target", "result"),
    [
        ("a ABC.", 2, (False, True), "A ABC.", "A ∑ABC."),
        ("ABC b", 3, (True, False), "ABC B", "ABC∑ B"),
        ("a (b", 2, (False, True), "A (B", "A ∑(B"),
    ],
)
def test_a_mark_still_touches_what_it_touched(
    source: str, at: int, touches: tuple[bool, bool], target: str, result: str
) -> None:
    mark = CutItem("∑", at, touches, "mark")
    assert apply_edits(target, place_items(source, target, [mark], STRAIGHT[:2])) == result


def test_all_that_goes_to_one_place_stays_in_order() -> None:
    assert restored("{0} {1} <br/> a", "", []) == "{0} {1} <br/>"
    assert restored("a {0} {1}", "A", []) == "A {0} {1}"


def test_tags_are_paired_as_they_nest() -> None:
    tags = ["<b>", "<i>", "<br/>", "</i>", "</b>", "</u>", "<0>", "</0>"]
    assert pair_tags(tags) == [(1, 3), (0, 4), (6, 7)]
