"""Words in, trees out, whatever the model prefers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import pytest
import torch

import dragoman
from dragoman.config import Config
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.inference.parser import Parse, Parser, load_parser
from dragoman.model_directory import save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.phrasebook import generate
from dragoman.trees.bracketing import parse_tree, write_tree
from dragoman.trees.linearization import LINEARISATIONS
from dragoman.trees.tree import leaves
from dragoman.trees.tree_tokenizer import TreeTokenizer

from ..conftest import Result

TINY = [
    "data.task=parsing",
    "data.max_length=60",
    "tokenizer.vocabulary=400",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
]
TREES = [example.source_tree for example in generate("de", "train", 150)]


def words_of(tree: str) -> list[str]:
    return [leaf.word for leaf in leaves(parse_tree(tree))]


SENTENCES = [words_of(tree) for tree in TREES[:12]]


def untrained(directory: Path, *assignments: str, trees: list[str] = TREES, seed: int = 0) -> Path:
    """A model directory with weights as they were drawn."""
    config = Config().overridden([*TINY, *assignments])
    pairs = [(" ".join(words_of(tree)), tree) for tree in trees]
    tokenizer = TreeTokenizer.learn(pairs, config.tokenizer, config.trees)
    torch.manual_seed(seed)
    model = build(config.model, *tokenizer.sizes)
    save_model(directory, get_weights(model), config, tokenizer, {})
    return directory


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untrained(tmp_path_factory.mktemp("untrained") / "model")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untrained(tmp_path_factory.mktemp("other") / "model", "model.d_model=24", seed=1)


@pytest.fixture(scope="module")
def parser(path: Path) -> Parser:
    return load_parser(path)


@pytest.fixture
def warnings(parser: Parser, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    heard: list[str] = []
    monkeypatch.setattr(parser, "warn", heard.append)
    return heard


def everything(found: Parse | None) -> list[Parse]:
    assert found is not None
    return [found, *found.alternatives]


def shown(found: Parse | None) -> str:
    assert found is not None
    return write_tree(found.tree)


# --- a tree for every sentence ---


@pytest.mark.slow
@pytest.mark.parametrize("collapse", ["true", "false"])
@pytest.mark.parametrize("order", LINEARISATIONS)
def test_every_sentence_gets_a_tree_over_exactly_its_words(
    order: str, collapse: str, tmp_path: Path
) -> None:
    settings = [f"trees.linearization={order}", f"trees.collapse_unary={collapse}"]
    parser = load_parser(untrained(tmp_path / "model", *settings))
    for beam in (1, 4):
        found = parser.parse([["Go"], *SENTENCES, ["word"] * 40], beam=beam, n_best=min(beam, 3))
        for words, best in zip([["Go"], *SENTENCES, ["word"] * 40], found, strict=True):
            for one in everything(best):
                assert [leaf.word for leaf in leaves(one.tree)] == words
                assert one.words == tuple(words)
                assert shown(one) == write_tree(parse_tree(shown(one)))
                assert "+" not in "".join(label for label in shown(one).split() if label[0] == "(")


def test_without_tags_every_word_is_tagged_xx(tmp_path: Path) -> None:
    parser = load_parser(untrained(tmp_path / "model", "trees.tags=false"))
    for found in parser.parse(SENTENCES):
        assert {leaf.tag for one in everything(found) for leaf in leaves(one.tree)} == {"XX"}


def test_the_order_is_kept_and_batch_mates_change_nothing(parser: Parser) -> None:
    alone = [parser.parse([words])[0] for words in SENTENCES]
    together = parser.parse([*reversed(SENTENCES), [], ["x"] * 70])
    for one, found in zip(reversed(alone), together, strict=False):
        assert shown(found) == shown(one)
        assert everything(found)[0].score == pytest.approx(everything(one)[0].score, abs=1e-4)


def test_no_words_make_no_tree(parser: Parser) -> None:
    assert parser.parse([]) == []
    assert parser.parse([[], []]) == [None, None]
    first, nothing, last = parser.parse([["dog"], [], ["dog"]])
    assert nothing is None
    assert shown(first) == shown(last)


@pytest.mark.parametrize("word", ["", " ", "two words", "a\ttab", "a\nline"])
def test_what_is_no_word_is_refused(word: str, parser: Parser) -> None:
    with pytest.raises(
        DataError, match=r"^sentence 2: .* is not a word; a word is not empty and has"
    ):
        parser.parse([["fine"], ["The", word]])


def test_a_sentence_that_is_not_split_is_refused(parser: Parser) -> None:
    with pytest.raises(DataError, match="sentence 1: ' ' is not a word"):
        parser.parse(["The dog barks ."])


# --- n-best ---


def test_n_best_are_different_and_best_first(parser: Parser) -> None:
    for found in parser.parse(SENTENCES, n_best=4):
        trees = everything(found)
        assert len({shown(one) for one in trees}) == len(trees) == 4
        scores = [one.score for one in trees]
        assert scores == sorted(scores, reverse=True)
        assert all(one.alternatives == () for one in trees[1:])
    plain = parser.parse(SENTENCES, beam=4)
    assert [shown(one) for one in plain] == [shown(one) for one in parser.parse(SENTENCES)]


def test_a_chain_as_one_action_or_as_two_is_one_tree(tmp_path: Path) -> None:
    """(S+VP … ) and (S (VP … )) are both in reach."""
    few_labels = [re.sub(r"\((?!VP)[A-Z]+ (?=\()", "(S ", tree) for tree in TREES]
    parser = load_parser(untrained(tmp_path / "model", "trees.tags=false", trees=few_labels))
    assert {"(S", "(VP", "(S+VP"} <= set(parser.tokenizer.actions.names)
    (found,) = parser.parse([["a", "b"]], n_best=60)
    trees = [shown(one) for one in everything(found)]
    assert "(S (VP (XX a) (XX b)))" in trees
    assert len(set(trees)) == len(trees) > 40
    (found,) = parser.parse([["a", "b"]], n_best=len(trees), beam=200)
    assert len(everything(found)) == len(trees), "others make up for those found twice"


def test_options_are_the_configs_unless_given(parser: Parser) -> None:
    assert parser.config.search.beam == 4

    def best(**options: Any) -> list[Parse]:
        return [everything(one)[0] for one in parser.parse(SENTENCES, **options)]

    by_default = [one.score for one in best()]
    penalty = parser.config.search.length_penalty
    assert [one.score for one in best(beam=4, length_penalty=penalty)] == by_default
    plain = best(length_penalty=0.0)
    assert [one.score for one in plain] == pytest.approx([one.log_prob for one in plain])
    assert [one.score for one in plain] != pytest.approx(by_default)
    one_word = [[word] for word in SENTENCES[0]]  # of which a beam of 16 sees the best tree
    greedy, wide = (
        [everything(found)[0].log_prob for found in parser.parse(one_word, beam=beam)]
        for beam in (1, 16)
    )
    assert all(w >= g for w, g in zip(wide, greedy, strict=True))
    assert wide != greedy
    with pytest.raises(ConfigError, match=r"n_best = 3 is more than search\.beam = 2"):
        best(n_best=3, beam=2)
    with pytest.raises(ConfigError, match=r"search\.n_best = 0 is too small"):
        best(n_best=0)
    assert len(everything(parser.parse(SENTENCES, n_best=7)[0])) == 7, "the beam is widened"


def test_a_parse_as_json_holds_what_it_is(parser: Parser) -> None:
    (found,) = parser.parse([["The", "dog"]], n_best=2)
    best, second = everything(found)
    table = json.loads(json.dumps(best.to_dict()))
    assert table["words"] == ["The", "dog"]
    assert table["tree"] == shown(best)
    assert table["score"] == pytest.approx(best.score, abs=1e-6)
    assert [one["tree"] for one in table["alternatives"]] == [shown(second)]
    assert best.actions == len(parser.tokenizer.encode_targets([shown(best)])[0])
    assert best.confidence == pytest.approx(exp(best.log_prob / (best.actions + 1)))
    assert 0 < best.confidence < 1


# --- lines ---


def test_lines_keep_their_order_and_number_whatever_the_window(parser: Parser) -> None:
    lines = ["The dog doesn't bark.", "", "Go!", "  ", "It (the cat) sleeps."] * 3
    expected = [shown(one) if one else "" for one in parser.parse([parser.split(x) for x in lines])]
    for window in (1, 4, 100):
        found = parser.parse_lines(lines, window=window)
        assert [shown(one) if one else "" for one in found] == expected
    assert [bool(text) for text in expected] == [True, False, True, False, True] * 3


def test_lines_that_are_tokenised_are_cut_at_white_space_alone(parser: Parser) -> None:
    line = "don't\tstop  (now)."
    (cut,) = parser.parse_lines([line])
    (kept,) = parser.parse_lines([line], tokenized=True)
    assert everything(cut)[0].words == ("do", "n't", "stop", "(", "now", ")", ".")
    assert everything(kept)[0].words == ("don't", "stop", "(now).")


def test_no_more_than_a_window_is_read_ahead(parser: Parser) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "dog"

    found = parser.parse_lines(endless(), window=3, beam=1)
    assert read == 0, "nothing is read before it is asked for"
    next(found)
    assert read == 3


def test_a_sentence_longer_than_any_seen_is_parsed_with_a_warning(
    parser: Parser, warnings: list[str]
) -> None:
    assert len(parser.tokenizer.encode("The")) == 1
    assert parser.parse([["The"] * 60], beam=1)
    assert warnings == []
    _, found = parser.parse([["The"] * 60, ["The"] * 61], beam=1)
    assert len(everything(found)[0].words) == 61
    assert warnings == [
        "1 sentence of more than 60 pieces, longer than any the model has learned from; "
        "the trees may be poor"
    ]


# --- bad input ---

ODD_LINES: dict[str, tuple[str, list[str] | None]] = {
    "empty": ("", []),
    "white space": (" \t\u00a0\u3000\x0b\x0c\x1c\x85 ", []),
    "U+2028": ("a\u2028b\u2029c", ["a", "b", "c"]),
    "tabs": ("a\tb\t\tc", ["a", "b", "c"]),
    "a carriage return": ("a b\r", ["a", "b"]),
    "NUL": ("a \x00 b\x00", None),
    "control characters": ("\x01 a\x02b \x7f \x9f \x1b[31mred", None),
    "only a control character": ("\x01", ["\x01"]),
    "zero-width characters": ("a\u200bb \u200b \u200d \ufeff \u2060x", None),
    "emoji": ("I ❤️ 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 👍🏽", ["I", "❤️", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "👍🏽"]),
    "unbalanced brackets": (")) a ( ( [ } b", [")", ")", "a", "(", "(", "[", "}", "b"]),
    "an empty bracket": ("()", ["(", ")"]),
    "a tree": ("(S (NP (DT the)))", None),
    "escapes": (r"-LRB- \ \-LRB- \\ -LRB -RRB-RRB- \<", None),
    "a word never seen": ("Xylophonzäpfchenŋ", ["Xylophonzäpfchenŋ"]),
    "Korean": ("고양이가 소파에서 잔다 .", ["고양이가", "소파에서", "잔다", "."]),
    "Arabic": ("القطة تنام على الأريكة", ["القطة", "تنام", "على", "الأريكة"]),
    "Hebrew with marks": ("שָׁלוֹם", ["שָׁלוֹם"]),
    "a lone combining mark": ("\u0301 \u0301a", ["\u0301", "\u0301a"]),
    "not normalised": ("Ka\u0308se \ufb01n \u2581", None),
    "a lone surrogate": ("a \ud800 b", ["a", "\ud800", "b"]),
    "an action's symbol": ("⟦0⟧ </s> <unk> <0x41>", None),
    "half of the private planes": ("\U0010fffd \ue000", ["\U0010fffd", "\ue000"]),
    "a line of 1,000 words": ("word " * 1000, ["word"] * 1000),
    "a word of 5,000 characters": ("x" * 5000, ["x" * 5000]),
}


@pytest.mark.slow
@pytest.mark.parametrize("tokenized", [False, True])
def test_whatever_the_line_its_tree_has_exactly_its_words(tokenized: bool, parser: Parser) -> None:
    lines = [line for line, _ in ODD_LINES.values()]
    found = list(parser.parse_lines(lines, tokenized=tokenized, beam=1))
    assert len(found) == len(lines)
    for (name, (line, words)), one in zip(ODD_LINES.items(), found, strict=True):
        cut = line.split() if tokenized else parser.split(line)
        assert "".join(cut) == "".join(line.split()), name
        if not cut:
            assert one is None, name
            continue
        assert one is not None, name
        if words is not None and not tokenized:
            assert list(one.words) == words, name
        assert list(one.words) == cut, name
        assert [leaf.word for leaf in leaves(one.tree)] == cut, name
        text = write_tree(one.tree)
        assert [leaf.word for leaf in leaves(parse_tree(text))] == cut, name
        assert "\n" not in text, name


def test_a_beam_survives_the_same_lines(parser: Parser) -> None:
    lines = [line for name, (line, _) in ODD_LINES.items() if name != "a line of 1,000 words"]
    found = list(parser.parse_lines(lines, beam=4, n_best=2))
    assert [[leaf.word for leaf in leaves(one.tree)] if one else [] for one in found] == [
        parser.split(line) for line in lines
    ]


# --- ensembles ---


@pytest.mark.slow
def test_an_ensemble_parses_and_of_twins_is_the_one(path: Path, other: Path) -> None:
    alone = load_parser(path, precision="float32")
    twins, both = load_parser(path, path), load_parser(path, other)
    first, second = alone.parse(SENTENCES, beam=2), twins.parse(SENTENCES, beam=2)
    assert [shown(one) for one in first] == [shown(one) for one in second]
    for one, two in zip(first, second, strict=True):
        assert everything(two)[0].score == pytest.approx(everything(one)[0].score, abs=1e-4)
    mixed = both.parse(SENTENCES, beam=2)
    assert [everything(one)[0].score for one in mixed] != pytest.approx(
        [everything(one)[0].score for one in first]
    )
    for words, found in zip(SENTENCES, mixed, strict=True):
        assert [leaf.word for leaf in leaves(everything(found)[0].tree)] == words


def test_an_ensemble_needs_one_treebank(path: Path, tmp_path: Path) -> None:
    stranger = untrained(tmp_path / "model", trees=TREES[:100])
    with pytest.raises(ModelError, match="has other pieces or labels than") as refused:
        load_parser(path, stranger)
    assert str(refused.value).startswith(f"{stranger}: ")
    turned = untrained(tmp_path / "turned", "trees.linearization=brackets")
    with pytest.raises(ModelError, match="has other pieces or labels than"):
        load_parser(path, turned)


# --- the wrong kind ---


def test_a_translator_is_no_parser_and_a_parser_no_translator(
    path: Path, trained: Path, command: Callable[..., Result]
) -> None:
    with pytest.raises(ModelError) as refused:
        load_parser(trained)
    assert (
        str(refused.value) == f"{trained / 'model'}: a translator; use it with dragoman translate"
    )
    with pytest.raises(ModelError) as refused:
        dragoman.load(path)
    assert str(refused.value) == f"{path}: a parser; use it with dragoman parse"
    result = command("translate", path, stdin=b"The dog barks.\n")
    assert (result.status, result.out) == (2, "")
    assert result.err == f"dragoman: {path}: a parser; use it with dragoman parse\n"
    result = command("parse", trained, stdin=b"The dog barks.\n")
    assert (result.status, result.out) == (2, "")
    assert result.err == (
        f"dragoman: {trained / 'model'}: a translator; use it with dragoman translate\n"
    )


def test_an_ensemble_of_a_parser_and_a_translator_is_refused(path: Path, trained: Path) -> None:
    with pytest.raises(ModelError, match="has other pieces or labels"):
        load_parser(path, trained)


def test_running_text_is_cut_as_the_treebank_cuts_it(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parser.split("a well-known dog.") == ["a", "well-known", "dog", "."]
    actions = parser.tokenizer.actions
    with_hyphens = replace(actions, names=(*actions.names[:-1], "_HYPH"))
    monkeypatch.setattr(parser.tokenizer, "actions", with_hyphens)
    assert parser.split("a well-known dog.") == ["a", "well", "-", "known", "dog", "."]
