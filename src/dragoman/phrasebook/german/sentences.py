"""German sentences and their trees are built from meanings.

A German clause has a frame: the finite verb and, far from it, the rest of the verb (participle,
infinitive, separable prefix). `_Frame` gathers those pieces and `_clause` orders them: second
place for the verb in a main clause, last place in a subordinate one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dragoman.phrasebook.annotated_tree import PUNCTUATION, Key, Leaf, Node, Tree, capitalise
from dragoman.phrasebook.german import words
from dragoman.phrasebook.german.inflection import finite
from dragoman.phrasebook.german.noun_phrases import (
    adjunct_phrase,
    nominal,
    prepositional,
    relative_word,
)
from dragoman.phrasebook.meaning import (
    Clause,
    Coordination,
    Gap,
    Name,
    Nominal,
    NounPhrase,
    Pair,
    Pronoun,
    Sentence,
    Wh,
    agreement,
    gap_of,
)

Order: TypeAlias = Literal["second", "inverted", "first", "final"]


def realise(sentence: Sentence) -> Tree:
    """Return the German tree of a meaning."""
    body = sentence.body
    if isinstance(body, Coordination):
        tree = _coordination(body)
    elif sentence.mood == "statement":
        tree = _main_clause(body)
    else:
        tree = _question(body, sentence.mood)
    end = "." if sentence.mood == "statement" else "?"
    tree.children.append(Leaf(".", end))
    if isinstance(body, Coordination) or _holds_clause(body):
        _drop_spare_commas(tree, "")
    capitalise(tree)
    return tree


def _holds_clause(clause: Clause) -> bool:
    for nominal_meaning in (clause.subject, clause.object):
        if isinstance(nominal_meaning, NounPhrase) and nominal_meaning.relative is not None:
            return True
    return clause.complement is not None


def _drop_spare_commas(node: Node, following: str) -> str:
    """Drop a clause's comma where it comes before other punctuation."""
    kept: list[Tree] = []
    for child in reversed(node.children):
        if isinstance(child, Node):
            following = _drop_spare_commas(child, following)
        elif child.text == "," and following in PUNCTUATION:
            continue
        else:
            following = child.text
        kept.append(child)
    node.children = kept[::-1]
    return following


def _coordination(body: Coordination) -> Node:
    key = (id(body), "conjunction")
    word = words.CONJUNCTIONS[body.conjunction]
    if not body.subordinate:
        comma = [Leaf(",", ",")] if body.conjunction == "but" else []
        first, second = _main_clause(body.first), _main_clause(body.second)
        return Node("S", [first, *comma, Leaf("KON", word, key), second])
    dependent = Node("SBAR", [Leaf("KOUS", word, key), _clause(body.second, "final")])
    if body.fronted:
        main = _clause(body.first, "inverted")
        return Node("S", [dependent, Leaf(",", ","), *main.children])
    main = _main_clause(body.first)
    main.children += [Leaf(",", ","), dependent]
    return main


def _main_clause(clause: Clause) -> Node:
    if clause.fronted is None:
        return _clause(clause, "second")
    if clause.fronted == "time":
        first = _time(clause)
    else:
        assert clause.adjunct is not None
        first = adjunct_phrase(clause.adjunct)
    return Node("S", [first, *_clause(clause, "inverted").children])


def _question(clause: Clause, mood: str) -> Node:
    if mood == "yes-no":
        return Node("SQ", _clause(clause, "first").children)
    if mood in words.QUESTION_ADVERBS:
        asked = Node("WHADVP", [Leaf("PWAV", words.QUESTION_ADVERBS[mood], (id(clause), "wh"))])
        return Node("SBARQ", [asked, *_clause(clause, "inverted").children])
    wh = clause.subject if mood == "who" else clause.object
    case = "nom" if mood == "who" else words.VERBS[clause.verb].case
    word = "was" if mood == "what" else words.QUESTION_PRONOUNS[case]
    asked = Node("WHNP", [Leaf("PWS", word, (id(wh), "noun"))])
    return Node("SBARQ", [asked, *_clause(clause, "inverted").children])


