"""The int8 variant of a model, beside its weights: packed once, read as it is."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from safetensors.numpy import save

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError, ModelError
from dragoman.inference.cpu.engine import Engine
from dragoman.inference.cpu.quantization import LINE, Packed, pack, shapes, why_not
from dragoman.model_directory import LoadedModel
from dragoman.system.atomic_files import atomic_write
from dragoman.system.mapped_safetensors import Mapped

__all__ = ["VARIANT", "open_engine", "quantize", "stored"]


VARIANT: Final = "int8.safetensors"
LAYOUT: Final = "1"
"""Changes with the order in which the kernel reads weights."""


def quantize(loaded: LoadedModel) -> Path:
    """Write the variant into the model's directory, and say where it is."""
    if reason := why_not(loaded.config.model):
        raise ConfigError(f"{loaded.path}: the engine has no {reason}; it is translated by PyTorch")
    about = {"layout": LAYOUT, "card": _card(loaded.path)}
    file = loaded.path / VARIANT
    atomic_write(file, _saved(_packed(loaded), about))
    return file


def _saved(packed: Packed, about: dict[str, str]) -> bytes:
    """A file whose weights begin where lines of memory do, for they are used where they lie."""
    header = int.from_bytes(save(packed, about | {"padding": ""})[:8], "little")
    return save(packed, about | {"padding": " " * (-(8 + header) % LINE)})


def stored(directory: Path) -> Path | None:
    """The variant of a model, if it has one."""
    file = directory / VARIANT
    return file if file.exists() else None


def open_engine(loaded: LoadedModel) -> Engine:
    """The engine of a model: from its variant if it has one, or made of its weights now."""
    targets = loaded.tokenizer.sizes[1]
    if file := stored(loaded.path):
        return _read(file, loaded.config.model, targets)
    return Engine(_packed(loaded), loaded.config.model, targets)


def _packed(loaded: LoadedModel) -> Packed:
    """A model's weights, rounded one after another from their file; foreign ones are refused."""
    weights = Mapped(loaded.weights)
    vocabulary, targets = loaded.tokenizer.sizes
    wanted = shapes(loaded.config.model, vocabulary)
    if weights.shapes != wanted:
        from dragoman.models.weights import check_shapes

        check_shapes(weights.shapes, wanted, where=str(loaded.weights))
    return pack(weights, loaded.config.model, targets)


def _read(file: Path, config: ModelConfig, targets: int) -> Engine:
    """The engine of a variant; one that is damaged or of another model is refused."""
    advice = f"make it again with: dragoman quantize {file.parent}"
    try:
        mapped = Mapped(file)
        if mapped.metadata.get("layout") != LAYOUT:
            raise ModelError(f"{file}: of another version")
        if mapped.metadata.get("card") != _card(file.parent):
            raise ModelError(f"{file}: not of the model beside it")
    except ModelError as error:
        raise ModelError(f"{error}; {advice}") from None
    try:
        return Engine(mapped.together(), config, targets)
    except ModelError as error:
        raise ModelError(f"{file}: {error}; {advice}") from None


def _card(directory: Path) -> str:
    return hashlib.sha256((directory / "card.json").read_bytes()).hexdigest()
