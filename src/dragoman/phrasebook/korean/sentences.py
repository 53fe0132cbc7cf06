"""Korean sentences and their trees are built from meanings.

The predicate comes last, and everything that depends on something comes before it: relative
clauses before nouns, subordinate clauses before main ones. Korean thus says some things earlier
than English does, and the first mention gets the noun, a later one the pronoun (`_Reference`).
A subject that the clause beside it has already named is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoman.phrasebook.annotated_tree import Key, Leaf, Node, Tree
from dragoman.phrasebook.korean import words
from dragoman.phrasebook.korean.inflection import mark
from dragoman.phrasebook.korean.noun_phrases import is_definite, phrase_in, pronoun_for, reflexive
from dragoman.phrasebook.korean.predicates import Form, predicate, verb_of
from dragoman.phrasebook.lexicon import ADJECTIVES_OF, SUBJECTS_OF
from dragoman.phrasebook.meaning import (
    Adjunct,
    Clause,
    Coordination,
    Gap,
    Nominal,
    NounPhrase,
    Pronoun,
    Sentence,
    Wh,
    gap_of,
)

_QUESTION_ADVERBS = {"when": "언제", "why": "왜"}
_COMPLEMENTS: dict[str, Form] = {"hope": "hope", "notice": "fact", "ask": "whether"}  # else "that"
_STATES = ("be", "love", "know")


@dataclass(slots=True)
class _Reference:
    """Say who is meant, and how it is said.

    `subject` is whom the subject, a pronoun, refers to. `dropped` leaves the subject out: it is
    said elsewhere. `instead` maps the id of a nominal to the one that is said in its place.
    """

    subject: Nominal | None = None
    dropped: bool = False
    instead: Mapping[int, Nominal] = field(default_factory=dict)


_PLAIN = _Reference()


def realise(sentence: Sentence) -> Tree:
    """Return the Korean tree of a meaning."""
    body = sentence.body
    if isinstance(body, Coordination):
        tree = _subordination(body) if body.subordinate else _coordination(body)
    elif sentence.mood == "statement":
        tree = _clause(body, "statement", case=_subject_case(body))
    else:
        tree = _clause(body, "question", case=_subject_case(body), mood=sentence.mood)
        tree.label = "SQ"
    tree.children.append(Leaf(".", "." if sentence.mood == "statement" else "?"))
    return tree


# -- clauses beside clauses ------------------------------------------------------------------------


def _coordination(body: Coordination) -> Node:
    form: Form = "and" if body.conjunction == "and" else "but"
    first = _clause(body.first, form, (id(body), "conjunction"), case=_subject_case(body.first))
    same = _same_subject(body.first, body.second)
    reference = _Reference(same, dropped=same is not None)
    case = _subject_case(body.second)
    return Node("S", [first, _clause(body.second, "statement", case=case, reference=reference)])


def _subordination(body: Coordination) -> Node:
    """Build the topic, the subordinate clause, the rest; a fronted clause precedes the topic.

    A subject that both clauses share is said once, first.
    """
    main, dependent = body.first, body.second
    earlier, later = (dependent, main) if body.fronted else (main, dependent)
    same = _same_subject(earlier, later)
    form: Form = body.conjunction
    link = (id(body), "conjunction")
    instead = {} if body.fronted else _exchange(main, dependent)
    unsaid = _Reference(same, dropped=True, instead=instead)
    if same is not None:
        topic = _subject(earlier, "topic")
        clause = _clause(dependent, form, link, reference=unsaid)
        rest = _clause(main, "statement", reference=unsaid)
        return Node("S", [topic, Node("SBAR", [clause]), *rest.children])
    said = _Reference(instead=instead)
    clause = Node("SBAR", [_clause(dependent, form, link, reference=said)])
    if body.fronted:
        return Node("S", [clause, *_clause(main, "statement", case=_subject_case(main)).children])
    rest = _clause(main, "statement", reference=unsaid)
    return Node("S", [_subject(main, "topic"), clause, *rest.children])


def _same_subject(earlier: Clause, later: Clause) -> Nominal | None:
    """Return the earlier subject, if the later one is a pronoun that can refer to it."""
    subject, pronoun = earlier.subject, later.subject
    if not isinstance(pronoun, Pronoun) or pronoun_for(subject) != pronoun.key:
        return None
    if isinstance(subject, NounPhrase):
        if subject.noun not in SUBJECTS_OF[later.verb]:
            return None
        if later.predicate is not None and later.predicate not in ADJECTIVES_OF[subject.noun]:
            return None
    return subject


def _exchange(main: Clause, dependent: Clause) -> dict[int, Nominal]:
    """Let "it" and its noun change places where Korean would say "it" first.

    "The man bought the car because it was cheap": the man, because the car was cheap, bought it.
    """
    for pronoun in (dependent.subject, dependent.object):
        if isinstance(pronoun, Pronoun) and pronoun.key == "it":
            for place in (main.object, main.adjunct.noun if main.adjunct else None):
                if isinstance(place, NounPhrase) and place.noun == pronoun.antecedent:
                    return {id(pronoun): place, id(place): pronoun}
    return {}


# -- one clause ------------------------------------------------------------------------------------


def _subject_case(clause: Clause) -> str:
    """Return the case of a main subject.

    It is the topic if it is known, if it is said what it does always or never, and before a clause
    that has a subject itself.
    """
    if isinstance(clause.subject, Wh):
        return "subject"
    target = clause.object
    before_clause = clause.complement is not None or (
        isinstance(target, NounPhrase) and target.relative is not None
    )
    if before_clause or clause.frequency is not None or is_definite(clause.subject):
        return "topic"
    return "subject"


def _subject(clause: Clause, case: str, reference: _Reference = _PLAIN) -> Node:
    subject = reference.instead.get(id(clause.subject), clause.subject)
    if isinstance(subject, Pronoun) and reference.subject is not None:
        return reflexive(subject, case)
    return phrase_in(subject, case, _relative)


def _clause(
    clause: Clause,
    form: Form,
    *link: Key,
    case: str = "subject",
    head: NounPhrase | None = None,
    reference: _Reference = _PLAIN,
    mood: str = "",
    past: bool = True,
) -> Node:
    """Build a clause; `link` are the keys of what ties it to the rest, on its last word."""
    front: list[Tree] = []
    if clause.fronted == "time":
        front.append(_time(clause))
    elif clause.fronted == "adjunct":
        front += _adjunct(clause, reference, head)
    subject = clause.subject
    dropped: tuple[Key, ...] = ()
    if reference.dropped:
        if reference.subject is not None and reference.subject is not subject:
            dropped = ((id(subject), "noun"),)
    elif not isinstance(subject, Gap):
        said = _subject(clause, case, reference)
        # an adverb before a relative clause would seem to belong to it
        heavy = isinstance(subject, NounPhrase) and subject.relative is not None
        front = [said, *front] if heavy else [*front, said]
    end = predicate(
        clause, form, *link, head=head, subject=reference.subject, dropped=dropped, past=past
    )
    main = end.main if clause.predicate is None else [Node("ADJP", end.main)]
    verb_phrase = Node("VP", [*_middle(clause, reference, head, mood), *main])
    if end.auxiliaries:
        verb_phrase = Node("VP", [verb_phrase, *end.auxiliaries])
    return Node("S", [*front, verb_phrase])


def _relative(head: NounPhrase) -> Node:
    clause = head.relative
    assert clause is not None
    keys: list[Key] = [(id(clause), "relative")]
    if gap_of(clause) == "adjunct":
        assert clause.adjunct is not None
        if clause.adjunct.relation != "company":
            keys.append((id(clause.adjunct), "preposition"))
    return Node("SBAR", [_clause(clause, "attribute", *keys, head=head)])


def _middle(
    clause: Clause, reference: _Reference, head: NounPhrase | None, mood: str
) -> list[Tree]:
    """Build what stands between the subject and the predicate."""
    middle: list[Tree] = []
    if mood in _QUESTION_ADVERBS:
        word = Leaf("ADV", _QUESTION_ADVERBS[mood], (id(clause), "wh"))
        middle.append(Node("ADVP", [word]))
    if clause.time is not None and clause.fronted != "time":
        middle.append(_time(clause))
    frequency = _frequency(clause)
    target = _object(clause, reference, head)
    heavy = isinstance(clause.object, NounPhrase) and clause.object.relative is not None
    late = heavy or clause.complement is not None  # or it would seem to belong to that clause
    if not late:
        middle += frequency
    if mood == "where":
        place = mark("어디", verb_of(clause, head).place_case)
        middle.append(Node("NP", [Leaf("NPN", place, (id(clause), "wh"))]))
    if clause.adjunct is not None and clause.fronted != "adjunct":
        middle += _adjunct(clause, reference, head)
    recipient: list[Tree] = []
    if clause.recipient is not None:
        owner = pronoun_for(clause.subject, head)
        recipient.append(phrase_in(clause.recipient, "to", _relative, owner=owner))
    middle += [*target, *recipient] if heavy else [*recipient, *target]
    if clause.manner is not None:
        middle.append(_manner(clause))
    if clause.complement is not None:
        middle.append(_complement(clause, clause.complement))
    return middle + frequency if late else middle


def _object(clause: Clause, reference: _Reference, head: NounPhrase | None) -> list[Tree]:
    target = clause.object
    if target is None or isinstance(target, Gap):
        return []
    case = verb_of(clause, head).object_case
    keys = ((id(clause), "preposition"),) if case in ("about", "on") else ()
    said = reference.instead.get(id(target), target)
    # a noun that has come here from another clause belongs to nobody here
    owner = pronoun_for(clause.subject, head) if said is target or reference.subject else None
    return [phrase_in(said, case, _relative, *keys, owner=owner)]


def _adjunct(clause: Clause, reference: _Reference, head: NounPhrase | None) -> list[Tree]:
    """Build a phrase that says where, where to, where from, with whom or for whom."""
    adjunct = clause.adjunct
    assert adjunct is not None
    key = (id(adjunct), "preposition")
    if isinstance(adjunct.noun, Gap):
        together = Node("ADVP", [Leaf("ADV", "함께", key)])
        return [together] if adjunct.relation == "company" else []
    said = reference.instead.get(id(adjunct.noun), adjunct.noun)
    case = _case_of(clause, adjunct, head)
    return [phrase_in(said, case, _relative, key, owner=pronoun_for(clause.subject, head))]


def _case_of(clause: Clause, adjunct: Adjunct, head: NounPhrase | None) -> str:
    verb = verb_of(clause, head)
    places = {"location": verb.place_case, "goal": verb.goal_case, "source": "at"}
    return places.get(adjunct.relation, adjunct.relation)


def _manner(clause: Clause) -> Node:
    assert clause.manner is not None
    said = words.MANNERS[clause.manner]
    if clause.manner == "loudly" and clause.verb in ("open", "close"):
        said = words.NOISY
    key = (id(clause), "manner")
    *first, last = said.split()
    tag = "NNC" if first else "ADV"  # 큰 소리로
    return Node("ADVP", [*(Leaf("VJ", word, key) for word in first), Leaf(tag, last, key)])


def _frequency(clause: Clause) -> list[Tree]:
    if clause.frequency is None:
        return []
    key = (id(clause), "frequency")
    if clause.frequency == "never" and clause.tense == "past" and clause.verb not in _STATES:
        number, time = words.NOT_ONCE
        return [Node("ADVP", [Leaf("NNU", number, key), Leaf("NNX", time, key)])]
    return [Node("ADVP", [Leaf("ADV", words.FREQUENCIES[clause.frequency], key)])]


def _time(clause: Clause) -> Node:
    assert clause.time is not None
    count = len(clause.time.split())
    keys = [(id(clause), f"time {i}") for i in range(count)]
    return Node("NP", [Leaf("NNC", words.TIMES[clause.time], *keys)])


def _complement(clause: Clause, content: Clause) -> Node:
    """Build what is said, thought or asked; its subject is 자기 if it is who says so."""
    form = _COMPLEMENTS.get(clause.verb, "that")
    # past under past: a state is said as it was then, in the present; so is what was hoped
    past = not (clause.tense == "past" and (content.verb in _STATES or form == "hope"))
    link = (id(content), "complementiser")
    reference = _Reference(_same_subject(clause, content))
    return Node("SBAR", [_clause(content, form, link, reference=reference, past=past)])
