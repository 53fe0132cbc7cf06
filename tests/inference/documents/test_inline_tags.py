"""Tags become marks and placeholders, and come back whatever a translation says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.inference.documents.document import Mark, Unit
from dragoman.inference.documents.inline_tags import TaggedText, split_tokens
from dragoman.inference.documents.mark_projection import project_marks

PATTERN = re.compile(r"(?P<tag><[^<>]*>)|(?P<word>%s)")


def inline(text: str) -> TaggedText:
    return TaggedText(split_tokens(text, PATTERN))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<i>a <b>b</b><x/></i>", "a b"),
        ("a<i>x<x/></i>", "ax"),
        ("a<i>x</i><x/>", "ax"),
        ("<i><b>x</b></i> y", "x y"),
        ("a %s <i><x/>x</i> b", "a {1} x b"),
        ("</i>x<i>", "x"),
        (" <p>x</p> ", "x"),
        ("a<b></b><i></i> c", "a c"),
        ("a<b><i></i></b>c", "ac"),
        ("{3} and %s", "{3} and {4}"),
        ("a <x/> b", "a b"),
        ("a <i>b <x/></i>c", "a b c"),
        ("a<i> <x/>b</i>", "a b"),
        ("a <br> b", "a\nb"),
        ("<b>a <i>b</b> c</i>", "a b c"),
    ],
)
def test_texts_come_back_as_they_were(text: str, plain: str) -> None:
    found = inline(text)
    assert found.unit is not None
    assert found.unit.text == plain
    assert found.render(found.unit) == text


@given(st.lists(st.sampled_from(["<i>", "</i>", "<b>", "</b>", "<x/>", "%s", "a", " ", "<br>"])))
def test_any_order_of_tags_comes_back(parts: list[str]) -> None:
    text = "".join(parts)
    found = inline(text)
    assert found.render(found.unit) == text


@pytest.mark.parametrize(
    ("text", "translation", "written"),
    [
        ("a %s b <b>%s</b>", "c {2}", "%s c <b>%s</b>"),
        ("a %s", "c { 1 } d", "c %s d"),
        ("a.<x/>%s", "c.{1}", "c.<x/>%s"),
    ],
)
def test_placeholders_are_whole_whatever_a_translation_says(
    text: str, translation: str, written: str
) -> None:
    found = inline(text)
    assert found.unit is not None
    assert found.render(project_marks(found.unit, translation)) == written


@given(st.data())
def test_all_tags_are_there_and_nest_wherever_marks_go(data: st.DataObject) -> None:
    found = inline("a <i>b <b>c</b></i> <x/> d")
    assert found.unit is not None
    place = st.integers(0, 5)
    marks = tuple(Mark(data.draw(place), data.draw(place), one.key) for one in found.unit.marks)
    written = found.render(Unit("uvwxy", marks))
    assert re.sub(r"<[^<>]*>| ", "", written) == "uvwxy"  # a space came with <x/>
    still_open: list[str] = []
    for tag in re.findall(r"<[^<>]*>", written):
        if tag.startswith("</"):
            assert still_open.pop() == tag[2:-1]
        elif tag != "<x/>":
            still_open.append(tag[1:-1])
    assert not still_open
    assert sorted(re.findall(r"<[^<>]*>", written)) == ["</b>", "</i>", "<b>", "<i>", "<x/>"]
