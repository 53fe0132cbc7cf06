"""French, Spanish and Portuguese: plurals, and articles before vowels."""

from __future__ import annotations

import pytest

from dragoman.text.inflection.romance import (
    french_article_variants,
    french_forms,
    portuguese_forms,
    spanish_forms,
)


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("chat", "chats"), ("oiseau", "oiseaux"), ("cheval", "chevaux"), ("bijou", "bijoux"),
        ("travail", "travaux"), ("festival", "festivals"), ("pneu", "pneus"), ("œil", "yeux"),
    ],
)  # fmt: skip
def test_a_french_noun_has_its_plural(singular: str, plural: str) -> None:
    assert [form.text for form in french_forms(singular)] == [singular, plural]


def test_some_french_words_have_none() -> None:
    for word in ("souris", "nez", "le", "pas"):
        assert [form.text for form in french_forms(word)] == [word]


def test_iberian_nouns_have_their_plurals() -> None:
    assert spanish_forms("luz")[1].text == "luces"
    assert spanish_forms("ciudad")[1].text == "ciudades"
    assert portuguese_forms("homem")[1].text == "homens"
    assert portuguese_forms("animal")[1].text == "animais"
    assert portuguese_forms("nação")[1].text == "nações"


@pytest.mark.parametrize(
    ("before", "word", "variants"),
    [
        ("l'", "chien", ["le ", "la "]),
        ("l'", "ami", ["l'"]),
        ("le", "ami", ["l'"]),
        ("Le", "table", ["Le ", "La "]),
        ("du", "eau", ["de l'"]),
        ("un", "table", ["un ", "une "]),
        ("d'", "chien", ["de "]),
        ("grand", "chien", ["grand "]),
    ],
)
def test_a_french_article_has_the_forms_that_may_stand_before_a_word(
    before: str, word: str, variants: list[str]
) -> None:
    assert french_article_variants(before, word) == variants
