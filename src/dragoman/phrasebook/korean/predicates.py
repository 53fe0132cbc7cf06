"""A Korean predicate is a chain of words at the end of the clause.

The chain begins with what the clause is about (먹을) and ends with the word that carries tense,
style and the link to another clause (수 있습니다, 것이라고, 않기 때문에).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragoman.phrasebook.annotated_tree import Key, Leaf, Node, Tree
from dragoman.phrasebook.korean import words
from dragoman.phrasebook.korean.inflection import Ending, Stem, Tense, conjugate
from dragoman.phrasebook.korean.noun_phrases import adjective_for, noun_of, verb_for
from dragoman.phrasebook.meaning import Clause, Gap, Nominal, NounPhrase, Pronoun

# what the clause is in its sentence
Form: TypeAlias = Literal[
    "statement", "question", "attribute", "that", "fact", "hope", "whether",
    "and", "but", "because", "although", "if",
]  # fmt: skip
_CAN, _CANNOT = Stem("있", "existence"), Stem("없", "existence")
_DO, _GOOD, _BECOME = Stem("하"), Stem("좋", "adjective"), Stem("되")
_WISH, _THING, _NOT_BE = Stem("싶", "adjective"), Stem("것이", "copula"), Stem("아니", "copula")
_NOT_KNOW, _FAIL = Stem("모르", "verb", "르"), Stem("못하")
# 않다 is an adjective after adjectives, and says a state in the past where they do
_NOT = {
    (kind, perfect): Stem("않", "verb" if kind == "verb" else "adjective", perfect=perfect)
    for kind in ("verb", "adjective", "existence")
    for perfect in (False, True)
}


@dataclass(slots=True)
class Predicate:
    """Hold the main word with what always stands before it, and the words that follow it."""

    main: list[Tree]
    auxiliaries: list[Leaf]


def verb_of(clause: Clause, head: NounPhrase | None) -> words.KoreanVerb:
    """Return the verb that suits the object, or the goal: 달리다, but 공원으로 달려가다."""
    directed = clause.adjunct is not None and clause.adjunct.relation == "goal"
    if directed and f"{clause.verb}/goal" in words.VERBS:
        return words.VERBS[f"{clause.verb}/goal"]
    return verb_for(clause.verb, noun_of(clause.object, head))


class _Chain:
    """Build a predicate word by word; the last stem waits for its ending."""

    def __init__(self, stem: Stem, tag: str, *keys: Key) -> None:
        self.leaves: list[Leaf] = []
        self.stem, self.tag, self.keys = stem, tag, keys

    def then(self, ending: Ending, *links: tuple[str, Key]) -> _Chain:
        """Close the last stem with an ending, and add words as they are."""
        self.leaves.append(Leaf(self.tag, conjugate(self.stem, ending), *self.keys))
        self.leaves += [Leaf("NNX" if word != "안" else "ADV", word, key) for word, key in links]
        return self

    def on(self, stem: Stem, *keys: Key) -> _Chain:
        """Go on with an auxiliary stem, which waits for its ending."""
        self.stem, self.tag, self.keys = stem, "VX", keys
        return self

    def end(
        self, form: Form | Ending, tense: Tense, keys: tuple[Key, ...], link: tuple[Key, ...]
    ) -> None:
        """Close the chain; `link` belongs to what ties the clause to another."""
        if form in ("that", "fact"):
            word = conjugate(self.stem, "quotation", tense) + ("고" if form == "that" else "는")
        else:
            word = conjugate(self.stem, form, tense)
        last = {"because": "때문에", "fact": "것을"}.get(form)
        own = () if last else link
        self.leaves.append(Leaf(self.tag, word, *self.keys, *keys, *own))
        if last:
            self.leaves.append(Leaf("NNX", last, *link))


def predicate(
    clause: Clause,
    form: Form,
    *link: Key,
    head: NounPhrase | None = None,
    subject: Nominal | None = None,
    dropped: tuple[Key, ...] = (),
    past: bool = True,
) -> Predicate:
    """Build the predicate of a clause.

    `subject` is who the subject is, when it is a pronoun; `dropped` are the marks of a subject
    that Korean leaves out. `past=False` says a past in the present, under a verb in the past.
    """
    finite, negation = (id(clause), "finite"), (id(clause), "negation")
    chain, before = _start(clause, head, subject or clause.subject)
    ending: Form | Ending = form
    # what is hoped is to come anyway; before a noun and in 올지 the future needs no further word
    is_future = clause.tense == "future" and form != "hope"
    in_two = is_future and form not in ("attribute", "whether")
    if clause.modal is not None:
        _modal(chain, clause, form, by_oneself=subject is not None)
    elif clause.verb == "know":
        _know(chain, clause)
    elif clause.negated or clause.frequency == "never":
        key = negation if clause.negated else (id(clause), "frequency")
        _negate(chain, finite, key, fails=clause.verb in words.INVOLUNTARY)
    elif not in_two:
        chain.keys += (finite,)
    if in_two:
        chain.then("prospective").on(_THING, finite)
    elif is_future:
        ending = "prospective"
    tense: Tense = "past" if clause.tense == "past" and past else "present"
    chain.end(ending, tense, dropped, link)
    if is_future and form == "whether":
        chain.leaves[-1].text += "지"
    main, *auxiliaries = chain.leaves
    return Predicate([*before, main], auxiliaries)


def _start(clause: Clause, head: NounPhrase | None, subject: Nominal) -> tuple[_Chain, list[Tree]]:
    verb_key = (id(clause), "verb")
    if clause.predicate is not None:
        entry = adjective_for(clause.predicate, noun_of(subject, head))
        key = (id(clause), "predicate")
        before: list[Tree] = [Node("NP", [Leaf("NNC", word, key)]) for word in entry.before]
        tag = "CO" if entry.stem.kind == "copula" else "VJ"
        return _Chain(entry.stem, tag, key, verb_key), before
    verb = verb_of(clause, head)
    keys: tuple[Key, ...] = (verb_key,)
    if verb.object_case not in ("about", "on") or isinstance(clause.object, Gap):
        keys += ((id(clause), "preposition"),)  # it has no word of its own
    before = [
        Node("NP", [Leaf("NNC", word, *keys)])
        if word[-1] in "을를에서"
        else Leaf("VV", word, *keys)
        for word in verb.before
    ]
    return _Chain(verb.stem, "VV", *keys), before


def _know(chain: _Chain, clause: Clause) -> None:
    """Say "know" as a state, 알고 있다; not knowing has a verb of its own, 모르다."""
    finite = (id(clause), "finite")
    if clause.negated:
        chain.stem = _NOT_KNOW
        chain.keys += (finite, (id(clause), "negation"))
    elif clause.frequency == "never":
        chain.then("not").on(_FAIL, finite, (id(clause), "frequency"))
    else:
        chain.then("and").on(_CAN, finite)


def _negate(chain: _Chain, finite: Key, negation: Key, *, fails: bool = False) -> None:
    stem = chain.stem
    if stem.kind == "copula":  # 새것이 아니다
        chain.leaves.append(Leaf("NNC", stem.text, *chain.keys))
        chain.on(_NOT_BE, finite, negation)
        return
    auxiliary = _FAIL if fails else _NOT[stem.kind, stem.perfect]
    chain.then("not").on(auxiliary, finite, negation)


def _modal(chain: _Chain, clause: Clause, form: Form, *, by_oneself: bool) -> None:
    finite, negation = (id(clause), "finite"), (id(clause), "negation")
    modal, no = clause.modal, clause.negated
    if modal == "can":
        chain.then("prospective", ("수", finite))
        chain.on(*((_CANNOT, finite, negation) if no else (_CAN, finite)))
    elif modal == "want":
        chain.then("and")
        subject = clause.subject
        first = isinstance(subject, Pronoun) and subject.key in ("i", "we")
        if first or by_oneself:
            chain.on(_WISH, finite)
        else:  # of others one says that they show the wish
            chain.on(_WISH, finite).then("infinitive").on(_DO, finite)
        if no:
            _negate(chain, finite, negation)
    elif modal == "must" and no:  # it is forbidden
        chain.then("if", ("안", negation)).on(_BECOME, finite)
    else:
        if no:
            _negate(chain, finite, negation)
        if modal == "should" and form != "attribute":  # it is better to
            chain.then("attribute", ("것이", finite)).on(_GOOD, finite)
        else:
            chain.then("must").on(_DO, finite)
