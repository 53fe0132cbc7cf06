"""The formula counts what a step must compute."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dragoman.bench.training.flops import (
    SentenceLengths,
    attention_flops,
    formulas_hold,
    linear_flops,
    sentence_lengths,
    training_flops,
)
from dragoman.bench.training.synthetic_corpus import SyntheticPairs, packed_batches
from dragoman.config import Config, ModelConfig
from dragoman.models import Rows, build

VOCABULARY = 50


def unpadded(sentences: int, length: int) -> Rows:
    ids = torch.randint(4, VOCABULARY, (sentences, length))
    return Rows.one_a_row(ids, torch.full((sentences,), length))


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_products_with_weights_are_those_pytorch_counts(activation: str) -> None:
    config = ModelConfig(
        encoder_layers=2,
        decoder_layers=3,
        d_model=16,
        d_ff=24,
        heads=2,
        d_k=6,
        d_v=10,
        activation=activation,  # type: ignore[arg-type]
    )
    model = build(config, VOCABULARY)
    source, target = unpadded(3, 7), unpadded(3, 5)
    with FlopCounterMode(display=False) as counter:
        model(source, target).sum().backward()
    counts = counter.get_flop_counts()["Global"]
    matrix = {torch.ops.aten.mm, torch.ops.aten.addmm}
    found = sum(count for operator, count in counts.items() if operator in matrix)
    lengths = SentenceLengths(np.full(3, 7), np.full(3, 5))
    assert found == 3 * linear_flops(config, VOCABULARY, lengths)


def attended(source: list[int], target: list[int], window: int) -> int:
    """Scores and weighted values of one layer each, one visible pair of positions at a time."""

    def near(i: int, j: int) -> bool:
        return not window or abs(i - j) <= window

    pairs = 0
    for s, t in zip(source, target, strict=True):
        pairs += sum(near(i, j) for i in range(s) for j in range(s))
        pairs += sum(near(i, j) for i in range(t) for j in range(i + 1))
        pairs += s * t
    return pairs


@pytest.mark.parametrize("window", [0, 3])
def test_attention_counts_the_visible_pairs_of_each_sentence(window: int) -> None:
    source, target = [1, 4, 9], [2, 3, 12]
    config = ModelConfig(
        encoder_layers=1, decoder_layers=1, d_model=16, heads=2, d_k=6, d_v=10, window=window
    )
    found = attention_flops(config, SentenceLengths(np.array(source), np.array(target)))
    assert found == attended(source, target, window) * 2 * 2 * (6 + 10)


def test_training_is_three_forward_passes_and_r_drop_six(tiny: Config) -> None:
    lengths = SentenceLengths(np.array([5, 6]), np.array([7, 3]))
    forward = linear_flops(tiny.model, 330, lengths) + attention_flops(tiny.model, lengths)
    assert training_flops(tiny, lengths) == 3 * forward
    twice = tiny.overridden(["training.r_drop=1"])
    assert training_flops(twice, lengths) == 6 * forward


def test_lengths_are_those_of_the_sentences_of_a_batch(tiny: Config) -> None:
    batches = packed_batches(tiny, SyntheticPairs.for_config(tiny), 2)
    lengths = sentence_lengths(batches)
    assert len(lengths.source_N) == len(lengths.target_N) == sum(b.sentences for b in batches)
    assert lengths.source_N.sum() == sum(b.source_tokens for b in batches)
    assert lengths.target_N.sum() == sum(b.target_tokens for b in batches)
    first = batches[0].target_segments[0]
    assert lengths.target_N[: first.max()].tolist() == [
        int((first == segment).sum()) for segment in range(1, first.max() + 1)
    ]


def test_the_formulas_are_used_for_what_they_describe_and_no_other_model(tiny: Config) -> None:
    assert formulas_hold(tiny.model)
    assert not formulas_hold(tiny.overridden(["model.experts=2"]).model)
    assert not formulas_hold(tiny.overridden(["model.architecture=recurrent"]).model)
