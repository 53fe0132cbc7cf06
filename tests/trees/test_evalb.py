from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from PYEVALB import parser
from PYEVALB.scorer import LengthUnmatch, Scorer, WordsUnmatch

from dragoman.errors import ConfigError, DataError
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.evalb import (
    COLLINS,
    PREDICTED_TAGS,
    BracketScores,
    EvalbParameters,
    SentenceBrackets,
    read_parameters,
    score_trees,
)
from dragoman.trees.tree import Leaf, Node, Tree

PLAIN = EvalbParameters()  # nothing deleted, nothing equal


def score(gold: str, predicted: str | None, parameters: EvalbParameters = COLLINS) -> BracketScores:
    guess = None if predicted is None else parse_tree(predicted)
    return score_trees([parse_tree(gold)], [guess], parameters)


def count(
    gold: str, predicted: str | None, parameters: EvalbParameters = COLLINS
) -> SentenceBrackets:
    return score(gold, predicted, parameters).sentences[0]


# --------------------------------------------------------------------------- worked by hand

# Each case: what it shows, gold, predicted, then gold brackets, predicted brackets, matched,
# crossing, words, right tags. Positions count the words that are left: (label start end).
CASES = [
    (
        # (S 0 3) (NP 0 2) (VP 2 3) on both sides; TOP is deleted.
        "a tree is right about itself",
        "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks))))",
        "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks))))",
        (3, 3, 3, 0, 3, 3),
    ),
    (
        # gold (S 0 3) (NP 0 2) (VP 2 3); predicted (S 0 3) (NP 0 1) (VP 1 3).
        # Only S matches. (VP 1 3) holds word 1 of (NP 0 2) and word 2 outside it: it crosses.
        "a wrong boundary",
        "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks))))",
        "(TOP (S (NP (DT the)) (VP (NN dog) (VBZ barks))))",
        (3, 3, 1, 1, 3, 3),
    ),
    (
        # The comma and the stop are taken out, so (NP 0 1) is right with and without the comma,
        # and S is (S 0 3) for both.
        "punctuation holds no place",
        "(S (NP (NN dogs) (, ,)) (VP (VBP bark) (ADVP (RB loudly))) (. .))",
        "(S (NP (NN dogs)) (, ,) (VP (VBP bark) (ADVP (RB loudly)) (. .)))",
        (4, 4, 4, 0, 3, 3),
    ),
    (
        # ? and ! are not in COLLINS.prm as tags; as words they have the tag "." and are taken out.
        "a question mark is deleted by its tag",
        "(S (NP (NN dogs)) (. ?))",
        "(S (NP (NN dogs) (. ?)))",
        (2, 2, 2, 0, 1, 1),
    ),
    (
        "a question mark with a tag of its own stays",
        # gold (S 0 2) (NP 0 1); predicted (S 0 2) (NP 0 2): one matches, nothing crosses.
        "(S (NP (NN dogs)) (? ?))",
        "(S (NP (NN dogs) (? ?)))",
        (2, 2, 1, 0, 2, 2),
    ),
    (
        # gold (S 0 1) (NP 0 1): SBAR and its S hold nothing but traces, and go with them.
        "traces take the constituents above them along",
        "(S (NP (NN dogs)) (SBAR (-NONE- 0) (S (-NONE- *T*-1))))",
        "(S (NP (NN dogs)))",
        (2, 2, 2, 0, 1, 1),
    ),
    ("a single word under nothing", "(NN dogs)", "(NN dogs)", (0, 0, 0, 0, 1, 1)),
    ("a single word under TOP", "(TOP (NN dogs))", "(TOP (NN dogs))", (0, 0, 0, 0, 1, 1)),
    ("a wrong tag", "(NP (NN dogs) (NN bark))", "(NP (NN dogs) (VB bark))", (1, 1, 1, 0, 2, 1)),
    (
        # ROOT is no label COLLINS.prm knows: gold (ROOT 0 1) (S 0 1), predicted (S 0 1).
        "ROOT counts, unlike TOP",
        "(ROOT (S (NN dogs)))",
        "(TOP (S (NN dogs)))",
        (2, 1, 1, 0, 1, 1),
    ),
    (
        # "( (S" as the Treebank's files have it: the outer bracket has the label "" and counts.
        "an empty label counts",
        "( (S (NN dogs)))",
        "(TOP (S (NN dogs)))",
        (2, 1, 1, 0, 1, 1),
    ),
    (
        # gold (S 0 1) (NP 0 1), the TOP between them deleted.
        "a deleted label within a chain",
        "(S (TOP (NP (NN dogs))))",
        "(S (NP (NN dogs)))",
        (2, 2, 2, 0, 1, 1),
    ),
    (
        # gold (S 0 2) (ADVP 1 2); predicted (S 0 2) (PRT 1 2).
        "PRT is as good as ADVP",
        "(S (VB go) (ADVP (RB away)))",
        "(S (VB go) (PRT (RB away)))",
        (2, 2, 2, 0, 2, 2),
    ),
    (
        # Tags are compared by the same rule.
        "a tag PRT is as good as a tag ADVP",
        "(S (VB go) (ADVP away))",
        "(S (VB go) (PRT away))",
        (1, 1, 1, 0, 2, 2),
    ),
    (
        # NP-SBJ, NP=2 and NP are (NP 0 1); but the tag NN-X is not NN.
        "functions are no part of a label, but of a tag",
        "(S (NP-SBJ-1 (NN dogs)) (NP=2 (NN cats)))",
        "(S (NP (NN-X dogs)) (NP-TMP (NN cats)))",
        (3, 3, 3, 0, 2, 1),
    ),
    (
        # gold twice (NP 0 1); predicted once: recall 2/3 with S, precision 2/2.
        "a doubled bracket in the gold tree must be found twice",
        "(S (NP (NP (NN dogs))))",
        "(S (NP (NN dogs)))",
        (3, 2, 2, 0, 1, 1),
    ),
    (
        # gold (S) (NP); predicted (S) (NP) (NP) (NP): two of four are right.
        "a doubled bracket in the prediction is right once",
        "(S (NP (NN dogs)))",
        "(S (NP (NP (NP (NN dogs)))))",
        (2, 4, 2, 0, 1, 1),
    ),
    (
        # Both are (S 0 1) (VP 0 1): which of the two is above is not seen.
        "the order of a chain does not count",
        "(S (VP (VB go)))",
        "(VP (S (VB go)))",
        (2, 2, 2, 0, 1, 1),
    ),
    (
        # gold (S 0 4) (A 0 2) (B 2 4); predicted (S 0 4) (C 1 3) (C 1 3) (D 1 4).
        # Both C cross A (and B, which adds nothing), D crosses A: 3.
        "crossing counts predicted brackets, each once",
        "(S (A (X a) (X b)) (B (X c) (X d)))",
        "(S (X a) (D (C (C (X b) (X c))) (X d)))",
        (3, 4, 1, 3, 4, 4),
    ),
    (
        # predicted (A 1 3) would cross (TOP 0 2), were that not deleted.
        "a deleted bracket is not crossed",
        "(S (TOP (X a) (X b)) (X c))",
        "(S (X a) (A (X b) (X c)))",
        (1, 2, 1, 0, 3, 3),
    ),
    (
        # The bracket (-LRB- is a tag and stays a word; a constituent -X is "" once trimmed.
        "a label that is all function is empty",
        "(S (-X (-LRB- -LRB-) (NN a)))",
        "(S (-Y (-LRB- -LRB-) (NN a)))",
        (2, 2, 2, 0, 2, 2),
    ),
]


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_counts_worked_by_hand(
    gold: str, predicted: str, expected: tuple[int, int, int, int, int, int]
) -> None:
    found = count(gold, predicted)
    assert (found.status, found.reason, found.unscored) == ("scored", "", 0)
    counted = (found.gold, found.predicted, found.matched)
    assert (*counted, found.crossing, found.words, found.tags) == expected


