"""The grammar of the phrasebook, against sentences and tables written by hand."""

from __future__ import annotations

import pytest

from dragoman.phrasebook.annotated_tree import align, leaves_and_bracketing, text
from dragoman.phrasebook.english import sentences as english
from dragoman.phrasebook.german import sentences as german
from dragoman.phrasebook.german.inflection import adjective, determiner, noun_form, pronoun
from dragoman.phrasebook.meaning import (
    Adjunct,
    Clause,
    Coordination,
    Gap,
    Name,
    NounPhrase,
    Pair,
    Pronoun,
    Sentence,
    Wh,
)

NP = NounPhrase


def own(noun: str, owner: str, **rest: object) -> NounPhrase:
    antecedent = rest.pop("antecedent", None)
    return NP(noun, "own", owner=Pronoun(owner, antecedent), **rest)  # type: ignore[arg-type]


def say(sentence: Sentence) -> tuple[str, str]:
    english_leaves, _ = leaves_and_bracketing(english.realise(sentence))
    german_leaves, _ = leaves_and_bracketing(german.realise(sentence))
    return text(english_leaves), text(german_leaves)


def state(verb: str, subject: object, **rest: object) -> Sentence:
    return Sentence(Clause(verb, subject, **rest))  # type: ignore[arg-type]


