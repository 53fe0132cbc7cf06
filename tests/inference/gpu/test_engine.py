"""Where a model is opened on a GPU, the GPU's engine searches; the rest is done as elsewhere.

Without a GPU one is made believe: the engine then computes in fp32, and finds the same.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import dragoman
from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.inference import Translator
from dragoman.inference.cpu import CpuEngine
from dragoman.inference.gpu import GpuEngine
from dragoman.inference.gpu.cuda_graphs import GraphRunner
from dragoman.inference.parser import Parse, Parser, load_parser
from dragoman.model_directory import save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.phrasebook import generate
from dragoman.search import SearchOptions
from dragoman.trees.bracketing import parse_tree, write_tree
from dragoman.trees.grammar import SentencesToParse
from dragoman.trees.tree import leaves
from dragoman.trees.tree_tokenizer import TreeTokenizer

from ...conftest import reversals
from ...kernel import needs_kernel

LINES = ["the old dog sees", "a", "", "red blue big small tree", "the cat eats the old house"]
SENTENCES = [["a", "dog"], ["the", "old", "dog", "sees", "it", "."], [], ["the"] * 30]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> str:
    """The GPU, or what is taken for one."""
    if not torch.cuda.is_available():
        monkeypatch.setattr("dragoman.inference.loading.choose_device", lambda device: "cpu:0")
        monkeypatch.setattr("dragoman.inference.gpu.engine.supported", lambda device: True)
    return "cuda"


@pytest.fixture(scope="module")
def parser_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("parser") / "model"
    config = Config().overridden(
        [
            *("data.task=parsing", "tokenizer.vocabulary=400", "model.heads=2", "search.beam=4"),
            *("model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=32"),
            *("model.d_ff=32",),
        ]
    )
    trees = [example.source_tree for example in generate("de", "train", 150)]
    pairs = [(" ".join(leaf.word for leaf in leaves(parse_tree(one))), one) for one in trees]
    tokenizer = TreeTokenizer.learn(pairs, config.tokenizer, config.trees)
    torch.manual_seed(0)
    model = build(config.model, *tokenizer.sizes)
    with torch.no_grad():
        for parameter in model.parameters():  # with preferences, so that few calls are close
            parameter.add_(torch.randn_like(parameter) * 0.1)
    save_model(directory, get_weights(model), config, tokenizer, {})
    return directory


def shown(found: Parse | None) -> tuple[str, float]:
    return ("", 0.0) if found is None else (write_tree(found.tree), found.score)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_translator_says_the_same_through_the_engine(trained: Path, gpu: str, beam: int) -> None:
    ours = dragoman.load(trained, device=gpu)
    plain = dragoman.load(trained, device=gpu, precision="float32")
    assert isinstance(ours._engine, GpuEngine)
    assert plain._engine is None
    found = list(ours.translate_lines(LINES, beam=beam))
    wanted = list(plain.translate_lines(LINES, beam=beam))
    assert len(found) == len(wanted) == len(LINES)
    for one, other in zip(found, wanted, strict=True):
        assert (one.source, not one.text) == (other.source, not other.text)
        if not torch.cuda.is_available():
            assert (one.text, one.tokens) == (other.text, other.tokens)
            assert one.score == pytest.approx(other.score, abs=1e-3)


@pytest.mark.gpu
def test_on_a_gpu_a_translator_finds_as_much_in_bf16(trained: Path) -> None:
    lines = [source for source, _ in reversals(200, seed=3)]
    ours = dragoman.load(trained, device="cuda")
    plain = dragoman.load(trained, device="cuda", precision="float32")
    assert isinstance(ours._engine, GpuEngine)
    gaps = [
        one.score - other.score
        for one, other in zip(
            ours.translate(lines, beam=4), plain.translate(lines, beam=4), strict=True
        )
    ]
    assert abs(sum(gaps) / len(gaps)) < 0.1


def test_what_the_engine_does_not_know_is_done_by_the_model(trained: Path, gpu: str) -> None:
    ours = dragoman.load(trained, device=gpu)
    plain = dragoman.load(trained, device=gpu, precision="float32")
    for options in ({"diverse": 2}, {"must": ["god"]}, {"prefix": "sees"}, {"align": True}):
        settings: dict[str, Any] = {"beam": 2, **options}
        texts = [[x.text for x in one.translate(LINES, **settings)] for one in (ours, plain)]
        if "align" not in options or not torch.cuda.is_available():
            assert texts[0] == texts[1]
    assert ours.score(["the dog"], ["god eht"])[0].score < 0


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 3])
def test_a_parser_makes_trees_through_the_engine(parser_path: Path, gpu: str, beam: int) -> None:
    ours = load_parser(parser_path, device=gpu)
    plain = load_parser(parser_path, device=gpu, precision="float32")
    assert isinstance(ours._engine, GpuEngine)
    found = [shown(one) for one in ours.parse(SENTENCES, beam=beam)]
    wanted = [shown(one) for one in plain.parse(SENTENCES, beam=beam)]
    for (tree, score), (other, other_score), words in zip(found, wanted, SENTENCES, strict=True):
        assert [leaf.word for leaf in leaves(parse_tree(tree))] == words if words else tree == ""
        if not torch.cuda.is_available():
            assert tree == other
            assert score == pytest.approx(other_score, abs=1e-3)


def test_an_ensemble_and_an_unknown_model_are_the_plain_searchs(
    trained: Path, gpu: str, tmp_path: Path
) -> None:
    assert dragoman.load(trained, trained, device=gpu)._engine is None
    config = Config.load(trained / "model" / "config.toml").overridden(["model.positions=rotary"])
    tokenizer = dragoman.load(trained, device=gpu).tokenizer
    model = build(config.model, *tokenizer.sizes)
    save_model(tmp_path / "rotary", get_weights(model), config, tokenizer, {})
    assert dragoman.load(tmp_path / "rotary", device=gpu)._engine is None


def test_int8_and_drafts_are_the_cpus(trained: Path, gpu: str) -> None:
    with pytest.raises(ConfigError, match="int8 is for the CPU"):
        dragoman.load(trained, device=gpu, precision="int8")
    with pytest.raises(ConfigError, match="cannot use a draft"):
        dragoman.load(trained, device=gpu, draft=trained)


def test_a_gpu_is_given_more_lines_at_a_time(
    trained: Path, parser_path: Path, gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    found = GpuEngine.search_each

    def counted(self: GpuEngine, sentences: Sequence[Any], *rest: Any) -> Any:
        seen.append(len(sentences))
        return found(self, sentences, *rest)

    monkeypatch.setattr(GpuEngine, "search_each", counted)
    monkeypatch.setattr(GpuEngine, "window", 3)
    words = ["a", "the", "old", "dog", "red", "cat", "tree"]
    translator = dragoman.load(trained, device=gpu)
    assert len(list(translator.translate_lines(words, beam=1, raw=True))) == 7
    assert seen == [3, 3, 1]
    seen.clear()
    assert len(list(load_parser(parser_path, device=gpu).parse_lines(["a"] * 7, beam=1))) == 7
    assert seen == [3, 3, 1]


def test_trees_are_made_while_the_engine_goes_on(
    parser_path: Path, gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = load_parser(parser_path, device=gpu)
    assert isinstance(ours._engine, GpuEngine)
    ours._engine.slots = 1
    events: list[str] = []
    step, make = GraphRunner.step, Parser._distinct_parses

    def stepped(self: GraphRunner, *rest: Any, **more: Any) -> None:
        events.append("step")
        step(self, *rest, **more)

    def made(self: Parser, *rest: Any) -> Any:
        events.append("tree")
        return make(self, *rest)

    monkeypatch.setattr(GraphRunner, "step", stepped)
    monkeypatch.setattr(Parser, "_distinct_parses", made)
    assert all(ours.parse([["a", "dog"]] * 3, beam=1))
    first = events.index("tree")
    assert events[first:].count("step") > first // 2


def test_every_word_is_announced_by_its_own_piece(parser_path: Path) -> None:
    tokenizer = load_parser(parser_path, device="cpu").tokenizer
    sources = [tokenizer.join_words(words) for words in SENTENCES if words]
    found = SentencesToParse.from_sources(tokenizer, sources)
    assert found is not None
    words = [tokenizer.split_source(source) for source in sources]
    assert found.announced == [tokenizer.announcement_ids(one) for one in words]
    assert all(found.announced)
    assert found.words == list(map(len, words))


def test_windows_are_as_engines_want_them() -> None:
    assert CpuEngine.window == 2000
    assert GpuEngine.window == 20_000


@needs_kernel
def test_on_a_cpu_neither_pytorch_nor_triton_is_imported(trained: Path) -> None:
    script = (
        "import sys, dragoman; t = dragoman.load(sys.argv[1], device='cpu');"
        "assert t.translate('the old dog').text; "
        "assert not {'torch', 'triton', 'dragoman.inference.gpu'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(trained)], check=True)


@needs_kernel
def test_a_cpu_keeps_its_engine(trained: Path) -> None:
    translator: Translator = dragoman.load(trained, device="cpu")
    assert isinstance(translator._engine, CpuEngine)
    assert translator._engine.supports(SearchOptions())
