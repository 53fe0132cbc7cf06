"""The rows of Table 3 at the size of any base model: what the paper changes, in proportion."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dragoman.config import Config, ModelConfig, load_preset
from dragoman.errors import ConfigError
from dragoman.models import count_parameters
from dragoman.paper.paper_values import TABLE_3, Variation

__all__ = ["SMALL_BASE", "TINY_BASE", "Count", "Row", "counts", "variations"]

Tables: TypeAlias = dict[str, dict[str, Any]]

SMALL_BASE: Final = Config.from_dict(
    {
        "tokenizer": {"vocabulary": 8000},
        "data": {"max_length": 100, "row_length": 256},
        "model": {"d_model": 128, "d_ff": 512, "heads": 8, "dropout": 0.2, "norm": "pre"},
        "training": {
            "steps": 2000,
            "batch_tokens": 8192,
            "warmup_steps": 500,
            "clip_norm": 1.0,
            "checkpoint_every": 500,
            "keep_checkpoints": 1,
            "average": 1,
        },
    }
)
"""For corpora like Multi30k: 6 layers, 8 heads of 16, 3.8M parameters with 8,000 pieces.

Differs from the paper: a quarter of its widths; a warm-up of 500 of 2,000 steps; dropout 0.2, for
there are 29,000 pairs; gradients clipped; and pre-norm, since with so few pairs post-norm decoders
tend to ignore the source (docs/log.md).
"""

TINY_BASE: Final = Config.from_dict(
    {
        "tokenizer": {"vocabulary": 500},
        "data": {"max_length": 60, "row_length": 64},
        "model": {"encoder_layers": 3, "decoder_layers": 3, "d_model": 64, "d_ff": 128, "heads": 8},
        "training": {
            "steps": 300,
            "batch_tokens": 1024,
            "schedule": "cosine",
            "learning_rate": 0.004,
            "warmup_steps": 50,
            "clip_norm": 1.0,
            "validate_sentences": 100,
            "checkpoint_every": 100,
            "keep_checkpoints": 1,
            "average": 1,
            "log_every": 10,
        },
    }
)
"""For the phrasebook on a CPU: 3 layers, of which a third, two thirds and four thirds exist."""

_MOST_DROPOUT: Final = 0.4
"""The big model has three times the base's dropout, up to this."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of Table 3 at another size."""

    paper: Variation
    """The paper's row."""
    name: str
    """For a directory."""
    change: str
    """In the paper's words, with the values it has here; empty for the base."""
    config: Config


@dataclass(frozen=True, slots=True)
class Count:
    """The parameters of a row of the paper's, by its equations."""

    paper: Variation
    parameters: int


def counts() -> list[Count]:
    """Every row at the paper's own size, with 37,000 pieces; nothing is trained."""
    found = []
    for paper in TABLE_3:
        config = load_preset(paper.preset)
        parameters = count_parameters(config.model, config.tokenizer.vocabulary)
        found.append(Count(paper, parameters))
    return found


def variations(base: Config) -> list[Row]:
    """Every row of Table 3 that exists at this size, the base first.

    One does not exist if a value would not be whole, could not be, or would be the base's own.
    """
    found = []
    for paper, (words, tables) in zip(TABLE_3, _changes(base), strict=True):
        config = _changed(base, tables)
        if config is not None and (config != base or paper.row == "base"):
            change = _filled(words, config)
            slug = f"{paper.row}-{change}".lower().replace(" ", "-")
            name = paper.row if paper.row in ("base", "big") else slug
            found.append(Row(paper, name, change, config))
    return found


def _changes(base: Config) -> list[tuple[str, Tables | None]]:
    """What each row of the paper's changes, in words and settings; None: a value is not whole."""
    model, dropout = base.model, base.model.dropout
    big = {
        "d_model": model.d_model * 2,
        "d_ff": model.d_ff * 2,
        "heads": model.heads * 2,
        "dropout": round(min(3 * dropout, max(dropout, _MOST_DROPOUT)), 6),
    }
    heads, layers = "{heads} heads of {d_k}", "{encoder_layers} layers"
    return [
        ("", {}),
        (heads, _model(heads=_part(model.heads, 1, 8))),
        (heads, _model(heads=_part(model.heads, 1, 2))),
        (heads, _model(heads=model.heads * 2)),
        (heads, _model(heads=model.heads * 4)),
        ("d_k {d_k}", _model(d_k=_part(model.d_k, 1, 4))),
        ("d_k {d_k}", _model(d_k=_part(model.d_k, 1, 2))),
        (layers, _layers(model, 1)),
        (layers, _layers(model, 2)),
        (layers, _layers(model, 4)),
        ("d_model {d_model}", _model(d_model=_part(model.d_model, 1, 2))),
        ("d_model {d_model}", _model(d_model=model.d_model * 2)),
        ("d_ff {d_ff}", _model(d_ff=_part(model.d_ff, 1, 2))),
        ("d_ff {d_ff}", _model(d_ff=model.d_ff * 2)),
        ("dropout {dropout}", _model(dropout=0.0)),
        ("dropout {dropout}", _model(dropout=2 * dropout)),
        ("smoothing {label_smoothing}", {"training": {"label_smoothing": 0.0}}),
        ("smoothing {label_smoothing}", {"training": {"label_smoothing": 0.2}}),
        ("learned positions", _model(positions="learned")),
        (
            f"{layers}, d_model {{d_model}}, {{heads}} heads",
            {"model": big, "training": {"steps": base.training.steps * 3}},
        ),
    ]


def _part(value: int, numerator: int, denominator: int) -> int | None:
    part, rest = divmod(value * numerator, denominator)
    return part if rest == 0 else None


def _layers(model: ModelConfig, thirds: int) -> Tables | None:
    return _model(
        encoder_layers=_part(model.encoder_layers, thirds, 3),
        decoder_layers=_part(model.decoder_layers, thirds, 3),
    )


def _model(**values: float | str | None) -> Tables | None:
    return None if None in values.values() else {"model": values}


def _changed(base: Config, tables: Tables | None) -> Config | None:
    """The base with these settings; None where they cannot be."""
    try:
        return None if tables is None else base.updated(tables)
    except ConfigError:
        return None


def _filled(words: str, config: Config) -> str:
    settings = config.to_dict()
    filled = words.format(**settings["model"], **settings["training"])
    return re.sub(r"^1 (head|layer)s", r"1 \1", filled)