def test_without_labels_only_the_span_counts() -> None:
    # gold (S 0 2) (NP 0 1); predicted (X 0 2) (Y 0 1) (Z 0 1): two match, whatever they are called.
    gold, predicted = "(S (NP (NN a)) (NN b))", "(X (Y (Z (NN a))) (NN b))"
    assert count(gold, predicted).matched == 0
    found = count(gold, predicted, EvalbParameters(labelled=False))
    assert (found.gold, found.predicted, found.matched) == (2, 3, 2)


def test_equal_labels_are_pairs_and_are_matched_in_evalbs_order() -> None:
    # All span (0 1). B = A and B = C, but not A = C. Gold B, A; predicted A, C. Gold's first, B,
    # takes the prediction's first, A, and then A finds none. (B with C and A with A would be 2.)
    parameters = EvalbParameters(equal_labels=(("A", "B"), ("B", "C")))
    assert count("(B (A (X x)))", "(A (C (X x)))", parameters).matched == 1
    assert count("(A (X x))", "(C (X x))", parameters).matched == 0
    # A deleted label takes the labels equal to it along, but not the tags.
    parameters = EvalbParameters(delete_labels=("A",), equal_labels=(("A", "B"),))
    found = count("(S (B (X x)) (B y))", "(S (X x) (B y))", parameters)
    assert (found.gold, found.predicted, found.words) == (1, 1, 2)


