"""The file of int8 weights beside a model's own: how it is written, read and checked.

It holds packed weights, which the engine uses where they lie in the page cache.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from safetensors.numpy import save

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError, ModelError
from dragoman.inference.cpu.engine import CpuEngine
from dragoman.inference.cpu.quantization import (
    CACHE_LINE,
    PackedWeights,
    expected_shapes,
    pack_weights,
)
from dragoman.model_directory import LoadedModel
from dragoman.models.support import unsupported
from dragoman.system.atomic_files import atomic_write
from dragoman.system.mapped_safetensors import MappedSafetensors

__all__ = ["INT8_FILE", "find_int8_file", "open_cpu_engine", "write_int8_file"]

INT8_FILE: Final = "int8.safetensors"
LAYOUT: Final = "1"
"""This changes with the order in which the kernel reads weights."""


def write_int8_file(loaded: LoadedModel) -> Path:
    """Write a model's int8 weights into its directory, and return the file."""
    if reason := unsupported(loaded.config.model, "cpu engine"):
        raise ConfigError(
            f"{loaded.path}: the CPU engine does not support {reason}; PyTorch runs this model"
        )
    metadata = {"layout": LAYOUT, "card": _hash_card(loaded.path)}
    file = loaded.path / INT8_FILE
    atomic_write(file, _serialize(_pack(loaded), metadata))
    return file


def _serialize(packed: PackedWeights, metadata: dict[str, str]) -> bytes:
    """Return a file whose weights begin where cache lines do, for they are used where they lie."""
    header = int.from_bytes(save(packed, metadata | {"padding": ""})[:8], "little")
    return save(packed, metadata | {"padding": " " * (-(8 + header) % CACHE_LINE)})


def find_int8_file(directory: Path) -> Path | None:
    """Return the int8 weights in a model's directory, if there are any."""
    file = directory / INT8_FILE
    return file if file.exists() else None


def open_cpu_engine(loaded: LoadedModel) -> CpuEngine:
    """Return the engine of a model: from its int8 file, or else packed from its weights now."""
    targets = loaded.tokenizer.sizes[1]
    if file := find_int8_file(loaded.path):
        return _read(file, loaded.config.model, targets)
    return CpuEngine(_pack(loaded), loaded.config.model, targets)


def _pack(loaded: LoadedModel) -> PackedWeights:
    """Pack a model's weights one after another from their file; refuse those of another model."""
    weights = MappedSafetensors(loaded.weights_file)
    vocabulary, targets = loaded.tokenizer.sizes
    wanted = expected_shapes(loaded.config.model, vocabulary)
    if weights.shapes != wanted:
        from dragoman.models.weights import check_shapes

        check_shapes(weights.shapes, wanted, where=str(loaded.weights_file))
    return pack_weights(weights, loaded.config.model, targets)


def _read(file: Path, config: ModelConfig, targets: int) -> CpuEngine:
    """Return the engine of an int8 file; refuse one that is damaged or of another model."""
    advice = f"make it again with: dragoman quantize {file.parent}"
    try:
        mapped = MappedSafetensors(file)
        if mapped.metadata.get("layout") != LAYOUT:
            raise ModelError(f"{file}: written by another version of Dragoman")
        if mapped.metadata.get("card") != _hash_card(file.parent):
            raise ModelError(f"{file}: does not belong to the model beside it")
    except ModelError as error:
        raise ModelError(f"{error}; {advice}") from None
    try:
        return CpuEngine(mapped.map_all(), config, targets)
    except ModelError as error:
        raise ModelError(f"{file}: {error}; {advice}") from None


def _hash_card(directory: Path) -> str:
    return hashlib.sha256((directory / "card.json").read_bytes()).hexdigest()
