"""The schedule against numbers worked by hand; the moving average against its definition."""

from __future__ import annotations

import math

import pytest
import torch

from dragoman.config import TrainingConfig
from dragoman.errors import ModelError
from dragoman.training.optimizer import Adam, MovingAverage, learning_rate


def test_the_papers_schedule_is_equation_3() -> None:
    config = TrainingConfig()
    assert learning_rate(config, 512, 1) == pytest.approx(512**-0.5 * 4000**-1.5)
    assert learning_rate(config, 512, 4000) == pytest.approx(6.987712429686843e-4)
    assert learning_rate(config, 512, 16_000) == pytest.approx(6.987712429686843e-4 / 2)


@pytest.mark.parametrize(
    ("schedule", "steps", "expected"),
    [
        ("inverse-sqrt", 50, 0.0005),
        ("inverse-sqrt", 100, 0.001),
        ("inverse-sqrt", 400, 0.0005),
        ("constant", 10, 0.0001),
        ("constant", 900, 0.001),
        ("cosine", 100, 0.001),
        ("cosine", 550, 0.00055),
        ("cosine", 1000, 0.0001),
        ("cosine", 2000, 0.0001),
    ],
)
def test_other_schedules_rise_to_their_peak_and_fall(
    schedule: str, steps: int, expected: float
) -> None:
    config = TrainingConfig(
        schedule=schedule,  # type: ignore[arg-type]
        learning_rate=0.001,
        warmup_steps=100,
        steps=1000,
    )
    assert learning_rate(config, 512, steps) == pytest.approx(expected)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_is_torch_s_bit_for_bit(decay: float) -> None:
    """The paper's β and ε, and a weight decay that spares the bias."""
    torch.manual_seed(1)
    ours, theirs = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    adam = Adam(ours, TrainingConfig(weight_decay=decay))
    reference = torch.optim.AdamW(
        [
            {"params": [theirs.weight], "weight_decay": decay},
            {"params": [theirs.bias], "weight_decay": 0.0},
        ],
        betas=(0.9, 0.98),
        eps=1e-9,
        fused=True,
    )
    for step in range(1, 6):
        x = torch.randn(4, 5)
        for layer in (ours, theirs):
            layer.zero_grad()
            layer(x).square().sum().backward()
        adam.step(0.01 * step)
        for group in reference.param_groups:
            group["lr"] = 0.01 * step
        reference.step()
        assert torch.equal(ours.weight, theirs.weight)
        assert torch.equal(ours.bias, theirs.bias)


def test_adam_takes_back_what_it_gave() -> None:
    layer = torch.nn.Linear(5, 3)
    adam = Adam(layer, TrainingConfig())
    layer(torch.randn(4, 5)).sum().backward()
    adam.step(0.1)
    saved = {name: tensor.clone() for name, tensor in adam.tensors().items()}
    adam.step(0.1)
    adam.restore(saved, where="here")
    assert all(torch.equal(saved[name], tensor) for name, tensor in adam.tensors().items())
    with pytest.raises(ModelError, match="here: the optimiser of another model"):
        adam.restore({}, where="here")


def test_the_moving_average_follows_its_definition() -> None:
    weight = torch.nn.Parameter(torch.tensor([0.0]))
    average = MovingAverage([weight], decay=0.5)
    expected = 0.0
    for step, value in enumerate([1.0, 3.0, -2.0], 1):
        weight.data.fill_(value)
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    assert average.average[0].item() == pytest.approx(expected)
    average.swap()
    assert weight.item() == pytest.approx(expected)
    average.swap()
    assert weight.item() == -2.0
    assert math.isclose(average.average[0].item(), expected, rel_tol=1e-6)
