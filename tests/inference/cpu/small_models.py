"""Small models, their engines, and PyTorch multiplying the numbers that the kernel multiplies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.inference.cpu import CpuEngine
from dragoman.models import Model, build
from dragoman.models.weights import get_weights

VOCABULARY = 150
BASE = ModelConfig(
    encoder_layers=2, decoder_layers=2, d_model=32, d_ff=64, heads=2, dropout=0.0, norm="pre"
)


def made(
    config: ModelConfig, targets: int = VOCABULARY, seed: int = 1, vocabulary: int = VOCABULARY
) -> Model:
    """A model with weights large enough to prefer something."""
    torch.manual_seed(seed)
    model = build(config, vocabulary, targets)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model.eval()


def arrays(model: Model) -> dict[str, Any]:
    return {name: weight.numpy() for name, weight in get_weights(model).items()}


def engine(model: Model, config: ModelConfig, workers: int = 1) -> CpuEngine:
    found = CpuEngine.from_weights(arrays(model), config, model.targets)
    found.workers = workers
    return found


def rounded(x: Tensor) -> Tensor:
    scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / 127
    return (x / scale).round() * scale


@contextmanager
def in_int8(model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Products in PyTorch of the numbers that the kernel multiplies."""
    plain = torch.nn.functional.linear
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "pieces" in name or name == "projection.weight":
                parameter.copy_(rounded(parameter))

    def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return plain(rounded(x), rounded(weight), bias)

    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.functional, "linear", linear)
        yield
