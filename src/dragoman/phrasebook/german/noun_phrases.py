"""German noun phrases, pronouns and prepositional phrases are built here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dragoman.phrasebook.annotated_tree import Key, Leaf, Node, Tree
from dragoman.phrasebook.german import words
from dragoman.phrasebook.german.inflection import (
    CONTRACTIONS,
    adjective,
    determiner,
    noun_form,
    owner_key,
    possessive,
    pronoun,
    relative_pronoun,
)
from dragoman.phrasebook.lexicon import NOUNS
from dragoman.phrasebook.meaning import Adjunct, Clause, Name, Nominal, NounPhrase, Pair, Pronoun
from dragoman.text.inflection.german_agreement import Declension

RelativeClause: TypeAlias = Callable[[NounPhrase], Node]
_TAGS = {"the": "ART", "a": "ART", "no": "PIAT", "this": "PDAT", "every": "PIAT", "many": "PIAT"}
_DECLENSIONS: dict[str, Declension] = {
    "the": "weak",
    "this": "weak",
    "every": "weak",
    "a": "mixed",
    "no": "mixed",
}


def gender_of(phrase: NounPhrase) -> str:
    """Return the column of a declension table: m, f, n, or p for every plural."""
    return "p" if phrase.plural else words.NOUNS[phrase.noun].gender


def nominal(
    meaning: Nominal, case: str, relative: RelativeClause | None, negation: Key | None = None
) -> Node:
    """Build a noun phrase in its case.

    `relative` builds the relative clause; None leaves it out, for the caller to place later. With
    `negation` the article is "kein".
    """
    if isinstance(meaning, Pronoun):
        word = pronoun(meaning.key, case, meaning.antecedent)
        return Node("NP", [Leaf("PPER", word, (id(meaning), "noun"))])
    if isinstance(meaning, Name):
        return Node("NP", [Leaf("NE", meaning.name, (id(meaning), "noun"))])
    if isinstance(meaning, Pair):
        conjunction = Leaf("KON", "und", (id(meaning), "conjunction"))
        first = nominal(meaning.first, case, relative)
        return Node("NP", [first, conjunction, nominal(meaning.second, case, relative)])
    assert isinstance(meaning, NounPhrase)
    phrase = _noun_phrase(meaning, case, negation)
    if meaning.relative is None or relative is None:
        return phrase
    return Node("NP", [phrase, Leaf(",", ","), relative(meaning), Leaf(",", ",")])


def _noun_phrase(phrase: NounPhrase, case: str, negation: Key | None) -> Node:
    gender, key = gender_of(phrase), (id(phrase), "determiner")
    children: list[Tree] = []
    declension: Declension = "strong"
    if phrase.owner is not None:
        owner = owner_key(phrase.owner.key, phrase.owner.antecedent)
        children.append(Leaf("PPOSAT", possessive(owner, case, gender), key))
        declension = "mixed"
    elif negation is not None:
        children.append(Leaf("PIAT", determiner("no", case, gender), key, negation))
        declension = "mixed"
    elif phrase.determiner != "a" or not (phrase.plural or NOUNS[phrase.noun].mass):
        word = phrase.determiner
        children.append(Leaf(_TAGS.get(word, "CARD"), determiner(word, case, gender), key))
        declension = _DECLENSIONS.get(word, "strong")
    if phrase.adjective is not None:
        word_form = adjective(words.ADJECTIVES[phrase.adjective], declension, case, gender)
        children.append(Leaf("ADJA", word_form, (id(phrase), "adjective")))
    noun = noun_form(phrase.noun, case, phrase.plural)
    children.append(Leaf("NN", noun, (id(phrase), "noun")))
    return Node("NP", children)


def prepositional(
    preposition: str, key: Key, meaning: Nominal, case: str, relative: RelativeClause | None
) -> Node:
    """Build a preposition and its noun phrase, contracted where German does so (im, zum, vom)."""
    if isinstance(meaning, Pronoun) and _is_thing(meaning):
        # things are not referred to by preposition and pronoun: daran, darauf, davon
        word = ("dar" if preposition[0] in "aü" else "da") + preposition
        return Node("PP", [Leaf("PROAV", word, key, (id(meaning), "noun"))])
    phrase = nominal(meaning, case, relative)
    if isinstance(meaning, NounPhrase) and meaning.determiner == "the" and not meaning.relative:
        article, *rest = phrase.children
        assert isinstance(article, Leaf)
        contracted = CONTRACTIONS.get((preposition, article.text))
        if contracted is not None:
            leaf = Leaf("APPRART", contracted, key, *article.keys)
            return Node("PP", [leaf, Node("NP", rest)])
    return Node("PP", [Leaf("APPR", preposition, key), phrase])


def _is_thing(meaning: Pronoun) -> bool:
    antecedent = meaning.antecedent
    if meaning.key != "it" or antecedent is None:
        return False
    return "animal" not in NOUNS[antecedent].kinds


def _government(adjunct: Adjunct, noun: str) -> tuple[str, str]:
    """Return the preposition of an adjunct and the case it governs."""
    if adjunct.relation in words.PREPOSITIONS:
        return words.PREPOSITIONS[adjunct.relation]
    return words.PLACES.get(noun, words.INSIDE)[adjunct.relation]


def adjunct_phrase(adjunct: Adjunct) -> Node:
    """Build a phrase that says where, where to, where from, with whom or for whom."""
    noun = adjunct.noun.noun if isinstance(adjunct.noun, NounPhrase) else ""
    preposition, case = _government(adjunct, noun)
    return prepositional(preposition, (id(adjunct), "preposition"), adjunct.noun, case, None)


def relative_word(head: NounPhrase, clause: Clause, place: str | Adjunct) -> Node:
    """Build the relative pronoun in a case, or with the preposition of its adjunct."""
    key = (id(clause), "relative")
    if isinstance(place, str):
        return Node("WHNP", [Leaf("PRELS", relative_pronoun(place, gender_of(head)), key)])
    preposition, case = _government(place, head.noun)
    pronoun_leaf = Leaf("PRELS", relative_pronoun(case, gender_of(head)), key)
    introduced = Leaf("APPR", preposition, (id(place), "preposition"))
    return Node("WHPP", [introduced, Node("WHNP", [pronoun_leaf])])
