"""Equal parameters and equal FLOPs: widths meet the budget, counts equal hand-worked ones."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from dragoman.bench.training import flops
from dragoman.bench.training.flops import count_flops, sentence_lengths
from dragoman.bench.training.flops import training_flops as products_alone
from dragoman.bench.training.synthetic_corpus import SyntheticPairs, packed_batches
from dragoman.config import Config, ModelConfig, load_preset
from dragoman.data.batching.batches import Batch
from dragoman.errors import ConfigError
from dragoman.models import count_parameters
from dragoman.paper.table2 import models
from dragoman.paper.table2.models import active_parameters, budget_error, fit_width

HOMES = {
    "transformer": "transformer",
    "feed-forward": "feed_forward",
    "recurrent": "recurrent",
    "gnmt": "gnmt",
    "convs2s": "convs2s",
    "bytenet": "bytenet",
}
THERE = [name for name, file in HOMES.items() if find_spec(f"dragoman.models.{file}")]
VOCABULARY = 2000


def config(**model: object) -> Config:
    return load_preset("phrasebook").updated({"model": model})


def one_sentence(S: int, T: int) -> Batch:
    """A source of S and a target of T positions, marks included, and nothing else."""
    source, target = np.arange(4, 4 + S, dtype=np.int32), np.arange(4, 4 + T, dtype=np.int32)
    ones_S, ones_T = np.ones(S, np.int32), np.ones(T, np.int32)
    places = np.arange(S, dtype=np.int32), np.arange(T, dtype=np.int32)
    arrays = [source, ones_S, places[0], target, target, ones_T, places[1]]
    return Batch(*(a[None] for a in arrays))


def few_sentences() -> tuple[Config, Batch]:
    """A small model and a packed batch of the synthetic stream: about 20 sentences."""
    small = config(d_model=32, d_ff=128).overridden(["training.batch_tokens=640"])
    [batch] = packed_batches(small, SyntheticPairs.for_config(small), 1)
    return small, batch


# --- parameters ---


@pytest.mark.parametrize("budget", [1_000_000, 7_000_000])
@pytest.mark.parametrize("architecture", THERE)
def test_every_architecture_meets_a_budget_within_three_hundredths(
    architecture: str, budget: int
) -> None:
    wide = fit_width(config(architecture=architecture), VOCABULARY, budget)
    assert abs(budget_error(wide, VOCABULARY, budget)) <= models.TOLERANCE
    assert budget_error(wide, VOCABULARY, budget) == pytest.approx(
        count_parameters(wide.model, VOCABULARY) / budget - 1
    )


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("attention", ["none", "dot", "additive"])
@pytest.mark.skipif("recurrent" not in THERE, reason="recurrent models are not there")
def test_every_recurrent_model_meets_a_budget(cell: str, attention: str) -> None:
    model = {"architecture": "recurrent", "cell": cell, "source_attention": attention}
    wide = fit_width(config(**model), VOCABULARY, 1_000_000)
    assert abs(budget_error(wide, VOCABULARY, 1_000_000)) <= models.TOLERANCE


def test_the_papers_base_model_is_found_again_from_a_narrow_one() -> None:
    base = load_preset("base")
    narrow = base.updated({"model": {"d_model": 64, "d_ff": 256}})
    wide = fit_width(narrow, 37_000, count_parameters(base.model, 37_000))
    assert wide == base


def test_only_widths_change_and_heads_divide_them() -> None:
    before = config(norm="pre", dropout=0.3, window=4)
    after = fit_width(before, VOCABULARY, 3_000_000)
    m = after.model
    assert m.d_model % 8 == 0
    assert m.d_k == m.d_v == m.d_model // m.heads
    assert m.d_ff / m.d_model == pytest.approx(4, rel=0.5)
    widths = {"d_model": m.d_model, "d_ff": m.d_ff, "d_k": m.d_k, "d_v": m.d_v}
    assert replace(before, model=replace(before.model, **widths)) == after


def test_a_head_width_that_was_set_apart_stays_in_proportion() -> None:
    before = config(d_k=8)  # d_model 128, 4 heads: a quarter of what it would be
    after = fit_width(before, VOCABULARY, 4_000_000).model
    assert after.d_k == pytest.approx(after.d_model / 16, abs=1)
    assert after.d_v == after.d_model // 4


def test_experts_are_sized_by_what_a_position_uses() -> None:
    dense = config().model
    sparse = replace(dense, experts=8, experts_used=2)
    total, active = count_parameters(sparse, VOCABULARY), active_parameters(sparse, VOCABULARY)
    if total == count_parameters(dense, VOCABULARY):
        pytest.skip("experts are not there")
    expert = 2 * dense.d_model * dense.d_ff + dense.d_ff + dense.d_model
    layers = _expert_layers(sparse)
    assert total - active == layers * 6 * (expert + dense.d_model)  # and its column of the gate
    wide = fit_width(config(experts=8), VOCABULARY, 2_000_000)
    assert abs(budget_error(wide, VOCABULARY, 2_000_000)) <= models.TOLERANCE
    assert count_parameters(wide.model, VOCABULARY) > 3_000_000


def _expert_layers(model: ModelConfig) -> int:
    """How many layers have experts: told by what one more of them adds."""
    more = replace(model, experts=model.experts + 1)
    added = count_parameters(more, VOCABULARY) - count_parameters(model, VOCABULARY)
    return round(added / (2 * model.d_model * model.d_ff + model.d_ff + 2 * model.d_model))


def test_a_budget_below_the_narrowest_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="1,000 parameters are too few"):
        fit_width(config(), VOCABULARY, 1000)


# --- FLOPs ---


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


def test_the_count_differs_from_the_bench_by_the_masked_scores_alone() -> None:
    base, batch = few_sentences()
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
    exact = count_flops(base, batch, sample=10**9)
    assert exact == products_alone(base, lengths) + hidden
    assert hidden / exact < 0.05


def test_a_few_sentences_tell_what_the_whole_batch_costs() -> None:
    base, batch = few_sentences()
    assert batch.sentences > 2 * flops.SAMPLE_SENTENCES
    exact = count_flops(base, batch, sample=10**9)
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


@pytest.mark.parametrize("architecture", THERE)
def test_the_flops_of_every_architecture_are_those_of_its_parameters(architecture: str) -> None:
    """Each weight multiplies each position of its side once, or once a sentence, and the counter
    must see it: no fused operation may hide."""
    sized = fit_width(config(architecture=architecture), VOCABULARY, 1_000_000)
    flops = count_flops(sized, one_sentence(16, 16))
    every_weight = 6 * 16 * count_parameters(sized.model, VOCABULARY)
    assert 0.65 < flops / every_weight < 1.3  # an LSTM unseen would leave 0.3
