"""Trees as text, and what is taken off them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.phrasebook import generate
from dragoman.trees.bracketing import parse_tree, read_trees, write_tree
from dragoman.trees.cleaning import add_root, clean_tree, collapse_unary, restore_unary
from dragoman.trees.tree import Leaf, Node, leaves, spans

WHITE = " \t\n\r\f\v"
DEEP = 5_000

fragments = [
    "-LRB-",
    "-LRB",
    "LRB-",
    "-RSB-",
    "-",
    "(",
    ")",
    "[",
    "}",
    "\\",
    "\\-",
    "/",
    "*",
    "\\<",
]
fragments += ["+", "\\p", "=", "|", "$", "#", "a", "é", "😀", "한", "\u00a0", "\u2028", "\x1f"]
any_word = st.text(st.characters(exclude_characters=WHITE), min_size=1, max_size=8) | st.lists(
    st.sampled_from(fragments), min_size=1, max_size=5
).map("".join)
real_label = st.sampled_from(["NP", "NP-SBJ-1", "S=2", "ROOT", "TOP", "PRP$", "-LRB-", "-NONE-"])
any_tag = any_word | real_label
any_label = any_tag | st.just("")
any_tree = st.recursive(
    st.builds(Leaf, any_tag, any_word),
    lambda trees: st.builds(Node, any_label, st.lists(trees, min_size=1, max_size=3).map(tuple)),
    max_leaves=8,
)


def shape(tree):
    """The tree as what `==` compares."""
    if isinstance(tree, Leaf):
        return tree.tag, tree.word
    return tree.label, [shape(child) for child in tree.children]


def chain(depth, label="X"):
    tree = Leaf("NN", "dog")
    for _ in range(depth):
        tree = Node(label, (tree,))
    return tree


def comb(depth):
    """As deep as it has words."""
    tree = Leaf("NN", "0")
    for number in range(1, depth):
        tree = Node("NP-SBJ", (Leaf("DT", str(number)), tree))
    return tree


def texts(*lines):
    return [write_tree(tree) for tree in read_trees(lines)]


# ------------------------------------------------------------------ reading and writing


@pytest.mark.slow
@given(any_tree)
@example(Leaf("-LRB-", "("))
@example(Leaf("NN", "-LRB("))
@example(Leaf("NN", "-LRB-LRB-"))
@example(Leaf("NN", "\\-LRB-\\"))
@example(Leaf("(", "1\\/2"))
def test_a_written_tree_is_read_as_it_was(tree):
    assert shape(parse_tree(write_tree(tree))) == shape(tree)


@given(any_word, any_word)
def test_different_words_are_written_differently(one, other):
    written = {write_tree(Leaf("NN", one)), write_tree(Leaf("NN", other))}
    assert len(written) == len({one, other})


def test_the_trees_of_the_phrasebook_are_written_as_they_were():
    for pair in generate("de", "train", 200):
        for text in (pair.source_tree, pair.target_tree):
            assert write_tree(parse_tree(text)) == text


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("-LRB-", "("),
        ("-RRB-", ")"),
        ("-LSB-", "["),
        ("-RSB-", "]"),
        ("-LCB-", "{"),
        ("-RCB-", "}"),
        ("[", "["),
        ("friend-LRB-s-RRB-", "friend(s)"),
        (r"1\/2", "1/2"),
        (r"\*", "*"),
        ("1/2", "1/2"),
        ("\\", "\\"),
        (r"C:\dir", r"C:\dir"),
        (r"\\", "\\"),
        (r"\-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
        ("a\u00a0b", "a\u00a0b"),
    ],
)
def test_words_are_read_as_the_text_has_them(written, word):
    assert parse_tree(f"(NN {written})") == Leaf("NN", word)


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("(", "-LRB-"),
        ("a(b)", "a-LRB-b-RRB-"),
        ("[", "["),
        ("1/2", "1/2"),
        ("*", "*"),
        ("-LRB-", r"\-LRB-"),
        ("-LSB-", r"\-LSB-"),
        ("x-RRB", r"x\-RRB"),
        ("\\", r"\\"),
        ("well-known", "well-known"),
    ],
)
def test_a_word_is_changed_only_where_it_must_be(word, written):
    assert write_tree(Leaf("NN", word)) == f"(NN {written})"


def test_labels_keep_their_spelling():
    text = "(NP-SBJ=1 (-LRB- -LRB-) (PRP$ its) (-NONE- *T*-1) (# #) (`` ``) (ADVP|PRT (RB up)))"
    tree = parse_tree(text)
    assert [leaf.tag for leaf in leaves(tree)] == ["-LRB-", "PRP$", "-NONE-", "#", "``", "RB"]
    assert next(leaves(tree)).word == "("
    assert write_tree(tree) == text


def test_trees_may_share_lines_and_span_them():
    assert texts("(A (B c)) (D e)(F", "", "   (G", "h )", ")", "\t", "( ( I (J k)))\r") == [
        "(A (B c))",
        "(D e)",
        "(F (G h))",
        "( (I (J k)))",
    ]


@pytest.mark.slow
@given(any_tree)
def test_a_line_may_break_wherever_a_space_is(tree):
    text = write_tree(tree)
    assert shape(parse_tree(text.replace(" ", "\n"))) == shape(tree)
    assert shape(parse_tree(text.replace("(", "(\n").replace(")", "\n)"))) == shape(tree)


def test_the_outermost_bracket_is_kept_as_it_stands():
    for text in ("( (S (UH Oh)))", "(ROOT (S (UH Oh)))", "( (S (UH Oh)) (S (UH Ah)))"):
        assert texts(text) == [text]
    assert parse_tree("((S (UH Oh)))").label == ""


def test_comments_stand_between_trees_only():
    lines = [
        "*x*x*x*x*x*",
        "*x*  Copyright (C) 1995  *x*",
        "# sentence 1",
        "%% Sent 2",
        "<S ID=3>",
        "(NP (# #)",
        "# ) (CD",
        "5))",
        "  # the end",
    ]
    with pytest.raises(DataError, match="line 7, column 1: the word '#' stands beside"):
        texts(*lines)
    lines[6] = "(# #) (CD"
    assert texts(*lines) == ["(NP (# #) (# #) (CD 5))"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["", " (S (NP (NN a))"], "line 2, column 2: this bracket is still open at the end"),
        (["(S (NP (NN a)", ""], "line 1, column 1: this bracket and 1 in it are still open"),
        (["(NN"], "line 1, column 1: this bracket is still open"),
        (["(NN dog"], "line 1, column 1: this bracket is still open"),
        (["(NN a))"], "line 1, column 7: one closing bracket too many; remove it"),
        (["(S (NN a) (VB ))"], r"line 1, column 15: \(VB\) holds neither a word nor const"),
        (["(S", "", "  )"], r"line 3, column 3: \(S\) holds neither"),
        (["(S ( ))"], "line 1, column 6: an empty bracket; remove it"),
        (["(S ())"], "line 1, column 5: an empty bracket"),
        (["dog (NN a)"], "line 1, column 1: 'dog' stands outside of every tree"),
        (["(NN a) dog"], "line 1, column 8: 'dog' stands outside of every tree"),
        (["(S (NN a) dog)"], "line 1, column 11: the word 'dog' stands beside constituents"),
        (["(S dog (NN a))"], "line 1, column 8: a bracket opens beside the word 'dog'"),
        (["(S dog", "(NN", "a))"], "line 2, column 1: a bracket opens beside the word 'dog'"),
        (["(NN two dogs)"], r"line 1, column 9: two words, .* as in \(NN two\) \(NN dogs\)"),
    ],
)
def test_what_is_no_tree_is_refused_where_it_stands(lines, message):
    with pytest.raises(DataError, match=f"^bank.mrg, {message}") as caught:
        list(read_trees(lines, "bank.mrg"))
    assert "\n" not in str(caught.value)
    assert "; " in str(caught.value)


def test_a_reader_that_complains_leaves_out_what_it_cannot_read():
    complaints = []
    lines = ["(A b)", "(C d e) (F g)", " (H i)", "(J k))", "(L m)", "(N (O p)", " (Q r"]
    trees = [write_tree(tree) for tree in read_trees(lines, on_error=complaints.append)]
    assert trees == ["(A b)", "(J k)", "(L m)"]
    assert [str(error).split(",")[1] for error in complaints] == [" line 2", " line 4", " line 6"]


def test_trees_are_read_one_by_one():
    def lines():
        yield "(A b)"
        raise AssertionError("read ahead")

    assert next(read_trees(lines())) == Leaf("A", "b")


@pytest.mark.parametrize("text", ["", "(A b) (C d)", "# (A b)"])
def test_one_tree_is_one(text):
    with pytest.raises(DataError, match=r"^expected one tree, found (0|2);"):
        parse_tree(text)


@pytest.mark.parametrize(
    "tree",
    [
        Leaf("NN", ""),
        Leaf("NN", "a b"),
        Leaf("NN", "a\n"),
        Leaf("", "a"),
        Leaf("N N", "a"),
        Node("N\tP", (Leaf("NN", "a"),)),
    ],
)
def test_what_could_not_be_read_again_is_not_written(tree):
    with pytest.raises(DataError, match=r"white space|has no tag"):
        write_tree(tree)


# ------------------------------------------------------------------------------ cleaning


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("( (S (NP-SBJ-1 (PRP We)) (VP (VBP go))))", "(S (NP (PRP We)) (VP (VBP go)))"),
        ("(ROOT (NP=2 (PRP$ my) (NN dog)))", "(NP (PRP$ my) (NN dog))"),
        ("(S (VP (VB go) (NP-1 (-NONE- *))))", "(S (VP (VB go)))"),
        ("(S (SBAR (WHNP (-NONE- 0)) (S (NP (-NONE- *T*)))) (VB go))", "(S (VB go))"),
        (
            "(S (NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-)))",
            "(S (NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-)))",
        ),
        ("(S (ADVP|PRT (RB up)))", "(S (ADVP|PRT (RB up)))"),
        ("(TOP (ROOT ( (S (NN a)))))", "(S (NN a))"),
        ("(S (ROOT (NN a)))", "(S (ROOT (NN a)))"),
        ("( (S (NN a)) (S (NN b)))", "(TOP (S (NN a)) (S (NN b)))"),
        ("(ROOT (S (NN a)) (. .))", "(TOP (S (NN a)) (. .))"),
        ("( (S (NN a)) (NP (-NONE- *)))", "(S (NN a))"),
        ("(ROOT (UH Yes))", "(TOP (UH Yes))"),
        ("(UH Yes)", "(TOP (UH Yes))"),
        ("(NP (NP (-NONE- *)) (NP (NN a)))", "(NP (NP (NN a)))"),
    ],
)
def test_cleaning_takes_off_what_parsers_do_not_learn(text, cleaned):
    assert write_tree(clean_tree(parse_tree(text))) == cleaned


def test_a_tree_of_traces_cleans_to_nothing():
    assert clean_tree(parse_tree("( (S (NP-SBJ (-NONE- *)) (VP (-NONE- *?*))))")) is None


@pytest.mark.slow
@given(any_tree)
def test_cleaning_twice_is_cleaning_once(tree):
    once = clean_tree(tree)
    if once is None:
        assert {leaf.tag for leaf in leaves(tree)} == {"-NONE-"}
    else:
        assert shape(clean_tree(once)) == shape(once)


@pytest.mark.slow
@given(any_tree)
def test_cleaning_keeps_the_words(tree):
    kept = [leaf.word for leaf in leaves(tree) if leaf.tag != "-NONE-"]
    cleaned = clean_tree(tree)
    assert kept == ([leaf.word for leaf in leaves(cleaned)] if cleaned else [])


def test_the_outermost_bracket_is_put_back():
    tree = parse_tree("(S (UH Oh))")
    assert write_tree(add_root(tree)) == "(TOP (S (UH Oh)))"
    assert write_tree(add_root(tree, "")) == "( (S (UH Oh)))"
    several = parse_tree("(TOP (S (UH Oh)) (S (UH Ah)))")
    assert write_tree(add_root(several, "ROOT")) == "(ROOT (S (UH Oh)) (S (UH Ah)))"


# --------------------------------------------------------------------------- unary chains


@pytest.mark.slow
@given(any_tree)
@example(Node("+", (Node("\\", (Node("\\p", (Leaf("NN", "a"),)),)),)))
@example(Node("", (Node("", (Leaf("NN", "a"),)),)))
def test_a_collapsed_tree_is_restored_as_it_was(tree):
    assert shape(restore_unary(collapse_unary(tree))) == shape(tree)


@pytest.mark.slow
@given(any_tree)
def test_no_constituent_of_a_collapsed_tree_has_one_constituent_only(tree):
    waiting = [collapse_unary(tree)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Node):
            assert len(one.children) > 1 or isinstance(one.children[0], Leaf)
            waiting.extend(one.children)


def test_a_chain_becomes_one_label_and_words_keep_their_tags():
    tree = parse_tree("(S (VP (VB Go) (ADVP (NP (NP (RB home))))))")
    assert write_tree(collapse_unary(tree)) == "(S+VP (VB Go) (ADVP+NP+NP (RB home)))"


def test_a_plus_in_a_label_is_no_joiner():
    tree = parse_tree("(N+V (X (NN+JJ a) (NN b)))")
    assert write_tree(collapse_unary(tree)) == r"(N\\pV+X (NN+JJ a) (NN b))"
    assert shape(restore_unary(collapse_unary(tree))) == shape(tree)


# ----------------------------------------------------------------------------- deep trees


def test_a_deep_tree_is_read_and_written():
    tree = comb(DEEP)
    again = parse_tree(write_tree(tree))
    assert spans(again) == spans(tree)
    assert [leaf.word for leaf in leaves(again)] == [str(n) for n in reversed(range(DEEP))]


@pytest.mark.slow
def test_a_deep_tree_is_cleaned():
    assert {span.label for span in spans(clean_tree(comb(DEEP)))} == {"NP"}
    assert len(spans(clean_tree(chain(DEEP, "ROOT")))) == 1


def test_a_deep_chain_is_collapsed_and_restored():
    joint = collapse_unary(chain(DEEP))
    assert joint.label.count("+") == DEEP - 1
    assert joint.children == (Leaf("NN", "dog"),)
    assert spans(restore_unary(joint)) == spans(chain(DEEP))
