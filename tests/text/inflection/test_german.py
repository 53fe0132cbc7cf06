"""German words: nouns in every case, their genders, and what agrees with them."""

from __future__ import annotations

import pytest

from dragoman.phrasebook.german.inflection import noun_form
from dragoman.phrasebook.german.words import NOUNS
from dragoman.text.inflection.german import genders, noun_forms, read_noun, verb_forms, word_forms
from dragoman.text.inflection.german_agreement import agreements
from dragoman.text.inflection.german_nouns import known_noun, nouns


def likeliest(noun: str, number: str, case: str) -> set[str]:
    """The forms that the rules do not doubt at all."""
    found = [
        form
        for form in noun_forms(noun)
        if form.number in (None, number) and case in (form.cases or case)
    ]
    least = min(form.cost for form in found)
    return {form.text for form in found if form.cost == least}


@pytest.mark.parametrize("key", sorted(NOUNS))
def test_the_phrasebooks_nouns_have_their_forms_and_gender(key: str) -> None:
    noun = NOUNS[key]
    for case, letter in (("nom", "n"), ("acc", "a"), ("dat", "d")):
        assert noun_form(key, case, False) in likeliest(noun.singular, "singular", letter)
        if key not in ("tea", "coffee", "milk", "cheese", "water", "juice"):
            assert noun_form(key, case, True) in likeliest(noun.singular, "plural", letter)
    costs = genders(noun.singular)
    assert costs[noun.gender] == min(costs.values())  # type: ignore[index]


@pytest.mark.parametrize(
    ("noun", "genitive", "dative_plural", "gender"),
    [
        ("Vogel", "Vogels", "Vögeln", "m"),
        ("Kinderbuch", "Kinderbuchs", "Kinderbüchern", "n"),
        ("Elefant", "Elefanten", "Elefanten", "m"),
        ("Ereignis", "Ereignisses", "Ereignissen", "n"),
        ("Chefin", "Chefin", "Chefinnen", "f"),
        ("Verschlüsselung", "Verschlüsselung", "Verschlüsselungen", "f"),
        ("Museum", "Museums", "Museen", "n"),
        ("Name", "Namens", "Namen", "m"),
        ("Gebäude", "Gebäudes", "Gebäuden", "n"),
        ("Straßenbahn", "Straßenbahn", "Straßenbahnen", "f"),
        ("Elektroauto", "Elektroautos", "Elektroautos", "n"),
        ("Häuschen", "Häuschens", "Häuschen", "n"),
    ],
)
def test_a_noun_is_declined(noun: str, genitive: str, dative_plural: str, gender: str) -> None:
    assert genitive in likeliest(noun, "singular", "g")
    assert dative_plural in likeliest(noun, "plural", "d")
    assert [one for one, cost in genders(noun).items() if cost == 0] == [gender]


@pytest.mark.parametrize(
    ("noun", "other"),
    [
        ("Spiel", "Spieler"), ("Fisch", "Fischer"), ("Arbeit", "Arbeiter"), ("Mord", "Mörder"),
        ("Reis", "Reise"), ("Ei", "Eis"), ("Bau", "Bauer"), ("Kauf", "Käufer"), ("EU", "EUs"),
    ],
)  # fmt: skip
def test_another_word_is_not_a_form(noun: str, other: str) -> None:
    assert other not in {form.text for form in noun_forms(noun)}


def test_the_table_of_nouns_is_sound() -> None:
    assert len(nouns()) > 1200
    for noun, known in nouns().items():
        assert noun.isalpha() or "-" in noun
        assert known.genders
        for plural in known.plurals:  # it is the noun with an ending, or another vowel
            assert plural[0] in (noun[0], "ä", "ö", "ü")
    assert known_noun("Standard") is None  # not a kind of Art


def test_a_noun_in_a_sentence_tells_its_case() -> None:
    assert {(one.number, one.cases) for one in read_noun("Königen")} == {("plural", "d")}
    assert {one.genders for one in read_noun("Großmüttern")} == {("f",)}


@pytest.mark.parametrize(
    ("verb", "some"),
    [
        ("waschen", {"wäscht", "wusch", "gewaschen"}),
        ("reinigen", {"reinigt", "reinigte", "gereinigt"}),
        ("verkaufen", {"verkauft", "verkaufte"}),
        ("verstehen", {"versteht", "verstand", "verstanden"}),
        ("aufräumen", {"aufräumt", "aufgeräumt", "aufzuräumen"}),
        ("studieren", {"studiert", "studierte"}),
        ("arbeiten", {"arbeitet", "arbeitete", "gearbeitet"}),
    ],
)
def test_a_verb_is_conjugated(verb: str, some: set[str]) -> None:
    assert some <= set(verb_forms(verb))


def test_an_adjective_is_declined() -> None:
    assert {form.text for form in word_forms("dunkel")} == {
        "dunkel", "dunkle", "dunklen", "dunkler", "dunkles", "dunklem",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "gender", "case", "wanted"),
    [
        ("der alte", "", "f", "n", "die alte|"),
        ("ein altes", "", "m", "a", "einen alten|"),
        ("seinem teuren", "", "f", "d", "seiner teuren|"),
        ("im dunklen", "", "f", "d", "in der dunklen|"),
        ("in der", "", "m", "d", "im|"),
        ("keine", "die", "n", "a", "kein|das"),
        ("der", "mit dem", "f", "n", "die|mit der"),
    ],
)
def test_what_agrees_with_a_noun_takes_its_gender(
    before: str, after: str, gender: str, case: str, wanted: str
) -> None:
    found = agreements(before.split(), (), after.split())
    texts = {
        f"{' '.join(one.before)}|{' '.join(one.after)}"
        for one in found
        if one.gender == gender and one.case == case
    }
    assert wanted in texts


def test_nothing_agrees_with_a_noun_that_stands_alone() -> None:
    assert agreements(["Er", "sieht"], (), ()) == []
