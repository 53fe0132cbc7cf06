"""Count the parameters of Table 3's rows at the paper's size, and train them at any other.

The rows are scaled to a base model: what the paper changes is changed in proportion.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from dragoman.config import Config, ModelConfig, load_preset
from dragoman.errors import ConfigError, TrainingError
from dragoman.models import count_parameters
from dragoman.paper import sweep
from dragoman.paper.paper_values import TABLE_3, Variation
from dragoman.paper.sweep import PrintMessage, Trial, TrialResult
from dragoman.paper.table3.results import ParameterCount, Table3, VariationResult

ConfigChanges: TypeAlias = dict[str, dict[str, Any]]

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
"""A base for corpora like Multi30k: 6 layers, 8 heads of 16, 3.8M parameters with 8,000 pieces.

Differs from the paper: a quarter of its widths; a warm-up of 500 of 2,000 steps; dropout 0.2, for
there are 29,000 pairs; gradients clipped; and pre-norm, since with so few pairs post-norm decoders
tend to ignore the source (docs/log.md).
"""

_MAX_DROPOUT: Final = 0.4
"""The big model has three times the base's dropout, up to this."""


@dataclass(frozen=True, slots=True)
class ScaledVariation:
    """Describe a row of Table 3 at another size."""

    paper: Variation
    """Is the paper's row."""
    name: str
    """Names the row's directory."""
    change: str
    """Says in the paper's words what is changed, with the values here; empty for the base."""
    config: Config


def measure(
    data: Path,
    out: Path,
    *,
    base: Config = SMALL_BASE,
    seeds: Sequence[int] = (1, 2, 3),
    steps: int | None = None,
    jobs: int = 1,
    print_message: PrintMessage,
    rows: Collection[str] = (),
) -> Table3:
    """Train every row at the size of `base`, once a seed, on a prepared corpus.

    `steps` are the base's by default; the big model has three times as many, as in the paper.
    `rows`, such as ("A", "big"), leaves out the others but the base. As in §6.2 nothing is
    averaged: the last step counts. What is trained already is not trained again.
    """
    if not seeds:
        raise ConfigError("there are no seeds; give at least one, and three for a standard error")
    if not base.training.validate_sentences:
        raise ConfigError("training.validate_sentences = 0, but Table 3 compares BLEU; try 2000")
    if steps is not None:
        base = base.updated({"training": {"steps": steps}})
    chosen = _select_rows(base, rows)
    # Seed by seed: an interrupted sweep has whole tables.
    trials = [_make_trial(row, seed) for seed in seeds for row in chosen]
    found = {
        run.name: run
        for run in sweep.run_sweep(trials, data, out, jobs=jobs, print_message=print_message)
    }
    measured = [
        _collect_result(row, [found[_make_trial(row, seed).name] for seed in seeds])
        for row in chosen
    ]
    if not measured[0].bleu:
        raise TrainingError(
            f"{out}: the base model, which all are compared with, failed: {measured[0].failure}; "
            "run the same command to try again"
        )
    return Table3(data.resolve().name, base, tuple(seeds), tuple(measured))


def _select_rows(base: Config, rows: Collection[str]) -> list[ScaledVariation]:
    known = dict.fromkeys(paper.row for paper in TABLE_3)
    for name in rows:
        if name not in known:
            raise ConfigError(f"row {name}: not one of Table 3's; choose from: {', '.join(known)}")
    return [row for row in scale_variations(base) if not rows or row.paper.row in ("base", *rows)]


def _make_trial(row: ScaledVariation, seed: int) -> Trial:
    settings = {
        "seed": seed,
        "average": 1,
        "keep_checkpoints": 1,
        "patience": 0,
        # Only at the end: scores on the way would let the best step be chosen.
        "validate_every": row.config.training.steps + 1,
    }
    return Trial(f"{row.name}-seed-{seed}", row.config.updated({"training": settings}))


def _collect_result(row: ScaledVariation, runs: Sequence[TrialResult]) -> VariationResult:
    done = [run for run in runs if run.failure is None]
    return VariationResult(
        row.paper.preset,
        row.change,
        parameters=done[0].parameters if done else 0,
        steps=row.config.training.steps,
        perplexity=tuple(run.perplexity for run in done if run.perplexity is not None),
        bleu=tuple(run.bleu for run in done if run.bleu is not None),
        failure=next((run.failure for run in runs if run.failure is not None), None),
    )


