"""Models: they see ids, never text."""

from __future__ import annotations

from importlib import import_module

import torch

from dragoman.config import ModelConfig
from dragoman.models.api import Model, Rows, State

__all__ = ["Model", "Rows", "State", "build", "count_parameters"]

_HOMES = {
    "transformer": ("transformer", "Transformer"),
    "feed-forward": ("feed_forward", "FeedForwardModel"),
    "recurrent": ("recurrent", "Recurrent"),
    "gnmt": ("gnmt", "GNMT"),
    "convs2s": ("convs2s", "ConvS2S"),
    "bytenet": ("bytenet", "ByteNet"),
}
"""Where each architecture is."""


def build(config: ModelConfig, vocabulary: int, targets: int | None = None) -> Model:
    """A freshly initialised model; it produces the first `targets` ids only, if that is given."""
    module, name = _HOMES[config.architecture]
    made: Model = getattr(import_module(f"dragoman.models.{module}"), name)(config, vocabulary)
    made.targets = vocabulary if targets is None else targets
    return made


def count_parameters(config: ModelConfig, vocabulary: int) -> int:
    """How many weights such a model has, shared ones once, without making it."""
    with torch.device("meta"):
        return sum(p.numel() for p in build(config, vocabulary).parameters())
