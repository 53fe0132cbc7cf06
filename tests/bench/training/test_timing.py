"""Rounds are timed in turn, and the device's limit beside them."""

from __future__ import annotations

from itertools import count

import pytest
import torch

from dragoman.bench.training import timing
from dragoman.bench.training.timing import (
    MAX_WARM_UP_ROUNDS,
    RoundTimes,
    measure_matmul_rate,
    time_in_turns,
    warm_up,
    warm_up_until_steady,
)

CPU = torch.device("cpu")


class Case:
    steps = 4
    target_tokens = 100

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    def run_round(self) -> None:
        self.log.append(self.name)


def test_cases_take_turns() -> None:
    log: list[str] = []
    found = time_in_turns([Case("a", log), Case("b", log)], CPU, 3)
    assert log == ["a", "b", "a", "b", "a", "b"]
    assert [len(rounds.seconds) for rounds in found] == [3, 3]


@pytest.mark.parametrize(("steps", "rounds"), [(1, 1), (4, 1), (5, 2), (10, 3)])
def test_warming_up_takes_whole_rounds(steps: int, rounds: int) -> None:
    log: list[str] = []
    warm_up(Case("a", log), CPU, steps)
    assert len(log) == rounds


@pytest.mark.parametrize(
    ("seconds", "steps", "rounds"),
    [
        ([5.0, 5.0], 1, 2),
        ([60.0, 9.0, 5.0, 5.0], 1, 4),  # compiled in two rounds
        ([60.0, 5.0, 4.9], 1, 3),
        ([5.0, 5.0, 5.0, 5.0], 16, 4),
        ([1000 / 2**k for k in range(20)], 1, MAX_WARM_UP_ROUNDS),
    ],
)
def test_warming_up_goes_on_until_rounds_get_no_faster(
    seconds: list[float], steps: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: sum(seconds[: len(log)]))
    assert warm_up_until_steady(Case("a", log), CPU, steps) == 4 * rounds
    assert len(log) == rounds


def test_figures_are_of_the_median_round() -> None:
    rounds = RoundTimes(steps=4, target_tokens=100, seconds=[2.0, 1.0, 5.0])
    assert rounds.tokens_per_second == 50
    assert rounds.milliseconds == 500
    assert rounds.spread == 2


def test_the_limit_is_operations_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(ticks)))
    assert measure_matmul_rate(CPU) == 2 * 1024**3
