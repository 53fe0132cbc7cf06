"""The formula counts what a step must compute."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from dragoman.bench.training import flops
from dragoman.bench.training.flops import (
    SentenceLengths,
    attention_flops,
    count_flops,
    formulas_hold,
    linear_flops,
    sentence_lengths,
    training_flops,
)
from dragoman.bench.training.synthetic_corpus import SyntheticPairs, packed_batches
from dragoman.config import Config, ModelConfig, load_preset
from dragoman.data.batching.batches import Batch
from dragoman.models import Rows, build

VOCABULARY = 50


def unpadded(sentences: int, length: int) -> Rows:
    ids = torch.randint(4, VOCABULARY, (sentences, length))
    return Rows.one_a_row(ids, torch.full((sentences,), length))


@pytest.mark.slow
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


@pytest.mark.slow
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


# --- counted by PyTorch ---


def config(**model: object) -> Config:
    return load_preset("phrasebook").updated({"model": model})


def one_sentence(S: int, T: int) -> Batch:
    """A source of S and a target of T positions, marks included, and nothing else."""
    source, target = np.arange(4, 4 + S, dtype=np.int32), np.arange(4, 4 + T, dtype=np.int32)
    ones_S, ones_T = np.ones(S, np.int32), np.ones(T, np.int32)
    places = np.arange(S, dtype=np.int32), np.arange(T, dtype=np.int32)
    arrays = [source, ones_S, places[0], target, target, ones_T, places[1]]
    return Batch(*(a[None] for a in arrays))


@cache
def few_sentences() -> tuple[Config, Batch, float]:
    """A small model, a packed batch of the synthetic stream, some 20 sentences, and its count."""
    small = config(d_model=32, d_ff=128).overridden(["training.batch_tokens=640"])
    [batch] = packed_batches(small, SyntheticPairs.for_config(small), 1)
    return small, batch, count_flops(small, batch, sample=10**9)


def test_the_transformers_products_by_hand() -> None:
    small = config(
        encoder_layers=1, decoder_layers=1, d_model=8, d_ff=32, heads=2, dropout=0.0
    ).overridden(["tokenizer.vocabulary=300"])
    S, T, M, F, V = 5, 3, 8, 32, 300
    encoder = S * (4 * M * M + 2 * M * F) + 2 * S * S * M
    self_attention = T * 4 * M * M + 2 * T * T * M  # masked scores are computed too
    source_attention = T * 2 * M * M + S * 2 * M * M + 2 * T * S * M
    decoder = self_attention + source_attention + T * 2 * M * F
    forward = 2 * (encoder + decoder + T * M * V)
    assert count_flops(small, one_sentence(S, T)) == 3 * forward


def test_an_lstm_is_not_hidden_in_its_fused_operation() -> None:
    S, D, H = 6, 8, 16
    lstm = nn.LSTM(D, H, batch_first=True)
    x = torch.randn(1, S, D, requires_grad=True)
    with flops._countable_operators(), FlopCounterMode(display=False) as counter:
        lstm(x)[0].sum().backward()
    step = 4 * H * (D + H)
    no_gradient = 4 * H * H  # of the first state, which is zero
    assert counter.get_total_flops() == 2 * (3 * S * step - no_gradient)


@pytest.mark.slow
def test_the_count_differs_from_the_bench_by_the_masked_scores_alone() -> None:
    base, batch, exact = few_sentences()
    lengths = sentence_lengths([batch])
    t_N = lengths.target_N
    hidden = (
        3
        * 2
        * base.model.decoder_layers
        * 2
        * base.model.d_model
        * int((t_N * (t_N - 1) // 2).sum())
    )
    assert exact == training_flops(base, lengths) + hidden
    assert hidden / exact < 0.05


@pytest.mark.slow
def test_a_few_sentences_tell_what_the_whole_batch_costs() -> None:
    base, batch, exact = few_sentences()
    assert batch.sentences > 2 * flops.SAMPLE_SENTENCES
    assert count_flops(base, batch) == pytest.approx(exact, rel=0.02)


def test_padding_costs_nothing_and_packed_sentences_do_not_see_each_other() -> None:
    base = config()
    alone = [one_sentence(9, 7), one_sentence(4, 12)]
    left, right = (a.arrays() for a in alone)
    packed = [np.concatenate(pair, 1) for pair in zip(left, right, strict=True)]
    packed[1][:, 9:] = packed[5][:, 7:] = 2
    padded = Batch(*(np.pad(a, ((0, 3), (0, 20))) for a in packed))
    apart = [count_flops(base, sentence) for sentence in alone]
    assert count_flops(base, padded) == sum(apart)
