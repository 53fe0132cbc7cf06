"""Rounds of training steps are timed, several models in turn, and what a device can do at best."""

from __future__ import annotations

import gc
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

STEADY: Final = 0.05
"""The share by which a round must be faster than the one before for warming up to go on."""
MAX_WARM_UP_ROUNDS: Final = 10
GPU_SHAPES: Final = ((8192, 8192, 8192), (16384, 8192, 8192), (8192, 8192, 16384))
CPU_SHAPES: Final = ((1024, 1024, 1024), (2048, 512, 1024))
"""The m, n and k of the products that are timed; which one suits the device best differs."""


class BenchmarkCase(Protocol):
    """Hold something that is timed; a round is one pass over its batches, one step for each."""

    @property
    def name(self) -> str:
        """Return what this is called in messages."""

    @property
    def steps(self) -> int:
        """Return the steps of a round."""

    @property
    def target_tokens(self) -> int:
        """Return the target tokens of a round, padding not counted."""

    def run_round(self) -> None:
        """Issue the steps of a round; the device may still be busy afterwards."""


@dataclass(slots=True)
class RoundTimes:
    """Hold the times of rounds that all did the same work."""

    steps: int
    target_tokens: int
    seconds: list[float] = field(default_factory=list)

    @property
    def tokens_per_second(self) -> float:
        """Return the target tokens a second of the median round."""
        return self.target_tokens / median(self.seconds)

    @property
    def milliseconds(self) -> float:
        """Return the time of a step of the median round."""
        return 1000 * median(self.seconds) / self.steps

    @property
    def spread(self) -> float:
        """Return the time from the fastest to the slowest round, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / median(self.seconds)


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished everything it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free_device_memory(device: torch.device) -> None:
    """Give back the memory of models that nothing refers to any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def warm_up(case: BenchmarkCase, device: torch.device, steps: int) -> None:
    """Run whole rounds of at least `steps` steps, so that all shapes are compiled and captured."""
    for _ in range(-(-steps // case.steps)):
        case.run_round()
    synchronize(device)


def warm_up_until_steady(case: BenchmarkCase, device: torch.device, steps: int) -> int:
    """Run rounds of at least `steps` steps, until one is no faster than the one before.

    A compiler may need several rounds: it compiles again for shapes that break its assumptions.
    Return how many steps were taken.
    """
    seconds: list[float] = []
    while len(seconds) < MAX_WARM_UP_ROUNDS or len(seconds) * case.steps < steps:
        seconds.append(_time_round(case, device))
        enough = len(seconds) > 1 and len(seconds) * case.steps >= steps
        if enough and seconds[-1] > seconds[-2] * (1 - STEADY):
            break
    return len(seconds) * case.steps


def time_in_turns(
    cases: Sequence[BenchmarkCase], device: torch.device, rounds: int
) -> list[RoundTimes]:
    """Time rounds of each case, alternating, so that a clock that drifts drifts for all."""
    results = [RoundTimes(case.steps, case.target_tokens) for case in cases]
    for _ in range(rounds):
        for case, result in zip(cases, results, strict=True):
            result.seconds.append(_time_round(case, device))
    return results


def _time_round(case: BenchmarkCase, device: torch.device) -> float:
    synchronize(device)
    start = time.perf_counter()
    case.run_round()
    synchronize(device)
    return time.perf_counter() - start


class DragomanTraining:
    """Take the step that `dragoman train` takes, on batches that are built already."""

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
        """Return in how many slices a batch was computed: more than set if memory was short."""
        return self._stepper.oom_retry.slices

    def run_round(self) -> None:
        """Take one step on each of the batches."""
        self.run_steps(self.steps)

    def run_steps(self, steps: int) -> None:
        """Take so many steps, on the batches in rotation."""
        for _ in range(steps):
            batch = self._batches[self._done % len(self._batches)]
            self._done += 1
            self._stepper.run(batch, self._done)
            deque(self._stepper.take_results(), maxlen=0)  # the loop reads results as they come


def measure_matmul_rate(device: torch.device) -> float:
    """Return operations a second of the best large product: bf16 on a GPU, fp32 on a CPU.

    The factors are random: a GPU multiplies zeros faster, because that takes less power.
    """
    if device.type == "cuda":
        return max(_rate(device, torch.bfloat16, m, n, k, times=20) for m, n, k in GPU_SHAPES)
    return max(_rate(device, torch.float32, m, n, k, times=5) for m, n, k in CPU_SHAPES)


def _rate(device: torch.device, dtype: torch.dtype, m: int, n: int, k: int, *, times: int) -> float:
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
