"""Timing whole rounds of steps, one contestant after the other."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Protocol

import torch

from dragoman.config import Config
from dragoman.data.batching.batches import Batch
from dragoman.models import build
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.step import Stepper

__all__ = [
    "Contestant",
    "Ours",
    "Rounds",
    "matrix_rate",
    "synchronize",
    "take_turns",
    "warm_up",
]


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


# PART bench.limit: What the device can do at best: the rate of large matrix products, measured.


GPU_SHAPES: Final = ((8192, 8192, 8192), (16384, 8192, 8192), (8192, 8192, 16384))
CPU_SHAPES: Final = ((1024, 1024, 1024), (2048, 512, 1024))
"""m, n, k; which one suits the device best differs."""


def matrix_rate(device: torch.device) -> float:
    """Operations a second of the best large product: bf16 on a GPU, fp32 on a CPU.

    The factors are random: a GPU multiplies zeros faster, because that takes less power.
    """
    if device.type == "cuda":
        return max(_rate(device, torch.bfloat16, m, n, k, times=20) for m, n, k in GPU_SHAPES)
    return max(_rate(device, torch.float32, m, n, k, times=5) for m, n, k in CPU_SHAPES)


def _rate(device: torch.device, dtype: torch.dtype, m: int, n: int, k: int, *, times: int) -> float:
    """The median of some times of some products in a row."""
    a = torch.randn(m, k, device=device).to(dtype)
    b = torch.randn(k, n, device=device).to(dtype)
    out = torch.empty(m, n, device=device, dtype=dtype)
    in_a_row = 10 if device.type == "cuda" else 1  # waiting for a GPU takes time too
    seconds = []
    for _ in range(1 + times):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(in_a_row):
            torch.mm(a, b, out=out)
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    return 2 * m * n * k * in_a_row / median(seconds[1:])  # the first one chooses a kernel


# PART bench.ours: Dragoman's own step as a contestant.


class Ours:
    """The step that `dragoman train` takes, on batches that are there already."""

    name = "dragoman"

    def __init__(self, config: Config, batches: Sequence[Batch], device: torch.device) -> None:
        torch.manual_seed(config.training.seed)
        model = build(config.model, config.tokenizer.vocabulary).to(device).train()
        self.parameters = sum(p.numel() for p in model.parameters())
        self.steps = len(batches)
        self.target_tokens = sum(batch.target_tokens for batch in batches)
        self._batches = batches
        self._stepper = Stepper(config, model, device, Ranks())
        self._done = 0

    @property
    def slices(self) -> int:
        """In how many a batch was computed: training.accumulate, or more if memory was short."""
        return self._stepper.ration.slices

    def round(self) -> None:
        """One step on each of the batches."""
        self.issue(self.steps)

    def issue(self, steps: int) -> None:
        """So many steps, on the batches in rotation."""
        for _ in range(steps):
            batch = self._batches[self._done % len(self._batches)]
            self._done += 1
            self._stepper.run(batch, self._done)
            deque(self._stepper.finished(), maxlen=0)  # the loop reads results as they come
