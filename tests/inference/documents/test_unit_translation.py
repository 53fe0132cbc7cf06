"""Texts are sent once, as words, and come back with white space and marks."""

from __future__ import annotations

import pytest

from dragoman.inference.documents.document import Mark, Unit
from dragoman.inference.documents.unit_translation import UnitTexts, translate_units
from dragoman.inference.translation_types import Translation

from .fake_translators import shout_texts


def test_texts_are_sent_in_two_lots_each_once() -> None:
    calls: list[tuple[list[str], bool]] = []

    def translate(texts: list[str], align: bool) -> list[Translation]:
        calls.append((texts, align))
        return shout_texts(texts, align)

    marked = Unit("one two", (Mark(4, 7, 0),))
    around = Unit("one", (Mark(0, 3, 0),))
    given_units = [Unit("one"), marked, Unit(" one "), around, Unit("3.14"), marked, Unit("two")]
    found = translate_units(given_units, translate)
    assert calls == [(["one", "two"], False), (["one two"], True)]
    assert [unit.text for unit in found] == [
        "ONE", "ONE TWO", " ONE ", "ONE", "3.14", "ONE TWO", "TWO",
    ]  # fmt: skip
    assert found[1].marks == marked.marks
    assert found[3].marks == around.marks


def test_only_marks_between_words_need_an_alignment() -> None:
    units = [Unit("one two", (Mark(0, 7, 0),))]
    units += [Unit("one", (Mark(place, place, 0),)) for place in (0, 3, 1)]
    texts = UnitTexts(units)
    assert (texts.plain, texts.marked) == (["one two", "one"], ["one"])


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("  one  ", "one"),
        ("Donau\xaddampf", "Donaudampf"),
        ("Name:\tPeter", "Name:\nPeter"),
        ("Einführung\nTheorie", "Einführung\nTheorie"),
        ("a sentence,\nwhich goes on", "a sentence, which goes on"),
        ("10115\nberlin", "10115\nberlin"),
    ],
)
def test_the_translator_gets_words(text: str, sent: str) -> None:
    assert UnitTexts([Unit(text)]).plain == [sent]


def test_no_break_spaces_come_back_between_the_same_words() -> None:
    (found,) = translate_units(
        [Unit("es sind 1.000,5\xa0km bis B.")],
        lambda texts, _: [Translation(texts[0], "it is 1,000.5 km to B.", 0.0, ())],
    )
    assert found.text == "it is 1,000.5\xa0km to B."
