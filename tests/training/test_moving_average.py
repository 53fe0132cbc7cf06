"""The moving average against its definition."""

from __future__ import annotations

import math

import pytest
import torch

from dragoman.training.moving_average import MovingAverage


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
