"""A checkpoint is everything a run needs to go on, in a directory that is complete or not there.

``checkpoints/step-00001000/`` holds the weights, the optimiser's moments, the moving average if
there is one and the states of the random generators, in one shard a rank; and ``state.json``: the
training state (step, data position, best score, …) and the index of the shards. A shard is a
safetensors file with the rows that one rank holds. The index says of every tensor its shape and
which shard holds which rows, and of every shard its size and checksum, so that any number of ranks
can read what any number wrote; all must share a file system. docs/checkpoints.md shows one.

How a checkpoint is written is in writer.py.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from dragoman.data.batching.batches import Position
from dragoman.errors import DataError, DragomanError, ModelError, TrainingError
from dragoman.models.weight_files import check_shapes
from dragoman.models.weights import get_weights, write_tensors
from dragoman.run_directory import checkpoint_step, list_checkpoints
from dragoman.system.atomic_files import TEMPORARY_PREFIX, write_synced
from dragoman.training.distributed.parallel import LocalRows, all_rows
from dragoman.training.moving_average import MovingAverage
from dragoman.training.optimizers import Adam

Index = dict[str, Any]
"""This is the part of ``state.json`` that describes the shards: its keys "files" and "tensors"."""


class Checksum(NamedTuple):
    """Hold the size and the CRC-32 of a shard, by which damage to it is detected."""

    bytes: int
    crc32: int


def shard_filename(rank: int) -> str:
    """Return the name of a rank's shard."""
    return f"rank-{rank:04d}.safetensors"


def write_shard(path: Path, tensors: Mapping[str, LocalRows]) -> Checksum:
    """Write a rank's rows to the disk and sync them; the metadata says which rows they are."""
    places = {name: [rows.start, rows.shape] for name, rows in tensors.items()}
    values = {name: rows.tensor for name, rows in tensors.items()}
    write_tensors(values, path, {"parts": json.dumps(places)})
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return _checksum(path)


def build_index(directory: Path, checksums: Mapping[str, Checksum]) -> Index:
    """Return the index of these shards, which must hold every row of every tensor once."""
    tensors: dict[str, Any] = {}
    for file in checksums:
        with safe_open(directory / file, framework="pt") as shard:
            for name, (start, shape) in json.loads(shard.metadata()["parts"]).items():
                saved = shard.get_slice(name)
                rows = saved.get_shape()[0] if shape else 1
                entry = {"shape": shape, "dtype": saved.get_dtype(), "rows": []}
                tensors.setdefault(name, entry)["rows"].append([file, start, start + rows])
    for name, entry in tensors.items():
        entry["rows"].sort(key=lambda rows: rows[1])
        assert _has_all_rows(entry), f"{name}: rows are missing or saved twice: {entry}"
    return {
        "files": {file: checksum._asdict() for file, checksum in checksums.items()},
        "tensors": tensors,
    }


class ShardReader:
    """Read tensors back by rows, however many ranks wrote them."""

    def __init__(self, directory: Path, index: Index) -> None:
        self._directory = directory
        self._checksums = {file: Checksum(**entry) for file, entry in index["files"].items()}
        self._tensors: dict[str, Any] = index["tensors"]
        for name, entry in self._tensors.items():
            files = {file for file, *_ in entry["rows"]}
            if not _has_all_rows(entry) or not files <= self._checksums.keys():
                raise ValueError(f"the index does not have all rows of {name}")
        self._open: dict[str, Any] = {}

    def shapes(self, prefix: str = "") -> dict[str, tuple[int, ...]]:
        """Return the full shape of every tensor whose name begins with `prefix`."""
        return {
            name: tuple(entry["shape"])
            for name, entry in self._tensors.items()
            if name.startswith(prefix)
        }

    def read_rows(self, name: str, start: int = 0, stop: int | None = None) -> Tensor:
        """Return the rows from `start` to `stop` of a tensor, by default all."""
        entry = self._tensors[name]
        if not entry["shape"]:
            return self._read(entry["rows"][0][0], name, None)
        stop = entry["shape"][0] if stop is None else stop
        found = [
            self._read(file, name, slice(max(start, first) - first, min(stop, last) - first))
            for file, first, last in entry["rows"]
            if start < last and first < stop
        ]
        if not found:  # the caller wants no rows
            return self._read(entry["rows"][0][0], name, slice(0, 0))
        return found[0] if len(found) == 1 else torch.cat(found)

    def read_all(self, prefix: str = "") -> dict[str, Tensor]:
        """Return every tensor whose name begins with `prefix`, whole."""
        return {name: self.read_rows(name) for name in self.shapes(prefix)}

    def verify(self, *, checksums: bool = True) -> None:
        """Raise ModelError if a shard is damaged; without `checksums`, go by its size."""
        for name, expected in self._checksums.items():
            path = self._directory / name
            try:
                found = _checksum(path) if checksums else Checksum(path.stat().st_size, 0)
            except FileNotFoundError:
                raise ModelError(f"{path}: no such file; the checkpoint is incomplete") from None
            except OSError as error:
                raise ModelError(f"{path}: cannot be read ({error.strerror})") from None
            if found.bytes != expected.bytes:
                raise ModelError(
                    f"{path}: damaged (it has {found.bytes:,} of {expected.bytes:,} bytes)"
                )
            if checksums and found != expected:
                raise ModelError(f"{path}: damaged (its checksum is wrong)")

    def _read(self, file: str, name: str, rows: slice | None) -> Tensor:
        path = self._directory / file
        try:
            if file not in self._open:
                self._open[file] = safe_open(path, framework="pt")
            shard = self._open[file]
            tensor: Tensor = shard.get_tensor(name) if rows is None else shard.get_slice(name)[rows]
        except FileNotFoundError:
            raise ModelError(f"{path}: no such file; the checkpoint is incomplete") from None
        except (SafetensorError, OSError) as error:
            raise ModelError(f"{path}: truncated or not a safetensors file ({error})") from None
        return tensor


