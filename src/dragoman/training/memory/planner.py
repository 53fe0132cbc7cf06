"""Memory, planned before the first step instead of found out in the middle of a run.

All batches of a run have one shape, so one step tells what every step needs. On a GPU it is
rehearsed before the first one: if it does not fit, batches are computed in more slices. With
``training.batch_tokens = "auto"`` their size is found here too. What a step needs is nearly linear
in its rows: the line through two sizes tells the largest that should fit, and what is rehearsed
there gives the next line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from dragoman.config import Config
from dragoman.data.batching.batches import Batch
from dragoman.errors import ConfigError
from dragoman.system.memory import is_out_of_memory
from dragoman.training.memory.out_of_memory import nothing_smaller
from dragoman.training.step import Stepper

__all__ = [
    "Need",
    "Rehearsal",
    "enough_slices",
    "full_batch",
    "largest_rows",
    "rows_within",
    "settle",
]


# R rows of a batch, S and T the lengths of its source and target rows


SHARE = 0.9
"""Of the memory there is; the rest is for validating, and for gaps between tensors."""
NEAR = 1.03
"""A size this near to the next estimate is as good."""
FIRST_ROWS = 8
TRIES = 10

Rehearsal = Callable[[int], int | None]
"""The most bytes in use while a slice of so many rows is computed; None: there were not enough."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a slice of so many rows was found to need."""

    rows: int
    bytes: int


def rows_within(memory: float, small: Need, large: Need) -> int:
    """The most rows that fit in so many bytes, by the line through two sizes."""
    each = (large.bytes - small.bytes) / (large.rows - small.rows)
    if each <= 0:  # lost among what does not depend on the rows; more of them will show
        return 2 * large.rows
    return int(large.rows + (memory - large.bytes) / each)


def largest_rows(rehearse: Rehearsal, memory: int, most: int) -> int:
    """The most rows of a slice that fit, and no more than `most`; 0: not even one does."""
    room = SHARE * memory
    last, best = None, _first_that_fits(rehearse, room, min(FIRST_ROWS, most))
    if best is None:
        return 0
    rows, too_many = 2 * best.rows, most + 1
    for _ in range(TRIES):
        rows = min(rows, too_many - 1)
        if rows < NEAR * best.rows:
            break
        found = rehearse(rows)
        if found is None or found > room * NEAR:
            too_many = rows
            rows = int(0.9 * rows)
        else:
            last, best = best, Need(rows, found)
            rows = rows_within(room, last, best)
    return best.rows


def _first_that_fits(rehearse: Rehearsal, room: float, rows: int) -> Need | None:
    while rows:
        if (found := rehearse(rows)) is not None and found <= room:
            return Need(rows, found)
        rows //= 2
    return None


def enough_slices(rehearse: Rehearsal, rows: int, slices: int) -> int:
    """In how many slices so many rows fit, no fewer than `slices`; 0: not even one by one."""
    while rehearse(-(-rows // slices)) is None:
        if slices >= rows:
            return 0
        slices = min(2 * slices, rows)
    return slices


# PART training.rehearsal: Rehearsing a step, and settling by that what a run can afford: the
# planner, on a device.


# R rows of a batch, S and T the lengths of its source and target rows


def settle(
    config: Config, stepper: Stepper, shape: tuple[int, int, int], say: Callable[[str], None]
) -> Config:
    """The config with its batch size as a number; on a GPU, a step of it fits.

    All ranks call this, and come to the same result.
    """
    training, world = config.training, stepper.ranks.world
    a_row = config.data.row_length
    if stepper.device.type != "cuda":
        return _with_tokens(config, max(training.tokens, a_row * training.accumulate * world))
    rehearse, memory = _rehearsal(stepper, shape), _memory(stepper)
    R, S, T = shape
    if training.batch_tokens == "auto":
        rows = largest_rows(rehearse, memory, most=_addressable(config, S, T))
        _need_one(rows, memory, S, T)
        config = _with_tokens(config, rows * training.accumulate * world * a_row)
        say(f"training.batch_tokens = {config.training.tokens:,}: what fits in the memory")
    else:
        slices = enough_slices(rehearse, -(-R // world), stepper.ration.slices)
        _need_one(slices, memory, S, T)
        if slices > stepper.ration.slices:
            say(f"to fit in the memory, each batch is computed in {slices} slices")
        stepper.ration.begin_with(slices)
    return config


def _with_tokens(config: Config, tokens: int) -> Config:
    if config.training.batch_tokens != "auto":
        return config
    training = dataclasses.replace(config.training, batch_tokens=tokens)
    return dataclasses.replace(config, training=training)


def _need_one(found: int, memory: int, S: int, T: int) -> None:
    if not found:
        raise ConfigError(f"in {memory / 2**30:.1f} GB of GPU memory {nothing_smaller(S, T)}")


def _addressable(config: Config, S: int, T: int) -> int:
    """Rows whose widest activations have fewer than 2³¹ elements: kernels count in 32 bits."""
    model = config.model
    widest = max(model.d_ff, model.heads * (2 * model.d_k + model.d_v), model.d_model)
    return (2**31 - 1) // (widest * max(S, T))


def _rehearsal(stepper: Stepper, shape: tuple[int, int, int]) -> Rehearsal:
    """Every rank tries, and all hear of the one in the greatest need."""
    _, S, T = shape

    def rehearse(rows: int) -> int | None:
        peak = _peak(stepper, full_batch(rows, S, T, stepper.model.targets))
        peaks = [int(t) for t in stepper.ranks.gather(torch.tensor(-1 if peak is None else peak))]
        return max(peaks) if min(peaks) >= 0 else None

    return rehearse


def _peak(stepper: Stepper, batch: Batch) -> int | None:
    device = stepper.device
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    try:
        stepper.rehearse(batch)
        torch.cuda.synchronize(device)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None
    return torch.cuda.max_memory_allocated(device)


def _memory(stepper: Stepper) -> int:
    """What this process has and could have of its device; of all ranks, the least."""
    free, _ = torch.cuda.mem_get_info(stepper.device)
    mine = free + torch.cuda.memory_reserved(stepper.device)
    return min(int(t) for t in stepper.ranks.gather(torch.tensor(mine)))


def full_batch(R: int, S: int, T: int, vocabulary: int) -> Batch:
    """Rows without padding, a sentence each: no batch of this shape needs more memory."""
    draw = np.random.default_rng(0)

    def side(length: int) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int32]]]:
        ids = draw.integers(0, vocabulary, (R, length), dtype=np.int32)
        positions = np.broadcast_to(np.arange(length, dtype=np.int32), (R, length))
        return [ids, np.ones_like(ids), np.ascontiguousarray(positions)]

    target, *places = side(T)
    return Batch(*[*side(S), target, target, *places])
