"""Equal parameters: the widths of all models meet the budget."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest

from dragoman.bench.training.flops import count_flops
from dragoman.config import Config, ModelConfig, load_preset
from dragoman.errors import ConfigError
from dragoman.models import count_parameters
from dragoman.paper.table2 import models
from dragoman.paper.table2.models import active_parameters, budget_error, fit_width

from ...bench.training.test_flops import one_sentence

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


# --- parameters ---


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("attention", ["none", "dot", "additive"])
@pytest.mark.skipif("recurrent" not in THERE, reason="recurrent models are not there")
def test_every_recurrent_model_meets_a_budget(cell: str, attention: str) -> None:
    model = {"architecture": "recurrent", "cell": cell, "source_attention": attention}
    wide = fit_width(config(**model), VOCABULARY, 1_000_000)
    assert abs(budget_error(wide, VOCABULARY, 1_000_000)) <= models.TOLERANCE


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("architecture", THERE)
def test_the_flops_of_every_architecture_are_those_of_its_parameters(architecture: str) -> None:
    """Each weight multiplies each position of its side once, or once a sentence, and the counter
    must see it: no fused operation may hide."""
    sized = fit_width(config(architecture=architecture), VOCABULARY, 1_000_000)
    flops = count_flops(sized, one_sentence(16, 16))
    every_weight = 6 * 16 * count_parameters(sized.model, VOCABULARY)
    assert 0.65 < flops / every_weight < 1.3  # an LSTM unseen would leave 0.3
