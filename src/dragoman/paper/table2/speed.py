"""How fast a contender of Table 2 learns, with the device to itself."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final

import torch

from dragoman.bench.training.timing import Ours, take_turns, warm_up
from dragoman.config import Config
from dragoman.data.batching.batches import Batch, Batches
from dragoman.data.prepare import Prepared
from dragoman.system.memory import keep_freed_memory
from dragoman.training.distributed.ranks import describe_device, pick_device
from dragoman.training.precision import determined

__all__ = ["SPEED", "Speed", "first_batches", "measure_speed"]

SPEED: Final = (
    "target tokens a second of training steps on batches of this corpus, one model at a time with "
    "the device to itself, the first steps not counted, the median round"
)
"""What a speed is."""


@dataclass(frozen=True, slots=True)
class _Plan:
    batches: int
    """Of a round, a step each."""
    warm_up: int
    """Steps at least that are not counted: kernels are compiled in them, and steps recorded."""
    least: int
    """Rounds."""


_GPU: Final = _Plan(batches=8, warm_up=10, least=3)
_CPU: Final = _Plan(batches=2, warm_up=1, least=1)
_SECONDS: Final = 2.0
"""That the rounds should take together, where more than the least are wanted."""
_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Speed:
    """What a model does on a device."""

    tokens_per_second: float
    device: str


def first_batches(prepared: Prepared, count: int) -> list[Batch]:
    """The first batches that every contender learns from."""
    config = prepared.config
    batches = Batches(
        prepared.train,
        batch_tokens=config.training.tokens,
        row_length=max(config.data.row_length, config.data.max_length + 1),  # as a run has it
        seed=config.training.seed,
    )
    stream = batches.stream()
    try:
        return [batch for batch, _ in islice(stream, count)]
    finally:
        stream.close()


def measure_speed(config: Config, prepared: Prepared) -> Speed:
    """Train a new model for a few seconds on a GPU, for a few steps on a CPU; then let it go."""
    device = pick_device(config.training.device)
    plan = _GPU if device.type == "cuda" else _CPU
    with _alone(config, device):
        rate = _rate(config, first_batches(prepared, plan.batches), device, plan)
        return Speed(rate, describe_device(device))


def _rate(config: Config, batches: Sequence[Batch], device: torch.device, plan: _Plan) -> float:
    ours = Ours(config, batches, device)
    warm_up(ours, device, plan.warm_up)
    [tried] = take_turns([ours], device, 1)
    rounds = min(_MOST, max(plan.least, math.ceil(_SECONDS / tried.seconds[0]))) - 1
    [timed] = take_turns([ours], device, rounds)
    timed.seconds += tried.seconds
    return timed.tokens_per_second


@contextmanager
def _alone(config: Config, device: torch.device) -> Iterator[None]:
    """The device set up as for training, with nothing left of models before or after."""
    threads = torch.get_num_threads()
    _free(device)  # one that failed was still held by its error when it ended
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        keep_freed_memory()
    try:
        torch.set_num_threads(config.training.threads or threads)
        with determined(config.training.deterministic):
            yield
    finally:
        torch.set_num_threads(threads)
        _free(device)


def _free(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
