"""Memory is planned before the first step, and a step that runs out of it is tried again.

Planning: all batches of a run have one shape, so one step tells what every step needs. On a GPU it
is tried before the first one: if it does not fit, batches are computed in more slices. With
``training.batch_tokens = "auto"`` their size is found here too. The memory of a step is nearly
linear in its rows: the line through two measured sizes predicts the largest that should fit, and
measuring that one gives the next line.

Retrying: a batch that does not fit is computed again in twice as many slices. With one rank that
is all. With several, a rank that runs out of memory in the middle of a collective leaves the others
waiting for gradients that never come. So there are two ways to compute a step:

- checked: every rank computes its gradients alone, all tell each other on the host whether memory
  was enough, and only then exchange gradients. If it was not for one, all begin the batch again.
- unchecked: gradients are exchanged while the backward pass goes on, which is faster.

What has fitted will fit. So the first steps of a process, and the first after running out, are
checked; running out in one of the others ends the process. With FSDP every layer is a collective,
and no step can be checked. A record in the run's directory outlives the process: a resumed run
computes its batches in as many slices as were needed. Remove the file to begin with
`training.accumulate` again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from dragoman.config import Config
from dragoman.data.batching.batches import Batch
from dragoman.errors import ConfigError, TrainingError
from dragoman.system.atomic_files import atomic_write
from dragoman.system.out_of_memory import is_out_of_memory
from dragoman.training.distributed.ranks import Ranks

if TYPE_CHECKING:
    from dragoman.training.step import Stepper

CHECKED_STEPS = 3
RECORD_FILE = "out_of_memory.json"


@dataclass(frozen=True, slots=True)
class OutOfMemoryRecord:
    """Remember that memory ran out once, so that later steps are computed in smaller slices."""

    step: int
    slices: int
    """From this step on, batches are computed in so many slices."""


class UnrecoverableOutOfMemoryError(TrainingError):
    """Raised when memory ran out and this process cannot go on.

    Either the slices are single rows already, or other ranks wait for it in a collective.
    """

    def __init__(self, record: OutOfMemoryRecord, *, is_single_row: bool = False) -> None:
        super().__init__(f"out of memory at step {record.step:,}")
        self.record, self.is_single_row = record, is_single_row


class OomRetry:
    """Decide in how many slices a batch is computed, and retry with more when memory runs out."""

    def __init__(self, slices: int, ranks: Ranks, *, sharded: bool) -> None:
        self.slices = slices
        self.records: list[OutOfMemoryRecord] = []
        """These retries were survived; whoever reports them removes them from the list."""
        self._ranks = ranks
        self._can_check = ranks.world_size > 1 and not sharded
        self._checked_steps_left = CHECKED_STEPS

    def require_slices(self, slices: int) -> None:
        """Use at least this many slices, as the planner or an earlier process found necessary."""
        self.slices = max(self.slices, slices)

    def run_step(
        self,
        step: int,
        rows: int,
        *,
        compute: Callable[[bool], None],
        exchange: Callable[[], None],
        discard: Callable[[], None],
    ) -> None:
        """Compute the gradients of a step of `rows` rows, again and again until memory is enough.

        `compute` finds the gradients, of all ranks or of this one alone; `exchange` turns the
        latter into the former; `discard` drops what a failed attempt has found.
        """
        while True:
            checked = self._can_check and self._checked_steps_left > 0
            ran_out = _runs_out_of_memory(compute, not checked)
            if checked:
                ran_out = bool(self._ranks.sum(ran_out)[0])
            if not ran_out:
                if checked:
                    exchange()
                self._checked_steps_left -= 1
                return
            record = self._double_slices(step, rows)
            if self._ranks.world_size > 1 and not checked:
                raise UnrecoverableOutOfMemoryError(record)
            discard()
            self.records.append(record)

    def _double_slices(self, step: int, rows: int) -> OutOfMemoryRecord:
        if self.slices >= rows:
            record = OutOfMemoryRecord(step, self.slices)
            raise UnrecoverableOutOfMemoryError(record, is_single_row=True)
        self.slices = min(2 * self.slices, rows)
        self._checked_steps_left = CHECKED_STEPS
        return OutOfMemoryRecord(step, self.slices)


def _runs_out_of_memory(compute: Callable[[bool], None], synced: bool) -> bool:
    """Return whether `compute` runs out of memory; what it held is freed with its traceback."""
    try:
        compute(synced)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return True
    return False


def describe_too_long_row(S: int, T: int) -> str:
    """Return what to say, and to do, when one row of lengths S and T does not fit in memory."""
    return (
        f"not even one row of {S} source and {T} target positions fits beside the model; lower "
        "data.row_length and data.max_length, choose a smaller model, or give it more GPUs with "
        "training.sharding=full"
    )


def save_record(run: Path, record: OutOfMemoryRecord) -> None:
    """Write the last time that a run ran out of memory to its directory."""
    atomic_write(run / RECORD_FILE, json.dumps(dataclasses.asdict(record)) + "\n")


def load_record(run: Path) -> OutOfMemoryRecord | None:
    """Return the last time that a run ran out of memory; None if it never did."""
    try:
        return OutOfMemoryRecord(**json.loads((run / RECORD_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


# R rows of a batch, S and T the lengths of its source and target rows

USABLE_FRACTION = 0.9
"""This fraction of the memory is used; the rest is for validating, and for fragmentation."""
TOLERANCE = 1.03
"""A size this near to the next estimate is as good."""
FIRST_ROWS = 8
MAX_PROBES = 10

MemoryProbe = Callable[[int], int | None]
"""Such a function returns the peak bytes of a slice of so many rows; None if memory ran out."""


def plan_memory(
    config: Config,
    stepper: Stepper,
    shape: tuple[int, int, int],
    show_message: Callable[[str], None],
) -> Config:
    """Return the config with its batch size as a number; on a GPU, make sure that a step fits.

    All ranks call this, and get the same result.
    """
    training, world_size = config.training, stepper.ranks.world_size
    row_length = config.data.row_length
    if stepper.device.type != "cuda":
        one_row_each = row_length * training.accumulate * world_size
        return _with_batch_tokens(config, max(training.tokens, one_row_each))
    probe, memory = _make_probe(stepper, shape), _available_memory(stepper)
    R, S, T = shape
    if training.batch_tokens == "auto":
        rows = find_largest_rows(probe, memory, most=_max_indexable_rows(config, S, T))
        _require_one_row(rows, memory, S, T)
        config = _with_batch_tokens(config, rows * training.accumulate * world_size * row_length)
        show_message(f"training.batch_tokens = {config.training.tokens:,}: what fits in the memory")
    else:
        slices = find_slices(probe, -(-R // world_size), stepper.oom_retry.slices)
        _require_one_row(slices, memory, S, T)
        if slices > stepper.oom_retry.slices:
            show_message(f"to fit in the memory, each batch is computed in {slices} slices")
        stepper.oom_retry.require_slices(slices)
    return config


@dataclass(frozen=True, slots=True)
class MemoryMeasurement:
    """Hold how many bytes a slice of so many rows was found to need."""

    rows: int
    bytes: int


def extrapolate_rows(memory: float, small: MemoryMeasurement, large: MemoryMeasurement) -> int:
    """Return the most rows that fit in so many bytes, by the line through two measurements."""
    each = (large.bytes - small.bytes) / (large.rows - small.rows)
    if each <= 0:  # rows are lost among what does not depend on them; more of them will show
        return 2 * large.rows
    return int(large.rows + (memory - large.bytes) / each)


def find_largest_rows(probe: MemoryProbe, memory: int, most: int) -> int:
    """Return the most rows of a slice that fit, at most `most`; 0 if not even one does."""
    usable = USABLE_FRACTION * memory
    last, best = None, _halve_until_fits(probe, usable, min(FIRST_ROWS, most))
    if best is None:
        return 0
    rows, too_many = 2 * best.rows, most + 1
    for _ in range(MAX_PROBES):
        rows = min(rows, too_many - 1)
        if rows < TOLERANCE * best.rows:
            break
        found = probe(rows)
        if found is None or found > usable * TOLERANCE:
            too_many = rows
            rows = int(0.9 * rows)
        else:
            last, best = best, MemoryMeasurement(rows, found)
            rows = extrapolate_rows(usable, last, best)
    return best.rows


def _halve_until_fits(probe: MemoryProbe, usable: float, rows: int) -> MemoryMeasurement | None:
    while rows:
        if (found := probe(rows)) is not None and found <= usable:
            return MemoryMeasurement(rows, found)
        rows //= 2
    return None


def find_slices(probe: MemoryProbe, rows: int, slices: int) -> int:
    """Return in how many slices so many rows fit, at least `slices`; 0 if single rows do not."""
    while probe(-(-rows // slices)) is None:
        if slices >= rows:
            return 0
        slices = min(2 * slices, rows)
    return slices


def _with_batch_tokens(config: Config, tokens: int) -> Config:
    if config.training.batch_tokens != "auto":
        return config
    training = dataclasses.replace(config.training, batch_tokens=tokens)
    return dataclasses.replace(config, training=training)


def _require_one_row(found: int, memory: int, S: int, T: int) -> None:
    if not found:
        raise ConfigError(f"in {memory / 2**30:.1f} GB of GPU memory {describe_too_long_row(S, T)}")


def _max_indexable_rows(config: Config, S: int, T: int) -> int:
    """Return how many rows' widest activations have fewer than 2³¹ elements, as kernels need."""
    model = config.model
    widest = max(model.d_ff, model.heads * (2 * model.d_k + model.d_v), model.d_model)
    return (2**31 - 1) // (widest * max(S, T))


