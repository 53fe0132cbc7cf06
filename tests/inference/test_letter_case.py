"""Capitals and titles."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman.inference.letter_case import (
    is_in_capitals,
    is_title,
    to_capitals,
    to_ordinary_case,
    translate_cased,
)
from dragoman.inference.translation_types import Request, Translation

KNOWN = {"this", "is", "the", "of", "to", "warning", "NATO", "USA", "Berlin", "Haus", "das"}


def count_pieces(texts: Sequence[str]) -> list[int]:
    """A word that is known is one piece; any other is its letters."""
    return [1 if text in KNOWN else len(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "loud"),
    [
        ("THIS IS A WARNING", True),
        ("STOP", True),
        ("USA", False),
        ("I", False),
        ("Stop", False),
        ("The NATO and the USA", False),
        ("SEE Anna AT THE DOOR NOW", True),
        ("123 456", False),
        ("ÄPFEL UND BIRNEN", True),
        ("안녕하세요", False),
        ("부산까지 KTX로 얼마나 걸려요?", False),
        ("이 노트북은 USB와 HDMI를 지원합니다.", False),
        ("WARNING: do not open this door", False),
        ("A1, B2, C3-PO and R2-D2", False),
        ("C++, C#, .NET and F#", False),
    ],
)
def test_capitals_are_seen(text: str, loud: bool) -> None:
    assert is_in_capitals(text) is loud


def test_each_word_is_written_as_the_model_knows_it_best() -> None:
    text = "THIS IS THE WARNING OF NATO TO BERLIN, USA!"
    expected = "This is the warning of NATO to Berlin, USA!"
    assert to_ordinary_case(text, count_pieces) == expected
    assert to_ordinary_case("DAS HAUS", count_pieces) == "Das Haus"
    assert to_ordinary_case("THIS Anna IS", count_pieces) == "This Anna is"


def test_what_is_kept_stays_in_capitals() -> None:
    assert to_capitals("die große Straße, Anna", frozenset({"Anna"})) == "DIE GROSSE STRASSE, Anna"


def run_with(answer: str, asked: list[str]) -> object:
    def run(requests: Sequence[Request]) -> list[Translation]:
        asked.extend(one.text for one in requests)
        other = Translation("", answer.lower(), 0.0, ())
        return [Translation(one.text, answer, 0.0, (), alternatives=(other,)) for one in requests]

    return run


def change(text: str, answer: str, **options: str) -> tuple[str, str, str]:
    asked: list[str] = []
    run = run_with(answer, asked)
    [found] = translate_cased([Request(text, **options)], run, count_pieces)  # type: ignore[arg-type]
    assert found.source == text
    return asked[0], found.text, found.alternatives[0].text


def test_a_text_in_capitals_comes_back_in_capitals() -> None:
    assert change("THIS IS THE WARNING.", "Das ist die Warnung.") == (
        "This is the warning.",
        "DAS IST DIE WARNUNG.",
        "DAS IST DIE WARNUNG.",
    )


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("two", "Zwei.", "Zwei"),
        ("Opening hours", "Öffnungszeiten。", "Öffnungszeiten"),
        ("Two.", "Zwei.", "Zwei."),
        ("And so on", "Und so weiter...", "Und so weiter..."),
        ("two", ".", "."),
        ("He said that all of this was not so", "Er sagte das.", "Er sagte das."),
        ("Use it now.", "verwende es jetzt.", "Verwende es jetzt."),
        ("Phones are here.", "iPhones sind da.", "iPhones sind da."),
        ("so it is.", "so ist es.", "so ist es."),
        ("Go home.", "Geh nach Hause", "Geh nach Hause."),
        ("Why?", "Warum", "Warum?"),
        ("정부가 발표했다.", "the government said so.", "The government said so."),
        ("설정", "settings", "settings"),
        ("It was so.", "Es war so:", "Es war so."),
        ("“It was so.”", "„Es war so:“", "„Es war so.“"),
        ("It was so:", "Es war so:", "Es war so:"),
        ("Why?", "“Warum?”", "“Warum?”"),
        ("approx.", "etwa", "etwa"),
        ("Go home.", "回家", "回家"),
        ("Go home (now).", "Geh nach Hause (jetzt)", "Geh nach Hause (jetzt)."),
        ("He said “Go home.”", "Er sagte „Geh heim“", "Er sagte „Geh heim.“"),
        ("He said “Go home.”", "Er sagte „Geh heim!“", "Er sagte „Geh heim!“"),
    ],
)
def test_a_title_has_no_full_stop_and_a_sentence_begins_and_ends_as_it_did(
    text: str, answer: str, expected: str
) -> None:
    assert change(text, answer)[1] == expected


def test_what_must_come_out_is_left_alone() -> None:
    assert change("STOP THE WARNING", "Halt.", prefix="Halt")[:2] == ("STOP THE WARNING", "Halt.")


def test_titles_are_short_and_end_without_a_mark() -> None:
    assert is_title("Chapter 12")
    assert not is_title("Who?")
    assert not is_title("one two three four five six seven")
