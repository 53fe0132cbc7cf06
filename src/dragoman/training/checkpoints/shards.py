"""Tensors in shards: each rank writes the rows it holds, and any number of ranks can read them.

A shard is a safetensors file of one rank. An index says of every tensor its shape and which shard
holds which rows, and of every shard its size and checksum; docs/checkpoints.md shows one. All
shards lie in one directory, so ranks must share a file system.
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

__all__ = [
    "Checksum",
    "Index",
    "LocalRows",
    "ShardReader",
    "all_rows",
    "build_index",
    "shard_filename",
    "write_shard",
]

Index = dict[str, Any]
"""This is the part of ``state.json`` that describes the shards: its keys "files" and "tensors"."""


@dataclass(frozen=True, slots=True)
class LocalRows:
    """Hold the rows of a tensor that this rank has: from row `start` on, of a tensor of `shape`."""

    tensor: Tensor
    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        """Return the row after the last one; a scalar counts as one row."""
        return self.start + (len(self.tensor) if self.shape else 1)

    @property
    def is_whole(self) -> bool:
        """Return whether these are all the rows of the tensor."""
        return tuple(self.tensor.shape) == self.shape


def all_rows(tensor: Tensor) -> LocalRows:
    """Return the rows of a tensor that every rank has whole."""
    return LocalRows(tensor, 0, tuple(tensor.shape))


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
