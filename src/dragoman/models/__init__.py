"""Models: they see ids, never text."""

from __future__ import annotations

import torch

from dragoman.config import ModelConfig
from dragoman.models.api import Model, Rows, State
from dragoman.models.transformer import Transformer

__all__ = ["Model", "Rows", "State", "build", "count_parameters"]

ARCHITECTURES: dict[str, type[Transformer]] = {"transformer": Transformer}


def build(config: ModelConfig, vocabulary: int) -> Model:
    """A freshly initialised model."""
    return ARCHITECTURES[config.architecture](config, vocabulary)


def count_parameters(config: ModelConfig, vocabulary: int) -> int:
    """How many weights such a model has, shared ones once, without making it."""
    with torch.device("meta"):
        return sum(p.numel() for p in build(config, vocabulary).parameters())
