"""Retrying after out of memory: the batch is computed again, in twice as many slices.

With one rank that is all. With several, a rank that runs out of memory in the middle of a
collective leaves the others waiting for gradients that never come. So there are two ways to compute
a step:

- checked: every rank computes its gradients alone, all tell each other on the host whether memory
  was enough, and only then exchange gradients. If it was not for one, all begin the batch again.
- unchecked: gradients are exchanged while the backward pass goes on, which is faster.

All batches have one shape, so that what has fitted will fit. The first steps of a process, and the
first after running out, are checked; the others are not. Running out in one of the others ends the
process. With FSDP every layer is a collective, and no step can be checked.

A record in the run's directory outlives the process: a resumed run computes its batches in as many
slices as were needed. Remove the file to begin with `training.accumulate` again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import TrainingError
from dragoman.system.atomic_files import atomic_write
from dragoman.system.memory import is_out_of_memory
from dragoman.training.distributed.ranks import Ranks

__all__ = [
    "OomRetry",
    "OutOfMemoryRecord",
    "UnrecoverableOutOfMemoryError",
    "describe_too_long_row",
    "load_record",
    "save_record",
]

CHECKED_STEPS = 3
RECORD_FILE = "out_of_memory.json"


@dataclass(frozen=True, slots=True)
class OutOfMemoryRecord:
    """Remember that memory ran out once, so that later steps are computed in smaller slices."""

    step: int
    slices: int
    """From this step on, batches are computed in so many slices."""


class UnrecoverableOutOfMemoryError(TrainingError):
    """Memory ran out, and this process cannot go on.

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
