"""Tensors in shards: each rank writes the rows it holds, any number of ranks can read them.

A shard is a safetensors file of one rank. An index says of every tensor its shape and which shard
holds which rows, and of every shard its size and checksum; docs/checkpoints.md shows one. All
shards lie in one directory: ranks must share a file system.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dragoman.errors import ModelError
from dragoman.models.weights import write_tensors

__all__ = ["Part", "Receipt", "Shards", "make_index", "shard_name", "whole", "write_shard"]

Index = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a tensor that a rank holds: from `first` on, of a tensor of this shape."""

    tensor: Tensor
    first: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        """The row after its last; a scalar counts as one row."""
        return self.first + (len(self.tensor) if self.shape else 1)

    @property
    def is_whole(self) -> bool:
        """Whether these are all the rows there are."""
        return tuple(self.tensor.shape) == self.shape


def whole(tensor: Tensor) -> Part:
    """A tensor that is not shared out."""
    return Part(tensor, 0, tuple(tensor.shape))


class Receipt(NamedTuple):
    """What is needed to know a shard again."""

    bytes: int
    crc32: int


def shard_name(rank: int) -> str:
    """The file of a rank."""
    return f"rank-{rank:04d}.safetensors"


def write_shard(path: Path, parts: Mapping[str, Part]) -> Receipt:
    """Bring a rank's parts to the disk; the file itself tells which rows they are."""
    places = {name: [part.first, part.shape] for name, part in parts.items()}
    tensors = {name: part.tensor for name, part in parts.items()}
    write_tensors(tensors, path, {"parts": json.dumps(places)})
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return _receipt(path)


def make_index(directory: Path, receipts: Mapping[str, Receipt]) -> Index:
    """The index of these shards: every row of every tensor is in one of them."""
    tensors: dict[str, Any] = {}
    for file in receipts:
        with safe_open(directory / file, framework="pt") as shard:
            for name, (first, shape) in json.loads(shard.metadata()["parts"]).items():
                piece = shard.get_slice(name)
                rows = piece.get_shape()[0] if shape else 1
                entry = {"shape": shape, "dtype": piece.get_dtype(), "rows": []}
                tensors.setdefault(name, entry)["rows"].append([file, first, first + rows])
    for name, entry in tensors.items():
        entry["rows"].sort(key=lambda piece: piece[1])
        assert _covered(entry), f"{name}: rows are missing or twice there: {entry}"
    return {
        "files": {file: receipt._asdict() for file, receipt in receipts.items()},
        "tensors": tensors,
    }


class Shards:
    """Reads tensors back by rows, whoever wrote them."""

    def __init__(self, directory: Path, index: Index) -> None:
        self._directory = directory
        self._files = {file: Receipt(**receipt) for file, receipt in index["files"].items()}
        self._tensors: dict[str, Any] = index["tensors"]
        for name, entry in self._tensors.items():
            if not _covered(entry) or any(file not in self._files for file, *_ in entry["rows"]):
                raise ValueError(f"not all rows of {name} are there")
        self._open: dict[str, Any] = {}

    def shapes(self, prefix: str = "") -> dict[str, tuple[int, ...]]:
        """The full shape of every tensor whose name begins so."""
        return {
            name: tuple(entry["shape"])
            for name, entry in self._tensors.items()
            if name.startswith(prefix)
        }

    def rows(self, name: str, start: int = 0, stop: int | None = None) -> Tensor:
        """Rows from `start` to `stop` of a tensor, by default all."""
        entry = self._tensors[name]
        if not entry["shape"]:
            return self._read(entry["rows"][0][0], name, None)
        stop = entry["shape"][0] if stop is None else stop
        pieces = [
            self._read(file, name, slice(max(start, first) - first, min(stop, last) - first))
            for file, first, last in entry["rows"]
            if start < last and first < stop
        ]
        if not pieces:  # no rows are asked for
            return self._read(entry["rows"][0][0], name, slice(0, 0))
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces)

    def all(self, prefix: str = "") -> dict[str, Tensor]:
        """Every tensor whose name begins so, whole."""
        return {name: self.rows(name) for name in self.shapes(prefix)}

    def verify(self, *, thoroughly: bool = True) -> None:
        """Refuse shards that are not as they were written; not `thoroughly`: by their size."""
        for name, receipt in self._files.items():
            path = self._directory / name
            try:
                found = _receipt(path) if thoroughly else Receipt(path.stat().st_size, 0)
            except FileNotFoundError:
                raise ModelError(f"{path}: no such file; the checkpoint is incomplete") from None
            except OSError as error:
                raise ModelError(f"{path}: cannot be read ({error.strerror})") from None
            if found.bytes != receipt.bytes:
                raise ModelError(
                    f"{path}: damaged ({found.bytes:,} bytes of {receipt.bytes:,} are there)"
                )
            if thoroughly and found != receipt:
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


def _covered(entry: Mapping[str, Any]) -> bool:
    """Whether the pieces, in their order, are all rows once."""
    shape, pieces = entry["shape"], entry["rows"]
    row = 0
    for _, first, stop in pieces:
        if first != row:
            return False
        row = stop
    return bool(pieces) and row == (shape[0] if shape else 1)


def _receipt(path: Path) -> Receipt:
    size, checksum = 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            size += len(block)
            checksum = zlib.crc32(block, checksum)
    return Receipt(size, checksum)