@dataclass(slots=True)
class _Frame:
    """Hold the verb of a clause: what is finite, and what stands at the end."""

    finite: Leaf
    end: list[Leaf] = field(default_factory=list)


def _frame(clause: Clause, agrees: str, *, final: bool) -> _Frame:
    verb = words.VERBS[clause.verb]
    finite_key: Key = (id(clause), "finite")
    verb_keys: tuple[Key, ...] = ((id(clause), "verb"),)
    if not verb.preposition:  # "looks for" is one word, "sucht"; "for" belongs to it
        verb_keys += ((id(clause), "preposition"),)
    if clause.tense == "past" and clause.verb != "be":
        auxiliary = Leaf("VAFIN", finite(verb.auxiliary, agrees), finite_key)
        return _Frame(auxiliary, [Leaf("VVPP", verb.prefix + verb.participle, *verb_keys)])
    if clause.tense == "future" or clause.modal is not None:
        tag = "VMFIN" if clause.modal else "VAFIN"
        word = clause.modal or "werden"
        if word == "must" and clause.negated:
            word = "must not"  # "must not" forbids: darf nicht
        auxiliary = Leaf(tag, finite(word, agrees), finite_key)
        tag = "VAINF" if clause.verb == "be" else "VVINF"
        return _Frame(auxiliary, [Leaf(tag, verb.prefix + verb.infinitive, *verb_keys)])
    if clause.verb == "be":
        form = finite("war" if clause.tense == "past" else "sein", agrees)
        return _Frame(Leaf("VAFIN", form, finite_key, *verb_keys))
    form = finite(verb, agrees)
    if not verb.prefix or final:
        return _Frame(Leaf("VVFIN", verb.prefix + form, finite_key, *verb_keys))
    main = Leaf("VVFIN", form, finite_key, *verb_keys)
    return _Frame(main, [Leaf("PTKVZ", verb.prefix, *verb_keys)])


def _clause(clause: Clause, order: Order, head: NounPhrase | None = None) -> Node:
    """Build a clause without what comes before its verb in second place, but for the subject."""
    final = order == "final"
    frame = _frame(clause, agreement(clause.subject, head), final=final)
    middle, after = _middle(clause, closed=final or bool(frame.end))
    if clause.complement is not None:
        after += [Leaf(",", ","), _complement(clause, clause.complement), Leaf(",", ",")]
    subject: list[Tree] = []
    if not isinstance(clause.subject, Gap | Wh):
        subject.append(nominal(clause.subject, "nom", _relative))
    if final:
        return Node("S", [*subject, Node("VP", [*middle, *frame.end, frame.finite]), *after])
    if frame.end and frame.end[0].tag != "PTKVZ":
        rest: list[Tree] = [Node("VP", [*middle, *frame.end])]
    else:
        rest = [*middle, *frame.end]
    if order == "second":
        return Node("S", [*subject, Node("VP", [frame.finite, *rest, *after])])
    return Node("S", [frame.finite, *subject, *rest, *after])


def _complement(clause: Clause, complement: Clause) -> Node:
    word = "ob" if clause.verb == "ask" else "dass"
    leaf = Leaf("KOUS", word, (id(complement), "complementiser"))
    return Node("SBAR", [leaf, _clause(complement, "final")])


def _relative(head: NounPhrase) -> Node:
    """Build a noun's relative clause, whose pronoun agrees with it and has a case of its own."""
    clause = head.relative
    assert clause is not None
    verb = words.VERBS[clause.verb]
    place = gap_of(clause)
    if place == "adjunct":
        assert clause.adjunct is not None
        first = relative_word(head, clause, clause.adjunct)
    else:
        case = "nom" if place == "subject" else verb.case
        first = relative_word(head, clause, case)
        if place == "object" and verb.preposition:
            preposition = Leaf("APPR", verb.preposition, (id(clause), "preposition"))
            first = Node("WHPP", [preposition, first])
    return Node("SBAR", [first, _clause(clause, "final", head)])


