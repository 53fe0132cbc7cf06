"""The feed-forward model: it sees its own place on both sides, and nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import Config, ModelConfig
from dragoman.data.prepare import prepare
from dragoman.data.readers.parallel import open_parallel_corpus
from dragoman.models import Rows, build, count_parameters
from dragoman.models.feed_forward import aligned_source_positions
from dragoman.training.run import train

SMALL = ModelConfig(
    **{"architecture": "feed-forward", "encoder_layers": 1, "decoder_layers": 2},
    **{"d_model": 8, "d_ff": 12, "heads": 2, "dropout": 0.0, "shared_embeddings": False},
)


def packed(lengths: list[list[int]], width: int, dtype: torch.dtype = torch.long) -> Rows:
    """Rows of sentences of these lengths, of random pieces."""
    segments = torch.zeros(len(lengths), width, dtype=dtype)
    positions = torch.zeros_like(segments)
    for r, row in enumerate(lengths):
        start = 0
        for number, length in enumerate(row, 1):
            segments[r, start : start + length] = number
            positions[r, start : start + length] = torch.arange(length)
            start += length
    ids = torch.randint(4, 20, segments.shape).to(dtype) * (segments > 0)
    return Rows(ids, segments, positions)


SOURCE = [[3, 1, 4], [6], []]
TARGET = [[2, 3, 3], [4], []]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_the_same_place_equals_a_search_through_the_row(dtype: torch.dtype) -> None:
    source, target = packed(SOURCE, 8, dtype), packed(TARGET, 10, dtype)
    found = aligned_source_positions(target, source)
    for r in range(3):
        here = list(
            zip(source.segments_RL[r].tolist(), source.positions_RL[r].tolist(), strict=True)
        )
        for t in range(10):
            wanted = (int(target.segments_RL[r, t]), int(target.positions_RL[r, t]))
            expected = here.index(wanted) if wanted[0] and wanted in here else 8
            assert found[r, t] == expected, (r, t)


def test_a_position_sees_its_own_place_on_both_sides_and_no_other() -> None:
    torch.manual_seed(1)
    model = build(SMALL, 20)
    source, target = packed(SOURCE, 8), packed(TARGET, 10)
    read: list[Tensor] = []

    def remember(module: nn.Module, inputs: object, output: Tensor) -> None:
        output.retain_grad()
        read.append(output)

    model.embedding.register_forward_hook(remember)  # type: ignore[union-attr]
    model.target_embedding.register_forward_hook(remember)  # type: ignore[union-attr]
    scores = model(source, target)
    places = aligned_source_positions(target, source)
    for r, t in torch.nonzero(target.segments_RL).tolist():
        for embedded in read:
            embedded.grad = None
        scores[r, t].square().sum().backward(retain_graph=True)
        reached = [torch.nonzero(e.grad.abs().sum(-1)).tolist() for e in read]  # type: ignore[union-attr]
        place = int(places[r, t])
        assert reached == [[[r, place]] if place < 8 else [], [[r, t]]]


def test_past_the_end_of_the_source_nothing_of_it_is_seen() -> None:
    model = build(SMALL, 20).eval()
    target = packed([[6]], 6)
    one, other = model(packed([[4]], 4), target), model(packed([[4]], 4), target)
    torch.testing.assert_close(one[:, 4:], other[:, 4:], rtol=0, atol=0)
    assert not torch.allclose(one[:, :4], other[:, :4])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_batch_of_padding_gives_every_weight_a_gradient_of_zero(norm: str) -> None:
    model = build(ModelConfig(architecture="feed-forward", d_model=16, norm=norm), 20)  # type: ignore[arg-type]
    nothing = packed([[]], 5)
    features = model.features(nothing, nothing)
    assert features.isfinite().all()
    features[nothing.segments_RL > 0].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert not parameter.grad.any(), name


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_weight_learns(norm: str) -> None:
    config = ModelConfig(architecture="feed-forward", d_model=16, d_ff=16, norm=norm)  # type: ignore[arg-type]
    model = build(config, 20)
    model(packed(SOURCE, 8), packed(TARGET, 10)).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_its_weights_are_embeddings_layers_and_the_matrix_that_joins_both_sides() -> None:
    layer = (2 * 8 * 12 + 12 + 8) + 2 * 8
    joined = 2 * 8 * 8 + 2 * 8
    assert count_parameters(SMALL, 20) == 3 * 20 * 8 + 3 * layer + joined


@pytest.mark.slow
def test_it_learns_a_dictionary_but_no_word_order(tiny: Config, tmp_path: Path) -> None:
    """The same words spelt backwards, in the same order and in reverse."""
    draw = random.Random(0)
    words = ("red", "blue", "big", "small", "dog", "cat", "house", "tree", "sees", "eats", "old")
    sources = [draw.choices(words, k=draw.randint(3, 9)) for _ in range(1500)]
    changes = ["model.architecture=feed-forward", "training.learning_rate=0.005"]
    changes += [f"training.{name}=60" for name in ("steps", "validate_every", "checkpoint_every")]
    found = {}
    for order in (1, -1):
        home = tmp_path / str(order)
        home.mkdir()
        source, target = home / "corpus.en", home / "corpus.de"
        source.write_text("".join(" ".join(s) + "\n" for s in sources), encoding="utf-8")
        target.write_text(
            "".join(" ".join(word[::-1] for word in s[::order]) + "\n" for s in sources),
            encoding="utf-8",
        )
        data = prepare(open_parallel_corpus([source, target]), home / "data", tiny, workers=0)
        train(tiny.overridden(changes), data.path, run=home / "run", quiet=True)
        lines = (home / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        (found[order],) = [line for line in map(json.loads, lines) if line["kind"] == "valid"]
    assert found[1]["bleu"] > 25  # 44 where this was written
    assert found[-1]["bleu"] < 5
    assert found[-1]["perplexity"] > found[1]["perplexity"] + 1
