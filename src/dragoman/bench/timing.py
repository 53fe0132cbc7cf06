"""Timing whole rounds of steps, one contestant after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

import torch

__all__ = ["Contestant", "Rounds", "synchronize", "take_turns", "warm_up"]


class Contestant(Protocol):
    """Something that trains; a round is one pass over its batches, one step for each."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def steps(self) -> int:
        """Of a round."""

    @property
    def target_tokens(self) -> int:
        """Of a round, padding not counted."""

    def round(self) -> None:
        """Issue the steps; the device may still be busy afterwards."""


@dataclass(slots=True)
class Rounds:
    """The times of a contestant's rounds; every round is the same work."""

    steps: int
    target_tokens: int
    seconds: list[float] = field(default_factory=list)

    @property
    def tokens_per_second(self) -> float:
        """Target tokens, of the median round."""
        return self.target_tokens / median(self.seconds)

    @property
    def milliseconds(self) -> float:
        """Of a step of the median round."""
        return 1000 * median(self.seconds) / self.steps

    @property
    def spread(self) -> float:
        """From the fastest to the slowest round, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / median(self.seconds)


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def warm_up(contestant: Contestant, device: torch.device, steps: int) -> None:
    """Whole rounds of at least `steps` steps, so that every shape is compiled and captured."""
    for _ in range(-(-steps // contestant.steps)):
        contestant.round()
    synchronize(device)


def take_turns(contestants: list[Contestant], device: torch.device, rounds: int) -> list[Rounds]:
    """Time `rounds` rounds of each, alternating, so that a clock that drifts drifts for all."""
    results = [Rounds(one.steps, one.target_tokens) for one in contestants]
    for _ in range(rounds):
        for contestant, result in zip(contestants, results, strict=True):
            synchronize(device)
            start = time.perf_counter()
            contestant.round()
            synchronize(device)
            result.seconds.append(time.perf_counter() - start)
    return results
