"""Meanings are drawn at random: noun phrases, clauses, and sentences of one or more clauses.

Only `random.random` is used: it is the one function of the generator whose values Python
promises to keep. The sampler keeps sentences unambiguous: circumstances at the end of a sentence
always belong to its innermost clause, and "it" is used only when one noun can be meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from dragoman.phrasebook.lexicon import (
    ADJECTIVES_OF,
    ALONE,
    FAR,
    FREQUENCIES,
    KIN,
    MANNERS,
    MODALS,
    NAMES,
    NOUNS,
    OBJECT_VERBS_OF,
    OBJECTS_OF,
    OWNED_PLACES,
    PEOPLE,
    PLACES,
    PLAIN_VERBS,
    PRONOUN_VERBS_OF,
    RECIPIENTS_OF,
    STATES,
    SUBJECT_VERBS_OF,
    SUBJECTS_OF,
    TELLING_VERBS,
    TIMES,
    VERBS,
    WHAT_VERBS,
    WHERE_VERBS,
    WHOM_VERBS,
)
from dragoman.phrasebook.meaning import (
    Adjunct,
    Clause,
    Conjunction,
    Coordination,
    Gap,
    Mood,
    Name,
    Nominal,
    NounPhrase,
    Pair,
    Pronoun,
    PronounKey,
    Relation,
    Sentence,
    Tense,
    Wh,
    agreement,
)

T = TypeVar("T")
_TIMES_OF = {
    tense: tuple(time for time, tenses in TIMES.items() if tense in tenses)
    for tense in ("present", "past", "future", "modal")
}
_ALL_NAMES = tuple(NAMES)
_OWNERS: tuple[PronounKey, ...] = ("i", "we", "he", "she", "they")
_SUBJECT_PRONOUNS: tuple[PronounKey, ...] = ("i", "i", "i", "we", "he", "she", "they")
_TENSES: tuple[Tense, ...] = ("present", "present", "present", "past", "past", "past", "future")
_RELATION_NAMES: tuple[Relation, ...] = ("location", "goal", "source", "company", "benefit")
_RELATIONS_OF = {
    key: tuple(relation for relation in _RELATION_NAMES if relation in verb.allows)
    for key, verb in VERBS.items()
}
_DIRECTED = frozenset(key for key, verb in VERBS.items() if {"goal", "source"} & verb.allows)
_MANNERS_OF = {
    key: tuple(m for kind in MANNERS if kind in verb.allows for m in MANNERS[kind])
    for key, verb in VERBS.items()
}
_HUMAN_PREDICATES = tuple(a for a in ADJECTIVES_OF["man"] if a not in ("small", "big"))
_WH_MOODS: tuple[Mood, ...] = ("who", "who", "whom", "what", "what", "where", "when", "why")
_JOINTS: tuple[Conjunction, ...] = ("and", "and", "but", "but")
_SUBORDINATORS: tuple[Conjunction, ...] = ("because", "because", "although", "if")


class PhraseSampler:
    """Draw noun phrases and plain clauses; `SentenceSampler` builds sentences of them."""

    def __init__(self, random: Random) -> None:
        self.random = random.random

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items, each as likely as the others."""
        return items[int(self.random() * len(items))]

    # -- noun phrases ------------------------------------------------------------------------

    def noun_phrase(
        self,
        nouns: Sequence[str],
        *,
        definite: bool = False,
        singular: bool = False,
        subject: Nominal | None = None,
    ) -> NounPhrase:
        """Draw a noun phrase of one of the nouns; `subject` may own what it stands for."""
        noun = self.pick(nouns)
        mass = NOUNS[noun].mass
        draw = self.random()
        plural = not (singular or mass or noun in ALONE) and self.random() < 0.3
        adjective = self.pick(ADJECTIVES_OF[noun]) if self.random() < 0.33 else None
        owned = 0.4 if is_animal(subject) else 0.12
        if (draw < owned and noun not in ("man", "woman")) or (draw > 0.55 and noun in KIN):
            owner = self._owner(subject, noun)  # "my aunt" rather than "an aunt"
            return NounPhrase(noun, "own", plural, adjective, owner)
        if draw < 0.2:
            return NounPhrase(noun, "this", plural, adjective)
        if draw < 0.55 or definite:
            return NounPhrase(noun, "the", plural, adjective)
        if draw < 0.65 and not mass:
            if not plural:
                return NounPhrase(noun, "every" if draw < 0.58 else "a", False, adjective)
            quantity = "many" if draw < 0.58 else "two" if draw < 0.62 else "three"
            return NounPhrase(noun, quantity, True, adjective)  # type: ignore[arg-type]
        return NounPhrase(noun, "a", plural, adjective)

    def _owner(self, subject: Nominal | None, noun: str) -> Pronoun:
        if isinstance(subject, NounPhrase) and not subject.plural and self.random() < 0.7:
            key = NOUNS[subject.noun].pronoun
            if key is not None and (key != "it" or noun in KIN or "thing" in NOUNS[noun].kinds):
                return Pronoun(key, subject.noun)
        if isinstance(subject, Pronoun) and subject.key != "it":
            return Pronoun(subject.key)
        return Pronoun(self.pick(_OWNERS))

    def subject(self, verb: str, *, definite: bool) -> Nominal:
        """Draw someone or something that can do what the verb says."""
        if "person" in VERBS[verb].subjects:
            draw = self.random()
            if draw < 0.2:
                return Pronoun(self.pick(_SUBJECT_PRONOUNS))
            if draw < 0.28:
                return Name(self.pick(_ALL_NAMES))
            if draw < 0.34:
                return self._pair(definite)
        definite = definite or self.random() < 0.45
        return self.noun_phrase(SUBJECTS_OF[verb], definite=definite)

    def _pair(self, definite: bool) -> Pair:
        if self.random() < 0.4:
            first = int(self.random() * len(_ALL_NAMES))
            second = (first + 1 + int(self.random() * (len(_ALL_NAMES) - 1))) % len(_ALL_NAMES)
            return Pair(Name(_ALL_NAMES[first]), Name(_ALL_NAMES[second]))
        one = self.noun_phrase(PEOPLE, definite=definite, singular=True)
        other = self.noun_phrase(PEOPLE, definite=definite, singular=True)
        return Pair(one, other)

    def target(self, verb: str, *, negated: bool, subject: Nominal) -> Nominal:
        """Draw what the verb is done to; negated, it is "the", "this", "my" or "a"."""
        if "person" in VERBS[verb].objects:
            draw = self.random()
            if draw < 0.07:
                return Name(self.pick(_ALL_NAMES))
            if draw < 0.15:
                return self._other_pronoun(subject)
            if draw < 0.18 and not negated:
                return self._pair(definite=False)
        phrase = self.noun_phrase(OBJECTS_OF[verb], definite=negated, subject=subject)
        if negated and phrase.determiner == "the" and self.random() < 0.5:
            phrase.determiner = "a"
        return phrase

    def _other_pronoun(self, subject: Nominal) -> Pronoun:
        """Draw a pronoun for someone other than the subject, so that it needs no "-self"."""
        if is_first_person(subject):
            return Pronoun(self.pick(("he", "she", "they")))
        return Pronoun(self.pick(("i", "we", "he", "she", "they")))

    def recipient(self, verb: str, *, negated: bool, subject: Nominal) -> Nominal:
        """Draw who is given, shown or told something."""
        draw = self.random()
        if draw < 0.12:
            return Name(self.pick(_ALL_NAMES))
        if draw < 0.32:
            return self._other_pronoun(subject)
        return self.noun_phrase(RECIPIENTS_OF[verb], definite=negated, subject=subject)

    # -- clauses -----------------------------------------------------------------------------

    def adjunct(self, verb: str, *, definite: bool) -> Adjunct | None:
        """Draw a circumstance that suits the verb."""
        relations = _RELATIONS_OF[verb]
        if not relations:
            return None
        relation = self.pick(relations)
        if relation in ("company", "benefit"):
            if self.random() < 0.15:
                return Adjunct(relation, Name(self.pick(_ALL_NAMES)))
            return Adjunct(relation, self.noun_phrase(PEOPLE, definite=definite))
        places = FAR if verb in ("travel", "arrive") else PLACES
        phrase = self.noun_phrase(places, definite=definite, singular=self.random() < 0.7)
        if phrase.determiner in ("every", "two", "three", "many"):
            phrase.determiner = "the"
        elif phrase.owner is not None and phrase.noun not in OWNED_PLACES:
            phrase.determiner, phrase.owner = "the", None
        return Adjunct(relation, phrase)

    def manner(self, verb: str) -> str | None:
        """Draw an adverb that suits the verb, now and then."""
        manners = _MANNERS_OF[verb]
        return self.pick(manners) if manners and self.random() < 0.22 else None

    def time(self, tense: str) -> str:
        """Draw when it happens; the tense may be "modal"."""
        return self.pick(_TIMES_OF[tense])

    def tense_and_modal(self, verb: str) -> tuple[Tense, str | None]:
        """Draw a tense, or the present of a modal verb."""
        if verb != "be" and self.random() < 0.16:
            return "present", self.pick(MODALS)
        tense = self.pick(_TENSES)
        if tense == "future" and verb in ("love", "know"):
            tense = "present"
        return tense, None

    def clause(
        self,
        *,
        verb: str | None = None,
        subject: Nominal | None = None,
        target: Nominal | None = None,
        tense: Tense | None = None,
        main: bool = False,
        ends: bool = True,
        affirmative: bool = False,
    ) -> Clause:
        """Draw a clause without clauses in it.

        `main` allows something before the subject; `ends=False` keeps the end free for a clause
        that will be put there; `affirmative` never negates.
        """
        verb = verb or self.pick(PLAIN_VERBS)
        negated = not affirmative and self.random() < 0.13
        subject = subject or self.subject(verb, definite=negated)
        if tense is None:
            tense, modal = self.tense_and_modal(verb)
        else:
            modal = None
        if verb == "read" and tense == "past" and is_not_singular(subject):
            tense = "present"  # "they read" would be either tense
        recipient = None
        if VERBS[verb].recipients:
            recipient = self.recipient(verb, negated=negated, subject=subject)
        if target is None and VERBS[verb].objects:
            target = self.target(verb, negated=negated, subject=subject)
        predicate = None
        if verb == "be":
            predicate = self.pick(predicates_of(subject))
        return self._with_circumstances(
            Clause(verb, subject, tense, modal, negated, target, recipient, predicate),
            main=main,
            ends=ends,
        )

    def _with_circumstances(self, clause: Clause, *, main: bool, ends: bool) -> Clause:
        draw = self.random()
        plain = not clause.modal and clause.tense != "future" and not clause.negated
        if draw < 0.12 and plain:
            clause.frequency = self.pick(FREQUENCIES)
        elif draw < 0.36 and clause.verb not in STATES:
            time = self.time("modal" if clause.modal else clause.tense)
            if clause.negated and time == "every day":
                time = "today"
            if main and self.random() < 0.5:
                clause.time, clause.fronted = time, "time"
            elif ends:
                clause.time = time
        if ends:
            if clause.frequency is None and not clause.negated:
                clause.manner = self.manner(clause.verb)
            directed = clause.verb in _DIRECTED
            if self.random() < (0.7 if directed else 0.35) and (directed or not clause.manner):
                clause.adjunct = self.adjunct(clause.verb, definite=clause.negated)
        located = clause.adjunct is not None and clause.adjunct.relation == "location"
        free = main and not clause.fronted and not clause.negated
        if located and free and self.random() < 0.25:
            clause.fronted = "adjunct"
        return clause


