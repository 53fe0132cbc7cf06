"""How each contender of Table 2 is trained: its own architecture and rate, the data's all else."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

from dragoman.bench.training.synthetic_corpus import MEAN
from dragoman.config import Config, ModelConfig, load_preset
from dragoman.paper.table2.results import Contender

__all__ = ["for_steps", "peak_rate", "recipe"]

SHARED: Final = {
    *("d_model", "heads", "d_k", "d_v"),
    *("dropout", "attention_dropout", "activation_dropout"),
}
"""Settings of a model that are the data's, not the preset's."""


def recipe(contender: Contender, data: Config, *, vocabulary: int, mean: float = MEAN) -> Config:
    """A contender at the scale of the data's own Transformer, before it is sized.

    `mean` is the sentences' mean length in pieces; a window shrinks with it.
    """
    paper, own = load_preset("base"), load_preset(contender.preset)
    changed: dict[str, Any] = {
        f.name: getattr(own.model, f.name)
        for f in fields(ModelConfig)
        if f.name not in SHARED and getattr(own.model, f.name) != getattr(paper.model, f.name)
    }
    for name in ("encoder_layers", "decoder_layers"):
        share = getattr(own.model, name) / getattr(paper.model, name)
        changed[name] = max(1, round(share * getattr(data.model, name)))
    ratio = own.model.d_ff / own.model.d_model / (paper.model.d_ff / paper.model.d_model)
    changed["d_ff"] = max(8, round(ratio * data.model.d_ff))
    if own.model.window:
        changed["window"] = max(1, round(own.model.window * mean / MEAN))
    rate = contender.rate or peak_rate(own) / peak_rate(paper)
    training = replace(
        data.training,
        batch_tokens=data.training.tokens,  # "auto" would differ from model to model
        clip_norm=own.training.clip_norm or data.training.clip_norm,
        learning_rate=data.training.learning_rate * rate,
    )
    tokenizer = replace(data.tokenizer, vocabulary=vocabulary)
    model = replace(data.model, **changed)
    return replace(data, tokenizer=tokenizer, model=model, training=training)


def peak_rate(config: Config) -> float:
    """The highest learning rate; of the paper's schedule, that of eq. 3 at the end of warm-up."""
    training = config.training
    if training.schedule != "paper":
        return training.learning_rate
    scale = (config.model.d_model * training.warmup_steps) ** -0.5
    return float(training.learning_rate * scale)


def for_steps(config: Config, steps: int) -> Config:
    """Trained for so long, and looked at once, at the end."""
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