# --- the rows ---


def count_paper_parameters() -> list[ParameterCount]:
    """Count every row at the paper's own size, with 37,000 pieces; nothing is trained."""
    found = []
    for paper in TABLE_3:
        config = load_preset(paper.preset)
        parameters = count_parameters(config.model, config.tokenizer.vocabulary)
        found.append(ParameterCount(paper, parameters))
    return found


def scale_variations(base: Config) -> list[ScaledVariation]:
    """Return every row of Table 3 that exists at this size, the base first.

    A row does not exist if a value would not be whole, is not allowed, or would be the base's own.
    """
    found = []
    for paper, (words, tables) in zip(TABLE_3, _list_changes(base), strict=True):
        config = _apply_change(base, tables)
        if config is not None and (config != base or paper.row == "base"):
            change = _describe_change(words, config)
            slug = f"{paper.row}-{change}".lower().replace(" ", "-")
            name = paper.row if paper.row in ("base", "big") else slug
            found.append(ScaledVariation(paper, name, change, config))
    return found


def _list_changes(base: Config) -> list[tuple[str, ConfigChanges | None]]:
    """Return what each row changes, in words and as settings; None if a value is not whole."""
    model, dropout = base.model, base.model.dropout
    big = {
        "d_model": model.d_model * 2,
        "d_ff": model.d_ff * 2,
        "heads": model.heads * 2,
        "dropout": round(min(3 * dropout, max(dropout, _MAX_DROPOUT)), 6),
    }
    heads, layers = "{heads} heads of {d_k}", "{encoder_layers} layers"
    return [
        ("", {}),
        (heads, _model_change(heads=_fraction(model.heads, 1, 8))),
        (heads, _model_change(heads=_fraction(model.heads, 1, 2))),
        (heads, _model_change(heads=model.heads * 2)),
        (heads, _model_change(heads=model.heads * 4)),
        ("d_k {d_k}", _model_change(d_k=_fraction(model.d_k, 1, 4))),
        ("d_k {d_k}", _model_change(d_k=_fraction(model.d_k, 1, 2))),
        (layers, _layers_change(model, 1)),
        (layers, _layers_change(model, 2)),
        (layers, _layers_change(model, 4)),
        ("d_model {d_model}", _model_change(d_model=_fraction(model.d_model, 1, 2))),
        ("d_model {d_model}", _model_change(d_model=model.d_model * 2)),
        ("d_ff {d_ff}", _model_change(d_ff=_fraction(model.d_ff, 1, 2))),
        ("d_ff {d_ff}", _model_change(d_ff=model.d_ff * 2)),
        ("dropout {dropout}", _model_change(dropout=0.0)),
        ("dropout {dropout}", _model_change(dropout=2 * dropout)),
        ("smoothing {label_smoothing}", {"training": {"label_smoothing": 0.0}}),
        ("smoothing {label_smoothing}", {"training": {"label_smoothing": 0.2}}),
        ("learned positions", _model_change(positions="learned")),
        (
            f"{layers}, d_model {{d_model}}, {{heads}} heads",
            {"model": big, "training": {"steps": base.training.steps * 3}},
        ),
    ]


def _fraction(value: int, numerator: int, denominator: int) -> int | None:
    part, rest = divmod(value * numerator, denominator)
    return part if rest == 0 else None


def _layers_change(model: ModelConfig, thirds: int) -> ConfigChanges | None:
    return _model_change(
        encoder_layers=_fraction(model.encoder_layers, thirds, 3),
        decoder_layers=_fraction(model.decoder_layers, thirds, 3),
    )


def _model_change(**values: float | str | None) -> ConfigChanges | None:
    return None if None in values.values() else {"model": values}


def _apply_change(base: Config, tables: ConfigChanges | None) -> Config | None:
    """Return the base with these settings, or None if they are not allowed."""
    try:
        return None if tables is None else base.updated(tables)
    except ConfigError:
        return None


def _describe_change(words: str, config: Config) -> str:
    settings = config.to_dict()
    filled = words.format(**settings["model"], **settings["training"])
    return re.sub(r"^1 (head|layer)s", r"1 \1", filled)