def _has_all_rows(entry: Mapping[str, Any]) -> bool:
    """Return whether an index entry lists all rows of its tensor once, in order."""
    shape, ranges = entry["shape"], entry["rows"]
    row = 0
    for _, first, stop in ranges:
        if first != row:
            return False
        row = stop
    return bool(ranges) and row == (shape[0] if shape else 1)


def _checksum(path: Path) -> Checksum:
    size, crc32 = 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            size += len(block)
            crc32 = zlib.crc32(block, crc32)
    return Checksum(size, crc32)


STATE_FILE = "state.json"
FORMAT = 1
WEIGHTS, OPTIMIZER, AVERAGE, GENERATORS = "weights/", "optimizer/", "average/", "generators/"


@dataclass(slots=True)
class TrainingState:
    """Hold how far a run has come: all that a checkpoint saves beside tensors.

    The names of the fields are the keys in ``state.json``.
    """

    step: int = 0
    position: Position = field(default_factory=Position)
    seconds: float = 0.0
    """This is the time spent training, over all the times the run was started."""
    target_tokens: int = 0
    best_score: float | None = None
    best_step: int = 0
    validations_without_gain: int = 0
    bad_steps: int = 0
    """This counts the skipped steps in a row."""
    validation_due: bool = False
    """This is True if a signal interrupted the validation of this step."""
    metrics_bytes: int = 0
    """This is the length of metrics.jsonl: lines written after the checkpoint are cut off."""
    threads: int = 0
    """This counts the CPU threads of arithmetic; another number changes the last bits."""
    ranks: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the state as ``state.json`` holds it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainingState:
        """Return the state that `to_dict` made these values of."""
        return cls(**{**values, "position": Position.from_dict(values["position"])})


def training_tensors(
    model: nn.Module,
    optimizer: Adam,
    average: MovingAverage | None,
    local_rows: Callable[[Tensor], LocalRows] = all_rows,
) -> dict[str, LocalRows]:
    """Return every tensor that training changes, by name: the run's own, to be saved or filled.

    `local_rows` tells which rows of a tensor this rank holds, where the ranks share it.
    """
    weights = get_weights(model)
    tensors = {WEIGHTS + name: tensor for name, tensor in weights.items()}
    tensors |= {OPTIMIZER + name: tensor for name, tensor in optimizer.state_tensors().items()}
    if average is not None:
        tensors |= {AVERAGE + n: t for n, t in zip(weights, average.average, strict=True)}
    return {name: local_rows(tensor) for name, tensor in tensors.items()}


# --- one checkpoint ---


def write_state_file(directory: Path, state: TrainingState, index: Index) -> None:
    """Write the training state and the index to the disk, with a checksum over both."""
    content = {"format": FORMAT, "progress": state.to_dict(), **index}
    write_synced(directory / STATE_FILE, _render({"crc32": _crc32(content), **content}))