def predicates_of(subject: Nominal) -> tuple[str, ...]:
    """Return the adjectives that can be said of a subject."""
    if isinstance(subject, NounPhrase):
        return ADJECTIVES_OF[subject.noun]
    if isinstance(subject, Pronoun) and subject.antecedent is not None:
        return ADJECTIVES_OF[subject.antecedent]
    return _HUMAN_PREDICATES


def is_animal(subject: Nominal | None) -> bool:
    """Return whether the subject is an animal, which "its" can refer to."""
    return isinstance(subject, NounPhrase) and "animal" in NOUNS[subject.noun].kinds


def is_first_person(subject: Nominal) -> bool:
    """Return whether the subject is "I" or "we"."""
    return isinstance(subject, Pronoun) and subject.key in ("i", "we")


def is_not_singular(subject: Nominal) -> bool:
    """Return whether the verb after the subject has no "-s"; a gap may stand for many."""
    return not isinstance(subject, NounPhrase | Name | Pronoun) or agreement(subject) != "one"


class SentenceSampler(PhraseSampler):
    """Draw the meanings of whole sentences, of one or more clauses."""

    def sentence(self) -> Sentence:
        """Draw the meaning of one sentence."""
        draw = self.random()
        if draw < 0.37:
            return Sentence(self.clause(main=True))
        if draw < 0.6:
            return Sentence(self._with_relative())
        if draw < 0.7:
            return Sentence(self._telling())
        if draw < 0.88:
            return Sentence(self._joined())
        return self._question()

    # -- relative clauses ----------------------------------------------------------------------

    def _with_relative(self) -> Clause:
        draw = self.random()
        if draw < 0.25:
            return self._relative_with_pronoun()
        if draw < 0.6:
            return self._relative_on_subject()
        return self._relative_on_object()

    def _relative_on_subject(self) -> Clause:
        clause = self.clause(main=True)
        if not isinstance(clause.subject, NounPhrase):
            return clause
        subject = replace(clause.subject, relative=self.relative(clause.subject))
        return replace(clause, subject=subject)

    def _relative_on_object(self) -> Clause:
        while True:
            clause = self.clause(main=True, ends=False)
            if isinstance(clause.object, NounPhrase):
                target = replace(clause.object, relative=self.relative(clause.object))
                return replace(clause, object=target)

    def _relative_with_pronoun(self) -> Clause:
        """Draw a sentence like "The man who bought the car loves it"."""
        while True:
            verb = self.pick(PLAIN_VERBS)
            thing = self.noun_phrase(OBJECTS_OF[verb], singular=True) if OBJECTS_OF[verb] else None
            if thing is not None and NOUNS[thing.noun].pronoun == "it":
                break
        head = self.noun_phrase(PEOPLE)
        inner = self.clause(verb=verb, subject=head, target=thing, ends=False, affirmative=True)
        head = replace(head, adjective=None, relative=replace(inner, subject=Gap()))
        outer_verb = self.pick(PRONOUN_VERBS_OF[thing.noun])
        pronoun = Pronoun("it", thing.noun)
        return self.clause(verb=outer_verb, subject=head, target=pronoun, affirmative=True)

    def relative(self, head: NounPhrase) -> Clause:
        """Draw a relative clause that says something about the head."""
        noun = NOUNS[head.noun]
        draw = self.random()
        if draw < 0.4 and "place" in noun.kinds:
            verb = self.pick(WHERE_VERBS)
            return self._without_adjunct(verb, Adjunct("location", Gap()))
        if draw < 0.12 and "person" in noun.kinds:
            return self._without_adjunct(self.pick(("work", "dance", "play")), _with_gap())
        if draw < 0.55 and SUBJECT_VERBS_OF[head.noun]:
            verb = self.pick(SUBJECT_VERBS_OF[head.noun])
            return replace(self.clause(verb=verb, subject=head), subject=Gap())
        verb = self.pick(OBJECT_VERBS_OF[head.noun])
        return self.clause(verb=verb, target=Gap(), affirmative=True)

    def _without_adjunct(self, verb: str, adjunct: Adjunct) -> Clause:
        return replace(self.clause(verb=verb, affirmative=True), adjunct=adjunct, manner=None)

    # -- clauses beside clauses ----------------------------------------------------------------

    def _telling(self) -> Clause:
        """Draw a clause in which someone says, thinks or asks something."""
        matrix = self.clause(verb=self.pick(TELLING_VERBS), main=True, ends=False)
        tense: Tense | None = "past" if matrix.tense == "past" else None
        subject = None
        if self.random() < 0.3:
            subject = refer_to(matrix.subject)
        if subject is not None:
            content = self.clause(verb=self._verb_for(subject), subject=subject, tense=tense)
        else:
            content = self.clause(tense=tense)
        return replace(matrix, complement=content)

    def _joined(self) -> Coordination:
        """Draw two clauses; the one said later may refer to what the earlier one mentions."""
        subordinate = self.random() < 0.6
        conjunction = self.pick(_SUBORDINATORS if subordinate else _JOINTS)
        fronted = subordinate and self.random() < 0.4
        tense: Tense = "present" if conjunction == "if" or self.random() < 0.5 else "past"
        earlier = self.clause(tense=tense, main=not subordinate)
        later = self._referring(earlier, tense)
        if fronted:
            return Coordination(later, conjunction, earlier, fronted=True)
        return Coordination(earlier, conjunction, later)

    def _referring(self, earlier: Clause, tense: Tense) -> Clause:
        """Draw a clause after `earlier`, with a pronoun for something in it where that is clear."""
        things = things_in(earlier)
        draw = self.random()
        if len(things) == 1 and draw < 0.6:
            thing = things[0]
            pronoun = Pronoun("it", thing)
            if draw < 0.28:
                verbs = SUBJECT_VERBS_OF[thing]
                if verbs:
                    return self.clause(verb=self.pick(verbs), subject=pronoun, tense=tense)
            verb = self.pick(PRONOUN_VERBS_OF[thing])
            subject = refer_to(earlier.subject) if draw < 0.45 else None
            if subject is None or subject.key == "it":
                return self._about(verb, pronoun, tense)
            return self.clause(verb=verb, subject=subject, target=pronoun, tense=tense)
        subject = refer_to(earlier.subject) if draw > 0.65 else None
        if subject is not None and (subject.key != "it" or len(things) == 1):
            return self.clause(verb=self._verb_for(subject), subject=subject, tense=tense)
        return self.clause(tense=tense)

    def _about(self, verb: str, pronoun: Pronoun, tense: Tense) -> Clause:
        person = Name(self.pick(tuple(NAMES))) if self.random() < 0.2 else self.noun_phrase(PEOPLE)
        return self.clause(verb=verb, subject=person, target=pronoun, tense=tense)

    def _verb_for(self, subject: Pronoun) -> str:
        return self.pick(SUBJECT_VERBS_OF[subject.antecedent or "man"])

    # -- questions -----------------------------------------------------------------------------

    def _question(self) -> Sentence:
        if self.random() < 0.4:
            return Sentence(self.clause(affirmative=True), "yes-no")
        mood = self.pick(_WH_MOODS)
        if mood == "who":
            verb = self.pick(SUBJECT_VERBS_OF["man"])
            person = NounPhrase("man")
            clause = self.clause(verb=verb, subject=person, affirmative=True)
            return Sentence(replace(clause, subject=Wh(person=True)), mood)
        if mood in ("whom", "what"):
            verb = self.pick(WHOM_VERBS if mood == "whom" else WHAT_VERBS)
            target = Wh(person=mood == "whom")
            return Sentence(self.clause(verb=verb, target=target, affirmative=True), mood)
        if mood == "where":
            clause = self.clause(verb=self.pick(WHERE_VERBS), affirmative=True)
            return Sentence(replace(clause, adjunct=None), mood)
        clause = self.clause(affirmative=True)
        if mood == "when":
            clause = replace(clause, time=None, frequency=None)
        return Sentence(clause, mood)