# ---------------------------------------------------------------------------------- left out


@pytest.mark.parametrize(
    ("gold", "predicted", "status", "reason"),
    [
        ("(S (NN a))", None, "skipped", "no tree"),
        # EVALB asks only whether the prediction has words left, and asks it first.
        ("(S (. .))", "(S (. .))", "skipped", "every word of the prediction has a tag that is del"),
        (
            "(S (NN a))",
            "(S (. a))",
            "skipped",
            "every word of the prediction has a tag that is del",
        ),
        ("(S (. a))", "(S (NN a))", "error", "words: 1 instead of 0"),
        ("(S (NN a))", "(S (NN a) (NN b))", "error", "words: 2 instead of 1"),
        # A comma with another tag is a word more: a prediction's own tags say what is deleted.
        ("(S (NN a) (, ,))", "(S (NN a) (XX ,))", "error", "words: 2 instead of 1"),
        ("(S (NN a))", "(S (NN A))", "error", "the word 'A' instead of 'a'"),
        ("(S (NN a) (NN b))", "(S (NN a) (NN c))", "error", "the word 'c' instead of 'b'"),
    ],
)
def test_what_cannot_be_compared_counts_nowhere_and_is_reported(
    gold: str, predicted: str | None, status: str, reason: str
) -> None:
    scores = score(gold, predicted)
    (found,) = scores.left_out
    assert (found.line, found.status) == (1, status)
    assert found.reason.startswith(reason)
    assert (found.gold, found.predicted, found.matched, found.words) == (0, 0, 0, 0)
    assert found.unscored == (0 if gold in ("(S (. .))", "(S (. a))") else 1)
    assert (scores.all.errors, scores.all.skipped) == (status == "error", status == "skipped")
    assert scores.all.gold == scores.f1 == scores.all.complete_match == 0
    assert f"line 1: {status}: {reason}" in str(scores)


def test_deleted_words_need_not_agree() -> None:
    # EVALB compares the words that are left: "." for "!" is no error.
    assert count("(S (NN a) (. .))", "(S (NN a) (. !))").status == "scored"


def test_equal_words_are_no_error() -> None:
    parameters = EvalbParameters(equal_words=(("n't", "not"),))
    assert count("(S (RB not))", "(S (RB n't))", parameters).status == "scored"
    assert count("(S (RB n't))", "(S (RB not))", parameters).status == "scored"
    assert count("(S (RB n't))", "(S (RB no))", parameters).status == "error"


# ------------------------------------------------------------------------------------ totals

