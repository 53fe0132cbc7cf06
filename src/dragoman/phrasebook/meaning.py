"""A meaning is what a sentence says, before any language says it.

It is a small tree of dataclasses. Words in it are the keys of `lexicon`; a realiser turns
the whole into the words of its language. Two nodes are the same only if they are the same object
(hence ``eq=False``): a realiser marks each leaf with the ``id`` of the node it expresses, and two
leaves of two languages are aligned when they share a mark. So never use one node twice. Nodes are
not changed once a realiser has seen them; they are not frozen only because frozen ones take three
times as long to build.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Tense: TypeAlias = Literal["present", "past", "future"]
Determiner: TypeAlias = Literal["the", "a", "this", "every", "two", "three", "many", "own"]
PronounKey: TypeAlias = Literal["i", "we", "he", "she", "it", "they"]
Relation: TypeAlias = Literal["location", "goal", "source", "company", "benefit"]
Mood: TypeAlias = Literal["statement", "yes-no", "who", "whom", "what", "where", "when", "why"]
Conjunction: TypeAlias = Literal["and", "but", "because", "although", "if"]


@dataclass(slots=True, eq=False)
class Pronoun:
    """Stand for a pronoun; "it" names its noun, since its form may depend on that."""

    key: PronounKey
    antecedent: str | None = None  # a noun of the lexicon; always given for "it"


@dataclass(slots=True, eq=False)
class Name:
    """Stand for a person called by name."""

    name: str


@dataclass(slots=True, eq=False)
class NounPhrase:
    """Hold a noun with what belongs to it.

    The determiner "a" is the indefinite: no word at all for plurals and mass nouns. "own" takes
    its word from the owner ("my", "his"). A relative clause holds a `Gap` where the noun would be.
    """

    noun: str
    determiner: Determiner = "the"
    plural: bool = False
    adjective: str | None = None
    owner: Pronoun | None = None
    relative: Clause | None = None


@dataclass(slots=True, eq=False)
class Pair:
    """Join two nominals by "and"."""

    first: NounPhrase | Name
    second: NounPhrase | Name


@dataclass(slots=True, eq=False)
class Gap:
    """Mark the place in a relative clause that the relative pronoun fills."""


@dataclass(slots=True, eq=False)
class Wh:
    """Mark the place in a question that "who", "whom" or "what" fills."""

    person: bool


Nominal: TypeAlias = NounPhrase | Pronoun | Name | Pair | Gap | Wh


@dataclass(slots=True, eq=False)
class Adjunct:
    """Hold what a preposition or particle introduces: where, where to, with whom, for whom."""

    relation: Relation
    noun: NounPhrase | Name | Pronoun | Gap


@dataclass(slots=True, eq=False)
class Clause:
    """Hold a verb with its arguments and circumstances."""

    verb: str
    subject: Nominal
    tense: Tense = "present"
    modal: str | None = None  # only with the present
    negated: bool = False
    object: Nominal | None = None
    recipient: Nominal | None = None
    predicate: str | None = None  # an adjective; only with the verb "be"
    complement: Clause | None = None  # what is said, thought, asked
    time: str | None = None
    frequency: str | None = None
    manner: str | None = None
    adjunct: Adjunct | None = None
    fronted: Literal["time", "adjunct"] | None = None  # put first, before the subject


@dataclass(slots=True, eq=False)
class Coordination:
    """Join two clauses by a word; `fronted` puts the subordinate one first."""

    first: Clause
    conjunction: Conjunction
    second: Clause
    fronted: bool = False

    @property
    def subordinate(self) -> bool:
        """Return whether the second clause depends on the first (because, although, if)."""
        return self.conjunction not in ("and", "but")


@dataclass(slots=True, eq=False)
class Sentence:
    """Hold a whole sentence: what is said, and whether it is stated or asked."""

    body: Clause | Coordination
    mood: Mood = "statement"


def agreement(nominal: Nominal, head: NounPhrase | None = None) -> Literal["i", "one", "many"]:
    """Return what the verb agrees with: "I", one or many; a gap agrees as its head does."""
    if isinstance(nominal, Gap):
        assert head is not None
        nominal = head
    if isinstance(nominal, NounPhrase):
        return "many" if nominal.plural else "one"
    if isinstance(nominal, Pronoun):
        if nominal.key == "i":
            return "i"
        return "many" if nominal.key in ("we", "they") else "one"
    return "many" if isinstance(nominal, Pair) else "one"


def gap_of(clause: Clause) -> Literal["subject", "object", "adjunct"]:
    """Return which place of a relative clause the relative pronoun fills."""
    if isinstance(clause.subject, Gap):
        return "subject"
    return "object" if isinstance(clause.object, Gap) else "adjunct"
