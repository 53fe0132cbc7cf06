"""Equal budgets for unlike models: a width that meets a number of parameters, and the FLOPs of a
training step.

Parameters. The layers stay as they are; the width grows until the model has the weights asked for,
and the inner width of its feed-forward layers, where it has any, takes up what the width's steps
leave. A mixture of experts is sized by its *active* parameters, those that one position uses: idle
experts cost no arithmetic, which is the idea of it, and by all of them it would be the Transformer
with a part of its feed-forward layers switched off.

FLOPs. PyTorch's counter sees a real step, forward and backward, on sentences of a real batch, one
at a time: nothing is padded, no sentence is counted against another, and every matrix product
counts 2·m·n·k. Scores that a causal or window mask hides are computed, and counted, for every
model alike; `dragoman.bench.flops` leaves them out. Two fused operations have to be taken apart
for the counter to see them: attention (it is computed by its plain form) and oneDNN's LSTM.
"""

# N sentences, S source length, T target length

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import Config, ModelConfig
from dragoman.data.batches import Batch
from dragoman.errors import ConfigError
from dragoman.models import build, count_parameters
from dragoman.training.loss import Criterion, TensorBatch

__all__ = ["TOLERANCE", "active_parameters", "off_by", "training_flops", "widen"]

TOLERANCE: Final = 0.03
"""How far from its budget a model may be without a word about it."""
SAMPLE: Final = 8
"""Sentences of a batch that are counted."""


def active_parameters(config: ModelConfig, vocabulary: int) -> int:
    """The weights that one position uses: all, but of the experts only those it takes."""
    if config.experts:
        config = replace(config, experts=config.experts_used)
    return count_parameters(config, vocabulary)


def off_by(config: Config, vocabulary: int, parameters: int) -> float:
    """The share by which a model's active parameters exceed the budget, or fall short of it."""
    return active_parameters(config.model, vocabulary) / parameters - 1


def widen(config: Config, vocabulary: int, parameters: int) -> Config:
    """The same model in the width that brings its active parameters nearest to a budget.

    d_model is a multiple of 8 and of the heads; where that is too coarse, of the heads alone.
    `off_by` tells what is left; a budget below the narrowest model is refused.
    """
    found: list[ModelConfig] = []
    for step in (math.lcm(8, config.model.heads), math.lcm(2, config.model.heads)):
        model = _nearest_width(config.model, vocabulary, parameters, step)
        found.append(_fill_up(model, vocabulary, parameters))
        if abs(active_parameters(found[-1], vocabulary) / parameters - 1) <= TOLERANCE:
            break
    best = min(found, key=lambda m: abs(active_parameters(m, vocabulary) - parameters))
    return replace(config, model=best)


def _nearest_width(model: ModelConfig, vocabulary: int, parameters: int, step: int) -> ModelConfig:
    """By halving: the number of parameters grows with the width."""

    def count(steps: int) -> int:
        return active_parameters(_scaled(model, steps * step), vocabulary)

    if count(1) > 2 * parameters:
        raise ConfigError(
            f"{parameters:,} parameters are too few for this {model.architecture} model: it has "
            f"{count(1):,} at d_model {step}; try more, or fewer pieces"
        )
    high = 1
    while count(high) < parameters:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < parameters else (low, middle)
    steps = min((n for n in (low, high) if n), key=lambda n: abs(count(n) - parameters))
    return _scaled(model, steps * step)


def _scaled(model: ModelConfig, d_model: int) -> ModelConfig:
    """Another width, and every width that is stated apart from it in proportion."""

    def in_proportion(width: int, unit: int) -> int:
        return max(unit, unit * round(width * d_model / model.d_model / unit))

    whole = model.d_model // model.heads
    return replace(
        model,
        d_model=d_model,
        d_ff=in_proportion(model.d_ff, 8),
        d_k=0 if model.d_k == whole else in_proportion(model.d_k, 2),
        d_v=0 if model.d_v == whole else in_proportion(model.d_v, 2),
    )


def _fill_up(model: ModelConfig, vocabulary: int, parameters: int) -> ModelConfig:
    """d_ff takes what is missing or too much, as long as it keeps half of its proportion."""
    now = active_parameters(model, vocabulary)
    slope = active_parameters(replace(model, d_ff=model.d_ff + 8), vocabulary) - now
    if slope <= 0:  # the model has no feed-forward layers
        return model
    d_ff = model.d_ff + 8 * round((parameters - now) / slope)
    least, most = model.d_ff // 2, model.d_ff * 3 // 2
    return replace(model, d_ff=min(max(d_ff, least, 8), most))


def training_flops(config: Config, batch: Batch, *, sample: int = SAMPLE) -> int:
    """Operations of one training step on a batch, forward and backward, optimiser left out.

    `sample` sentences, spread evenly over the lengths, are counted one by one; the rest is taken
    to cost as much a position.
    """
    sentences = sorted(_sentences(batch), key=lambda s: s.source_tokens + s.target_tokens)
    count = min(sample, len(sentences))
    few = [sentences[int((k + 0.5) * len(sentences) / count)] for k in range(count)]
    criterion = Criterion(
        build(config.model, config.tokenizer.vocabulary),
        label_smoothing=config.training.label_smoothing,
        r_drop=config.training.r_drop,
    )
    with _plainly(), FlopCounterMode(display=False) as counter:
        for sentence in few:
            loss, _ = criterion(TensorBatch.of(sentence, torch.device("cpu")))
            loss.backward()
    tokens = sum(sentence.source_tokens + sentence.target_tokens for sentence in few)
    counted = int(counter.get_total_flops())
    return round(counted * (batch.source_tokens + batch.target_tokens) / tokens)


def _sentences(batch: Batch) -> Iterator[Batch]:
    """Each sentence as a batch of its own, without padding."""
    source, target = batch.arrays()[:3], batch.arrays()[3:]
    for row, number in enumerate(batch.target_segments.max(axis=1, initial=0)):
        for segment in range(1, int(number) + 1):
            of_source = batch.source_segments[row] == segment
            of_target = batch.target_segments[row] == segment
            sides = [a[row][of_source] for a in source] + [a[row][of_target] for a in target]
            arrays = [np.ascontiguousarray(side[None]) for side in sides]
            arrays[1], arrays[5] = np.ones_like(arrays[1]), np.ones_like(arrays[5])
            yield Batch(*arrays)


@contextmanager
def _plainly() -> Iterator[None]:
    """Attention and LSTMs as the products they are made of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TF32 acceleration", UserWarning)  # of another device
        with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
            yield
