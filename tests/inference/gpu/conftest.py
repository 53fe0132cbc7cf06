"""Small models that end their sentences early, late and not at all, and sources for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.models import Model, build
from dragoman.text.special_tokens import EOS, FIRST_PIECE

VOCABULARY = 150
BASE = ModelConfig(
    encoder_layers=2,
    decoder_layers=2,
    d_model=32,
    d_ff=64,
    heads=2,
    dropout=0.0,
    norm="pre",
    output_bias=True,
)

Make = Callable[..., Model]


@pytest.fixture(scope="session")
def make() -> Make:
    """A model with weights large enough to prefer something, and an inclination to end."""

    def made(eagerness: float = 2.0, targets: int = VOCABULARY, **changes: Any) -> Model:
        torch.manual_seed(1)
        config = replace(BASE, **changes)
        model = build(config, VOCABULARY, targets)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.15)
            if model.projection_bias is not None:
                model.projection_bias[EOS] += eagerness
        return model.eval()

    return made


@pytest.fixture(scope="session")
def sources() -> Callable[..., list[list[int]]]:
    """Sentences of 1 to `longest` pieces."""

    def drawn(count: int, longest: int = 20) -> list[list[int]]:
        draw = random.Random(0)
        return [
            [draw.randrange(FIRST_PIECE, VOCABULARY) for _ in range(draw.randint(1, longest))]
            for _ in range(count)
        ]

    return drawn