def _middle(clause: Clause, *, closed: bool) -> tuple[list[Tree], list[Tree]]:
    """Build what stands between the subject and the end of the verb, and what follows that end.

    Pronouns come first, then a definite recipient, time, an indefinite recipient, a definite
    object, "nicht", place, manner, direction, an indefinite object. With "nicht" or "nie" the time
    follows a definite object instead. A relative clause is moved behind "nicht" and behind a
    closing verb: "hat den Hund nicht gesehen, der …".
    """
    verb = words.VERBS[clause.verb]
    target, recipient = clause.object, clause.recipient
    if isinstance(target, Gap | Wh):
        target = None
    indefinite = isinstance(target, NounPhrase) and target.determiner == "a"
    no = clause.negated and indefinite and not verb.preposition
    heavy = isinstance(target, NounPhrase) and target.relative is not None
    late = (clause.frequency == "never" and not heavy) or (clause.negated and not no)
    when = _when(clause)

    after: list[Tree] = []
    middle: list[Tree] = []
    object_tree: list[Tree] = []
    if target is not None:
        moved = heavy and (closed or late)
        negation = (id(clause), "negation") if no else None
        if verb.preposition:
            tree = prepositional(
                verb.preposition,
                (id(clause), "preposition"),
                target,
                verb.case,
                None if moved else _relative,
            )
        else:
            tree = nominal(target, verb.case, None if moved else _relative, negation)
        object_tree.append(tree)
        if moved:
            assert isinstance(target, NounPhrase)
            after += [Leaf(",", ","), _relative(target), Leaf(",", ",")]
    if isinstance(target, Pronoun) and not verb.preposition:
        middle += object_tree
        object_tree = []
    if isinstance(recipient, Pronoun):
        middle.append(nominal(recipient, "dat", None))
    given: list[Tree] = []
    if isinstance(recipient, NounPhrase | Name | Pair):
        given.append(nominal(recipient, "dat", _relative))
    if _is_definite(recipient):
        middle += given
    if not late:
        middle += when
    if not _is_definite(recipient):
        middle += given
    definite = object_tree and not indefinite and not verb.preposition
    if definite:
        middle += object_tree
    if late:
        middle += when
    if clause.negated and not no:
        middle.append(Node("ADVP", [Leaf("PTKNEG", "nicht", (id(clause), "negation"))]))
    circumstances: list[Tree] = []
    adjunct = clause.adjunct
    if adjunct and clause.fronted != "adjunct" and not isinstance(adjunct.noun, Gap):
        circumstances.append(adjunct_phrase(adjunct))
    if clause.manner is not None:
        word = words.MANNERS[clause.manner]
        manner = Node("ADVP", [Leaf("ADJD", word, (id(clause), "manner"))])
        directed = adjunct is not None and adjunct.relation in ("goal", "source")
        circumstances.insert(0 if directed else 1, manner)
    middle += circumstances
    if not definite:
        middle += object_tree
    if clause.predicate is not None:
        word = words.ADJECTIVES[clause.predicate]
        middle.append(Node("ADJP", [Leaf("ADJD", word, (id(clause), "predicate"))]))
    return middle, after


def _is_definite(recipient: Nominal | None) -> bool:
    if isinstance(recipient, NounPhrase):
        return recipient.determiner in ("the", "this", "own")
    return isinstance(recipient, Name)


def _when(clause: Clause) -> list[Tree]:
    if clause.frequency is not None:
        word = words.FREQUENCIES[clause.frequency]
        return [Node("ADVP", [Leaf("ADV", word, (id(clause), "frequency"))])]
    return [_time(clause)] if clause.time is not None and clause.fronted != "time" else []


def _time(clause: Clause) -> Node:
    assert clause.time is not None
    label, tagged = words.TIMES[clause.time]
    tokens = [
        Leaf(tag, word, *[(id(clause), f"time {i}") for i in numbers])
        for tag, word, numbers in tagged
    ]
    if label == "PP":
        return Node("PP", [tokens[0], Node("NP", tokens[1:])])
    return Node(label, tokens)
