"""Faults are noticed, what is right is left alone, and another search mends what it can."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman.errors import ConfigError
from dragoman.inference.fault_detection import (
    LONG_SOURCE,
    DivideSource,
    Fault,
    FaultCounts,
    Repair,
    check_faults,
    find_repetitions,
    longest_repeated_ngram,
    options_without_fault,
    repair,
    split_tokens,
)
from dragoman.search import Hypothesis, SearchOptions
from dragoman.search.options import longest_output

OPTIONS = SearchOptions(beam=1, min_length=1)


def kind(
    source: str, text: str, pieces: int | None = None, options: SearchOptions = OPTIONS
) -> str:
    """The kind of the fault, with a piece for each word; an empty string for none."""
    ids = list(range(len(text.split()) if pieces is None else pieces))
    fault = check_faults(source.split(), source, Hypothesis(ids, 0.0, 0.0), text, options)  # type: ignore[arg-type]
    return "" if fault is None else fault.kind


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Zwei", ""),
        ("Zwei", "  "),
        ("Zwei", "."),
        ("2", "…"),
        ("개", "—"),
    ],
)
def test_nothing_and_mere_punctuation_are_no_translation_of_words(source: str, text: str) -> None:
    assert kind(source, text) == "empty"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Der Schmerz lässt jetzt langsam nach.", "The pain is slowly slowly slowly slowly."),
        ("Keine Angst, es ist ein bisschen unbequem", "it is a bit of a bit of a bit of pain"),
        ("Der Fahrer rechnet mit Schneematsch", "The driver expects snow-snow-snow-snowing"),
        ("Er kaufte Brot, Milch und Käse", "He bought bread, and milk, and milk, and milk, and"),
        ("Wunderbar", "Wonderwonderwonderwonderwonderwonderwonder"),
        ("ja ja", "yes yes yes yes yes yes yes yes yes yes"),
        ("The meeting is tomorrow.", "会议会议会议会议会议会议"),
        ("The meeting is tomorrow.", "회의는 회의는 회의는 내일 있어요"),
        ("Siehe Anhang.", "See " + "- " * 40),
        ("sehr sehr sehr sehr sehr! Neu", "very very very very very! New" + "!" * 30),
        ("Nein" + "!" * 20, "no no no no no no no no no no" + "!" * 20),
        ("Hotelverwa1tung", "Hotelververververwa1"),
        ("beglückwiinschte e sich", "the reasoning e e e e"),
        ("wow wow wow", "Wowowowowow" + "wow" + "wo" * 20),
        ("8 6 25 64", "8 6 6 6 6 6 6 6 6 6 6 64"),
    ],
)
def test_what_is_said_again_and_again_is_a_loop(source: str, text: str) -> None:
    assert kind(source, text) == "looping"


def test_scattered_repetition_is_a_loop_too() -> None:
    text = (
        "the role of the house in the role of the garden and the role of the house is in the role "
        "of the garden for the role of the house and in the role of the garden the role of"
    )
    source = "Das Haus und der Garten spielen in diesem Stück von Schiller eine wichtige Rolle"
    assert kind(source, text) == "looping"
    assert kind(text, text) == ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Das ist sehr, sehr, sehr gut.", "That is very, very, very good."),
        ("ha ha ha ha ha", "ha ha ha ha ha ha"),
        ("hahaha", "ha ha ha ha"),
        ("ㅋㅋㅋㅋㅋ", "hahahahaha"),
        ("Nein! Nein! Nein! Nein!", "No! No! No! No!"),
        ("1 Billion", "1,000,000,000,000"),
        ("| 1 | 2 | 3 |", "| 1 | 2 | 3 |"),
        ("a b a b a b a b a b", "a b a b a b a b a b"),
        ("Danke, danke.", "谢谢谢谢。"),
        ("Er hatte viel gehabt.", "He had had a lot."),
        ("wäre ... äh ... gut", "would be ... er ... good"),
        ("_______ Name", "_______ name"),
        ("???", "?"),
        ("😀😀😀", "😀😀😀"),
        ("", ""),
        ("Duran Duran ist eine Band.", "Duran Duran is a band."),
        ("Er ist sehr sehr müde.", "He is very very very tired."),
        ("Die Rechnung der Firma, die Rechnung der Bank und die Rechnung der Post sind da, und die "
         "Rechnung der Stadt kommt noch.",
         "The bill of the company, the bill of the bank and the bill of the post are there, and "
         "the bill of the city is yet to come."),
    ],
)  # fmt: skip
def test_what_a_source_repeats_may_be_repeated(source: str, text: str) -> None:
    assert kind(source, text) == ""


def test_a_broken_character_is_a_fault_unless_it_was_in_the_source() -> None:
    assert kind("Růžička", "R\ufffdžička") == "damaged"
    assert kind("R\ufffdžička", "R\ufffdžička") == ""


@pytest.mark.parametrize(
    ("source", "pieces", "wanted"),
    [
        (1, 13, ""),
        (1, 14, "length"),
        (30, 79, ""),
        (30, 80, "length"),  # 50 more than the source: the end was forced
        (30, 7, ""),
        (30, 6, "length"),
        (8, 0, ""),
    ],
)
def test_lengths_far_off_are_faults(source: int, pieces: int, wanted: str) -> None:
    assert kind("ein " * source, "a word of some length", pieces) == wanted


def test_an_end_that_was_asked_for_is_no_fault() -> None:
    assert kind("ein " * 30, "a few words", 12, SearchOptions(max_length=12)) == ""
    assert (
        kind("ein " * 3, "a few words", 20, SearchOptions(max_extra=1, min_length=20)) == "length"
    )
    assert kind("ein " * 9, "a few words", 20, SearchOptions(max_extra=1, min_length=20)) == ""


def test_repetition_is_counted() -> None:
    found, marks = find_repetitions(split_tokens("He said no, no, no, no!!!!!"))
    assert (found.period, found.times, found.has_letters) == (2, 3.5, True)
    assert (marks.period, marks.times, marks.has_letters) == (1, 5.0, False)
    assert find_repetitions(split_tokens("He said no and went.")) == []
    assert split_tokens("Ganz egal: 你好 U-Bahn") == [
        "ganz",
        "egal",
        ":",
        "你",
        "好",
        "u",
        "-",
        "bahn",
    ]
    assert [longest_repeated_ngram(ids) for ids in ([1, 2, 3], [1, 2, 1], [1, 2, 3, 1, 2, 4])] == [
        *(0, 1, 2)
    ]
    assert longest_repeated_ngram([7] * 90) == 12


# --- searching again ---


def decode(ids: Sequence[int]) -> str:
    return " ".join(VOCABULARY[i] for i in ids)


VOCABULARY = {3: ".", 4: "bread", 5: "and", 6: "milk", 7: "we", 8: "buy", 9: "yes"}
LOOP = [7, 8, 4, 5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 3]


def made(ids: list[int], score: float = -1.0) -> Hypothesis:
    return Hypothesis(ids, score, score * 2, [score * 2 / (len(ids) + 1)] * (len(ids) + 1))


class Searches:
    """Give what is prepared for each round, and remember what was asked."""

    def __init__(self, *rounds: dict[int, list[list[int]]]) -> None:
        self.rounds = list(rounds)
        self.asked: list[tuple[list[int], SearchOptions]] = []

    def __call__(self, numbers: Sequence[int], options: SearchOptions) -> list[list[Hypothesis]]:
        self.asked.append((list(numbers), options))
        given = self.rounds[0 if options.beam == 5 else 1]
        return [[made(ids) for ids in given[number]] for number in numbers]


SOURCES = [[11, 12, 13], [11, 12, 13], [14], [15, 15, 15]]
TEXTS = ["wir kaufen Brot", "wir kaufen Milch", "Brot", "ja ja ja"]


def test_sound_sentences_are_left_alone() -> None:
    searches = Searches()
    found = [[made([7, 8, 4])], [made([7, 8, 6])], [made([4])], [made([9, 9, 9])]]
    texts = [decode(one[0].ids) for one in found]
    repairs, counts = repair(SOURCES, TEXTS, found, texts, OPTIONS, searches, decode)
    assert repairs == {}
    assert counts == FaultCounts()
    assert searches.asked == []


def test_faults_are_searched_again_until_they_are_gone() -> None:
    searches = Searches(
        {0: [[*LOOP], [7, 8, 4]], 1: [[*LOOP]], 2: [[3], [3, 3]]}, {1: [[7, 8, 6]], 2: [[4, 3]]}
    )
    found = [[made(LOOP)], [made(LOOP)], [made([3])], [made([9, 9, 9])]]
    texts = [decode(one[0].ids) for one in found]
    repairs, counts = repair(SOURCES, TEXTS, found, texts, OPTIONS, searches, decode)
    assert {number: one.text for number, one in repairs.items()} == {
        0: "we buy bread",
        1: "we buy milk",
        2: "bread .",
    }
    assert all(one.left is None and len(one.found) == 1 for one in repairs.values())
    assert counts.noticed == counts.repaired == {"looping": 2, "empty": 1}
    # Those with the same fault together, and only those that still have one.
    assert [numbers for numbers, _ in searches.asked] == [[0, 1], [2], [1], [2]]
    loops, empty, loops_again, _ = (options for _, options in searches.asked)
    assert (loops.beam, loops.no_repeat_ngram, loops.repetition_penalty) == (5, 4, 1.0)
    assert (loops_again.beam, loops_again.no_repeat_ngram) == (12, 3)
    assert loops_again.repetition_penalty > 1
    assert empty.min_length == 2


def test_what_cannot_be_mended_is_said_and_a_loop_is_cut() -> None:
    nothing: list[list[int]] = []
    searches = Searches({0: [LOOP], 2: nothing}, {0: [LOOP], 2: [[3, 3]]})
    found = [[made(LOOP)], [made([7, 8, 6])], [made([3])], [made([9, 9, 9])]]
    texts = [decode(one[0].ids) for one in found]
    repairs, counts = repair(SOURCES, TEXTS, found, texts, OPTIONS, searches, decode)
    assert repairs[0].left is not None
    assert repairs[0].left.kind == "looping"
    assert repairs[0].text == "we buy bread and milk ."
    [cut] = repairs[0].found
    assert cut.ids == [7, 8, 4, 5, 6, 3]
    assert len(cut.log_probs) == 7
    assert sum(cut.log_probs) == pytest.approx(cut.log_prob)
    assert repairs[2].left == Fault("empty", "only punctuation")
    assert repairs[2].found == found[2]
    assert counts.noticed == {"looping": 1, "empty": 1}
    assert counts.repaired == {}


def test_a_cut_keeps_what_the_source_repeats() -> None:
    text = [9] * 30
    searches = Searches({0: [text]}, {0: [text]})
    repairs, _ = repair(
        [[15] * 3], ["ja ja ja"], [[made(text)]], [decode(text)], OPTIONS, searches, decode
    )
    assert repairs[0].text == "yes yes yes"


@pytest.mark.parametrize(
    ("source", "text", "cut"),
    [
        ("wir kaufen!!!", "we buy " + "! " * 40, "we buy " + "! " * 3),
        ("hihihi", "we " + "hi" * 90, "we hihihi"),
        ("Brot", "bread " * 9 + "and milk " * 9 + "we buy", "bread and milk we buy"),
    ],
)
def test_every_kind_of_loop_is_cut(source: str, text: str, cut: str) -> None:
    letters = [ord(character) for character in text]  # a piece for every character

    def spell(ids: Sequence[int]) -> str:
        return "".join(map(chr, ids)).strip()

    def search(numbers: Sequence[int], options: SearchOptions) -> list[list[Hypothesis]]:
        return [[made(letters)] for _ in numbers]

    [one] = repair([[15] * 3], [source], [[made(letters)]], [text.strip()], OPTIONS, search, spell)[
        0
    ].values()
    assert one.text.split() == cut.split()
    assert one.left is not None
    assert spell(one.found[0].ids) == one.text


def test_a_cut_leaves_as_many_pieces_as_are_asked_for() -> None:
    text = [9] * 30
    searches = Searches({0: [text]}, {0: [text]})
    for least, left in ((1, 1), (20, 30)):
        options = SearchOptions(beam=1, min_length=least)
        given = ([[15]], ["ja"], [[made(text)]], [decode(text)], options)
        repairs, _ = repair(*given, searches, decode)
        assert len(repairs[0].found[0].ids) == left


def test_what_is_broken_and_no_word_is_broken_above_all() -> None:
    """So that whoever asked knows that there is nothing to read."""
    assert kind("今天", "\ufffd\ufffd \ufffd") == "damaged"
    text = [9] * 30 + [10]

    def spell(ids: Sequence[int]) -> str:
        return " ".join("\ufffd" if i == 10 else "yes" for i in ids)

    def search(numbers: Sequence[int], options: SearchOptions) -> list[list[Hypothesis]]:
        return [[made(text)] for _ in numbers]

    given = ([[15] * 3], ["ja"], [[made(text)]], [spell(text)], OPTIONS)
    repairs, _ = repair(*given, search, spell)
    assert repairs[0].fault.kind == "looping"
    assert repairs[0].left is not None
    assert (repairs[0].left.kind, repairs[0].text) == ("damaged", "yes \ufffd")


def test_the_less_faulty_is_kept() -> None:
    long = [4, 5, 6, 7, 8, 9, 3] * 2  # no loop, but too much for one piece
    searches = Searches({0: [long]}, {0: [LOOP]})
    repairs, counts = repair(
        [[14]], ["Brot"], [[made(LOOP)]], [decode(LOOP)], OPTIONS, searches, decode
    )
    assert repairs[0].left is not None
    assert repairs[0].left.kind == "length"
    assert repairs[0].found[0].ids == long
    assert not counts.repaired


def test_alternatives_without_a_fault_come_along() -> None:
    searches = Searches({0: [LOOP, [7, 8, 4], [8, 4], [4]]})
    options = SearchOptions(beam=2, n_best=2, min_length=1)
    found = [[made(LOOP), made([7])]]
    repairs, _ = repair(SOURCES[:1], TEXTS[:1], found, [decode(LOOP)], options, searches, decode)
    assert [one.ids for one in repairs[0].found] == [[7, 8, 4], [8, 4]]


def test_a_long_sentence_is_searched_in_parts() -> None:
    """And a part that has a fault is searched again like any other sentence."""
    source = [11] * (LONG_SOURCE + 1)
    asked: list[tuple[int, int]] = []

    def divide(number: int, pieces: int) -> list[str]:
        assert pieces < LONG_SOURCE
        return ["wir kaufen", "Brot", "und Milch"] if number == 0 else ["alles"]

    def search(sources: Sequence[Sequence[int]], options: SearchOptions) -> list[list[Hypothesis]]:
        asked.append((len(sources), options.beam))
        if options.beam > 1:
            return [[made([4])] for _ in sources]
        return [[made([7, 8])], [made(LOOP)], [made([5, 6])]]

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [[12] * len(text.split()) for text in texts]

    whole = Searches({1: [LOOP]}, {1: [LOOP]})
    found = [[made(LOOP)], [made(LOOP)]]
    parts = DivideSource(divide, encode, search)
    given = ([source] * 2, TEXTS[:2], found, [decode(LOOP)] * 2, OPTIONS)
    repairs, counts = repair(*given, whole, decode, parts)
    assert (repairs[0].text, repairs[0].left) == ("we buy bread and milk", None)
    assert asked == [(3, 1), (1, 5)]
    [joined] = repairs[0].found
    assert len(joined.log_probs) == len(joined.ids) + 1
    assert sum(joined.log_probs) == pytest.approx(joined.log_prob)
    assert repairs[1].left is not None, "it had to stay whole"
    assert [numbers for numbers, _ in whole.asked] == [[1], [1]]
    assert (counts.noticed["looping"], counts.repaired["looping"]) == (2, 1)


def test_one_sentence_that_cannot_be_searched_so_does_not_spoil_the_others() -> None:
    """As where a phrase that must be said would have to be repeated."""

    def search(numbers: Sequence[int], options: SearchOptions) -> list[list[Hypothesis]]:
        if 1 in numbers:
            raise ConfigError("impossible")
        return [[made([7, 8, 4])] for _ in numbers]

    found = [[made(LOOP)], [made(LOOP)]]
    texts = [decode(LOOP)] * 2
    repairs, _ = repair(SOURCES[:2], TEXTS[:2], found, texts, OPTIONS, search, decode)
    assert repairs[0].text == "we buy bread"
    assert repairs[1].text == "we buy bread and milk ."


def test_what_is_too_short_is_given_a_least_length_and_options_are_few() -> None:
    fault = Fault("length", "only 2 pieces for 40")
    first, second = (
        options_without_fault(fault, [5] * size, OPTIONS, round_)
        for round_, size in ((0, 40), (1, 40))
    )
    assert (first.min_length, second.min_length) == (8, 16)
    several = {options_without_fault(fault, [5] * size, OPTIONS, 0) for size in range(20, 200)}
    assert len(several) <= 5
    assert all(one.min_length <= longest_output(20, one) for one in several)


def test_where_a_source_repeats_itself_its_translation_may_too() -> None:
    fault = Fault("looping", "")
    size = 5
    source = [*range(20, 20 + size), 9, *range(20, 20 + size)]
    assert options_without_fault(fault, source, OPTIONS, 0).no_repeat_ngram == size + 1
    assert options_without_fault(fault, [7] * 50, OPTIONS, 0).no_repeat_ngram == 0


def test_counts_are_added() -> None:
    total = FaultCounts()
    other = FaultCounts()
    other.noticed["looping"] += 2
    other.repaired["looping"] += 1
    total += other
    total += other
    assert (total.noticed["looping"], total.repaired["looping"]) == (4, 2)


def test_one_sentence_that_became_two_is_searched_again() -> None:
    source, divided = "Mr President, thank you.", "Herr Präsident! Ich danke Ihnen."
    whole = "Herr Präsident, ich danke Ihnen."
    texts = {1: divided, 2: "Herr Präsident! Danke!", 3: whole}
    ids = [[10] * 6]

    def search(numbers: Sequence[int], options: SearchOptions) -> list[list[Hypothesis]]:
        assert options.n_best == options.beam > OPTIONS.beam
        return [[Hypothesis([n] * 6, -1.0, -6.0, [-1.0] * 7) for n in texts] for _ in numbers]

    def say(pieces: Sequence[int]) -> str:
        return texts[pieces[0]]

    def run() -> tuple[dict[int, Repair], FaultCounts]:
        found = [[Hypothesis([1] * 6, -1.0, -6.0, [-1.0] * 7)]]
        said = [texts[1]]
        return repair(ids, [source], found, said, OPTIONS, search, say, None, ("en", "de"))

    repairs, counts = run()
    assert (repairs[0].text, repairs[0].left) == (whole, None)
    assert counts.repaired["sentences"] == 1
    del texts[3]  # some sentences are two in the other language, and stay so
    assert run()[0] == {}
