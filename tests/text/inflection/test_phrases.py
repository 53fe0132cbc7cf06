"""Phrases are found in all their forms, in several languages."""

from __future__ import annotations

import pytest

from dragoman.text.inflection import Phrase, guess_kind, is_function_word


def found(phrase: str, language: str, text: str, **options: object) -> list[str]:
    several = Phrase(phrase, language, **options).find_all(text)  # type: ignore[arg-type]
    return [text[one.start : one.end] for one in several]


@pytest.mark.parametrize(
    ("phrase", "language", "text", "wanted"),
    [
        ("bird", "en", "Birds, birdhouses, a bird's birds", ["Birds", "bird", "birds"]),
        ("fire engine", "en", "two fire engines, fires engine", ["fire engines"]),
        ("minister of state", "en", "the ministers of state", ["ministers of state"]),
        ("rote Karte", "de", "mit roten Karten", ["roten Karten"]),
        ("Vogel", "de", "den Vögeln, des Vogels, Vogelhaus", ["Vögeln", "Vogels"]),
        ("pomme de terre", "fr", "les pommes de terre", ["pommes de terre"]),
        ("cheval", "fr", "des chevaux", ["chevaux"]),
        ("oiseau", "fr", "L'oiseau et les oiseaux", ["oiseau", "oiseaux"]),
        ("canción", "es", "las canciones", ["canciones"]),
        ("새", "ko", "새들은 새로 새가 새집", ["새들은", "새가"]),
        ("기계 학습", "ko", "기계 학습을 배운다", ["기계 학습을"]),
        ("kissa", "fi", "kissat kissa", ["kissa"]),
        ("bird", "", "birds bird", ["bird"]),
    ],
)
def test_a_phrase_is_found_in_all_its_forms(
    phrase: str, language: str, text: str, wanted: list[str]
) -> None:
    assert found(phrase, language, text) == wanted


def test_a_phrase_in_small_letters_may_begin_a_sentence() -> None:
    assert found("groß", "de", "Große Hunde") == ["Große"]
    assert found("groß", "de", "Das Große") == []


def test_what_is_fixed_has_one_form() -> None:
    assert found("Adam", "en", "Adam Adams", fixed=True) == ["Adam"]


def test_german_shows_what_a_word_is() -> None:
    kinds = [guess_kind(word, "de") for word in ("Hund", "rote Karte", "waschen", "rot")]
    assert kinds == ["noun", "noun", "verb", "other"]
    assert guess_kind("chien", "fr") is None


def test_a_noun_that_looks_like_a_verb_form_is_not_found() -> None:
    verb = Phrase("reisen", "de", kind="verb", any_case=True)
    line = "Er reist viel, die Reise"
    ends = [line[one.start : one.end] for one in verb.find_all(line)]
    assert ends == ["reist"]


def test_function_words_are_known() -> None:
    assert is_function_word("zu", "de")
    assert is_function_word("Die", "de")
    assert is_function_word("것이", "ko")
    assert not is_function_word("Haus", "de")
    assert not is_function_word("the", "")
