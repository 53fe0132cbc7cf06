"""English words: plurals, verbs, and words that only look like a form of another."""

from __future__ import annotations

import pytest

from dragoman.text.inflection.english import indefinite_article, word_forms


def forms(word: str, kind: str | None = None) -> set[str]:
    return {form.text for form in word_forms(word, kind)} - {word}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("bird", "birds"), ("box", "boxes"), ("church", "churches"), ("city", "cities"),
        ("boy", "boys"), ("child", "children"), ("mouse", "mice"), ("wife", "wives"),
        ("policewoman", "policewomen"), ("housewife", "housewives"), ("human", "humans"),
        ("German", "Germans"), ("analysis", "analyses"), ("potato", "potatoes"),
        ("radio", "radios"), ("bus", "buses"), ("GPU", "GPUs"), ("e-mail", "e-mails"),
        ("mother-in-law", "mothers-in-law"), ("Child", "Children"),
    ],
)  # fmt: skip
def test_a_noun_has_its_plural(singular: str, plural: str) -> None:
    assert forms(singular) == {plural}


@pytest.mark.parametrize(
    "word",
    [
        "new", "good", "mean", "economic", "sometime", "the", "this", "it", "on", "US",
        "her", "sheep", "news", "physics", "custom",
    ],
)  # fmt: skip
def test_some_words_have_no_other_form(word: str) -> None:
    assert forms(word) == set()


def test_what_begins_like_a_word_is_not_a_form_of_it() -> None:
    assert not forms("cat") & {"cater", "category", "catch"}
    assert not forms("car") & {"care", "cart", "carry"}
    assert not forms("prince") & {"princess"}


@pytest.mark.parametrize(
    ("verb", "wanted"),
    [
        ("wash", {"washes", "washed", "washing"}),
        ("ship", {"ships", "shipped", "shipping"}),
        ("open", {"opens", "opened", "opening"}),
        ("carry", {"carries", "carried", "carrying"}),
        ("die", {"dies", "died", "dying"}),
        ("write", {"writes", "wrote", "written", "writing"}),
        ("clean", {"cleans", "cleaned", "cleaning"}),
        ("commit", {"commits", "committed", "committing"}),
    ],
)
def test_a_verb_has_its_forms(verb: str, wanted: set[str]) -> None:
    assert forms(verb, "verb") == wanted


def test_an_adjective_has_one_form() -> None:
    assert forms("black", "other") == set()


@pytest.mark.parametrize(
    ("word", "article"),
    [("owl", "an"), ("dog", "a"), ("hour", "an"), ("university", "a"), ("MP", "an"), ("UN", "a")],
)
def test_an_article_fits_the_sound_of_a_word(word: str, article: str) -> None:
    assert indefinite_article(word) == article