GOLD: dict[str, tuple[Sentence, str, str]] = {
    "verb second": (
        state("see", NP("man"), object=NP("dog")),
        "The man sees the dog.",
        "Der Mann sieht den Hund.",
    ),
    "perfect with haben": (
        state("buy", NP("woman"), tense="past", object=NP("car", "a", adjective="old")),
        "The woman bought an old car.",
        "Die Frau hat ein altes Auto gekauft.",
    ),
    "perfect with sein": (
        state("go", NP("child"), tense="past", adjunct=Adjunct("goal", NP("school"))),
        "The child went to the school.",
        "Das Kind ist in die Schule gegangen.",
    ),
    "past of be is the preterite": (
        state("be", NP("house", plural=True), tense="past", predicate="dark"),
        "The houses were dark.",
        "Die Häuser waren dunkel.",
    ),
    "inversion": (
        state("sleep", NP("king"), tense="past", time="yesterday", fronted="time"),
        "Yesterday the king slept.",
        "Gestern hat der König geschlafen.",
    ),
    "fronted place, contracted": (
        state(
            "read",
            Name("Anna"),
            object=NP("book", "a"),
            adjunct=Adjunct("location", NP("garden")),
            fronted="adjunct",
        ),
        "In the garden Anna reads a book.",
        "Im Garten liest Anna ein Buch.",
    ),
    "separable verb, split": (
        state("call", Pronoun("i"), object=NP("neighbour"), time="every day"),
        "I call the neighbour every day.",
        "Ich rufe jeden Tag den Nachbarn an.",
    ),
    "separable verb, participle": (
        state("invite", NP("prince", plural=True), tense="past", object=Pronoun("she")),
        "The princes invited her.",
        "Die Prinzen haben sie eingeladen.",
    ),
    "separable verb, last in its clause": (
        Sentence(
            Coordination(
                Clause("laugh", Name("Peter")),
                "because",
                Clause("get up", NP("baker", adjective="lazy")),
            )
        ),
        "Peter laughs because the lazy baker gets up.",
        "Peter lacht, weil der faule Bäcker aufsteht.",
    ),
    "separable verb, infinitive": (
        state("pick up", Pronoun("we"), modal="want", object=Pronoun("he")),
        "We want to pick him up.",
        "Wir wollen ihn abholen.",
    ),
    "future": (
        state("paint", own("friend", "i"), tense="future", object=NP("bridge", "this")),
        "My friend will paint this bridge.",
        "Mein Freund wird diese Brücke malen.",
    ),
    "dative and accusative": (
        state("give", NP("queen"), tense="past", object=NP("apple", "a"), recipient=NP("boy")),
        "The queen gave the boy an apple.",
        "Die Königin hat dem Jungen einen Apfel gegeben.",
    ),
    "pronouns before nouns": (
        state("show", Pronoun("she"), object=Pronoun("it", "lamp"), recipient=NP("uncle")),
        "She shows it to the uncle.",
        "Sie zeigt sie dem Onkel.",
    ),
    "dative verb, dative plural": (
        state("help", NP("doctor", "a"), object=NP("child", "many", plural=True)),
        "A doctor helps many children.",
        "Ein Arzt hilft vielen Kindern.",
    ),
    "preposition of the verb": (
        state("wait for", NP("student", "two", plural=True), object=own("sister", "they")),
        "Two students wait for their sister.",
        "Zwei Studenten warten auf ihre Schwester.",
    ),
    "daran for things": (
        state("think of", NP("farmer"), object=Pronoun("it", "bread")),
        "The farmer thinks of it.",
        "Der Bauer denkt daran.",
    ),
    "strong adjective": (
        state("drink", NP("lion", plural=True), object=NP("water", "a", adjective="cold")),
        "The lions drink cold water.",
        "Die Löwen trinken kaltes Wasser.",
    ),
    "nicht after a definite object": (
        state(
            "sell",
            NP("man"),
            tense="past",
            negated=True,
            object=NP("horse"),
            time="today",
        ),
        "The man did not sell the horse today.",
        "Der Mann hat das Pferd heute nicht verkauft.",
    ),
    "kein": (
        state("eat", NP("girl"), negated=True, object=NP("egg", "a", plural=True)),
        "The girl does not eat eggs.",
        "Das Mädchen isst keine Eier.",
    ),
    "must not forbids": (
        state("open", NP("child"), negated=True, modal="must", object=NP("door")),
        "The child must not open the door.",
        "Das Kind darf die Tür nicht aufmachen.",
    ),
    "subject relative, pronoun that refers back": (
        state(
            "love",
            NP("man", relative=Clause("buy", Gap(), tense="past", object=NP("car"))),
            object=Pronoun("it", "car"),
        ),
        "The man who bought the car loves it.",
        "Der Mann, der das Auto gekauft hat, liebt es.",
    ),
    "object relative, moved behind the verb": (
        state(
            "find",
            Pronoun("he"),
            tense="past",
            object=NP("key", relative=Clause("look for", NP("woman"), object=Gap())),
        ),
        "He found the key that the woman looks for.",
        "Er hat den Schlüssel gefunden, den die Frau sucht.",
    ),
    "dative relative, plural": (
        state(
            "laugh",
            NP("aunt", plural=True, relative=Clause("thank", Name("Julia"), object=Gap())),
        ),
        "The aunts whom Julia thanks laugh.",
        "Die Tanten, denen Julia dankt, lachen.",
    ),
    "relative with a preposition": (
        state(
            "be",
            NP(
                "room",
                relative=Clause("work", NP("cat"), adjunct=Adjunct("location", Gap())),
            ),
            predicate="small",
        ),
        "The room in which the cat works is small.",
        "Das Zimmer, in dem die Katze arbeitet, ist klein.",
    ),
    "that-clause": (
        state(
            "say",
            NP("grandmother"),
            tense="past",
            complement=Clause("try on", Name("Maria"), tense="past", object=own("coat", "she")),
        ),
        "The grandmother said that Maria tried on her coat.",
        "Die Großmutter hat gesagt, dass Maria ihren Mantel anprobiert hat.",
    ),
    "whether-clause": (
        state("ask", Pronoun("they"), complement=Clause("swim", NP("duck"), modal="can")),
        "They ask whether the duck can swim.",
        "Sie fragen, ob die Ente schwimmen kann.",
    ),
    "fronted because-clause": (
        Sentence(
            Coordination(
                Clause("eat", NP("bear"), object=Pronoun("it", "cake")),
                "because",
                Clause("be", NP("cake"), predicate="good"),
                fronted=True,
            )
        ),
        "Because the cake is good, the bear eats it.",
        "Weil der Kuchen gut ist, isst der Bär ihn.",
    ),
    "coordination": (
        Sentence(
            Coordination(
                Clause("dance", Pair(NP("boy"), NP("princess"))),
                "but",
                Clause("sleep", NP("mouse"), negated=True),
            )
        ),
        "The boy and the princess dance, but the mouse does not sleep.",
        "Der Junge und die Prinzessin tanzen, aber die Maus schläft nicht.",
    ),
    "its by gender": (
        state("love", NP("cat"), object=own("ball", "it", antecedent="cat")),
        "The cat loves its ball.",
        "Die Katze liebt ihren Ball.",
    ),
    "yes-no question": (
        Sentence(Clause("listen to", NP("teacher"), object=NP("student")), "yes-no"),
        "Does the teacher listen to the student?",
        "Hört der Lehrer dem Studenten zu?",
    ),
    "who": (
        Sentence(Clause("write", Wh(True), tense="past", object=NP("letter")), "who"),
        "Who wrote the letter?",
        "Wer hat den Brief geschrieben?",
    ),
    "whom in the dative": (
        Sentence(Clause("answer", Name("Martin"), object=Wh(True)), "whom"),
        "Whom does Martin answer?",
        "Wem antwortet Martin?",
    ),
    "where": (
        Sentence(Clause("arrive", NP("queen"), tense="future"), "where"),
        "Where will the queen arrive?",
        "Wo wird die Königin ankommen?",
    ),
}


@pytest.mark.parametrize("phenomenon", GOLD)
def test_a_meaning_is_said_as_a_native_speaker_would(phenomenon: str) -> None:
    meaning, in_english, in_german = GOLD[phenomenon]
    assert say(meaning) == (in_english, in_german)


