"""Korean noun phrases and pronouns are built here, with their particles.

Only the last word of a phrase carries a particle. Before the noun stand, in this order, a relative
clause, 이, 모든 or the owner, and an adjective; a number follows it with its counter: 학생 두 명이.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container
from typing import TypeAlias

from dragoman.phrasebook.annotated_tree import Key, Leaf, Node, Tree
from dragoman.phrasebook.korean import words
from dragoman.phrasebook.korean.inflection import conjugate, mark
from dragoman.phrasebook.lexicon import NAMES, NOUNS
from dragoman.phrasebook.meaning import (
    Gap,
    Name,
    Nominal,
    NounPhrase,
    Pair,
    Pronoun,
    PronounKey,
    Wh,
)

RelativeClause: TypeAlias = Callable[[NounPhrase], Node]

# cases that take a second word: the particle before it, and the word
_POSTPOSITIONS = {
    "company": ("with", "함께"),  # 친구와 함께
    "benefit": ("object", "위해"),  # 친구를 위해
    "about": ("in", "대해"),  # 친구에 대해
    "on": ("in", "대한"),  # 친구에 대한 (꿈)
}
_DEFINITE = ("the", "this", "own", "every")


def pronoun_for(nominal: Nominal, head: NounPhrase | None = None) -> PronounKey | None:
    """Return the English pronoun that would refer to a nominal; a gap is its head."""
    if isinstance(nominal, Gap) and head is not None:
        nominal = head
    if isinstance(nominal, NounPhrase):
        return "they" if nominal.plural else NOUNS[nominal.noun].pronoun
    if isinstance(nominal, Name):
        return NAMES[nominal.name]
    if isinstance(nominal, Pronoun):
        return nominal.key
    return "they" if isinstance(nominal, Pair) else None


def noun_of(nominal: Nominal | None, head: NounPhrase | None = None) -> str:
    """Return the noun that decides between words; pronouns and names mean people."""
    if isinstance(nominal, Gap) and head is not None:
        nominal = head
    if isinstance(nominal, NounPhrase):
        return nominal.noun
    if isinstance(nominal, Pronoun) and nominal.key == "it":
        assert nominal.antecedent is not None
        return nominal.antecedent
    return "" if nominal is None or (isinstance(nominal, Wh) and not nominal.person) else "man"


def _variant(table: Container[str], key: str, noun: str) -> str:
    """Return the entry "key/noun" or "key/kind" of a table if it has one, else "key"."""
    kinds = sorted(NOUNS[noun].kinds) if noun else ()
    for special in (noun, *kinds):
        if f"{key}/{special}" in table:
            return f"{key}/{special}"
    return key


@functools.cache
def adjective_for(key: str, noun: str) -> words.KoreanAdjective:
    """Return the adjective that says this of that noun: an old man and an old house differ."""
    return words.ADJECTIVES[_variant(words.ADJECTIVES, key, noun)]


@functools.cache
def verb_for(key: str, noun: str) -> words.KoreanVerb:
    """Return the verb that does this to that noun: clothes and dogs are washed in two words."""
    return words.VERBS[_variant(words.VERBS, key, noun)]


@functools.cache
def _attribute(key: str, noun: str) -> tuple[str, ...]:
    """Return the words of an adjective before a noun."""
    entry = adjective_for(key, noun)
    return entry.attribute or (*entry.before, conjugate(entry.stem, "attribute"))


def is_definite(nominal: Nominal) -> bool:
    """Return whether the hearer knows who is meant; such subjects become topics."""
    if isinstance(nominal, Pair):
        return is_definite(nominal.first) or is_definite(nominal.second)
    if isinstance(nominal, NounPhrase):
        return nominal.determiner in _DEFINITE
    return not isinstance(nominal, Wh)


def phrase_in(
    nominal: Nominal,
    case: str,
    relative: RelativeClause,
    *keys: Key,
    owner: PronounKey | None = None,
) -> Node:
    """Build a nominal in a case.

    `keys` belong to the word that expresses the case. A possessive pronoun that matches `owner`,
    the subject's, becomes 자기, "one's own".
    """
    if case in _POSTPOSITIONS:
        case, word = _POSTPOSITIONS[case]
        tag = "ADV" if word == "함께" else "VV"
        inner = phrase_in(nominal, case, relative, owner=owner)
        return Node("PP", [inner, Leaf(tag, word, *keys)])
    if isinstance(nominal, NounPhrase):
        return _noun_phrase(nominal, case, relative, keys, owner)
    if isinstance(nominal, Pair):
        first = phrase_in(nominal.first, "with", relative, (id(nominal), "conjunction"))
        return Node("NP", [first, phrase_in(nominal.second, case, relative, *keys, owner=owner)])
    if isinstance(nominal, Name):
        word = mark(words.NAMES[nominal.name], case)
        return Node("NP", [Leaf("NPR", word, (id(nominal), "noun"), *keys)])
    if isinstance(nominal, Pronoun) and nominal.key == "it":
        return _it(nominal, case, keys)
    return Node("NP", [Leaf("NPN", _pronoun(nominal, case), (id(nominal), "noun"), *keys)])


def _pronoun(nominal: Nominal, case: str) -> str:
    if isinstance(nominal, Wh):
        if not nominal.person:
            return mark("무엇", case)
        return "누가" if case == "subject" else mark("누구", case)
    assert isinstance(nominal, Pronoun)
    if case == "of":
        return words.POSSESSIVES[nominal.key]
    if nominal.key == "i" and case == "subject":
        return "제가"
    return mark(words.PRONOUNS[nominal.key], case)


def reflexive(pronoun: Pronoun, case: str) -> Node:
    """Build a pronoun that means the subject of the clause around its own: 자기가, 제가."""
    if pronoun.key in ("i", "we"):
        word = _pronoun(pronoun, case)
    else:
        word = mark("자기들" if pronoun.key == "they" else "자기", case)
    return Node("NP", [Leaf("NPN", word, (id(pronoun), "noun"))])


def _it(pronoun: Pronoun, case: str, keys: tuple[Key, ...]) -> Node:
    """Build "it": 그것 of things, 그곳 of places; an animal is named again, 그 개."""
    assert pronoun.antecedent is not None
    key, kinds = (id(pronoun), "noun"), NOUNS[pronoun.antecedent].kinds
    if "animal" in kinds:
        animal = mark(words.NOUNS[pronoun.antecedent].word, case)
        return Node("NP", [Leaf("DAN", "그", key), Leaf("NNC", animal, key, *keys)])
    word = "그곳" if "place" in kinds else "그것"
    return Node("NP", [Leaf("NPN", mark(word, case), key, *keys)])


def _noun_phrase(
    phrase: NounPhrase,
    case: str,
    relative: RelativeClause,
    keys: tuple[Key, ...],
    owner: PronounKey | None,
) -> Node:
    determiner, key = phrase.determiner, (id(phrase), "determiner")
    noun, noun_keys = words.NOUNS[phrase.noun], [(id(phrase), "noun")]
    before: list[Tree] = []
    if phrase.owner is not None:
        own = phrase.owner.key
        word = words.POSSESSIVES["it" if own == owner and own not in ("i", "we") else own]
        if phrase.adjective is not None and word in ("우리", "자기"):
            word += "의"  # it belongs to a noun further on
        before.append(Leaf("NPN", word, key))
    elif determiner in words.DETERMINERS:
        before.append(Leaf("DAN", words.DETERMINERS[determiner], key))
    elif determiner not in words.NUMERALS:
        noun_keys.append(key)  # an article has no word of its own
    if phrase.adjective is not None:
        before.append(_adjective(phrase, phrase.adjective))
    if determiner in words.NUMERALS:
        counter = Leaf("NNX", mark(noun.counter, case), key, *keys)
        number = Node("NP", [Leaf("NNU", words.NUMERALS[determiner], key), counter])
        core = Node("NP", [*before, Leaf("NNC", noun.word, *noun_keys), number])
    else:
        word = mark(noun.word + "들" if _is_marked_plural(phrase) else noun.word, case)
        core = Node("NP", [*before, Leaf("NNC", word, *noun_keys, *keys)])
    return core if phrase.relative is None else Node("NP", [relative(phrase), core])


def _adjective(phrase: NounPhrase, adjective: str) -> Tree:
    key = (id(phrase), "adjective")
    *first, last = _attribute(adjective, phrase.noun)
    tag = "DAN" if last == "새" else "NNC" if last.endswith("색") else "VJ"
    leaves = [*(Leaf("NNC", word, key) for word in first), Leaf(tag, last, key)]
    return Node("ADJP", leaves)


def _is_marked_plural(phrase: NounPhrase) -> bool:
    """Return whether 들 is said: of people and animals, and of things after "these"."""
    if not phrase.plural:
        return False
    kinds = NOUNS[phrase.noun].kinds
    return "person" in kinds or "animal" in kinds or phrase.determiner == "this"
