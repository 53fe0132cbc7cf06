"""Mixtures of experts: the sum, the choice, and the penalty that rides on the gradient."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from dragoman.config import Config, ModelConfig
from dragoman.data.prepare import Prepared
from dragoman.models import Rows, build, count_parameters
from dragoman.models.experts import BALANCE, Experts, imbalance
from dragoman.models.transformer import FeedForward
from dragoman.training.run import train

SMALL = ModelConfig(
    **{"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 12, "heads": 2},
    **{"dropout": 0.0, "experts": 5, "experts_used": 2},
)


@pytest.fixture
def layer() -> Experts:
    torch.manual_seed(3)
    return Experts(SMALL, FeedForward)


def rows_of(segments: list[list[int]]) -> Rows:
    segments_RL = torch.tensor(segments)
    return Rows(segments_RL + 4, segments_RL, torch.arange(segments_RL.shape[1]).expand(1, -1))


def choices(layer: Experts, x_NM: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and choices of the gate, without the layer's sorting."""
    scores_NE = x_NM @ layer.gate.weight.T
    return scores_NE, scores_NE.argsort(-1, descending=True)[:, : layer.used]


# --- the sum ---


@pytest.mark.parametrize("used", [1, 2, 5])
def test_it_is_the_weighted_sum_of_the_best_experts_of_each_position(used: int) -> None:
    layer = Experts(
        ModelConfig(d_model=8, d_ff=12, heads=2, experts=5, experts_used=used), FeedForward
    ).double()
    x = torch.randn(3, 4, 8, dtype=torch.float64)
    expected = torch.zeros_like(x)
    for at in [(r, t) for r in range(3) for t in range(4)]:
        scores = (layer.gate.weight @ x[at]).tolist()
        best = sorted(range(5), key=lambda e: -scores[e])[:used]
        total = sum(math.exp(scores[e]) for e in best)
        for e in best:
            expected[at] += math.exp(scores[e]) / total * layer.networks[str(e)](x[at])
    torch.testing.assert_close(layer(x), expected)


def test_gradients_are_those_of_the_plain_sum(layer: Experts) -> None:
    layer.double().eval()
    x = torch.randn(6, 8, dtype=torch.float64, requires_grad=True)
    weights = [x, *layer.parameters()]
    found = torch.autograd.grad(layer(x).square().sum(), weights)
    scores, chosen = choices(layer, x)
    mixed = scores.gather(1, chosen).softmax(-1)
    every = torch.stack([network(x) for network in layer.networks.values()], 1)
    plain = (mixed[..., None] * every[torch.arange(6)[:, None], chosen]).sum(1)
    expected = torch.autograd.grad(plain.square().sum(), weights)
    torch.testing.assert_close(found, expected)


def test_batch_mates_change_nothing(layer: Experts) -> None:
    layer.double()
    x = torch.randn(40, 8, dtype=torch.float64)
    x[1:] = x[1] + 0.01 * x[1:]  # all but the first want the same experts, which are never full
    together = layer(x)
    for n in (0, 1, 39):
        torch.testing.assert_close(layer(x[n]), together[n])


def test_padding_gets_nothing_and_the_rest_what_it_got_without(layer: Experts) -> None:
    x = torch.randn(2, 4, 8)
    rows = rows_of([[1, 1, 2, 0], [1, 0, 0, 0]])
    real = rows.segments_RL > 0
    out = layer(x, rows)
    assert not out[~real].any()
    torch.testing.assert_close(out[real], layer(x)[real])


def test_an_expert_that_nobody_chose_has_a_gradient_of_zero(layer: Experts) -> None:
    torch.nn.init.constant_(layer.gate.weight[3], -9.0)
    layer(torch.rand(7, 8)).sum().backward()
    idle, busy = layer.networks["3"], layer.networks["0"]
    assert all(p.grad is not None and not p.grad.any() for p in idle.parameters())
    torch.nn.init.constant_(layer.gate.weight[0], 9.0)
    layer(torch.rand(7, 8)).sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in busy.parameters())


def test_a_model_that_reads_only_padding_gives_every_weight_a_gradient_of_zero() -> None:
    model = build(SMALL, 20)
    nothing = rows_of([[0] * 6])
    features = model.features(nothing, nothing)
    assert features.isfinite().all()
    features[nothing.segments_RL > 0].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert not parameter.grad.any(), name


def test_the_gate_is_not_rounded_by_autocast(layer: Experts) -> None:
    x = torch.randn(500, 8)
    exact = layer.scores(x)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(layer.scores(x), exact, rtol=0, atol=0)
        out = layer(x)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, layer(x), rtol=0.05, atol=0.05)


