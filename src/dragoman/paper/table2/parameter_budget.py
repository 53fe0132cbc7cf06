"""Equal budgets for unlike models: a width that meets a number of parameters.

The layers stay as they are; the width grows until the model has the weights asked for,
and the inner width of its feed-forward layers, where it has any, takes up what the width's steps
leave. A mixture of experts is sized by its *active* parameters, those that one position uses: idle
experts cost no arithmetic, which is the idea of it, and by all of them it would be the Transformer
with a part of its feed-forward layers switched off.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from dragoman.config import Config, ModelConfig
from dragoman.errors import ConfigError
from dragoman.models import count_parameters

__all__ = ["TOLERANCE", "active_parameters", "off_by", "widen"]

TOLERANCE: Final = 0.03
"""How far from its budget a model may be without a word about it."""


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