GOLD = [
    "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))",  # S NP VP
    "(TOP (S (A (X a) (X b)) (B (X c) (X d))))",  # S A B
    "(TOP (S (NP (NN a)) (VP (VB b))))",  # S NP VP
    "(TOP (S (NP (NN a))))",  # S NP
    "(TOP (S (A (X a) (X b)) (A (X c) (X d)) (A (X e) (X f)) (X g) (X h)))",  # S A A A
]
PREDICTED = [
    "(TOP (S (NP (DT the) (NN dog)) (VP (VBP barks)) (. .)))",  # 3 of 3; 2 of 3 tags
    "(TOP (S (X a) (D (C (X b) (X c)) (X d))))",  # 1 of 3; 2 crossing; 4 of 4 tags
    None,  # skipped: 3 gold brackets
    "(TOP (S (NP (NN b))))",  # error: 2 gold brackets
    # 1 of 5; 3 crossing; 8 of 8 tags; 8 words
    "(TOP (S (X a) (C (X b) (X c)) (C (X d) (X e)) (C (X f) (X g)) (E (X h))))",
]


def totals(parameters: EvalbParameters = COLLINS) -> BracketScores:
    predicted = [text and parse_tree(text) for text in PREDICTED]
    return score_trees([parse_tree(text) for text in GOLD], predicted, parameters)


def test_brackets_are_added_up_before_they_are_divided() -> None:
    scores = totals()
    found = scores.all
    assert (found.sentences, found.errors, found.skipped) == (5, 1, 1)
    assert (found.gold, found.predicted, found.matched) == (3 + 3 + 4, 3 + 3 + 5, 3 + 1 + 1)
    assert found.recall == pytest.approx(100 * 5 / 10)
    assert found.precision == pytest.approx(100 * 5 / 11)
    assert found.f1 == scores.f1 == pytest.approx(2 * 50 * (500 / 11) / (50 + 500 / 11))
    assert found.complete_match == pytest.approx(100 / 3)  # the first of three
    assert found.average_crossing == pytest.approx((0 + 2 + 3) / 3)
    assert found.no_crossing == pytest.approx(100 / 3)
    assert found.two_or_less_crossing == pytest.approx(200 / 3)
    assert found.tagging_accuracy == pytest.approx(100 * (2 + 4 + 8) / (3 + 4 + 8))
    # The 3 + 2 brackets that were never compared, counted as missed: 2 * 5 / (15 + 11).
    assert scores.f1_all_lines == pytest.approx(100 * 10 / 26)
    assert [(one.line, one.status) for one in scores.left_out] == [(3, "skipped"), (4, "error")]


def test_short_sentences_have_figures_of_their_own_by_the_gold_trees_length() -> None:
    # Lengths 4 (the stop is a word here), 4, 2, 1, 8.
    assert [one.length for one in totals().sentences] == [4, 4, 2, 1, 8]
    assert totals().short == totals().all
    scores = totals(EvalbParameters(delete_labels=COLLINS.delete_labels, cutoff_length=4))
    assert (scores.short.sentences, scores.short.errors, scores.short.skipped) == (4, 1, 1)
    assert (scores.short.gold, scores.short.predicted, scores.short.matched) == (6, 6, 4)
    assert scores.short.f1 == pytest.approx(100 * 8 / 12)
    assert scores.all == totals().all
    trace = "(S (NN a) (-NONE- *) (, ,))"  # 2 words long: a trace is none, a comma is one
    assert count(trace, trace).length == 2
    assert count(trace, trace, PLAIN).length == 3


def test_the_figures_are_text_that_says_by_which_rules() -> None:
    assert (
        str(totals())
        == """\
labelled F1|evalb|prm:COLLINS|version:1 = 47.62
                            all  <= 40 words
sentences                     5            5
errors                        1            1
skipped                       1            1
gold                         10           10
predicted                    11           11
matched                       5            5
recall                    50.00        50.00
precision                 45.45        45.45
f1                        47.62        47.62
complete match            33.33        33.33
average crossing           1.67         1.67
no crossing               33.33        33.33
two or less crossing      66.67        66.67
tagging accuracy          93.33        93.33
2 of 5 sentences count nowhere above; with their brackets as missed, F1 would be 38.46:
  line 3: skipped: no tree
  line 4: error: the word 'b' instead of 'a'"""
    )
    clean = str(score(GOLD[0], GOLD[0]))
    assert clean.splitlines()[-1].startswith("tagging accuracy")
    assert "100.00" in clean


