"""A store holds pairs of id sequences on disk, read through memory maps.

A store is a directory: for each side ``*.ids`` holds all sequences end to end (16 bits an id, 32
for a vocabulary above 65,536) and ``*.offsets`` where each begins, one more than there are pairs
(64 bits). ``meta.json`` says the rest. Opening takes the same time whatever the size.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from dragoman.errors import DataError
from dragoman.system.atomic_files import atomic_write

Ids: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]
Lengths: TypeAlias = npt.NDArray[np.int64]

FORMAT: Final = 1
META_FILE: Final = "meta.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreMeta:
    """Hold what a store says about itself."""

    format: int
    pairs: int
    vocabulary: int
    tokenizer: str
    """Fingerprint of the tokeniser the ids come from."""
    source_pieces: int
    target_pieces: int
    longest_source: int
    longest_target: int
    report: dict[str, Any]
    """What cleaning dropped on the way."""


def id_type(vocabulary: int) -> np.dtype[Any]:
    """Return the narrowest type for the ids of a vocabulary."""
    return np.dtype("<u2" if vocabulary <= 1 << 16 else "<u4")


class StoreWriter:
    """Fill an existing directory; `close` completes it. Memory does not grow with the corpus."""

    def __init__(self, directory: Path, *, vocabulary: int, tokenizer: str) -> None:
        self.directory = directory
        self._vocabulary = vocabulary
        self._tokenizer = tokenizer
        self._type = id_type(vocabulary)
        self._source = _SideWriter(directory, "source")
        self._target = _SideWriter(directory, "target")

    def append(self, source: Sequence[int] | Ids, target: Sequence[int] | Ids) -> None:
        """Add one pair of id sequences to the store."""
        self.extend(
            np.asarray(source, self._type),
            np.array([len(source)]),
            np.asarray(target, self._type),
            np.array([len(target)]),
        )

    def extend(
        self, source: Ids, source_lengths: Lengths, target: Ids, target_lengths: Lengths
    ) -> None:
        """Add pairs whose sequences lie end to end."""
        assert len(source_lengths) == len(target_lengths)
        self._source.extend(source.astype(self._type, copy=False), source_lengths)
        self._target.extend(target.astype(self._type, copy=False), target_lengths)

    def __len__(self) -> int:
        return self._source.count

    def close(self, report: dict[str, Any] | None = None) -> StoreMeta:
        """Write the rest, after which the store can be opened."""
        self.abandon()
        meta = StoreMeta(
            format=FORMAT,
            pairs=len(self),
            vocabulary=self._vocabulary,
            tokenizer=self._tokenizer,
            source_pieces=self._source.pieces,
            target_pieces=self._target.pieces,
            longest_source=self._source.longest,
            longest_target=self._target.longest,
            report=report or {},
        )
        text = json.dumps(dataclasses.asdict(meta), indent=2, ensure_ascii=False)
        atomic_write(self.directory / META_FILE, text + "\n")
        return meta

    def abandon(self) -> None:
        """Close the files without completing the store."""
        self._source.close()
        self._target.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.abandon()


class _SideWriter:
    def __init__(self, directory: Path, side: str) -> None:
        self._ids: BinaryIO = (directory / f"{side}.ids").open("wb")
        self._offsets: BinaryIO = (directory / f"{side}.offsets").open("wb")
        self._offsets.write(np.zeros(1, "<i8").tobytes())
        self.count = 0
        self.pieces = 0
        self.longest = 0

    def extend(self, ids: Ids, lengths: Lengths) -> None:
        if len(lengths) == 0:
            return
        ends = np.cumsum(lengths, dtype="<i8")
        assert ends[-1] == len(ids)
        self._ids.write(ids.tobytes())
        self._offsets.write((ends + self.pieces).astype("<i8").tobytes())
        self.count += len(lengths)
        self.pieces += len(ids)
        self.longest = max(self.longest, int(lengths.max()))

    def close(self) -> None:
        self._ids.close()
        self._offsets.close()


class Store:
    """Read a finished store; sequences are views into the files, without begin and end marks."""

    def __init__(self, path: Path, meta: StoreMeta) -> None:
        self.path = path
        self.meta = meta
        width = id_type(meta.vocabulary)
        self._source_ids = _map(path / "source.ids", width, meta.source_pieces)
        self._target_ids = _map(path / "target.ids", width, meta.target_pieces)
        self._source_offsets = _map(path / "source.offsets", np.dtype("<i8"), meta.pairs + 1)
        self._target_offsets = _map(path / "target.offsets", np.dtype("<i8"), meta.pairs + 1)

    @classmethod
    def open(cls, path: Path) -> Store:
        """Map a store; one that is foreign, unfinished or truncated is refused."""
        return cls(path, _read_meta(path))

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.path, self.meta)  # another process maps the same files

    def __len__(self) -> int:
        return self.meta.pairs

    def source(self, index: int) -> Ids:
        """Return the ids of a source sentence."""
        offsets = self._source_offsets
        return self._source_ids[offsets[index] : offsets[index + 1]]

    def target(self, index: int) -> Ids:
        """Return the ids of a target sentence."""
        offsets = self._target_offsets
        return self._target_ids[offsets[index] : offsets[index + 1]]

    def count_first(self, id_: int) -> int:
        """Return how many source sentences begin with this id."""
        offsets = self._source_offsets
        begun = offsets[:-1][offsets[:-1] < offsets[1:]]
        return int((self._source_ids[begun] == id_).sum())

    def source_lengths(self, indices: npt.NDArray[np.integer[Any]] | slice) -> Lengths:
        """Return how many pieces these source sentences have; a slice has no step."""
        return _lengths(self._source_offsets, indices)

    def target_lengths(self, indices: npt.NDArray[np.integer[Any]] | slice) -> Lengths:
        """Return how many pieces these target sentences have; a slice has no step."""
        return _lengths(self._target_offsets, indices)


def _lengths(
    offsets: npt.NDArray[np.int64], indices: npt.NDArray[np.integer[Any]] | slice
) -> Lengths:
    if isinstance(indices, slice):
        start, stop, step = indices.indices(len(offsets) - 1)
        assert step == 1
        return np.diff(offsets[start : max(start, stop) + 1])
    lengths: Lengths = offsets[indices + 1] - offsets[indices]
    return lengths


def _read_meta(path: Path) -> StoreMeta:
    file = path / META_FILE
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path}: not a store of pairs; make one with dragoman prepare") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise DataError(f"{file}: not a store's description; run dragoman prepare again") from None
    if isinstance(values, dict) and isinstance(values.get("format"), int):
        if values["format"] > FORMAT:
            raise DataError(
                f"{file}: written by a newer Dragoman (format {values['format']}, this one reads "
                f"{FORMAT}); update Dragoman or run dragoman prepare again"
            )
        names = {field.name: field.type for field in dataclasses.fields(StoreMeta)}
        kinds = {"int": int, "str": str, "dict[str, Any]": dict}
        if values.keys() == names.keys() and all(
            isinstance(values[name], kinds[str(kind)]) for name, kind in names.items()
        ):
            return StoreMeta(**values)
    raise DataError(f"{file}: not a store's description; run dragoman prepare again")


def _map(path: Path, width: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    """Map the file as an array of exactly `count` numbers."""
    try:
        size = path.stat().st_size
        if size != count * width.itemsize:
            raise DataError(
                f"{path}: has {size} bytes instead of {count * width.itemsize}; it was truncated "
                "or replaced, run dragoman prepare again"
            )
        if count == 0:
            return np.zeros(0, width)  # an empty file cannot be mapped
        # The plain array over the map: indexing a memmap object costs ten times as much.
        return np.asarray(np.memmap(path, width, "r", shape=(count,)))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); run dragoman prepare"
        ) from None
