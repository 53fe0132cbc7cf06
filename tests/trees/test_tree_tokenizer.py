"""Sentences to pieces, trees to actions, and back."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerConfig, TreesConfig
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.phrasebook import generate
from dragoman.text.special_tokens import FIRST_PIECE, UNK
from dragoman.text.tokenizer import Tokenizer, _fingerprint
from dragoman.trees.bracketing import parse_tree, write_tree
from dragoman.trees.linearization import LINEARISATIONS
from dragoman.trees.tokenizer_kinds import load_tokenizer
from dragoman.trees.tree import leaves
from dragoman.trees.tree_tokenizer import TreeTokenizer

# A chain, labels with signs that collapsing spells otherwise, a word with a no-break space.
ODD = [
    "(FRAG (X (S (VP (VB Go)))))",
    r"(A+B (C\\p (X a) (Y b)) (A\<\> (X ⟦0⟧)))",
    "(S (NP (CD 10\u00a0000)) (VP (VBP -LRB-) (XX -RRB-)))",
]
TREES = [*(example.source_tree for example in generate("de", "train", 150)), *ODD]
PAIRS = [(" ".join(leaf.word for leaf in leaves(parse_tree(tree))), tree) for tree in TREES]
CONFIG = TokenizerConfig(vocabulary=420)


@cache
def learned(order: str = "in-order", collapse: bool = True, tags: bool = True) -> TreeTokenizer:
    trees = TreesConfig(linearization=order, collapse_unary=collapse, tags=tags)
    return TreeTokenizer.learn(PAIRS, CONFIG, trees)


@pytest.fixture(params=LINEARISATIONS)
def order(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- round trips ---


@pytest.mark.slow
@pytest.mark.parametrize("collapse", [True, False])
def test_a_tree_is_made_again_of_its_actions_and_words(order: str, collapse: bool) -> None:
    tokenizer = learned(order, collapse)
    for (source, tree), ids in zip(PAIRS, tokenizer.encode_targets(TREES), strict=True):
        assert tokenizer.decode_target(ids, source) == tree
        assert write_tree(tokenizer.tree(ids, source.split(" "))) == tree


@pytest.mark.slow
def test_collapsing_makes_fewer_actions_of_more_kinds(order: str) -> None:
    collapsed, plain = learned(order), learned(order, collapse=False)
    counts = [sum(map(len, one.encode_targets(TREES))) for one in (collapsed, plain)]
    assert counts[0] < counts[1]
    assert any("+" in name for name in collapsed.actions.names)
    assert collapsed.actions.longest_chain < plain.actions.longest_chain


@pytest.mark.slow
def test_without_tags_a_tree_is_the_same_but_for_them(order: str) -> None:
    tokenizer = learned(order, tags=False)
    for (source, tree), ids in zip(PAIRS, tokenizer.encode_targets(TREES), strict=True):
        untagged = re.sub(r"\([^ ()]+ (?=[^ ()]+\))", "(XX ", tree)
        assert tokenizer.decode_target(ids, source) == untagged
        assert tokenizer.encode_targets([untagged]) == [ids]


def test_targets_have_the_first_ids_and_sources_have_none_of_them(order: str) -> None:
    tokenizer = learned(order)
    total, targets = tokenizer.sizes
    announcements = tokenizer.announcements
    assert total == len(tokenizer) == CONFIG.vocabulary + len(announcements)
    assert targets == FIRST_PIECE + len(tokenizer.actions) + len(announcements) < total
    actions = {id_ for ids in tokenizer.encode_targets(TREES) for id_ in ids}
    assert actions <= set(range(FIRST_PIECE, targets))
    sources = [source for source, tree in PAIRS if "⟦" not in source]
    pieces = {id_ for ids in tokenizer.encode_batch(sources) for id_ in ids}
    assert pieces <= set(range(targets, total))


def test_a_label_of_another_treebank_is_unknown() -> None:
    (ids,) = learned().encode_targets(["(S (NP (DT the) (NN dog)) (NEW (VBZ barks)))"])
    assert ids.count(UNK) == 1
    with pytest.raises(DataError, match=rf"id {UNK} is not an action"):
        learned().tree(ids, ["the", "dog", "barks"])


def test_pieces_of_actions_are_their_names() -> None:
    tokenizer = learned()
    (target,) = tokenizer.encode_targets(["(S (NP (DT The) (NN dog)) (VP (VBZ barks)))"])
    assert " ".join(tokenizer.pieces(target)) == "# _DT # (NP _NN # ) (S _VBZ (VP ) )"
    plain = tokenizer.only_actions(target)
    assert " ".join(tokenizer.pieces(plain)) == "_DT (NP _NN ) (S _VBZ (VP ) )"
    source = tokenizer.encode("The dog")
    assert "".join(tokenizer.pieces(source)) == "▁The▁dog"
    assert tokenizer.pieces([0, 1, 2, 3]) == Tokenizer.pieces(tokenizer, [0, 1, 2, 3])
    assert tokenizer.pieces([10**6]) == ["<unk>"]


def test_a_word_is_announced_by_its_first_piece() -> None:
    tokenizer = learned()
    ids = tokenizer.announcement_ids(["dog", "the", "dog", "\u200b"])
    assert ids[0] == ids[2] != ids[1]
    assert set(ids) <= set(tokenizer.announcements)
    assert tokenizer.announcement_ids([]) == []
    first = tokenizer.encode("dog")[0]
    assert ids[0] == tokenizer.announcements[first % len(tokenizer.announcements)]


def test_words_are_announced_in_their_order_one_ahead() -> None:
    tokenizer = learned()
    (target,) = tokenizer.encode_targets(["(S (NP (DT The) (NN dog)) (VP (VBZ barks)))"])
    told = [id_ for id_ in target if id_ in tokenizer.announcements]
    assert told == tokenizer.announcement_ids(["The", "dog", "barks"])


def test_without_announcements_targets_are_actions_alone() -> None:
    trees = TreesConfig(announcements=0)
    tokenizer = TreeTokenizer.learn(PAIRS, CONFIG, trees)
    (target,) = tokenizer.encode_targets(["(S (NP (DT The) (NN dog)) (VP (VBZ barks)))"])
    assert " ".join(tokenizer.pieces(target)) == "_DT (NP _NN ) (S _VBZ (VP ) )"
    assert len(tokenizer) == CONFIG.vocabulary
    assert tokenizer.announcement_ids(["The"]) == []


# --- words ---


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_every_word_has_a_piece_and_the_source_as_many_words(words: list[str]) -> None:
    words = ["".join(word.split(" ")) or "x" for word in words]
    tokenizer = learned()
    source = tokenizer.join_words(words)
    assert len(tokenizer.split_source(source)) == len(words)
    assert all(tokenizer.encode(word) for word in tokenizer.split_source(source))


def test_a_word_that_normalises_to_nothing_is_seen_as_a_sign() -> None:
    assert learned().join_words(["a", "\x01", "\u00a0", "\x7f\x9f", "b\x01"]) == "a � � � b\x01"


# --- on disk ---


@pytest.mark.slow
@pytest.mark.parametrize("collapse", [True, False])
def test_saved_and_loaded_it_is_the_same(order: str, collapse: bool, tmp_path: Path) -> None:
    tokenizer = learned(order, collapse)
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert isinstance(loaded, TreeTokenizer)
    assert loaded == tokenizer
    assert loaded.actions == tokenizer.actions
    assert loaded.encode_targets(TREES) == tokenizer.encode_targets(TREES)
    assert loaded.decode_target(loaded.encode_targets(TREES[:1])[0], PAIRS[0][0]) == TREES[0]
    travelled = pickle.loads(pickle.dumps(tokenizer))
    assert travelled == tokenizer
    assert travelled.encode_targets(TREES) == tokenizer.encode_targets(TREES)


def test_tokenisers_that_do_otherwise_are_not_equal() -> None:
    everything = [learned(o, c) for o in LINEARISATIONS for c in (True, False)]
    everything.append(learned(tags=False))
    plain = Tokenizer(learned().model, kind="bpe", normalization="nfc")
    assert len({one.fingerprint for one in [*everything, plain]}) == len(everything) + 1
    assert plain != learned()


def _truncated(settings: dict[str, Any]) -> str:
    return json.dumps(settings)[:-20]


def _without_trees(settings: dict[str, Any]) -> str:
    del settings["trees"]
    return json.dumps(settings)


def _renamed(settings: dict[str, Any]) -> str:
    settings["trees"]["names"][3] = "(WRONG"
    return json.dumps(settings)


def _swapped(settings: dict[str, Any]) -> str:
    names = settings["trees"]["names"]
    names[0], names[1] = names[1], names[0]
    return json.dumps(settings)


def _expanded(settings: dict[str, Any]) -> str:
    settings["trees"]["collapse_unary"] = False
    return json.dumps(settings)


def _garbage(settings: dict[str, Any]) -> str:
    settings["trees"] = 7
    return json.dumps(settings)


@pytest.mark.parametrize(
    "change", [_truncated, _without_trees, _renamed, _swapped, _expanded, _garbage]
)
def test_changed_settings_are_refused_in_one_line(
    change: Callable[[dict[str, Any]], str], tmp_path: Path
) -> None:
    learned().save(tmp_path)
    file = tmp_path / "tokenizer.json"
    file.write_text(change(json.loads(file.read_text())))
    with pytest.raises(ModelError, match=str(tmp_path)) as refused:
        load_tokenizer(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"linearisation": "sideways"},
        {"names": ["dog"]},
        {"names": 3},
        {"longest_chain": ...},
        {"names": [None]},
        {"collapse_unary": ...},
    ],
)
def test_settings_that_make_no_actions_are_refused_even_with_the_right_fingerprint(
    change: dict[str, Any], tmp_path: Path
) -> None:
    learned().save(tmp_path)
    file = tmp_path / "tokenizer.json"
    settings = json.loads(file.read_text())
    trees = {k: v for k, v in {**settings["trees"], **change}.items() if v is not ...}
    model = learned().model
    settings |= {"trees": trees, "fingerprint": _fingerprint(model, "bpe", "nfc", trees)}
    file.write_text(json.dumps(settings))
    with pytest.raises(ModelError) as refused:
        load_tokenizer(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path / 'tokenizer.model'}: the actions of its trees cannot be read; train it again"
    )


def test_the_pieces_of_another_treebank_are_refused() -> None:
    trees = learned()._additional_settings
    other = Tokenizer.train([source for source, _ in PAIRS], CONFIG).model
    with pytest.raises(ModelError, match="not the tokeniser of these actions; copy the directory"):
        TreeTokenizer(other, kind="bpe", normalization="nfc", trees=trees)


# --- learning ---


def test_the_users_own_symbols_are_refused() -> None:
    config = TokenizerConfig(vocabulary=420, symbols=("<de>",))
    with pytest.raises(ConfigError, match=r"tokenizer\.symbols mean nothing to a parser"):
        TreeTokenizer.learn(PAIRS, config, TreesConfig())


def test_no_tree_is_nothing_to_learn_from() -> None:
    with pytest.raises(DataError, match="there are no trees to take actions from"):
        TreeTokenizer.learn([], CONFIG, TreesConfig())