def test_a_signature_says_what_differs_from_collins() -> None:
    assert COLLINS.signature.startswith("evalb|prm:COLLINS|version:")
    other = EvalbParameters(
        delete_labels=("TOP", ","), equal_words=(("a", "b"),), labelled=False, cutoff_length=10
    )
    assert other.signature.startswith(
        "evalb|labelled:no|delete:TOP ,|uncounted:none|equal:none|words:a=b|cutoff:10|version:"
    )
    assert str(score("(S (X a))", "(S (X a))", other)).startswith("unlabelled F1|evalb|labelled:no")


def test_the_figures_are_json() -> None:
    read = json.loads(json.dumps(totals().to_json()))
    assert read["f1"] == pytest.approx(1000 / 21)
    assert read["short"]["f1"] == read["f1"]
    assert read["cutoff_length"] == 40
    assert read["signature"] == COLLINS.signature
    assert read["left_out"] == [
        {"line": 3, "status": "skipped", "reason": "no tree"},
        {"line": 4, "status": "error", "reason": "the word 'b' instead of 'a'"},
    ]
    assert [one.matched for one in totals().sentences] == [3, 1, 0, 0, 1]


def test_a_long_list_of_errors_is_cut_on_the_terminal_only() -> None:
    tree = parse_tree("(S (NN a))")
    scores = score_trees([tree] * 30, [None] * 30)
    assert str(scores).endswith("  line 20: skipped: no tree\n  and 10 more; to_json has them all")
    assert len(scores.to_json()["left_out"]) == 30


def test_sets_that_do_not_belong_together_are_refused() -> None:
    tree = parse_tree("(S (NN a))")
    with pytest.raises(DataError, match="2 gold trees but 1 predicted"):
        score_trees([tree, tree], [tree])
    with pytest.raises(DataError, match="nothing to score"):
        score_trees([], [])


def test_a_tree_may_be_thousands_deep() -> None:
    words = [Leaf("NN", f"w{i}") for i in range(2000)]
    left: Tree = words[0]
    for word in words[1:]:
        left = Node("X", (left, word))
    right: Tree = words[-1]
    for word in words[-2::-1]:
        right = Node("X", (word, right))
    assert score_trees([left], [left]).f1 == 100
    # Only the root is shared; every other (X i 2000) crosses (X 0 i+1).
    (found,) = score_trees([left], [right]).sentences
    assert (found.gold, found.matched, found.crossing) == (1999, 1, 1998)


# --------------------------------------------------------------------------- parameter files

COLLINS_PRM = """\
##------------------------------------------##
DEBUG 0

MAX_ERROR 10
CUTOFF_LEN 40
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL .
DELETE_LABEL_FOR_LENGTH -NONE-
EQ_LABEL ADVP PRT
# EQ_WORD  example Example
"""


def test_collins_is_its_parameter_file(tmp_path: Path) -> None:
    (tmp_path / "COLLINS.prm").write_text(COLLINS_PRM)
    assert read_parameters(tmp_path / "COLLINS.prm") == COLLINS


def test_every_parameter_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.prm"
    path.write_text("LABELED 0\r\nCUTOFF_LEN\t 10  \nEQ_WORD a  b\nEQ_WORD c d\nDELETE_LABEL ?\n")
    assert read_parameters(path) == EvalbParameters(
        labelled=False,
        cutoff_length=10,
        equal_words=(("a", "b"), ("c", "d")),
        delete_labels=("?",),
    )
    path.write_text("")
    assert read_parameters(path) == EvalbParameters()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "LABELED 1\nQUOTE_LABEL ``",
            "mine.prm:2: 'QUOTE_LABEL' is not a parameter; choose from: DEL",
        ),
        ("EQ_LABEL A", "mine.prm:1: EQ_LABEL cannot be 'A'"),
        ("EQ_LABEL A B C", "mine.prm:1: EQ_LABEL cannot be 'A B C'"),
        ("DELETE_LABEL", "mine.prm:1: DELETE_LABEL cannot be ''"),
        ("CUTOFF_LEN forty", "mine.prm:1: CUTOFF_LEN cannot be 'forty'"),
    ],
)
def test_a_line_that_means_nothing_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.prm"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_parameters(path)
    with pytest.raises(ConfigError, match=r"nowhere\.prm: this parameter file cannot be read"):
        read_parameters(tmp_path / "nowhere.prm")


