"""Table 2 compares these models, each trained and sized on equal terms.

All are trained by the same loop on the same batches of the same pieces, with the data's own
dropout, label smoothing and schedule. Each brings its architecture, its peak learning rate and its
clipping. Its rate stands to the Transformer's as in their presets; its layers, too, so that a
preset of 12 beside the Transformer's 6 becomes 4 beside 2.

Its width follows from the number of parameters: the layers stay as they are, the width grows until
the model has the weights asked for, and the inner width of its feed-forward layers, if it has any,
takes up what the width's steps leave. A mixture of experts is sized by its *active* parameters,
those that one position uses: idle experts cost no arithmetic, which is the idea of it, and by all
of them it would be the Transformer with a part of its feed-forward layers switched off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, TypeAlias

from dragoman.bench.training.synthetic_corpus import MEAN_LENGTH
from dragoman.config import Config, ModelConfig, load_preset
from dragoman.errors import ConfigError
from dragoman.models import count_parameters

Family: TypeAlias = Literal["fixed", "attention", "other"]


@dataclass(frozen=True, slots=True)
class ComparedModel:
    """Name a model to compare: its preset, and how its decoder gets to know the source."""

    name: str
    preset: str
    family: Family
    """Says if the source reaches the decoder as one fixed vector, by attention, or otherwise."""
    paper: str | None = None
    """Names the row of the paper's Table 2 that corresponds."""
    rate: float | None = None
    """Is the peak learning rate, in the Transformer's; None takes it from their presets."""


COMPARED_MODELS: Final = (
    ComparedModel("feed-forward", "feed-forward", "other"),
    # Its preset's rate is for four times the width; here 10.2 becomes a perplexity of 9.0.
    ComparedModel("RNN", "rnn", "fixed", rate=1.0),
    ComparedModel("GRU", "gru", "fixed"),
    ComparedModel("LSTM", "lstm", "fixed"),
    ComparedModel("LSTM + dot attention", "lstm-dot", "attention"),
    ComparedModel("LSTM + additive attention", "lstm-additive", "attention"),
    ComparedModel("GNMT", "gnmt", "attention", "GNMT + RL"),
    ComparedModel("ByteNet", "bytenet", "other", "ByteNet"),
    ComparedModel("ConvS2S", "convs2s", "attention", "ConvS2S"),
    ComparedModel("mixture of experts", "moe", "attention", "MoE"),
    ComparedModel("restricted self-attention", "restricted", "attention"),
    ComparedModel("Transformer", "base", "attention", "Transformer (base)"),
)
"""The compared models in the order of their history; the last sets the FLOPs."""

TOLERANCE: Final = 0.03
"""How far from its budget a model may be before a message says so."""
SHARED_SETTINGS: Final = {
    *("d_model", "heads", "d_k", "d_v"),
    *("dropout", "attention_dropout", "activation_dropout"),
}
"""The settings of a model that are taken from the data's config, not from the preset."""


def build_config(
    model: ComparedModel, data: Config, *, vocabulary: int, mean_length: float = MEAN_LENGTH
) -> Config:
    """Return a model's config at the scale of the data's own Transformer, before it is sized.

    `mean_length` is that of the sentences in pieces; a window shrinks with it.
    """
    paper, own = load_preset("base"), load_preset(model.preset)
    changed: dict[str, Any] = {
        f.name: getattr(own.model, f.name)
        for f in fields(ModelConfig)
        if f.name not in SHARED_SETTINGS
        and getattr(own.model, f.name) != getattr(paper.model, f.name)
    }
    for name in ("encoder_layers", "decoder_layers"):
        share = getattr(own.model, name) / getattr(paper.model, name)
        changed[name] = max(1, round(share * getattr(data.model, name)))
    ratio = own.model.d_ff / own.model.d_model / (paper.model.d_ff / paper.model.d_model)
    changed["d_ff"] = max(8, round(ratio * data.model.d_ff))
    if own.model.window:
        changed["window"] = max(1, round(own.model.window * mean_length / MEAN_LENGTH))
    rate = model.rate or peak_learning_rate(own) / peak_learning_rate(paper)
    training = replace(
        data.training,
        batch_tokens=data.training.tokens,  # "auto" would differ from model to model
        clip_norm=own.training.clip_norm or data.training.clip_norm,
        learning_rate=data.training.learning_rate * rate,
    )
    tokenizer = replace(data.tokenizer, vocabulary=vocabulary)
    changed_model = replace(data.model, **changed)
    return replace(data, tokenizer=tokenizer, model=changed_model, training=training)


def peak_learning_rate(config: Config) -> float:
    """Return the highest learning rate; in the paper's schedule that of eq. 3 after warm-up."""
    training = config.training
    if training.schedule != "paper":
        return training.learning_rate
    scale = (config.model.d_model * training.warmup_steps) ** -0.5
    return float(training.learning_rate * scale)


def with_steps(config: Config, steps: int) -> Config:
    """Return the config with so many steps and a single validation, at the end."""
    training = config.training
    return replace(
        config,
        training=replace(
            training,
            steps=steps,
            minutes=0.0,
            patience=0,
            patience_metric="loss",
            warmup_steps=min(training.warmup_steps, max(1, steps // 4)),
            validate_every=steps,
            validate_sentences=0,
            checkpoint_every=min(training.checkpoint_every, max(1, steps // 8)),
            log_every=min(training.log_every, max(1, steps // 20)),
        ),
    )


def active_parameters(config: ModelConfig, vocabulary: int) -> int:
    """Return how many weights one position uses: all, but only those of the experts it takes."""
    if config.experts:
        config = replace(config, experts=config.experts_used)
    return count_parameters(config, vocabulary)


def budget_error(config: Config, vocabulary: int, parameters: int) -> float:
    """Return the share by which a model's active parameters exceed the budget, or fall short."""
    return active_parameters(config.model, vocabulary) / parameters - 1


def fit_width(config: Config, vocabulary: int, parameters: int) -> Config:
    """Return the same model in the width that brings its active parameters nearest to a budget.

    d_model is a multiple of 8 and of the heads; where that is too coarse, of the heads alone.
    `budget_error` tells what is left. Raise ConfigError for a budget below the narrowest model.
    """
    found: list[ModelConfig] = []
    for step in (math.lcm(8, config.model.heads), math.lcm(2, config.model.heads)):
        model = _nearest_width(config.model, vocabulary, parameters, step)
        found.append(_adjust_d_ff(model, vocabulary, parameters))
        if abs(active_parameters(found[-1], vocabulary) / parameters - 1) <= TOLERANCE:
            break
    best = min(found, key=lambda m: abs(active_parameters(m, vocabulary) - parameters))
    return replace(config, model=best)


def _nearest_width(model: ModelConfig, vocabulary: int, parameters: int, step: int) -> ModelConfig:
    """Find the best width by bisection: the number of parameters grows with it."""

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
    """Return the model in another width, and with its other widths in proportion."""

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


def _adjust_d_ff(model: ModelConfig, vocabulary: int, parameters: int) -> ModelConfig:
    """Let d_ff take what is missing or too much, within half of its proportion."""
    now = active_parameters(model, vocabulary)
    slope = active_parameters(replace(model, d_ff=model.d_ff + 8), vocabulary) - now
    if slope <= 0:  # the model has no feed-forward layers
        return model
    d_ff = model.d_ff + 8 * round((parameters - now) / slope)
    least, most = model.d_ff // 2, model.d_ff * 3 // 2
    return replace(model, d_ff=min(max(d_ff, least, 8), most))
