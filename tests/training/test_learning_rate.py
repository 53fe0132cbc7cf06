"""The schedules against numbers worked by hand."""

from __future__ import annotations

import pytest

from dragoman.config import TrainingConfig
from dragoman.training.learning_rate import learning_rate


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
        ("linear", 50, 0.0005),
        ("linear", 100, 0.001),
        ("linear", 550, 0.0005),
        ("linear", 1000, 0.0),
        ("linear", 2000, 0.0),
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
