"""The int8 variant of a model, beside its weights: packed once, read as it is."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError, ModelError
from dragoman.files import atomic_write
from dragoman.model_directory import LoadedModel
from dragoman.models.weights import get_weights
from dragoman.translate.engine.engine import Engine
from dragoman.translate.engine.packing import Packed, pack, why_not

__all__ = ["VARIANT", "open_engine", "quantize", "stored"]

VARIANT: Final = "int8.safetensors"
LAYOUT: Final = "1"
"""Changes with the order in which the kernel reads weights."""


def quantize(loaded: LoadedModel) -> Path:
    """Write the variant into the model's directory, and say where it is."""
    if reason := why_not(loaded.config.model):
        raise ConfigError(f"{loaded.path}: the engine has no {reason}; it is translated by PyTorch")
    packed = pack(get_weights(loaded.model), loaded.config.model, loaded.model.targets)
    file = loaded.path / VARIANT
    atomic_write(file, save(packed, {"layout": LAYOUT, "card": _card(loaded.path)}))
    return file


def stored(directory: Path) -> Path | None:
    """The variant of a model, if it has one."""
    file = directory / VARIANT
    return file if file.exists() else None


def open_engine(loaded: LoadedModel) -> Engine:
    """The engine of a model: from its variant if it has one, or made of its weights now."""
    targets = loaded.tokenizer.sizes[1]
    if file := stored(loaded.path):
        return _read(file, loaded.config.model, targets)
    return Engine.of(get_weights(loaded.model), loaded.config.model, targets)


def _read(file: Path, config: ModelConfig, targets: int) -> Engine:
    """The engine of a variant; one that is damaged or of another model is refused."""
    advice = f"make it again with: dragoman quantize {file.parent}"
    packed: Packed = {}
    try:
        with safe_open(file, framework="np") as tensors:
            about = tensors.metadata() or {}
            packed.update({name: tensors.get_tensor(name) for name in tensors.keys()})  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(
            f"{file}: truncated or not a safetensors file ({error}); {advice}"
        ) from None
    if about.get("layout") != LAYOUT:
        raise ModelError(f"{file}: of another version; {advice}")
    if about.get("card") != _card(file.parent):
        raise ModelError(f"{file}: not of the model beside it; {advice}")
    try:
        return Engine(packed, config, targets)
    except ModelError as error:
        raise ModelError(f"{file}: {error}; {advice}") from None


def _card(directory: Path) -> str:
    return hashlib.sha256((directory / "card.json").read_bytes()).hexdigest()