# --- measuring on a device ---


def _make_probe(stepper: Stepper, shape: tuple[int, int, int]) -> MemoryProbe:
    """Return a probe that measures on every rank and returns the largest need of all."""
    _, S, T = shape

    def probe(rows: int) -> int | None:
        peak = _peak_memory(stepper, make_full_batch(rows, S, T, stepper.model.targets))
        found = stepper.ranks.all_gather(torch.tensor(-1 if peak is None else peak))
        peaks = [int(t) for t in found]
        return max(peaks) if min(peaks) >= 0 else None

    return probe


def _peak_memory(stepper: Stepper, batch: Batch) -> int | None:
    device = stepper.device
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    try:
        stepper.probe_memory(batch)
        torch.cuda.synchronize(device)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None
    return torch.cuda.max_memory_allocated(device)


def _available_memory(stepper: Stepper) -> int:
    """Return the bytes that this process can have of its device; of all ranks, the fewest."""
    free, _ = torch.cuda.mem_get_info(stepper.device)
    own = free + torch.cuda.memory_reserved(stepper.device)
    return min(int(t) for t in stepper.ranks.all_gather(torch.tensor(own)))


def make_full_batch(R: int, S: int, T: int, vocabulary: int) -> Batch:
    """Return rows without padding, a sentence each: no batch of this shape needs more memory."""
    draw = np.random.default_rng(0)

    def side(length: int) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int32]]]:
        ids = draw.integers(0, vocabulary, (R, length), dtype=np.int32)
        positions = np.broadcast_to(np.arange(length, dtype=np.int32), (R, length))
        return [ids, np.ones_like(ids), np.ascontiguousarray(positions)]

    target, *places = side(T)
    return Batch(*[*side(S), target, target, *places])
