"""Checkpoints: everything a run is, in one directory that is there whole or not at all.

``checkpoints/step-00001000/`` holds the weights, the optimiser's moments, the random generators of
every rank, the moving average if there is one, and ``state.json``: progress, data position and the
checksum of each file.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dragoman.data.batches import Position
from dragoman.errors import ModelError, TrainingError
from dragoman.files import atomic_directory
from dragoman.models.weights import get_weights, read_tensors, set_weights, write_tensors
from dragoman.training.optimizer import Adam, MovingAverage

__all__ = [
    "Progress",
    "average_weights",
    "list_checkpoints",
    "load_checkpoint",
    "newest_sound_checkpoint",
    "prune",
    "save_checkpoint",
]

WEIGHTS, OPTIMIZER, AVERAGE, GENERATORS, STATE = (
    "weights.safetensors",
    "optimizer.safetensors",
    "average.safetensors",
    "generators.safetensors",
    "state.json",
)


@dataclass(slots=True)
class Progress:
    """How far a run has come."""

    step: int = 0
    position: Position = field(default_factory=Position)
    seconds: float = 0.0
    """Time spent training, over all the times it was started."""
    target_tokens: int = 0
    best_score: float | None = None
    best_step: int = 0
    validations_without_gain: int = 0
    metrics_bytes: int = 0
    """Length of metrics.jsonl: what a killed run wrote after its checkpoint is cut off."""
    threads: int = 0
    """CPU threads of arithmetic; another number changes the last bits."""
    ranks: int = 1

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Progress:
        """What `to_dict` gave."""
        return cls(**{**values, "position": Position.from_dict(values["position"])})


def checkpoint_path(run: Path, step: int) -> Path:
    """Where the checkpoint of a step is."""
    return run / "checkpoints" / f"step-{step:08d}"


def list_checkpoints(run: Path) -> list[Path]:
    """Every checkpoint of a run, oldest first."""
    return sorted((run / "checkpoints").glob("step-*"))


def save_checkpoint(
    run: Path,
    progress: Progress,
    model: nn.Module,
    optimizer: Adam,
    average: MovingAverage | None,
    generators: dict[str, Tensor],
) -> Path:
    """Write the checkpoint of this step, completely or not at all."""
    path = checkpoint_path(run, progress.step)
    with atomic_directory(path, replace=True) as directory:
        files = {
            WEIGHTS: get_weights(model),
            OPTIMIZER: optimizer.tensors(),
            GENERATORS: generators,
        }
        if average is not None:
            files[AVERAGE] = dict(zip(get_weights(model), average.average, strict=True))
        for name, tensors in files.items():
            write_tensors(tensors, directory / name)
        state = {
            "progress": progress.to_dict(),
            "checksums": {name: _checksum(directory / name) for name in files},
        }
        (directory / STATE).write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")
    return path


def load_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: Adam,
    average: MovingAverage | None,
) -> tuple[Progress, dict[str, Tensor]]:
    """Put a checkpoint's contents in their places; progress and generators are returned."""
    state = _read_state(path)
    set_weights(model, read_tensors(path / WEIGHTS), where=str(path / WEIGHTS))
    optimizer.restore(read_tensors(path / OPTIMIZER), where=str(path / OPTIMIZER))
    if average is not None:
        if not (path / AVERAGE).exists():
            raise TrainingError(f"{path}: has no moving average; resume with training.ema=0")
        tensors = read_tensors(path / AVERAGE)
        average.average = [
            tensors[name].to(p.device)
            for name, p in zip(get_weights(model), average.parameters, strict=True)
        ]
    return Progress.from_dict(state["progress"]), read_tensors(path / GENERATORS)


def newest_sound_checkpoint(run: Path, say: Callable[[str], None]) -> Path:
    """The last checkpoint that is whole; a damaged newer one is passed over, and that is said."""
    checkpoints = list_checkpoints(run)
    if not checkpoints:
        raise TrainingError(f"{run}: no checkpoint to resume from; start the run again")
    for path in reversed(checkpoints):
        try:
            _verify(path)
        except ModelError as error:
            say(f"{error}; falling back to the checkpoint before it")
        else:
            return path
    raise TrainingError(f"{run}: every checkpoint is damaged; start the run again")


def prune(run: Path, keep: int) -> None:
    """Remove all but the newest checkpoints."""
    for path in list_checkpoints(run)[:-keep]:
        # A rename first: what remains of a killed removal does not look like a checkpoint.
        doomed = path.with_name(f".tmp-{path.name}")
        shutil.rmtree(doomed, ignore_errors=True)
        path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of several checkpoints' or models' weights (§6.1), summed in double precision.

    A checkpoint with a moving average gives that in place of its weights.
    """
    total: dict[str, Tensor] = {}
    for path in paths:
        file = path / AVERAGE if (path / AVERAGE).exists() else path / WEIGHTS
        weights = read_tensors(file)
        if not total:
            total = {name: tensor.double() for name, tensor in weights.items()}
            continue
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in total.items()}:
            raise ModelError(f"{file}: not the same model as {paths[0]}; they cannot be averaged")
        for name, tensor in weights.items():
            total[name] += tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((path / STATE).read_text(encoding="utf-8"))
        Progress.from_dict(state["progress"])
        assert isinstance(state["checksums"], dict)
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        raise ModelError(f"{path}: not a checkpoint of this version of Dragoman") from None
    return state


def _verify(path: Path) -> None:
    for name, checksum in _read_state(path)["checksums"].items():
        if not (path / name).exists() or _checksum(path / name) != checksum:
            raise ModelError(f"{path / name}: damaged (its checksum is wrong)")


def _checksum(path: Path) -> str:
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return f"{value:08x}"
