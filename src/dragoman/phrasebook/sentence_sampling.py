"""Sentences are drawn at random: questions, clauses in clauses, pronouns that refer back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dragoman.phrasebook.lexicon import (
    NAMES,
    NOUNS,
    OBJECT_VERBS_OF,
    OBJECTS_OF,
    PEOPLE,
    PLAIN_VERBS,
    PRONOUN_VERBS_OF,
    SUBJECT_VERBS_OF,
    TELLING_VERBS,
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
    Sentence,
    Tense,
    Wh,
)
from dragoman.phrasebook.phrase_sampling import PhraseSampler

__all__ = ["SentenceSampler"]

_WH_MOODS: tuple[Mood, ...] = ("who", "who", "whom", "what", "what", "where", "when", "why")
_JOINTS: tuple[Conjunction, ...] = ("and", "and", "but", "but")
_SUBORDINATORS: tuple[Conjunction, ...] = ("because", "because", "although", "if")


class SentenceSampler(PhraseSampler):
    """Draw whole sentences."""

    def sentence(self) -> Sentence:
        """Draw a meaning."""
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