def _with_gap() -> Adjunct:
    return Adjunct("company", Gap())


def refer_to(nominal: Nominal) -> Pronoun | None:
    """Return the pronoun for something already mentioned."""
    if isinstance(nominal, NounPhrase):
        if nominal.determiner == "every":
            return None
        if nominal.plural:
            return Pronoun("they", nominal.noun)
        key = NOUNS[nominal.noun].pronoun
        return Pronoun(key, nominal.noun) if key else None
    if isinstance(nominal, Name):
        return Pronoun(NAMES[nominal.name])
    if isinstance(nominal, Pronoun):
        return Pronoun(nominal.key, nominal.antecedent)
    return Pronoun("they") if isinstance(nominal, Pair) else None


def things_in(clause: Clause) -> list[str]:
    """Return the nouns of a clause that "it" could mean; none if one of them cannot be meant."""
    things = []
    for phrase in _singular_phrases(clause):
        if NOUNS[phrase.noun].pronoun == "it":
            if phrase.determiner == "every" or (clause.negated and phrase.determiner == "a"):
                return []
            things.append(phrase.noun)
    return things


def _singular_phrases(clause: Clause) -> Iterator[NounPhrase]:
    places = (clause.subject, clause.object, clause.recipient)
    for nominal in (*places, clause.adjunct.noun if clause.adjunct else None):
        parts = (nominal.first, nominal.second) if isinstance(nominal, Pair) else (nominal,)
        for part in parts:
            if isinstance(part, NounPhrase) and not part.plural:
                yield part
