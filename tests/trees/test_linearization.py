"""Trees as actions and back, and the grammar of actions as it is written to be read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import ConfigError, DataError
from dragoman.text.special_tokens import UNK
from dragoman.trees.linearization import (
    CLOSE,
    END,
    LINEARISATIONS,
    OPEN,
    WORD,
    Actions,
    Linearisation,
    get_linearisation,
)
from dragoman.trees.tree import Leaf, Node, Tree, leaves, spans

from ..conftest import more_examples

NAMES = list(LINEARISATIONS)

# What could be taken for an action of another kind, and what treebanks have.
TEXTS = ["DT", "-LRB-", "(", ")", "((", "_", "_DT", ")NP/2", "/", "2", "/1", "NP/3", "''", "$", "("]
texts = st.sampled_from(TEXTS) | st.text("(_)/1aé", min_size=1, max_size=4)
words = st.builds(Leaf, texts, st.text(min_size=1, max_size=3))


def above(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    labels = texts | st.just("")
    return st.builds(Node, labels, st.lists(children, min_size=1, max_size=4).map(tuple))


trees = above(st.recursive(words, above, max_leaves=12))
orders = st.builds(get_linearisation, st.sampled_from(NAMES))


def facts(tree: Tree) -> object:
    """What two trees share if they are the same."""
    return spans(tree), list(leaves(tree))


def texts_of(tree: Tree) -> list[str]:
    return [leaf.word for leaf in leaves(tree)]


DOG = Node(
    "S",
    (
        Node("NP", (Leaf("DT", "the"), Leaf("NN", "dog"))),
        Node("VP", (Leaf("VBZ", "barks"),)),
        Leaf(".", "."),
    ),
)


@pytest.mark.parametrize(
    ("name", "with_tags", "without"),
    [
        ("brackets", "(S (NP _DT _NN ) (VP _VBZ ) _. )", "(S (NP _ _ ) (VP _ ) _ )"),
        ("in-order", "_DT (NP _NN ) (S _VBZ (VP ) _. )", "_ (NP _ ) (S _ (VP ) _ )"),
        ("bottom-up", "_DT _NN )NP/2 _VBZ )VP/1 _. )S/3", "_ _ )NP/2 _ )VP/1 _ )S/3"),
    ],
)
def test_a_tree_becomes_the_actions_worked_by_hand(name: str, with_tags: str, without: str) -> None:
    assert get_linearisation(name).encode(DOG) == with_tags.split()
    plain = get_linearisation(name, tags=False)
    assert plain.encode(DOG) == without.split()
    again = plain.decode(without.split(), texts_of(DOG))
    assert spans(again) == spans(DOG)
    assert list(leaves(again)) == [Leaf("XX", word) for word in texts_of(DOG)]


@pytest.mark.slow
@more_examples(3)
@given(tree=trees, order=orders)
def test_a_tree_is_made_again_from_its_actions_and_words(tree: Node, order: Linearisation) -> None:
    assert facts(order.decode(order.encode(tree), texts_of(tree))) == facts(tree)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("leftwards", [False, True])
def test_a_tree_may_be_as_deep_and_as_broad_as_a_line_is_long(name: str, leftwards: bool) -> None:
    order, word = get_linearisation(name), Leaf("NN", "w")
    deep: Tree = word
    for _ in range(5000):
        deep = Node("NP", (deep, word) if leftwards else (word, deep))
    for tree in (deep, Node("NP", (word,) * 5000)):
        again = order.decode(order.encode(tree), texts_of(tree))
        assert facts(again) == facts(tree)


@pytest.mark.slow
@more_examples(2)
@given(tree=trees, order=orders, data=st.data())
def test_actions_that_make_no_tree_over_the_words_are_refused(
    tree: Node, order: Linearisation, data: st.DataObject
) -> None:
    actions, said = order.encode(tree), texts_of(tree)
    for wrong in (said[1:], [*said, "more"], []):
        with pytest.raises(DataError, match="no tree of"):
            order.decode(actions, wrong)
    cut = data.draw(st.integers(0, len(actions) - 1))
    if order.name == "brackets":  # in other orders a part of a tree may be a tree
        with pytest.raises(DataError, match="no tree of"):
            order.decode(actions[:cut], said)
    # What is accepted after two neighbours changed places is what the tree made of it encodes to.
    actions[cut : cut + 2] = reversed(actions[cut : cut + 2])
    try:
        made = order.decode(actions, said)
    except DataError:
        return
    assert order.encode(made) == actions


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("brackets", ")"),
        ("brackets", "_DT"),
        ("brackets", "(NP )"),
        ("brackets", "(NP _DT"),
        ("brackets", "(NP _DT ) )"),
        ("brackets", "(NP (VP ) _DT )"),
        ("in-order", "(NP _DT )"),
        ("in-order", "_DT (NP (VP ) )"),
        ("in-order", "_DT"),
        ("in-order", "_DT (NP"),
        ("bottom-up", "_DT"),
        ("bottom-up", "_DT )NP/2"),
        ("bottom-up", ")NP/1 _DT"),
    ],
)
def test_what_is_no_tree_over_one_word_is_refused(name: str, actions: str) -> None:
    with pytest.raises(DataError, match="no tree of 1 words"):
        get_linearisation(name).decode(actions.split(), ["the"])


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("brackets", "NP"),
        ("brackets", ""),
        ("in-order", ")NP/2"),
        ("bottom-up", "(NP"),
        ("bottom-up", ")NP/0"),
        ("bottom-up", ")NP"),
        ("bottom-up", ")"),
        ("bottom-up", "/2"),
    ],
)
def test_an_action_of_no_kind_is_refused(name: str, action: str) -> None:
    with pytest.raises(DataError, match=f"is not an action of the order {name}"):
        get_linearisation(name).decode([action], ["the"])


def test_a_word_alone_is_no_tree_and_an_unknown_order_is_refused() -> None:
    with pytest.raises(DataError, match="a word alone, the"):
        get_linearisation("brackets").encode(Leaf("DT", "the"))
    with pytest.raises(ConfigError, match="choose one of brackets, in-order, bottom-up"):
        get_linearisation("sideways")


# The vocabulary


@pytest.mark.parametrize("name", NAMES)
def test_the_vocabulary_has_the_most_frequent_actions_first_whatever_the_order_of_trees(
    name: str,
) -> None:
    order = get_linearisation(name)
    others = [Node("NP", (Leaf(tag, "w"),) * 2) for tag in ("NN", "NN", "JJ", "CD")]
    sequences = [order.encode(tree) for tree in (DOG, *others)]
    actions = Actions.build(order, sequences)
    assert actions == Actions.build(order, reversed(sequences))
    counts = [sum(sequence.count(action) for sequence in sequences) for action in actions.names]
    assert counts == sorted(counts, reverse=True)
    assert actions == Actions.from_data(json.loads(json.dumps(actions.to_data())))


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_ids_from_the_first_on_and_unknown_ones_are_reported(name: str) -> None:
    order = get_linearisation(name)
    actions = Actions.build(order, [order.encode(DOG)])
    ids = actions.ids(order.encode(DOG), first=50)
    assert min(ids) == 50
    assert max(ids) < 50 + len(actions)
    assert actions.sequence(ids, first=50) == order.encode(DOG)
    new = order.encode(Node("S", (Leaf("FW", "hund"),) * 3))
    assert actions.ids(new, first=50).count(UNK) == 3
    assert actions.unknown([new, new]) == {"_FW": 6}
    with pytest.raises(DataError, match="id 49 is not an action"):
        actions.sequence([49], first=50)


def test_no_trees_make_no_vocabulary() -> None:
    with pytest.raises(DataError, match="no trees"):
        Actions.build(get_linearisation("brackets"), [])


def test_bottom_up_one_and_two_children_are_always_possible() -> None:
    order = get_linearisation("bottom-up", tags=False)
    word = Leaf("NN", "w")
    rows = [Node("B", (word,) * 4), Node("A", (word,) * 3), Node("A", (word,) * 3)]
    actions = Actions.build(order, [order.encode(row) for row in rows])
    assert actions.names == ("_", ")A/3", ")B/4", ")A/1", ")A/2")
    # 1 + 3 constituents of 4 make 13 words one.
    assert [actions.fewest_actions(n) for n in (1, 2, 3, 4, 5, 6, 13)] == [2, 3, 4, 5, 7, 8, 17]


# The grammar


def all_trees(words: int, labels: str, chain: int) -> list[Tree]:
    """Every tree over words `w` with at most `chain` single children in a row, words alone too."""

    def over(n: int, room: int) -> Iterator[Tree]:
        if n == 1:
            yield Leaf("XX", "w")
        for label in labels:
            yield from (Node(label, children) for children in several(n))
            if room:
                yield from (Node(label, (child,)) for child in over(n, room - 1))

    def several(n: int) -> Iterator[tuple[Tree, ...]]:
        for first in range(1, n):
            for tree in over(first, chain):
                yield from ((tree, *others) for others in several(n - first))
                yield from ((tree, other) for other in over(n - first, chain))

    return list(over(words, chain))


def most_at_one_word(tree: Tree) -> int:
    return max(Counter(span.start for span in spans(tree)).values())


def admitted(actions: Actions, words: int, room: int) -> list[list[str]]:
    """Every sequence the grammar leads to; no way ends before it is whole."""
    whole, waiting = [], [[]]
    while waiting:
        prefix = waiting.pop()
        kinds = actions.allowed(prefix, words, room - len(prefix))
        assert kinds, f"{prefix} leads nowhere"
        if END in kinds:
            whole.append([actions.names[index] for index in prefix])
        for index, kind in enumerate(actions.kinds):
            if kind in kinds:
                waiting.append([*prefix, index])
    return whole


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("words", "labels", "chain"),
    [(1, "AB", 3), (2, "AB", 2), (3, "A", 2), (3, "AB", 1), (4, "A", 1)],
)
def test_the_grammar_admits_every_tree_within_its_bounds_once(
    name: str, words: int, labels: str, chain: int
) -> None:
    order = get_linearisation(name, tags=False)
    inside = [tree for tree in all_trees(words, labels, chain) if isinstance(tree, Node)]
    if name == "brackets":
        inside = [tree for tree in inside if most_at_one_word(tree) <= chain]
    sequences = [order.encode(tree) for tree in inside]
    actions = Actions.build(order, sequences)
    assert actions.longest_chain == chain
    longest = max(map(len, sequences))
    least = min(map(len, sequences))
    assert actions.fewest_actions(words) == least
    for room in {least, (least + longest) // 2, longest, longest + 3}:
        expected = sorted(sequence for sequence in sequences if len(sequence) <= room)
        assert sorted(admitted(actions, words, room)) == expected
    assert actions.allowed([], words, least - 1) == set()


@pytest.mark.slow
@pytest.mark.parametrize("arities", [{1, 2}, {1, 2, 4}, {1, 2, 3}])
def test_bottom_up_only_the_numbers_of_children_there_are_lead_to_trees(arities: set[int]) -> None:
    order = get_linearisation("bottom-up", tags=False)
    names = ["_", *(f")A/{arity}" for arity in sorted(arities))]
    actions = Actions(order, tuple(names), longest_chain=1)
    sequences = [
        sequence
        for tree in all_trees(4, "A", 1)
        if set(map(order.kind, sequence := order.encode(tree))) <= {WORD, *arities}
    ]
    for room in range(min(map(len, sequences)), max(map(len, sequences)) + 1):
        expected = sorted(sequence for sequence in sequences if len(sequence) <= room)
        assert sorted(admitted(actions, 4, room)) == expected


@pytest.mark.slow
@settings(deadline=None)
@given(some=st.lists(trees, min_size=1, max_size=5), name=st.sampled_from(NAMES))
def test_a_training_tree_is_always_allowed(some: list[Node], name: str) -> None:
    order = get_linearisation(name)
    sequences = [order.encode(tree) for tree in some]
    actions = Actions.build(order, sequences)
    for tree, sequence in zip(some, sequences, strict=True):
        words = len(texts_of(tree))
        path = actions.ids(sequence, first=0)
        for place, index in enumerate(path):
            kinds = actions.allowed(path[:place], words, len(path) - place)
            assert actions.kinds[index] in kinds
        assert END in actions.allowed(path, words, 0)


def test_what_may_follow_equals_what_was_worked_by_hand() -> None:
    brackets = Actions(get_linearisation("brackets"), ("(A", ")", "_t"), longest_chain=2)
    open_, close, word = range(3)
    assert brackets.allowed([], 2, 9) == {OPEN}
    assert brackets.allowed([], 2, 3) == set()
    assert brackets.allowed([open_], 2, 3) == {WORD}  # no room for another
    assert brackets.allowed([open_], 2, 5) == {WORD, OPEN}
    assert brackets.allowed([open_, open_], 2, 9) == {WORD}  # two begin here
    assert brackets.allowed([open_, word], 2, 9) == {WORD, OPEN}  # a word is left
    assert brackets.allowed([open_, word, word], 2, 9) == {CLOSE}
    assert brackets.allowed([open_, word, word, close], 2, 9) == {END}
    assert brackets.allowed([open_, close], 2, 9) == set()
    in_order = Actions(get_linearisation("in-order"), ("(A", ")", "_t"), longest_chain=1)
    assert in_order.allowed([word], 1, 2) == {OPEN}
    assert in_order.allowed([word, open_], 2, 9) == {WORD, CLOSE}
    assert in_order.allowed([word, open_, close, open_], 2, 9) == {WORD}  # one single child
    assert in_order.allowed([word, open_, close], 1, 9) == {END}
    assert in_order.allowed([word, open_], 2, 3) == {WORD}  # the root must come
