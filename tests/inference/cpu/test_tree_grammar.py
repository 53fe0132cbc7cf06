"""In the CPU engine, too, whatever the model prefers is a tree over exactly the words."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.inference.cpu import CpuEngine
from dragoman.inference.cpu.tree_grammar import TreeGrammar
from dragoman.inference.parser import Parse, Parser, load_parser
from dragoman.model_directory import INT8_FILE, load_model, save_model, write_int8_file
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.phrasebook import generate
from dragoman.search import Hypothesis, SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.search.constraints.tree_grammar import TreeConstraint
from dragoman.text.special_tokens import EOS, FIRST_PIECE
from dragoman.trees.bracketing import parse_tree, write_tree
from dragoman.trees.grammar import SentencesToParse
from dragoman.trees.linearization import END, LINEARISATIONS, WORD, Actions, get_linearisation
from dragoman.trees.tree import leaves
from dragoman.trees.tree_tokenizer import TreeTokenizer

from ...kernel import needs_kernel
from .small_models import BASE, VOCABULARY, engine, in_int8, made

pytestmark = needs_kernel

ORDERS = list(LINEARISATIONS)
ANNOUNCEMENTS = 7


def vocabulary(order: str, chain: int = 2, *, tags: bool = True) -> Actions:
    words = ("_x", "_y") if tags else ("_",)
    if order == "bottom-up":
        makes = tuple(f"){label}/{arity}" for arity in (1, 2, 3, 5) for label in "AB")
    else:
        makes = ("(A", ")", "(B")
    return Actions(get_linearisation(order, tags=tags), (*words, *makes), chain)


def to_parse(actions: Actions, words: list[int], *, announced: bool) -> SentencesToParse:
    first = FIRST_PIECE + len(actions)
    ids = range(first, first + (ANNOUNCEMENTS if announced else 0))
    told = [[ids[(3 * n + i) % len(ids)] if ids else 0 for i in range(n)] for n in words]
    return SentencesToParse(actions, words, told if announced else [[] for _ in words], ids)


def lengths(count: int, seed: int, longest: int = 9) -> list[int]:
    draw = random.Random(seed)
    return [draw.randint(1, longest) for _ in range(count)]


def pieces(words: list[int]) -> list[list[int]]:
    draw = random.Random(sum(words))
    return [[draw.randrange(FIRST_PIECE, VOCABULARY) for _ in range(n + n // 3)] for n in words]


def check(found: Hypothesis, wanted: SentencesToParse, sentence: int) -> None:
    """Its actions make a tree of the words, each of which is announced where it has to be."""
    actions, words = wanted.actions, wanted.words[sentence]
    only = [id_ for id_ in found.ids if id_ not in wanted.announcements]
    tree = actions.order.decode(
        actions.sequence(only, FIRST_PIECE), [f"w{i}" for i in range(words)]
    )
    assert len(list(leaves(tree))) == words
    coming = iter(wanted.announced[sentence])
    told = [*([next(coming)] if wanted.announcements else [])]
    for id_ in only:
        told.append(id_)
        if actions.kinds[id_ - FIRST_PIECE] == WORD and (next_ := next(coming, None)) is not None:
            told.append(next_)
    assert found.ids == told


@pytest.mark.slow
@pytest.mark.parametrize("announced", [False, True], ids=["alone", "announced"])
@pytest.mark.parametrize("tags", [True, False], ids=["tags", "no tags"])
@pytest.mark.parametrize("order", ORDERS)
def test_every_hypothesis_is_a_tree_over_its_words(order: str, tags: bool, announced: bool) -> None:
    actions = vocabulary(order, tags=tags)
    words = lengths(30, seed=len(order))
    wanted = to_parse(actions, words, announced=announced)
    for seed, beam in ((1, 1), (2, 2), (3, 5)):
        model = made(BASE, wanted.announcements.stop, seed)
        options = SearchOptions(beam=beam, n_best=beam, max_extra=12)
        results = engine(model, BASE, workers=2).search(pieces(words), options, wanted)
        for sentence, found in enumerate(results):
            assert found
            assert len({tuple(one.ids) for one in found}) == len(found)
            for one in found:
                check(one, wanted, sentence)
                assert len(one.ids) <= max(
                    len(pieces(words)[sentence]) + 12, wanted.shortest_target(sentence)
                )


@pytest.mark.slow
@pytest.mark.parametrize("announced", [False, True], ids=["alone", "announced"])
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_the_trees_are_those_of_the_search_over_rounded_numbers(
    order: str, beam: int, announced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = lengths(12, seed=5)
    wanted = to_parse(vocabulary(order), words, announced=announced)
    model = made(BASE, wanted.announcements.stop)
    least = 6 if announced else 0  # more than the tree of one word needs
    options = SearchOptions(beam=beam, n_best=beam, max_extra=15, min_length=least)
    found = engine(model, BASE).search(pieces(words), options, wanted)
    assert min(len(one.ids) for row in found for one in row if one.score > -np.inf) >= least
    grammar = TreeConstraint(
        wanted.actions,
        words,
        first=FIRST_PIECE,
        vocabulary=model.targets,
        announced=wanted.announced,
    )
    rows = source_rows(pieces(words), torch.device("cpu"))
    with in_int8(model, monkeypatch):
        theirs = search(model, rows, options, constraint=grammar)
    same = 0
    for one, other in zip(found, theirs, strict=True):
        if one[0].ids == other[0].ids:
            assert one[0].score == pytest.approx(other[0].score, abs=0.02, rel=0.02)
            assert one[0].log_prob == pytest.approx(other[0].log_prob, abs=0.1, rel=0.02)
            same += 1
    assert same >= 9, "keys and values in bf16 decide a few close calls, not most"


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_neither_batch_mates_nor_workers_change_a_tree(beam: int) -> None:
    words = lengths(120, seed=2, longest=14)
    wanted = to_parse(vocabulary("in-order"), words, announced=True)
    model = made(BASE, wanted.announcements.stop)
    options = SearchOptions(beam=beam, max_extra=20)
    both = engine(model, BASE, workers=2).search(pieces(words), options, wanted)
    assert engine(model, BASE, workers=1).search(pieces(words), options, wanted) == both
    for i in range(0, 120, 13):
        alone = to_parse(wanted.actions, [words[i]], announced=True)
        assert engine(model, BASE).search([pieces(words)[i]], options, alone) == [both[i]]


def test_a_beam_wider_than_what_may_follow_finds_all_there_is() -> None:
    actions = Actions(get_linearisation("brackets", tags=False), ("_", "(A", ")"), 1)
    wanted = to_parse(actions, [1, 2], announced=False)
    model = made(BASE, wanted.announcements.stop)
    options = SearchOptions(beam=8, n_best=8, max_extra=10)
    one, two = engine(model, BASE).search([[9], [9, 8]], options, wanted)
    assert len(one) == 1
    for found in two:
        check(found, wanted, 1)
    assert len({tuple(found.ids) for found in two}) == len(two) > 1


@settings(max_examples=60, deadline=None)
@given(
    order=st.sampled_from(ORDERS),
    chain=st.integers(1, 3),
    words=st.integers(1, 8),
    spare=st.integers(0, 12),
    announced=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_what_is_kept_step_by_step_allows_what_the_plain_grammar_does(
    order: str, chain: int, words: int, spare: int, announced: bool, seed: int
) -> None:
    actions = vocabulary(order, chain)
    wanted = to_parse(actions, [words], announced=announced)
    trees = TreeGrammar(wanted, 3, 2, 64)
    active, first_beam = np.array([1], np.int32), np.array([[0, 0]])
    trees.admit([1], [0])
    room, draw, done, prefix = wanted.shortest_target(0) + spare, random.Random(seed), 0, []
    for step in range(1000):
        if trees.is_forced(active)[0, step % 2]:
            piece = int(trees.forced_pieces(active)[0, step % 2])
            assert piece == wanted.announced[0][done]
        else:
            to_come = max(0, words - done - 1) if announced else 0
            kinds = actions.allowed(prefix, words, room - step - to_come)
            ids = {FIRST_PIECE + i for i, kind in enumerate(actions.kinds) if kind in kinds}
            ids |= {EOS} if END in kinds else set()
            allowed = trees.allowed(active, np.array([room - step], np.int32))[0, step % 2]
            assert {id_ for id_ in range(64) if allowed[trees.kinds[id_]]} == ids
            piece = draw.choice(sorted(ids))
            if piece == EOS:
                return
            prefix.append(piece - FIRST_PIECE)
            done += actions.kinds[piece - FIRST_PIECE] == WORD
        # The other beam leaves the way; the next step goes on from this one in either place.
        trees.extend(active, first_beam + step % 2, np.array([[piece, piece]], np.int32))
    pytest.fail("no end")


# --- a parser on the engine ---

TREES = [example.source_tree for example in generate("de", "train", 150)]
TINY = [
    *("data.task=parsing", "data.max_length=60", "tokenizer.vocabulary=400", "model.heads=2"),
    *("model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=16", "model.d_ff=16"),
]
ODD = [
    ["Go"],
    ["🙂", "((", "\x07", "ſ"],
    [],
    ["-LRB-", ")", "%", "\ufffd"],
    ["the"] * 1000,
    ["x" * 400],
]


def untrained(directory: Path, *assignments: str) -> Path:
    config = Config().overridden([*TINY, *assignments])
    pairs = [(" ".join(leaf.word for leaf in leaves(parse_tree(t))), t) for t in TREES]
    tokenizer = TreeTokenizer.learn(pairs, config.tokenizer, config.trees)
    torch.manual_seed(0)
    model = build(config.model, *tokenizer.sizes)
    save_model(directory, get_weights(model), config, tokenizer, {})
    return directory


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untrained(tmp_path_factory.mktemp("untrained") / "model")


def shown(found: Parse | None) -> str:
    return "" if found is None else write_tree(found.tree)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 3])
def test_odd_words_and_a_thousand_of_them_are_parsed(path: Path, beam: int) -> None:
    found = load_parser(path, precision="int8").parse(ODD, beam=beam, n_best=beam)
    for words, one in zip(ODD, found, strict=True):
        assert (one is None) == (not words)
        for other in () if one is None else (one, *one.alternatives):
            assert [leaf.word for leaf in leaves(other.tree)] == words
        if one is not None:
            assert len({shown(other) for other in (one, *one.alternatives)}) == 1 + len(
                one.alternatives
            )


def test_the_engine_parses_unless_float32_is_asked_for(path: Path) -> None:
    sentences = [["a", "dog"], ["the", "old", "dog", "sees", "it", "."]]
    whole, rounded, auto = (
        [one and one.score for one in load_parser(path, precision=precision).parse(sentences)]
        for precision in ("float32", "int8", "auto")
    )
    assert rounded == auto != whole


def test_a_parser_has_a_variant_too(path: Path) -> None:
    before = load_parser(path).parse(ODD[:2])
    assert write_int8_file(load_model(path)) == path / INT8_FILE
    try:
        after = load_parser(path).parse(ODD[:2])
    finally:
        (path / INT8_FILE).unlink()
    assert [(shown(one), one and one.score) for one in after] == [
        (shown(one), one and one.score) for one in before
    ]


def test_a_search_that_the_engine_does_not_know_is_done_by_the_model(path: Path) -> None:
    parser = load_parser(path)
    (found,) = parser.parse([["a", "dog"]], beam=CpuEngine.max_beam + 1)
    assert shown(found) == write_tree(parse_tree(shown(found)))
    assert "model" in vars(parser), "the weights have been read"


def test_what_has_no_int8_says_so(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="an ensemble is computed by PyTorch"):
        load_parser(path, path, precision="int8")
    rotary = untrained(tmp_path / "rotary", "model.positions=rotary")
    with pytest.raises(ConfigError, match=r"model\.positions = rotary.*use precision float32"):
        load_parser(rotary, precision="int8")
    assert load_parser(rotary).parse([["a"]])
    with pytest.raises(
        ConfigError, match="precision int4 does not exist; use auto, int8 or float32"
    ):
        load_parser(path, precision="int4")  # type: ignore[arg-type]


def test_parsing_imports_no_pytorch(path: Path) -> None:
    script = (
        "import sys, dragoman; p = dragoman.load_parser(sys.argv[1], device='cpu');"
        "assert p.parse([['a', 'dog']], beam=2)[0]; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)


def test_a_parser_keeps_what_it_was_asked_whatever_the_window(path: Path) -> None:
    lines = ["the old dog sees it", "", "a dog", "🙂"] * 5
    parser: Parser = load_parser(path)
    whole = [shown(one) for one in parser.parse_lines(lines)]
    assert [shown(one) for one in parser.parse_lines(lines, window=3)] == whole
    assert [not one for one in whole] == [not line for line in lines]