@pytest.mark.parametrize(
    ("declension", "case", "endings"),
    [
        ("weak", "nom", "gute gute gute guten"),
        ("weak", "acc", "guten gute gute guten"),
        ("weak", "dat", "guten guten guten guten"),
        ("mixed", "nom", "guter gute gutes guten"),
        ("mixed", "acc", "guten gute gutes guten"),
        ("mixed", "dat", "guten guten guten guten"),
        ("strong", "nom", "guter gute gutes gute"),
        ("strong", "acc", "guten gute gutes gute"),
        ("strong", "dat", "gutem guter gutem guten"),
    ],
)
def test_adjective_endings_follow_the_grammar_book(
    declension: str, case: str, endings: str
) -> None:
    assert " ".join(adjective("gut", declension, case, gender) for gender in "mfnp") == endings


def test_adjective_stems_lose_their_e_before_an_ending() -> None:
    forms = [adjective(word, "weak", "acc", "m") for word in ("teuer", "dunkel", "müde")]
    assert forms == ["teuren", "dunklen", "müden"]


def test_determiners_follow_the_grammar_book() -> None:
    rows = {
        "the": "der die das die den die das die dem der dem den",
        "no": "kein keine kein keine keinen keine kein keine keinem keiner keinem keinen",
        "this": "dieser diese dieses diese diesen diese dieses diese diesem dieser diesem diesen",
    }
    for word, row in rows.items():
        cells = [(case, gender) for case in ("nom", "acc", "dat") for gender in "mfnp"]
        assert " ".join(determiner(word, case, gender) for case, gender in cells) == row


def test_the_dative_plural_adds_n_unless_the_plural_ends_in_n_or_s() -> None:
    forms = [noun_form(noun, "dat", True) for noun in ("dog", "woman", "car", "apple", "hotel")]
    assert forms == ["Hunden", "Frauen", "Autos", "Äpfeln", "Hotels"]


def test_weak_nouns_have_an_ending_beside_the_nominative() -> None:
    cases = ("nom", "acc", "dat")
    assert [noun_form("student", case, False) for case in cases] == [
        "Student",
        "Studenten",
        "Studenten",
    ]
    assert {noun_form("dog", case, False) for case in cases} == {"Hund"}


def test_it_takes_the_gender_of_its_antecedent() -> None:
    forms = [pronoun("it", case, noun) for noun in ("dog", "cat", "horse") for case in CASES]
    assert forms == ["er", "ihn", "ihm", "sie", "sie", "ihr", "es", "es", "ihm"]


CASES = ("nom", "acc", "dat")


def links(meaning: Sentence) -> set[tuple[str, str]]:
    source, _ = leaves_and_bracketing(english.realise(meaning))
    target, _ = leaves_and_bracketing(german.realise(meaning))
    source_words, target_words = text(source).split(), text(target).split()
    pairs = align(source, target)
    return {(source_words[i].strip(",.?"), target_words[j].strip(",.?")) for i, j in pairs}


def test_articles_align_with_articles_and_a_past_verb_with_the_whole_perfect() -> None:
    assert links(GOLD["perfect with haben"][0]) == {
        ("The", "Die"),
        ("woman", "Frau"),
        ("bought", "hat"),
        ("bought", "gekauft"),
        ("an", "ein"),
        ("old", "altes"),
        ("car", "Auto"),
    }


def test_both_parts_of_a_separable_verb_align_with_the_verb() -> None:
    found = links(GOLD["separable verb, split"][0])
    assert {("call", "rufe"), ("call", "an"), ("every", "jeden"), ("day", "Tag")} <= found


def test_not_aligns_with_nicht_and_with_kein_and_did_with_the_auxiliary() -> None:
    found = links(GOLD["nicht after a definite object"][0])
    assert {("did", "hat"), ("not", "nicht"), ("sell", "verkauft")} <= found
    found = links(GOLD["kein"][0])
    assert {("not", "keine"), ("does", "isst"), ("eat", "isst"), ("eggs", "Eier")} <= found


def test_a_contraction_aligns_with_preposition_and_article() -> None:
    found = links(GOLD["fronted place, contracted"][0])
    assert {("In", "Im"), ("the", "Im"), ("garden", "Garten")} <= found


def test_a_pronoun_aligns_with_its_pronoun_and_not_with_its_antecedent() -> None:
    found = links(GOLD["subject relative, pronoun that refers back"][0])
    assert ("it", "es") in found
    assert ("it", "Auto") not in found
    assert ("who", "der") in found


def test_trees_are_those_of_the_penn_treebank() -> None:
    meaning = GOLD["subject relative, pronoun that refers back"][0]
    assert leaves_and_bracketing(english.realise(meaning))[1] == (
        "(S (NP (NP (DT The) (NN man)) (SBAR (WHNP (WP who)) (S (VP (VBD bought) "
        "(NP (DT the) (NN car)))))) (VP (VBZ loves) (NP (PRP it))) (. .))"
    )
    assert leaves_and_bracketing(german.realise(meaning))[1] == (
        "(S (NP (NP (ART Der) (NN Mann)) (, ,) (SBAR (WHNP (PRELS der)) (S (VP "
        "(NP (ART das) (NN Auto)) (VVPP gekauft) (VAFIN hat)))) (, ,)) "
        "(VP (VVFIN liebt) (NP (PPER es))) (. .))"
    )
