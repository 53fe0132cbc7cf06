"""English sentences and their trees are built from meanings."""

from __future__ import annotations

from dragoman.phrasebook.annotated_tree import Key, Leaf, Node, Tree, capitalise
from dragoman.phrasebook.english import words
from dragoman.phrasebook.lexicon import NOUNS
from dragoman.phrasebook.meaning import (
    Adjunct,
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

_PLURAL_DETERMINERS = {"this": "these"}
_WH_ADVERBS = {"where": "where", "when": "when", "why": "why"}


def realise(sentence: Sentence) -> Tree:
    """Return the English tree of a meaning."""
    body = sentence.body
    if isinstance(body, Coordination):
        tree = _coordination(body)
    elif sentence.mood == "statement":
        tree = _clause(body)
    else:
        tree = _question(body, sentence.mood)
    tree.children.append(Leaf(".", "." if sentence.mood == "statement" else "?"))
    capitalise(tree)
    return tree


def _coordination(body: Coordination) -> Node:
    word = Leaf("IN" if body.subordinate else "CC", body.conjunction, (id(body), "conjunction"))
    if not body.subordinate:
        comma = [Leaf(",", ",")] if body.conjunction == "but" else []
        return Node("S", [_clause(body.first), *comma, word, _clause(body.second)])
    dependent = Node("SBAR", [word, _clause(body.second)])
    main = _clause(body.first)
    if body.fronted:
        return Node("S", [dependent, Leaf(",", ","), *main.children])
    last = main.children[-1]
    assert isinstance(last, Node)
    last.children.append(dependent)
    return main


def _clause(clause: Clause, head: NounPhrase | None = None) -> Node:
    """Build a clause in its ordinary order; `head` is what a relative clause's gap stands for."""
    children: list[Tree] = []
    if clause.fronted == "time":
        children.append(_time(clause))
    elif clause.fronted == "adjunct":
        assert clause.adjunct is not None
        children.append(_adjunct(clause.adjunct))
    if not isinstance(clause.subject, Gap):
        children.append(_nominal(clause.subject, 0))
    auxiliary, rest = _verb_group(clause, agreement(clause.subject, head), inverted=False)
    children.append(Node("VP", [auxiliary, *rest] if auxiliary else rest))
    return Node("S", children)


def _question(clause: Clause, mood: str) -> Node:
    if isinstance(clause.subject, Wh):
        asked = Node("WHNP", [Leaf("WP", "who", (id(clause.subject), "noun"))])
        auxiliary, rest = _verb_group(clause, "one", inverted=False)
        verb_phrase = Node("VP", [auxiliary, *rest] if auxiliary else rest)
        return Node("SBARQ", [asked, Node("SQ", [verb_phrase])])
    auxiliary, rest = _verb_group(clause, agreement(clause.subject), inverted=True)
    assert auxiliary is not None
    inner = Node("SQ", [auxiliary, _nominal(clause.subject, 0), *rest])
    if mood == "yes-no":
        return inner
    if mood in _WH_ADVERBS:
        asked = Node("WHADVP", [Leaf("WRB", _WH_ADVERBS[mood], (id(clause), "wh"))])
    else:
        asked = Node("WHNP", [Leaf("WP", mood, (id(clause.object), "noun"))])
    return Node("SBARQ", [asked, inner])


def _verb_group(clause: Clause, agrees: str, *, inverted: bool) -> tuple[Leaf | None, list[Tree]]:
    """Return the auxiliary, if any, and what follows it, or in a question the subject."""
    finite, verb = (id(clause), "finite"), (id(clause), "verb")
    tag_now = "VBZ" if agrees == "one" else "VBP"
    negation = [Leaf("RB", "not", (id(clause), "negation"))] if clause.negated else []
    frequency = _frequency(clause)
    if clause.verb == "be" and not clause.modal and clause.tense != "future":
        if clause.tense == "past":
            leaf = Leaf("VBD", "were" if agrees == "many" else "was", finite, verb)
        else:
            form = {"i": "am", "one": "is", "many": "are"}[agrees]
            leaf = Leaf(tag_now, form, finite, verb)
        return leaf, [*negation, *frequency, *_complements(clause)]

    base, third, past, _ = words.VERBS[clause.verb]
    if clause.tense == "future" or clause.modal in words.MODALS:
        word = "will" if clause.modal is None else words.MODALS[clause.modal]
        auxiliary = Leaf("MD", word, finite)
        if clause.negated and word == "can":  # one word
            auxiliary, negation = Leaf("MD", "cannot", finite, (id(clause), "negation")), []
        inner = Node("VP", [Leaf("VB", base, verb), *_complements(clause)])
        return auxiliary, [*negation, *frequency, inner]

    main_keys: tuple[Key, ...] = (finite, verb)
    forms, after = (base, third, past), _complements(clause)
    if clause.modal == "want":
        inner = Node("VP", [Leaf("VB", base, verb), *after])
        infinitive = Node("S", [Node("VP", [Leaf("TO", "to", finite), inner])])
        main_keys, forms, after = (finite,), ("want", "wants", "wanted"), [infinitive]
    if inverted or clause.negated:
        if clause.tense == "past":
            auxiliary = Leaf("VBD", "did", finite)
        else:
            auxiliary = Leaf(tag_now, "does" if agrees == "one" else "do", finite)
        main = Leaf("VB", forms[0], main_keys[-1])
        return auxiliary, [*negation, *frequency, Node("VP", [main, *after])]
    if clause.tense == "past":
        main = Leaf("VBD", forms[2], *main_keys)
    else:
        main = Leaf(tag_now, forms[agrees == "one"], *main_keys)
    return None, [*frequency, main, *after]


def _complements(clause: Clause) -> list[Tree]:
    """Build everything after the verb."""
    after: list[Tree] = []
    particle = "" if clause.verb == "be" else words.VERBS[clause.verb][3]
    target = clause.object
    if clause.predicate is not None:
        after.append(Node("ADJP", [Leaf("JJ", clause.predicate, (id(clause), "predicate"))]))
    if clause.verb in words.PREPOSITIONAL:
        preposition = Leaf("IN", particle, (id(clause), "preposition"))
        full = target is not None and not isinstance(target, Gap | Wh)
        after.append(Node("PP", [preposition, _nominal(target, 1)] if full else [preposition]))
    elif clause.recipient is not None:
        after += _recipient_and_object(clause.recipient, target)
    else:
        if particle:
            after.append(Node("PRT", [Leaf("RP", particle, (id(clause), "verb"))]))
        if target is not None and not isinstance(target, Gap | Wh):
            # "picks up the girl", but "picks her up"
            place = 0 if isinstance(target, Pronoun) else len(after)
            after.insert(place, _nominal(target, 1))
    if clause.manner is not None:
        after.append(Node("ADVP", [Leaf("RB", clause.manner, (id(clause), "manner"))]))
    adjunct = clause.adjunct
    if adjunct and clause.fronted != "adjunct" and not isinstance(adjunct.noun, Gap):
        after.append(_adjunct(adjunct))
    if clause.time is not None and clause.fronted != "time":
        after.append(_time(clause))
    if clause.complement is not None:
        key = (id(clause.complement), "complementiser")
        word = "whether" if clause.verb == "ask" else "that"
        after.append(Node("SBAR", [Leaf("IN", word, key), _clause(clause.complement)]))
    return after


def _recipient_and_object(recipient: Nominal, target: Nominal | None) -> list[Tree]:
    if not isinstance(target, Pronoun | Gap | Wh):
        assert target is not None
        return [_nominal(recipient, 1), _nominal(target, 1)]
    has_article = isinstance(recipient, NounPhrase) and not _is_bare(recipient)
    key = (id(recipient), "determiner" if has_article else "noun")  # "to the" is "dem"
    to = Node("PP", [Leaf("TO", "to", key), _nominal(recipient, 1)])
    return [_nominal(target, 1), to] if isinstance(target, Pronoun) else [to]


def _nominal(nominal: Nominal | None, case: int) -> Node:
    """Build a noun phrase; case 0 is the subject's, 1 the object's (they differ in pronouns)."""
    if isinstance(nominal, Pronoun):
        return Node("NP", [Leaf("PRP", words.PRONOUNS[nominal.key][case], (id(nominal), "noun"))])
    if isinstance(nominal, Name):
        return Node("NP", [Leaf("NNP", nominal.name, (id(nominal), "noun"))])
    if isinstance(nominal, Pair):
        conjunction = Leaf("CC", "and", (id(nominal), "conjunction"))
        first, second = _nominal(nominal.first, case), _nominal(nominal.second, case)
        return Node("NP", [first, conjunction, second])
    assert isinstance(nominal, NounPhrase)
    phrase = _noun_phrase(nominal)
    if nominal.relative is None:
        return phrase
    return Node("NP", [phrase, _relative(nominal, nominal.relative)])


def _noun_phrase(phrase: NounPhrase) -> Node:
    children: list[Tree] = []
    noun = words.plural(phrase.noun) if phrase.plural else phrase.noun
    determiner: str = phrase.determiner
    if phrase.owner is not None:
        owner = words.PRONOUNS[phrase.owner.key][2]
        children.append(Leaf("PRP$", owner, (id(phrase), "determiner")))
    elif determiner == "a":
        if not _is_bare(phrase):
            article = "an" if (phrase.adjective or noun)[0] in "aeiou" else "a"
            children.append(Leaf("DT", article, (id(phrase), "determiner")))
    else:
        if phrase.plural:
            determiner = _PLURAL_DETERMINERS.get(determiner, determiner)
        tag = {"two": "CD", "three": "CD", "many": "JJ"}.get(determiner, "DT")
        children.append(Leaf(tag, determiner, (id(phrase), "determiner")))
    if phrase.adjective is not None:
        children.append(Leaf("JJ", phrase.adjective, (id(phrase), "adjective")))
    children.append(Leaf("NNS" if phrase.plural else "NN", noun, (id(phrase), "noun")))
    return Node("NP", children)


def _is_bare(phrase: NounPhrase) -> bool:
    """Return whether the phrase has no determiner, as indefinite plurals and mass nouns."""
    return phrase.determiner == "a" and (phrase.plural or NOUNS[phrase.noun].mass)


def _relative(head: NounPhrase, clause: Clause) -> Node:
    gap, key = gap_of(clause), (id(clause), "relative")
    person = "person" in NOUNS[head.noun].kinds
    if gap == "adjunct":
        assert clause.adjunct is not None
        preposition = _preposition(clause.adjunct, head.noun)
        pronoun = Leaf("WP", "whom", key) if person else Leaf("WDT", "which", key)
        asked = Node("WHPP", [preposition, Node("WHNP", [pronoun])])
    elif person:
        asked = Node("WHNP", [Leaf("WP", "who" if gap == "subject" else "whom", key)])
    else:
        asked = Node("WHNP", [Leaf("WDT", "that", key)])
    return Node("SBAR", [asked, _clause(clause, head)])


def _preposition(adjunct: Adjunct, noun: str) -> Leaf:
    word = words.PREPOSITIONS.get(adjunct.relation) or words.LOCATIONS.get(noun, "in")
    return Leaf("TO" if word == "to" else "IN", word, (id(adjunct), "preposition"))


def _adjunct(adjunct: Adjunct) -> Node:
    noun = adjunct.noun.noun if isinstance(adjunct.noun, NounPhrase) else ""
    return Node("PP", [_preposition(adjunct, noun), _nominal(adjunct.noun, 1)])


def _time(clause: Clause) -> Node:
    assert clause.time is not None
    label, tagged = words.TIMES[clause.time]
    tokens = [Leaf(t, word, (id(clause), f"time {i}")) for i, (t, word) in enumerate(tagged)]
    if label == "PP":
        return Node("PP", [tokens[0], Node("NP", tokens[1:])])
    return Node(label, tokens)


def _frequency(clause: Clause) -> list[Tree]:
    if clause.frequency is None:
        return []
    return [Node("ADVP", [Leaf("RB", clause.frequency, (id(clause), "frequency"))])]
