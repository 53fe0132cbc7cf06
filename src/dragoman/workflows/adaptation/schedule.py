"""The schedule of an adaptation is made for the model and for the size of the set.

Fine-tuning takes small steps for a short time. A CPU can afford few passes, with little general
text between; a GPU takes more of both. docs/adaptation.md has what was measured.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

from dragoman.config import Config, TrainingConfig
from dragoman.training.distributed.ranks import pick_device
from dragoman.training.precision import cpu_multiplies_bf16

_RATE: Final = 3e-4
"""The peak of the learning rate of a model of d_model 384 on batches of 1,024 positions."""
PARSER_PASSES: Final = 5
_HIGHEST_RATE: Final = 4e-4
_VALIDATIONS: Final = 5
_LARGEST_BATCH: Final = {"cpu": 4096, "cuda": 25_344}


def count_passes(pairs: int, device: str) -> int:
    """Return how often a set of so many pairs is learned from; twice as often on a GPU."""
    passes = 10 if pairs < 1000 else 5 if pairs <= 50_000 else 3 if pairs <= 500_000 else 1
    return passes if device == "cpu" or pairs > 500_000 else 2 * passes


def general_share(device: str) -> float:
    """Return how many general pairs are seen for each of the user's own."""
    return 0.5 if device == "cpu" else 1.0


def make_schedule(model: Config, pieces: int, device: str) -> Config:
    """Return a model's config with settings to train further on sets of so many target pieces.

    The steps are set when the batches can be counted.
    """
    row = model.data.row_length
    batch = 2 ** round(math.log2(max(1, pieces / 64)))
    batch = max(row, min(max(batch, 1024), _LARGEST_BATCH[device]))
    rate = _RATE * math.sqrt(384 / model.model.d_model) * (batch / 1024) ** 0.25
    bf16_cpu = device == "cpu" and cpu_multiplies_bf16()
    return dataclasses.replace(
        model,
        data=dataclasses.replace(model.data, drop_duplicates=False, subword_sampling=0.0),
        training=TrainingConfig(
            batch_tokens=batch,
            schedule="linear",
            learning_rate=round(min(rate, _HIGHEST_RATE), 6),
            clip_norm=1.0,
            average=1,
            keep_checkpoints=2,
            validate_sentences=100 if device == "cpu" else 500,
            patience_metric="loss",
            log_every=20,
            precision="bf16" if bf16_cpu else "auto",
        ),
    )


def set_steps(config: Config, steps: int, assigned: set[str]) -> Config:
    """Return the config with so many steps and what depends on them, but for what a user set."""
    every = max(1, math.ceil(steps / _VALIDATIONS))
    wanted = {
        "steps": steps,
        "warmup_steps": max(1, min(500, steps // 15)),
        "validate_every": every,
        "checkpoint_every": min(500, every),
    }
    kept = {name: value for name, value in wanted.items() if name not in assigned}
    return config.updated({"training": kept})


def make_parser_schedule(model: Config, assignments: Sequence[str]) -> Config:
    """Return a parser's config with settings to train it further on a treebank."""
    device = pick_device(model.overridden(assignments).training.device).type
    schedule = make_schedule(model, pieces=100_000, device=device)
    return schedule.updated({"training": {"warmup_steps": 20, "validate_every": 100}})