# ------------------------------------------------------------------------------ against PYEVALB

# PYEVALB reads no parameter file, takes nothing out and keeps functions on labels, so it is shown
# what EVALB's rules leave of a tree: `remains`. Where it departs from EVALB even then:
# - a bracket that a tree has twice is matched at most once (EVALB's README, 7.5, counts both):
#   such pairs are left out of the comparison of matches, and of nothing else;
# - a line it cannot read is given the figures of the line before: none is shown to it;
# - "_" ends a word and "(" breaks it: no such words are made;
# - it divides by the number of brackets even if that is 0: `remains` adds a bracket around all.

LABELS = ["S", "NP", "VP", "PP", "ADVP", "PRT", "NP-SBJ", "NP=2", "TOP", "-NONE-", "SBAR"]
TAGS = ["NN", "VB", "DT", "RB", "RP", ",", ".", "``", "''", ":", "-NONE-"]


def random_tree(rng: random.Random, words: list[Leaf]) -> Tree:
    def grow(part: list[Leaf]) -> Tree:
        tree: Tree
        if len(part) == 1:
            tree = part[0]
        else:
            cuts = sorted(rng.sample(range(1, len(part)), rng.randint(1, min(3, len(part) - 1))))
            bounds = zip([0, *cuts], [*cuts, len(part)], strict=True)
            tree = Node(rng.choice(LABELS), tuple(grow(part[a:b]) for a, b in bounds))
        while rng.random() < 0.25:
            tree = Node(rng.choice(LABELS), (tree,))
        return tree

    return Node(rng.choice(["TOP", "ROOT", "S"]), (grow(words),))


def altered(rng: random.Random, tree: Tree) -> Tree:
    """The same words under some other constituents, and now and then under another tag."""

    def alter(one: Tree) -> list[Tree]:
        if isinstance(one, Leaf):
            return [Leaf(rng.choice(TAGS[:5]), one.word) if rng.random() < 0.02 else one]
        children = [new for child in one.children for new in alter(child)]
        what = rng.random()
        if what < 0.15:
            return children
        if what < 0.25 and len(children) > 2:
            start = rng.randrange(len(children) - 1)
            children[start : start + 2] = [Node("X", tuple(children[start : start + 2]))]
        label = rng.choice(LABELS) if what > 0.9 else one.label
        return [Node(label, tuple(children))]

    return Node("TOP", tuple(alter(tree)))


def remains(tree: Tree, parameters: EvalbParameters) -> str:
    """What EVALB's rules leave of a tree, in brackets, with one around all of it."""

    def keep(one: Tree) -> str:
        if isinstance(one, Leaf):
            return "" if one.tag in parameters.delete_labels else f"({one.tag} {one.word})"
        inside = "".join(map(keep, one.children))
        label = one.label.split("-")[0].split("=")[0] or "EMPTY"
        if parameters.equal_labels:
            label = label.replace("PRT", "ADVP")
        return f"({label} {inside})" if inside and label not in parameters.delete_labels else inside

    return f"(ALL {keep(tree)})"


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [COLLINS, PLAIN], ids=["COLLINS", "nothing deleted"])
def test_the_counts_are_pyevalbs(parameters: EvalbParameters) -> None:
    rng = random.Random(2017)
    seen: Counter[str] = Counter()
    for _ in range(1500):
        words = [Leaf(rng.choice(TAGS), f"w{i}") for i in range(rng.randint(1, 14))]
        gold = random_tree(rng, words)
        guess = altered(rng, gold) if rng.random() < 0.7 else random_tree(rng, words)
        (ours,) = score_trees([gold], [guess], parameters).sentences
        if ours.status == "skipped":
            assert remains(guess, parameters) == "(ALL )"
            continue
        if remains(gold, parameters) == "(ALL )":
            assert ours.status == "error"
            continue
        seen[ours.status] += 1
        trees = [parser.create_from_bracket_string(remains(t, parameters)) for t in (gold, guess)]
        try:
            theirs = Scorer().score_trees(*trees)
        except (LengthUnmatch, WordsUnmatch):
            assert ours.status == "error"
            continue
        assert ours.status == "scored"
        assert (ours.gold + 1, ours.predicted + 1) == (theirs.gold_brackets, theirs.test_brackets)
        assert ours.crossing == theirs.cross_brackets
        assert (ours.words, ours.tags) == (theirs.words, theirs.correct_tags)
        brackets = [Counter(map(repr, tree.non_terminal_labels)) for tree in trees]
        both = brackets[0] & brackets[1]
        seen["doubled"] += max(both.values()) > 1
        assert ours.matched + 1 == sum(both.values())
        if max(both.values()) == 1:
            assert ours.matched + 1 == theirs.matched_brackets
            seen["matches compared"] += 1
            seen["crossing"] += ours.crossing > 0
            seen["partly right"] += 0 < ours.matched < ours.gold
    assert seen["matches compared"] > 700
    assert min(seen["crossing"], seen["partly right"], seen["doubled"]) > 100
    assert seen["error"] > (20 if parameters is COLLINS else -1)


