"""Negative controls: resumes that leave something out, which the comparison must find."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch

from dragoman.data.batching.batches import START
from dragoman.training import learning_rate as schedules
from dragoman.training.checkpoints import checkpoint
from dragoman.training.distributed.parallel import LocalRows


def no_generators() -> None:
    """Dropout goes on from the seed."""
    torch.set_rng_state = lambda state: None  # type: ignore[assignment]


def no_schedule() -> None:
    """The learning rate warms up again."""
    plain, resumed = schedules.learning_rate, checkpoint.Checkpoint.__init__
    saved_at = 0

    def note_step(self: Any, path: Any) -> None:
        nonlocal saved_at
        resumed(self, path)
        saved_at = saved_at or self.state.step  # pruning looks at others later

    def restarted_rate(config: Any, d_model: int, step: int) -> float:
        return plain(config, d_model, step - saved_at)

    checkpoint.Checkpoint.__init__ = note_step  # type: ignore[method-assign]
    for module in list(sys.modules.values()):
        if getattr(module, "learning_rate", None) is plain:
            module.learning_rate = restarted_rate  # type: ignore[attr-defined]


def no_position() -> None:
    """The data begin again."""
    plain = checkpoint.TrainingState.from_dict

    def from_the_start(values: dict[str, Any]) -> checkpoint.TrainingState:
        state = plain(values)
        state.position = START
        return state

    checkpoint.TrainingState.from_dict = from_the_start  # type: ignore[method-assign]


def _without(kind: str) -> None:
    plain = checkpoint.Checkpoint.load_into

    def load_some(self: checkpoint.Checkpoint, tensors: Mapping[str, LocalRows]) -> None:
        plain(self, {name: rows for name, rows in tensors.items() if not name.startswith(kind)})

    checkpoint.Checkpoint.load_into = load_some  # type: ignore[method-assign]


CONTROLS: dict[str, Callable[[], None]] = {
    "the random generators": no_generators,
    "the step of the schedule": no_schedule,
    "the position in the data": no_position,
    "Adam's moments": lambda: _without("optimizer/"),
    "the moving average": lambda: _without("average/"),
}
