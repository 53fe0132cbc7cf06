"""Models see ids, never text.

`supported_settings` and `sinusoids` can be used without PyTorch; the models import it when they are
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dragoman.config import ModelConfig

if TYPE_CHECKING:
    from dragoman.models.api import Model, Rows, State

__all__ = ["Model", "Rows", "State", "build", "count_parameters"]

_ARCHITECTURES = {
    "transformer": ("transformer", "Transformer"),
    "feed-forward": ("feed_forward", "FeedForwardModel"),
    "recurrent": ("recurrent", "Recurrent"),
    "gnmt": ("gnmt", "GNMT"),
    "convs2s": ("convs2s", "ConvS2S"),
    "bytenet": ("bytenet", "ByteNet"),
}
"""This maps each `model.architecture` to its module and class."""


def __getattr__(name: str) -> Any:
    """Import the protocol of models when it is first used."""
    if name not in ("Model", "Rows", "State"):
        raise AttributeError(f"module 'dragoman.models' has no attribute {name!r}")
    return getattr(import_module("dragoman.models.api"), name)


def build(config: ModelConfig, vocabulary: int, targets: int | None = None) -> Model:
    """Return a freshly initialised model that can produce all ids, or the first `targets` only."""
    module, name = _ARCHITECTURES[config.architecture]
    made: Model = getattr(import_module(f"dragoman.models.{module}"), name)(config, vocabulary)
    made.targets = vocabulary if targets is None else targets
    return made


def count_parameters(config: ModelConfig, vocabulary: int) -> int:
    """Return how many weights such a model has, each shared one once, without making it."""
    import torch

    with torch.device("meta"):
        return sum(p.numel() for p in build(config, vocabulary).parameters())
