"""German words are inflected here: articles, adjectives, nouns, pronouns and finite verbs."""

from __future__ import annotations

from typing import cast

from dragoman.phrasebook.german.words import NOUNS, STEMS, GermanVerb
from dragoman.text.inflection.german_agreement import (
    ADJECTIVE_ENDINGS,
    DEFINITE_ARTICLE,
    DER_WORD_ENDINGS,
    EIN_WORD_ENDINGS,
    RELATIVE_PRONOUN,
    Case,
    Column,
    Declension,
)

# A form is chosen by case ("nom", "acc", "dat") and by gender or plural ("m", "f", "n", "p").
_DER_WORDS = {"this": "dies", "every": "jed"}
_BARE = {"two": "zwei", "three": "drei"}
_POSSESSIVES = {"i": "mein", "we": "unser", "he": "sein", "it": "sein", "she": "ihr", "they": "ihr"}
_PRONOUNS = {
    "i": ("ich", "mich", "mir"),
    "we": ("wir", "uns", "uns"),
    "he": ("er", "ihn", "ihm"),
    "she": ("sie", "sie", "ihr"),
    "it": ("es", "es", "ihm"),
    "they": ("sie", "sie", "ihnen"),
}
_CASES = {"nom": 0, "acc": 1, "dat": 2}
_BY_GENDER = {"m": "he", "f": "she", "n": "it"}
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
}
# "ich", "er", "wir" and "sie"
_SPECIAL = {
    "sein": ("bin", "ist", "sind"),
    "haben": ("habe", "hat", "haben"),
    "werden": ("werde", "wird", "werden"),
    "can": ("kann", "kann", "können"),
    "must": ("muss", "muss", "müssen"),
    "must not": ("darf", "darf", "dürfen"),
    "want": ("will", "will", "wollen"),
    "should": ("sollte", "sollte", "sollten"),
    "war": ("war", "war", "waren"),
}
_AGREEMENT = {"i": 0, "one": 1, "many": 2}


def _decline(table: dict[Case, dict[Column, str]], case: str, gender: str) -> str:
    return table[cast(Case, case[0])][cast(Column, gender)]


def determiner(word: str, case: str, gender: str) -> str:
    """Return a form of "the", "a", "no", "this", "every", "two", "three" or "many"."""
    if word == "the":
        return _decline(DEFINITE_ARTICLE, case, gender)
    if word == "a":
        return "ein" + _decline(EIN_WORD_ENDINGS, case, gender)
    if word == "no":
        return "kein" + _decline(EIN_WORD_ENDINGS, case, gender)
    if word == "many":
        return "viel" + _decline(DER_WORD_ENDINGS, case, gender)
    return _BARE.get(word) or _DER_WORDS[word] + _decline(DER_WORD_ENDINGS, case, gender)


def possessive(owner: str, case: str, gender: str) -> str:
    """Return a form of "mein", "unser", "sein" or "ihr"; unser- keeps its e (not unsren)."""
    return _POSSESSIVES[owner] + _decline(EIN_WORD_ENDINGS, case, gender)


def adjective(word: str, declension: Declension, case: str, gender: str) -> str:
    """Return an adjective with its "weak", "mixed" or "strong" ending."""
    return STEMS.get(word, word) + _decline(ADJECTIVE_ENDINGS[declension], case, gender)


def noun_form(key: str, case: str, plural: bool) -> str:
    """Return a noun in its case and number."""
    noun = NOUNS[key]
    if not plural:
        return noun.plural if noun.weak and case != "nom" else noun.singular
    if case == "dat" and not noun.plural.endswith(("n", "s")):
        return noun.plural + "n"
    return noun.plural


def pronoun(key: str, case: str, antecedent: str | None) -> str:
    """Return a personal pronoun; "it" takes the gender of the noun it stands for."""
    return _PRONOUNS[owner_key(key, antecedent)][_CASES[case]]


def owner_key(key: str, antecedent: str | None) -> str:
    """Return the pronoun that German uses: "it" is he, she or it by the antecedent's gender."""
    if key != "it":
        return key
    assert antecedent is not None
    return _BY_GENDER[NOUNS[antecedent].gender]


def relative_pronoun(case: str, gender: str) -> str:
    """Return the relative pronoun: the definite article, but "denen" in the dative plural."""
    return _decline(RELATIVE_PRONOUN, case, gender)


def finite(word: GermanVerb | str, agrees: str) -> str:
    """Return the finite form of a verb or of sein, haben, werden, war or a modal."""
    column = _AGREEMENT[agrees]
    if isinstance(word, str):
        return _SPECIAL[word][column]
    if word.infinitive in _SPECIAL:
        return _SPECIAL[word.infinitive][column]
    return (word.first, word.third, word.infinitive)[column]
