"""The split is compositional: the test combines what training never shows together.

A sentence is a set of combinations: a verb with its object's noun, a noun with its adjective, a
verb in a because-clause. A stable hash holds some combinations out. A sentence with at least one of
those is a test sentence; all others are for training, of which a hash of the English text gives one
in twenty to validation. So the three never meet, whatever the counts and seeds, and each word and
each structure of the test is known from training: only their meeting is new.
"""

from __future__ import annotations

import functools
import zlib
from typing import TypeAlias

from dragoman.phrasebook.lexicon import ADJECTIVES_OF, OBJECTS_OF, SUBJECTS_OF
from dragoman.phrasebook.meaning import (
    Clause,
    Coordination,
    Gap,
    Nominal,
    NounPhrase,
    Pair,
    Pronoun,
    Sentence,
    gap_of,
)

SPLITS = ("train", "valid", "test")
_PERCENT = {
    "object": 7,  # (verb, noun)
    "subject": 5,  # (noun, verb)
    "adjective": 7,  # (adjective, noun)
    "clause": 6,  # (kind of clause, verb): "because", "that", "relative", "question", …
    "modal": 6,  # (modal, verb)
    "relative": 6,  # (place of the relative pronoun, noun)
    "pronoun": 6,  # ("it", the noun it stands for)
}
_FEWEST_PARTNERS = 6  # a word with fewer partners than this keeps them all in training


# a kind of _PERCENT and the two things that meet
Combination: TypeAlias = tuple[str, str, str]


@functools.cache
def held_out(combination: Combination) -> bool:
    """Return whether a combination is kept for the test."""
    kind, first, second = combination
    if kind == "object" and len(OBJECTS_OF[first]) < _FEWEST_PARTNERS:
        return False
    if kind == "subject" and len(SUBJECTS_OF[second]) < _FEWEST_PARTNERS:
        return False
    if kind == "adjective" and len(_nouns_with(first)) < _FEWEST_PARTNERS:
        return False
    return zlib.crc32(f"{kind}|{first}|{second}".encode()) % 100 < _PERCENT[kind]


@functools.cache
def _nouns_with(adjective: str) -> tuple[str, ...]:
    return tuple(noun for noun, adjectives in ADJECTIVES_OF.items() if adjective in adjectives)


def is_test(sentence: Sentence) -> bool:
    """Return whether the sentence contains a combination that is held out."""
    return any(map(held_out, combinations(sentence)))


def in_validation(source: str) -> bool:
    """Return whether an English text that is no test sentence belongs to validation."""
    return zlib.crc32(source.encode()) % 20 == 0


def combinations(sentence: Sentence) -> list[Combination]:
    """Return every combination in a sentence."""
    found: list[Combination] = []
    body = sentence.body
    if isinstance(body, Coordination):
        _clause(found, body.first, "main")
        _clause(found, body.second, body.conjunction if body.subordinate else "main")
    else:
        # a yes-no question may show a verb's only capital ("Kommt er?"): none is held out
        plain = sentence.mood in ("statement", "yes-no")
        _clause(found, body, "main" if plain else "question")
    return found


def _clause(found: list[Combination], clause: Clause, context: str, head: str = "") -> None:
    verb = clause.verb
    if context != "main":
        found.append(("clause", context, verb))
    if clause.modal is not None:
        found.append(("modal", clause.modal, verb))
    for noun in _nominal(found, clause.subject, head):
        found.append(("subject", noun, verb))
        if clause.predicate is not None:
            found.append(("adjective", clause.predicate, noun))
    if clause.object is not None:
        nouns = _nominal(found, clause.object, head)
        found += [("object", verb, noun) for noun in nouns]
    if clause.recipient is not None:
        _nominal(found, clause.recipient, head)
    if clause.adjunct is not None:
        _nominal(found, clause.adjunct.noun, head)
    if clause.complement is not None:
        _clause(found, clause.complement, "whether" if verb == "ask" else "that")


def _nominal(found: list[Combination], nominal: Nominal, head: str) -> list[str]:
    """Return the nouns that a nominal is about, after adding the combinations inside it."""
    if isinstance(nominal, Gap):
        return [head]
    if isinstance(nominal, Pair):
        return [*_nominal(found, nominal.first, head), *_nominal(found, nominal.second, head)]
    if isinstance(nominal, Pronoun):
        if nominal.key == "it" and nominal.antecedent is not None:
            found.append(("pronoun", "it", nominal.antecedent))
        return []
    if not isinstance(nominal, NounPhrase):
        return []
    noun = nominal.noun
    if nominal.adjective is not None:
        found.append(("adjective", nominal.adjective, noun))
    if nominal.relative is not None:
        found.append(("relative", gap_of(nominal.relative), noun))
        _clause(found, nominal.relative, "relative", noun)
    return [noun]
