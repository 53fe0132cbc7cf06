"""Files of weights are mapped and checked without PyTorch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from dragoman.errors import ModelError

DTYPES: Final = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": np.uint16,
    "I32": np.int32,
    "I8": np.int8,
}
"""numpy has no bfloat16; its 16 bits are the first of a float32."""


class MappedSafetensors(Mapping[str, NDArray[Any]]):
    """Map each tensor of a file by name when it is taken; its memory is the page cache's.

    A tensor is mapped by itself and unmapped with its last reference, so that going through a file
    takes the memory of its largest.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            with safe_open(file, framework="np") as tensors:  # which checks the whole header
                self.metadata: dict[str, str] = tensors.metadata() or {}
            with file.open("rb") as opened:
                size = int.from_bytes(opened.read(8), "little")
                table: dict[str, dict[str, Any]] = json.loads(opened.read(size))
        except FileNotFoundError:
            raise ModelError(f"{file}: no such file; the directory is incomplete") from None
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelError(f"{file}: truncated or not a safetensors file ({error})") from None
        table.pop("__metadata__", None)
        self._start, self._table = 8 + size, table

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._array(self._bytes(), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all tensors."""
        return {name: tuple(entry["shape"]) for name, entry in self._table.items()}

    def map_all(self) -> dict[str, NDArray[Any]]:
        """Return all tensors over one mapping, which lasts as long as any of them."""
        whole = self._bytes()
        return {name: self._array(whole, name) for name in self}

    def _bytes(self) -> NDArray[Any]:
        return np.asarray(np.memmap(self._file, np.uint8, mode="r"))

    def _array(self, whole: NDArray[Any], name: str) -> NDArray[Any]:
        entry = self._table[name]
        first, last = (self._start + offset for offset in entry["data_offsets"])
        try:
            dtype = DTYPES[entry["dtype"]]
        except KeyError:
            raise ModelError(
                f"{self._file}: {name} has the unexpected type {entry['dtype']}"
            ) from None
        found = whole[first:last].view(dtype).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            return (found.astype(np.uint32) << 16).view(np.float32)
        return found


def check_shapes(
    found: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]], *, where: str
) -> None:
    """Raise ModelError for tensors of another model, naming the first that does not fit."""
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise ModelError(
                f"{where} does not fit its config: {name} should be {_shape(wanted.get(name))} "
                f"and is {_shape(found.get(name))}; the files are of different models"
            )


def _shape(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else "×".join(map(str, shape))
