"""Small Transformers of every variant, with weights as they were drawn."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch

from dragoman.config import Config
from dragoman.inference import Translator
from dragoman.model_directory import LoadedModel
from dragoman.models import build
from dragoman.text.tokenizer import Tokenizer

from ..conftest import reversals

SENTENCE = "the old dog sees big trees"
TRANSLATION = "seert gib sees god dlo eht"
SMALL = [
    "tokenizer.vocabulary=330",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "model.d_model=32",
    "model.d_ff=48",
    "model.heads=4",
    "model.d_k=8",
    "model.d_v=8",
    "search.max_extra=6",
]


@cache
def tokenizer() -> Tokenizer:
    config = Config().overridden(SMALL)
    return Tokenizer.train((side for pair in reversals(200) for side in pair), config.tokenizer)


@cache
def translator(*changes: str) -> Translator:
    """A translator without an engine, that prefers something."""
    config = Config().overridden([*SMALL, *changes])
    torch.manual_seed(3)
    model = build(config.model, *tokenizer().sizes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return Translator(LoadedModel(model.eval(), tokenizer(), config, {}, Path("small")))
