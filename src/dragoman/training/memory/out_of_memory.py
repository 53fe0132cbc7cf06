"""Out of memory: how it is known, and what a run remembers of it.

The note in the run's directory outlives the process: whoever takes the run up again computes its
batches in as many slices as were needed. Remove it to begin with `training.accumulate` again.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import TrainingError
from dragoman.system.atomic_files import atomic_write

__all__ = ["Shortage", "ShortageError", "nothing_smaller", "read_note", "write_note"]

NOTE = "out_of_memory.json"


@dataclass(frozen=True, slots=True)
class Shortage:
    """That memory ran out once."""

    step: int
    slices: int
    """In which the batches are computed from then on."""


class ShortageError(TrainingError):
    """Memory ran out and this process cannot go on: others wait for it in an exchange.

    Or it is hopeless: the slices are single rows.
    """

    def __init__(self, shortage: Shortage, *, hopeless: bool = False) -> None:
        super().__init__(f"out of memory at step {shortage.step:,}")
        self.shortage, self.hopeless = shortage, hopeless


def nothing_smaller(S: int, T: int) -> str:
    """What to say, and to do, when one row is too much: its lengths are S and T."""
    return (
        f"not even one row of {S} source and {T} target positions fits beside the model; lower "
        "data.row_length and data.max_length, choose a smaller model, or give it more GPUs with "
        "training.sharding=full"
    )


def write_note(run: Path, shortage: Shortage) -> None:
    """Remember the last shortage of a run."""
    atomic_write(run / NOTE, json.dumps(dataclasses.asdict(shortage)) + "\n")


def read_note(run: Path) -> Shortage | None:
    """The last shortage of a run, if there was one."""
    try:
        return Shortage(**json.loads((run / NOTE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