class Checkpoint:
    """Open a checkpoint on disk: its index is read at once, its tensors when they are needed."""

    def __init__(self, path: Path) -> None:
        try:
            content = json.loads((path / STATE_FILE).read_text(encoding="utf-8"))
            version, checksum = int(content["format"]), content.pop("crc32")
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{path}: not a checkpoint of this version of Dragoman") from None
        if version > FORMAT:  # not damaged, so no reason to fall back to an older one
            raise TrainingError(
                f"{path}: made by a newer Dragoman (format {version}, this one reads {FORMAT}); "
                "update Dragoman"
            )
        if _crc32(content) != checksum:
            raise ModelError(f"{path / STATE_FILE}: damaged (its checksum is wrong)")
        try:
            self.state = TrainingState.from_dict(content["progress"])
            self.shards = ShardReader(path, content)
        except (ValueError, KeyError, TypeError, DataError):
            raise ModelError(f"{path}: not a checkpoint of this version of Dragoman") from None
        self.path = path

    def load_into(self, tensors: Mapping[str, LocalRows]) -> None:
        """Copy the saved values into the tensors of a run: of each, the rows this rank holds."""
        kinds = {name.partition("/")[0] + "/" for name in tensors}
        if AVERAGE in kinds and not self.shards.shapes(AVERAGE):
            raise TrainingError(f"{self.path}: has no moving average; resume with training.ema=0")
        saved = {n: shape for kind in kinds for n, shape in self.shards.shapes(kind).items()}
        check_shapes(saved, {n: rows.shape for n, rows in tensors.items()}, where=str(self.path))
        with torch.no_grad():
            for name, rows in tensors.items():
                rows.tensor.copy_(self.shards.read_rows(name, rows.start, rows.stop))

    def read_generators(self, rank: int) -> dict[str, Tensor]:
        """Return the states of a rank's random generators, by kind; none if it had no such rank."""
        found = {}
        for name in self.shards.shapes(GENERATORS):
            kind, owner = name.removeprefix(GENERATORS).split("/")
            if owner == str(rank):
                found[kind] = self.shards.read_rows(name)
        return found

    def read_weights(self) -> dict[str, Tensor]:
        """Return the moving average of the weights, or the weights if there is none."""
        kind = AVERAGE if self.shards.shapes(AVERAGE) else WEIGHTS
        return {n.removeprefix(kind): tensor for n, tensor in self.shards.read_all(kind).items()}


def _crc32(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content).encode())


def _render(content: Mapping[str, Any]) -> str:
    """Return JSON with a line for each entry that a person may look for."""
    sections = []
    for key, value in content.items():
        text = json.dumps(value)
        if isinstance(value, dict):
            lines = [f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()]
            text = "{\n" + ",\n".join(lines) + "\n  }"
        sections.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


# --- the checkpoints of a run ---


def valid_checkpoints(
    run: Path, most: int, show_message: Callable[[str], None], *, up_to: int | None = None
) -> list[Path]:
    """Return the last checkpoints that are undamaged, at most `most`, oldest first.

    Every byte is read. A damaged one is passed over with a message.
    """
    found: list[Path] = []
    for path in reversed(list_checkpoints(run)):
        if len(found) == most:
            break
        if up_to is not None and checkpoint_step(path) > up_to:
            continue
        try:
            Checkpoint(path).shards.verify()
        except ModelError as error:
            show_message(f"{error}; using the checkpoint before it instead")
        else:
            found.insert(0, path)
    return found


def newest_valid_checkpoint(run: Path, show_message: Callable[[str], None]) -> Path:
    """Return the last checkpoint that is undamaged, or raise TrainingError if there is none."""
    if not list_checkpoints(run):
        raise TrainingError(f"{run}: no checkpoint to resume from; start the run again")
    if not (found := valid_checkpoints(run, 1, show_message)):
        raise TrainingError(f"{run}: every checkpoint is damaged; start the run again")
    return found[0]


def prune_checkpoints(run: Path, keep: int, newest: int) -> None:
    """Remove all but the last `keep` checkpoints up to step `newest`.

    Damaged ones do not count, as far as their sizes show it. Checkpoints of later steps are left
    from before the run fell back to an older one; they are removed too.
    """
    paths = list_checkpoints(run)
    older = [path for path in paths if checkpoint_step(path) <= newest]
    kept = [path for path in older if _has_expected_sizes(path)][-keep:]
    for path in paths:
        if kept and not checkpoint_step(kept[0]) <= checkpoint_step(path) <= newest:
            _remove(path)


def _has_expected_sizes(path: Path) -> bool:
    try:
        Checkpoint(path).shards.verify(checksums=False)
    except DragomanError:
        return False
    return True


def _remove(path: Path) -> None:
    # A rename first: the remains of an interrupted removal must not look like a checkpoint.
    doomed = path.with_name(TEMPORARY_PREFIX + path.name)
    shutil.rmtree(doomed, ignore_errors=True)
    path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
