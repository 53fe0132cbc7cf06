"""Rounds are timed in turn, and the device's limit beside them."""

from __future__ import annotations

from itertools import count

import pytest
import torch

from dragoman.bench.training import timing
from dragoman.bench.training.timing import Rounds, matrix_rate, take_turns, warm_up

CPU = torch.device("cpu")


class Contestant:
    steps = 4
    target_tokens = 100

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    def round(self) -> None:
        self.log.append(self.name)


def test_contestants_take_turns() -> None:
    log: list[str] = []
    found = take_turns([Contestant("a", log), Contestant("b", log)], CPU, 3)
    assert log == ["a", "b", "a", "b", "a", "b"]
    assert [len(rounds.seconds) for rounds in found] == [3, 3]


@pytest.mark.parametrize(("steps", "rounds"), [(1, 1), (4, 1), (5, 2), (10, 3)])
def test_warming_up_takes_whole_rounds(steps: int, rounds: int) -> None:
    log: list[str] = []
    warm_up(Contestant("a", log), CPU, steps)
    assert len(log) == rounds


def test_figures_are_of_the_median_round() -> None:
    rounds = Rounds(steps=4, target_tokens=100, seconds=[2.0, 1.0, 5.0])
    assert rounds.tokens_per_second == 50
    assert rounds.milliseconds == 500
    assert rounds.spread == 2


def test_the_limit_is_operations_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(ticks)))
    assert matrix_rate(CPU) == 2 * 1024**3
