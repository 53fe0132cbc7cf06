"""Checkpoints: everything a run is, in one directory that is there whole or not at all.

``checkpoints/step-00001000/`` holds the weights, the optimiser's moments, the moving average if
there is one and the random generators, in a shard a rank; and ``state.json``: progress, data
position, and the index of the shards. How one is written is in saving.py.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.data.batching.batches import Position
from dragoman.errors import DataError, DragomanError, ModelError, TrainingError
from dragoman.models.weights import check_shapes, get_weights, read_tensors
from dragoman.system.atomic_files import TEMPORARY, write_synced
from dragoman.training.checkpoints.shards import Index, Part, Shards, whole
from dragoman.training.optimizers import Adam, MovingAverage

__all__ = [
    "STATE",
    "Checkpoint",
    "Progress",
    "average_weights",
    "checkpoint_path",
    "list_checkpoints",
    "newest_sound_checkpoint",
    "prune",
    "run_state",
    "sound_checkpoints",
    "step_of",
    "write_state",
]

STATE = "state.json"
FORMAT = 1
WEIGHTS, OPTIMIZER, AVERAGE, GENERATORS = "weights/", "optimizer/", "average/", "generators/"


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
    bad_steps: int = 0
    """Steps in a row that were skipped."""
    validation_due: bool = False
    """Whether a signal broke off the validation of this step."""
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


def run_state(
    model: nn.Module,
    optimizer: Adam,
    average: MovingAverage | None,
    part: Callable[[Tensor], Part] = whole,
) -> dict[str, Part]:
    """Every tensor that training changes, by name: the run's own, to be saved or to be filled.

    `part` tells which rows of a tensor this rank holds, where ranks share it out.
    """
    weights = get_weights(model)
    tensors = {WEIGHTS + name: tensor for name, tensor in weights.items()}
    tensors |= {OPTIMIZER + name: tensor for name, tensor in optimizer.tensors().items()}
    if average is not None:
        tensors |= {AVERAGE + n: t for n, t in zip(weights, average.average, strict=True)}
    return {name: part(tensor) for name, tensor in tensors.items()}


# --- one checkpoint ---


def write_state(directory: Path, progress: Progress, index: Index) -> None:
    """Bring progress and index to the disk, with a checksum over both."""
    state = {"format": FORMAT, "progress": progress.to_dict(), **index}
    write_synced(directory / STATE, _render({"crc32": _crc32(state), **state}))


class Checkpoint:
    """A checkpoint on disk, its index read; tensors are read when they are asked for."""

    def __init__(self, path: Path) -> None:
        try:
            state = json.loads((path / STATE).read_text(encoding="utf-8"))
            version, checksum = int(state["format"]), state.pop("crc32")
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{path}: not a checkpoint of this version of Dragoman") from None
        if version > FORMAT:  # whole, so that there is nothing to fall back from
            raise TrainingError(
                f"{path}: made by a newer Dragoman (format {version}, this one reads {FORMAT}); "
                "update Dragoman"
            )
        if _crc32(state) != checksum:
            raise ModelError(f"{path / STATE}: damaged (its checksum is wrong)")
        try:
            self.progress = Progress.from_dict(state["progress"])
            self.shards = Shards(path, state)
        except (ValueError, KeyError, TypeError, DataError):
            raise ModelError(f"{path}: not a checkpoint of this version of Dragoman") from None
        self.path = path

    def fill(self, state: Mapping[str, Part]) -> None:
        """Copy what was saved into the tensors of a run: of each, the rows that it has there."""
        kinds = {name.partition("/")[0] + "/" for name in state}
        if AVERAGE in kinds and not self.shards.shapes(AVERAGE):
            raise TrainingError(f"{self.path}: has no moving average; resume with training.ema=0")
        found = {n: shape for kind in kinds for n, shape in self.shards.shapes(kind).items()}
        check_shapes(found, {n: part.shape for n, part in state.items()}, where=str(self.path))
        with torch.no_grad():
            for name, part in state.items():
                part.tensor.copy_(self.shards.rows(name, part.first, part.stop))

    def generators(self, rank: int) -> dict[str, Tensor]:
        """The random generators of a rank, by kind; none if there was no such rank."""
        found = {}
        for name in self.shards.shapes(GENERATORS):
            kind, owner = name.removeprefix(GENERATORS).split("/")
            if owner == str(rank):
                found[kind] = self.shards.rows(name)
        return found

    def weights(self) -> dict[str, Tensor]:
        """Its moving average, or its weights if it has none."""
        kind = AVERAGE if self.shards.shapes(AVERAGE) else WEIGHTS
        return {n.removeprefix(kind): tensor for n, tensor in self.shards.all(kind).items()}


def _crc32(state: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(state).encode())


def _render(state: Mapping[str, Any]) -> str:
    """JSON with a line for each thing a person may look for."""
    sections = []
    for key, value in state.items():
        text = json.dumps(value)
        if isinstance(value, dict):
            lines = [f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()]
            text = "{\n" + ",\n".join(lines) + "\n  }"
        sections.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


# --- the checkpoints of a run ---


def checkpoint_path(run: Path, step: int) -> Path:
    """Where the checkpoint of a step is."""
    return run / "checkpoints" / f"step-{step:08d}"


def list_checkpoints(run: Path) -> list[Path]:
    """Every checkpoint of a run, oldest first; a copy of another name is not one of them."""
    found = (run / "checkpoints").glob("step-*")
    return sorted((path for path in found if step_of(path) >= 0), key=step_of)


def step_of(path: Path) -> int:
    """The step of a checkpoint, by its name; -1 if it is none."""
    digits = re.fullmatch(r"step-(\d+)", path.name)
    return int(digits[1]) if digits else -1


def sound_checkpoints(
    run: Path, most: int, say: Callable[[str], None], *, up_to: int | None = None
) -> list[Path]:
    """The last checkpoints that are whole, at most so many, oldest first.

    Every byte is read. A damaged one is passed over, and that is said.
    """
    found: list[Path] = []
    for path in reversed(list_checkpoints(run)):
        if len(found) == most:
            break
        if up_to is not None and step_of(path) > up_to:
            continue
        try:
            Checkpoint(path).shards.verify()
        except ModelError as error:
            say(f"{error}; falling back to the checkpoint before it")
        else:
            found.insert(0, path)
    return found


def newest_sound_checkpoint(run: Path, say: Callable[[str], None]) -> Path:
    """The last checkpoint that is whole."""
    if not list_checkpoints(run):
        raise TrainingError(f"{run}: no checkpoint to resume from; start the run again")
    if not (found := sound_checkpoints(run, 1, say)):
        raise TrainingError(f"{run}: every checkpoint is damaged; start the run again")
    return found[0]


def prune(run: Path, keep: int, newest: int) -> None:
    """Remove all but the last checkpoints up to step `newest`.

    Damaged ones do not count, as far as that shows without reading them. What is newer is of a
    future that was passed over when the run fell back.
    """
    paths = list_checkpoints(run)
    kept = [path for path in paths if step_of(path) <= newest and _looks_whole(path)][-keep:]
    for path in paths:
        if kept and not step_of(kept[0]) <= step_of(path) <= newest:
            _remove(path)


def _looks_whole(path: Path) -> bool:
    try:
        Checkpoint(path).shards.verify(thoroughly=False)
    except DragomanError:
        return False
    return True


def _remove(path: Path) -> None:
    # A rename first: what remains of a killed removal does not look like a checkpoint.
    doomed = path.with_name(TEMPORARY + path.name)
    shutil.rmtree(doomed, ignore_errors=True)
    path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of several checkpoints' or models' weights (§6.1), summed in double precision.

    A checkpoint with a moving average gives that in place of its weights.
    """
    total: dict[str, Tensor] = {}
    for path in paths:
        weights = _weights(path)
        if not total:
            total = {name: tensor.double() for name, tensor in weights.items()}
            continue
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in total.items()}:
            raise ModelError(f"{path}: not the same model as {paths[0]}; they cannot be averaged")
        for name, tensor in weights.items():
            total[name] += tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}


def _weights(path: Path) -> dict[str, Tensor]:
    if not (path / STATE).exists():
        return read_tensors(path / "weights.safetensors")
    checkpoint = Checkpoint(path)
    checkpoint.shards.verify()
    return checkpoint.weights()