def test_weights_are_counted_per_expert() -> None:
    network = 2 * 8 * 12 + 12 + 8
    dense = ModelConfig(d_model=8, d_ff=12, heads=2, encoder_layers=1, decoder_layers=1)
    more = count_parameters(SMALL, 20) - count_parameters(dense, 20)
    assert more == 2 * (4 * network + 5 * 8)  # two layers: four networks more, and the gate


# --- the penalty ---


def test_the_imbalance_and_its_gradient_equal_numbers_worked_by_hand() -> None:
    # Both positions choose expert 0, to which the gate gives 3/4: 2 · (1 · 3/4 + 0 · 1/4).
    scores = torch.tensor([[math.log(3), 0.0]] * 2, requires_grad=True)
    found = imbalance(scores, torch.tensor([[0], [0]]))
    assert found.item() == pytest.approx(1.5)
    found.backward()
    # 2 experts / 2 positions · p₀(1 − p₀): downhill is away from expert 0.
    torch.testing.assert_close(scores.grad, torch.tensor([[0.1875, -0.1875]] * 2))


def test_a_balanced_choice_costs_one_and_pulls_nowhere() -> None:
    scores = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    found = imbalance(scores, torch.tensor([[0, 1], [1, 2], [2, 0]] * 2))
    assert found.item() == pytest.approx(1.0)
    found.backward()
    torch.testing.assert_close(scores.grad, torch.zeros_like(scores))


def test_padding_does_not_count_in_the_balance() -> None:
    scores = torch.randn(5, 4, requires_grad=True)
    chosen = torch.tensor([[0, 2], [4, 4], [2, 1], [4, 4], [4, 4]])
    with_padding = imbalance(scores, chosen)
    torch.testing.assert_close(with_padding, imbalance(scores[[0, 2]], chosen[[0, 2]]))
    with_padding.backward()
    assert scores.grad is not None
    assert not scores.grad[[1, 3, 4]].any()


def test_the_penalty_is_in_the_gradient_and_not_in_the_result(layer: Experts) -> None:
    x = torch.randn(9, 8)
    trained, still = layer.train()(x), layer.eval()(x)
    torch.testing.assert_close(trained, still, rtol=0, atol=0)
    gate = layer.gate.weight
    (with_penalty,) = torch.autograd.grad(trained.sum(), gate)
    (without,) = torch.autograd.grad(still.sum(), gate)
    (of_penalty,) = torch.autograd.grad(imbalance(*choices(layer, x)), gate)
    assert of_penalty.abs().max() > 1e-3
    torch.testing.assert_close(with_penalty - without, BALANCE * of_penalty, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("copies", [1, 30])
def test_the_penalty_is_a_mean_whatever_the_loss_the_batch_and_the_precision(
    layer: Experts, precision: str, copies: int
) -> None:
    x = torch.randn(9, 8)
    (expected,) = torch.autograd.grad(imbalance(*choices(layer, x)), layer.gate.weight)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        nothing = 0.0 * layer(x.repeat(copies, 1)).sum()
    nothing.backward()
    torch.testing.assert_close(layer.gate.weight.grad, BALANCE * expected)


def test_the_penalty_alone_spreads_positions_over_the_experts(layer: Experts) -> None:
    x = torch.randn(200, 8) + 1.0
    torch.nn.init.constant_(layer.gate.weight[0], 0.5)  # nearly all take expert 0

    def largest_share() -> float:
        _, chosen = choices(layer, x)
        return (chosen == 0).any(-1).float().mean().item()

    before = largest_share()
    optimizer = torch.optim.SGD([layer.gate.weight], lr=10.0)
    for _ in range(60):
        optimizer.zero_grad()
        (0.0 * layer(x).sum()).backward()
        optimizer.step()
    assert before > 0.9
    assert largest_share() < 0.6  # 0.4 is the share of each


# --- the whole ---


@pytest.mark.slow
def test_experts_learn_like_the_network_they_replace(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    """Perplexity of reversals: 3.5 with experts and without, 5.6 for a model that sees no order."""
    settings = ["model.experts=4", "model.d_ff=32", "training.learning_rate=0.005"]
    steps = [f"training.{name}=120" for name in ("steps", "validate_every", "checkpoint_every")]
    train(tiny.overridden(settings + steps), prepared.path, run=tmp_path / "run", quiet=True)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    (valid,) = [line for line in map(json.loads, lines) if line["kind"] == "valid"]
    assert valid["perplexity"] < 4.2
