"""The schedule against numbers worked by hand; the moving average against its definition."""

from __future__ import annotations

import math

import pytest
import torch

from dragoman.config import TrainingConfig
from dragoman.training.optimizer import MovingAverage, learning_rate, make_optimizer


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


def test_adam_is_the_papers() -> None:
    layer = torch.nn.Linear(3, 2)
    optimizer = make_optimizer(layer, TrainingConfig())
    settings = optimizer.param_groups[0]
    assert settings["betas"] == (0.9, 0.98)
    assert settings["eps"] == 1e-9


def test_weight_decay_spares_biases() -> None:
    layer = torch.nn.Linear(3, 2)
    optimizer = make_optimizer(layer, TrainingConfig(weight_decay=0.1))
    decays = {id(p): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    assert decays == {id(layer.weight): 0.1, id(layer.bias): 0.0}


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
