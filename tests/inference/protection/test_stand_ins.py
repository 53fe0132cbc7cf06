"""Stand-ins are what the model copies."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from dragoman.inference.protection.stand_ins import (
    StandIns,
    choose_stand_ins,
    find_copies,
    joins,
)
from dragoman.inference.translation_types import Request, Translation

from .fake_models import each


def test_a_model_that_copies_all_is_asked_few_things() -> None:
    asked: list[str] = []

    def run(requests: Sequence[Request]) -> list[Translation]:
        asked.extend(request.text for request in requests)
        return [Translation(r.text, r.text, 0.0, ()) for r in requests]

    found = choose_stand_ins(run, "de")
    assert found.placeholders[0] == "{1}"
    assert found.words[0] == "ABC"
    assert len(asked) < 30


def test_a_model_that_copies_names_has_names() -> None:
    found = choose_stand_ins(each(lambda text: re.sub("{|[A-Z]{2,}", "x", text)), "en")
    assert found.placeholders == ()
    assert "Anna" in found.words
    assert "ABC" not in found.words


def test_a_model_that_copies_nothing_usual_is_asked_for_its_own_words() -> None:
    found = choose_stand_ins(
        each(lambda text: text if "Zorro" in text else "x"), "", ["Zorro", "dog", "Zo1"]
    )
    assert found.words == ("Zorro",)
    assert choose_stand_ins(each(lambda text: "x"), "en", ["Zorro"]) == StandIns()


def test_what_is_in_the_text_does_not_stand_for_something_else() -> None:
    several = StandIns(("{1}", "{2}"), ("ABC", "Anna"))
    assert several.usable("{1} and anna", "url") == ["{2}", "ABC"]
    assert several.usable("text", "unknown") == ["ABC", "Anna", "{1}", "{2}"]


@pytest.mark.parametrize(
    ("name", "output", "count"),
    [
        ("Anna", "Anna, anna und Annas", 2),
        ("ABC", "ABC를 ABC에서 abcd", 2),
        ("ABC", "看ABC吧", 1),
        ("{1}", "{1}s {12}", 1),
        ("2024", "2024 20245", 1),
    ],
)
def test_copies_are_whole_words(name: str, output: str, count: int) -> None:
    assert len(find_copies(name, output)) == count


def test_letters_join_those_of_their_own_kind() -> None:
    assert joins("a", "b")
    assert joins("a", "1")
    assert joins("는", "을")
    assert not joins("a", "는")
    assert not joins("}", "a")
    assert joins("e", "\u0301")