@pytest.mark.slow
def test_the_figures_of_a_corpus_are_pyevalbs() -> None:
    from PYEVALB.summary import summary

    rng = random.Random(29)
    pairs = []
    while len(pairs) < 200:
        words = [Leaf(rng.choice(TAGS), f"w{i}") for i in range(rng.randint(3, 14))]
        gold = random_tree(rng, words)
        guess = altered(rng, gold)
        texts = [remains(tree, COLLINS) for tree in (gold, guess)]
        brackets = [
            Counter(map(repr, parser.create_from_bracket_string(text).non_terminal_labels))
            for text in texts
            if text != "(ALL )"
        ]
        if len(brackets) == 2 and max(max(one.values()) for one in brackets) == 1:
            pairs.append(texts)
    lines = [f"{text}\n" for text in (pair[0] for pair in pairs)]
    theirs = summary(Scorer().score_corpus(lines, [f"{pair[1]}\n" for pair in pairs]))
    ours = score_trees(*([parse_tree(text) for text in side] for side in zip(*pairs, strict=True)))
    assert ours.all.sentences == theirs.sent_num == 200
    assert ours.all.errors == theirs.error_sent_num > 0
    assert ours.all.recall == pytest.approx(theirs.bracket_recall)
    assert ours.all.precision == pytest.approx(theirs.bracket_prec)
    assert ours.all.f1 == pytest.approx(theirs.bracker_fmeasure)
    assert ours.all.complete_match == pytest.approx(theirs.complete_match)
    assert ours.all.average_crossing == pytest.approx(theirs.average_crossing)
    assert ours.all.no_crossing == pytest.approx(theirs.no_crossing)
    assert ours.all.tagging_accuracy == pytest.approx(theirs.tagging_accuracy)
    assert 30 < ours.all.f1 < 95


def test_pyevalb_matches_a_doubled_bracket_once_and_evalb_twice() -> None:
    text = "(S (NP (NP (NN dogs))))"
    tree = parser.create_from_bracket_string(text)
    assert Scorer().score_trees(tree, tree).matched_brackets == 2  # of 3: not right about itself
    assert count(text, text).matched == 3


def test_with_gold_punctuation_a_mistagged_comma_costs_its_tag_alone() -> None:
    gold = [parse_tree("(S (NP (NN dogs)) (, ,) (NP (NN cats)) (VP (VBP run)))")]
    found = [parse_tree("(S (NP (NN dogs)) (CC ,) (NP (NN cats)) (VP (VB run)))")]
    strict, lenient = score_trees(gold, found), score_trees(gold, found, PREDICTED_TAGS)
    assert strict.all.errors == 1
    assert strict.all.gold == 0
    # S, NP, NP and VP are right; of the three words that are left one has another tag.
    assert (lenient.all.matched, lenient.f1) == (4, 100.0)
    assert lenient.all.tagging_accuracy == pytest.approx(200 / 3)
    assert "punctuation:gold" in str(lenient)
    assert "punctuation:gold" not in str(strict)
