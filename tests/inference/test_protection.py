"""What is not translated comes back as it was, each just once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.inference import Translation, Translator
from dragoman.inference.protection import (
    find_copied_words,
    protect_text,
    restore_text,
    translate_protected,
)
from dragoman.inference.translation_types import Request

KEPT = re.compile(
    r"</?[a-z][^<>]*>|https?://\S*\w/?|www\.\S*\w|[\w.]+@[\w.]+\w|\{\w*\}|%[sd]|%1\$s"
)


@pytest.mark.parametrize(
    ("text", "masked", "kept"),
    [
        ("See https://a.b/c?d=1.", "See .", ["https://a.b/c?d=1"]),
        ("(www.a.de/x) now", "( ) now", ["www.a.de/x"]),
        ("Mail me.you+x@a-b.co.uk, please", "Mail , please", ["me.you+x@a-b.co.uk"]),
        ("<b>The</b> dog", "The dog", ["<b>", "</b>"]),
        ("a<br/>b", "a b", ["<br/>"]),
        ("un<i>believ</i>able", "unbelievable", ["<i>", "</i>"]),
        ("{0} of ${name}, {{ user }} or %s %1$s %(x)d %.2f", "", None),
        ("3 < 4 and 5 > 4, 50% sure, {not this}", None, []),
    ],
)
def test_what_is_to_be_kept_is_taken_out(
    text: str, masked: str | None, kept: list[str] | None
) -> None:
    found = protect_text(text)
    if kept is None:
        kept = ["{0}", "${name}", "{{ user }}", "%s", "%1$s", "%(x)d", "%.2f"]
        masked = " of ,  or    "
    assert [item.text for item in found.items] == kept
    assert found.text == (text if masked is None else masked)


def test_what_stands_for_a_word_is_replaced_by_a_name_that_is_not_there() -> None:
    found = protect_text("Anna gave {0} to %s and x{1}.", ["Anna", "Peter", "Maria"])
    assert found.text == "Anna gave Peter to Maria and x ."
    assert found.stand_ins == {"Peter": "{0}", "Maria": "%s"}
    assert [item.text for item in found.items] == ["{1}"]


def restored(source: str, target: str, alignment: Sequence[tuple[int, int]], *names: str) -> str:
    masked = protect_text(source, names)
    found = restore_text(Translation(masked.text, target, 0.0, (), tuple(alignment)), masked)
    return "" if found is None else found.text


STRAIGHT = [(n, n) for n in range(9)]
CROSSED = [(0, 1), (1, 0)]


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
        ("<b>a", "A", STRAIGHT, "<b>A"),
        ("a</b>", "A", STRAIGHT, "A</b>"),
        ("{0} a", "A B", STRAIGHT, "{0} A B"),
        ("<b>a</b> b", "A B", [], "<b>A</b> B"),
    ],
)  # fmt: skip
def test_tags_come_back_beside_the_words_they_belong_to(
    source: str, target: str, alignment: list[tuple[int, int]], result: str
) -> None:
    alignment = [(s, t) for s, t in alignment if t < len(target.split())]
    assert restored(source, target, alignment) == result


def test_a_stand_in_that_does_not_come_out_just_once_is_no_result() -> None:
    assert restored("see {0}!", "siehe Anna!", [], "Anna") == "siehe {0}!"
    assert restored("see {0}!", "siehe Annas!", [], "Anna") == ""
    assert restored("see {0}!", "Anna, Anna!", [], "Anna") == ""


def test_an_alignment_is_one_of_the_whole_words_on_both_sides() -> None:
    masked = protect_text("<a href='x y'>old dog</a> {0} sees", ["Anna"])
    found = Translation(masked.text, "Hund alter Anna sieht", 0, (), ((0, 1), (1, 0), (3, 3)))
    back = restore_text(found, masked)
    assert back is not None
    assert back.text == "<a href='x y'>Hund alter</a> {0} sieht"
    words = ["<a", "href='x", "y'>old", "dog</a>", "{0}", "sees"], back.text.split()
    assert [(words[0][s], words[1][t]) for s, t in back.alignment] == [
        ("y'>old", "alter</a>"),
        ("dog</a>", "y'>Hund"),
        ("sees", "sieht"),
    ]


def test_a_line_whose_stand_in_is_lost_is_translated_again_without() -> None:
    asked: list[str] = []

    def run(requests: Sequence[Request]) -> list[Translation]:
        asked.extend(request.text for request in requests)
        return [Translation(r.text, r.text.replace("Anna", "Ana"), 0.0, ()) for r in requests]

    found = translate_protected([Request("to {0}."), Request("dog")], run, lambda: ["Anna"])
    assert asked == ["to Anna.", "dog", "to ."]
    assert found[0].text.count("{0}") == 1
    assert found[0].source == "to {0}."


def test_stand_ins_are_words_the_model_copies() -> None:
    def run(requests: Sequence[Request]) -> list[Translation]:
        return [
            Translation(r.text, r.text if r.text[0] in "PZ" else "x", -len(r.text), ())
            for r in requests
        ]

    assert find_copied_words(["Zorro", "Anna", "zebra", "Pi", "Po1"], run) == [
        "Zorro",
        "Peter",
        "Paris",
    ]


ITEMS = ["<b>", "</b>", "<br/>", "<i class='x'>", "</i>", "{0}", "{x}", "%s", "https://a.b/c"]
parts = st.sampled_from([*ITEMS, "a@b.de", "dog", " ", " ", " the ", ".", "(", ")"])
fuzz = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@fuzz
@given(line=st.lists(parts | st.text(max_size=4), max_size=12).map("".join))
def test_everything_taken_out_comes_back_just_once(line: str, reverser: Translator) -> None:
    [found] = reverser.translate([line], protect=True)
    assert found.source == line
    taken = [item.text for item in protect_text(reverser.tokenizer.normalize(line)).items]
    kept = Counter(re.findall("|".join(map(re.escape, ITEMS)) or "$^", found.text))
    for text, count in Counter(taken).items():
        if text in ITEMS:
            assert kept[text] >= count, (line, found.text)
        assert text in found.text
    words = len(found.text.split())
    assert all(t < words for _, t in found.alignment)


def test_lines_without_anything_to_keep_are_as_ever(reverser: Translator) -> None:
    lines = ["the old dog", "", "red cat"]
    plain = reverser.translate(lines, align=True)
    assert reverser.translate(lines, protect=True) == plain


@pytest.mark.parametrize("line", ["<b></b>", "{0} {1}", "(https://a.b/c)!", "%s."])
def test_a_line_of_nothing_else_is_left_as_it_is(line: str, reverser: Translator) -> None:
    assert reverser.translate(line, protect=True).text == line
