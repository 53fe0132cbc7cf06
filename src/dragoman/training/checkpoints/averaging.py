"""Making a model of several checkpoints (§6.1)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from dragoman.config import Config
from dragoman.errors import ConfigError, ModelError
from dragoman.model_directory import save_model
from dragoman.models import build
from dragoman.models.weights import adopt_weights
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.checkpoints.checkpoint import STATE, average_weights, list_checkpoints

__all__ = ["average"]


def average(paths: Sequence[Path], out: Path, *, last: int = 5) -> str:
    """Write the mean of a run's last checkpoints, or of these checkpoints or models, to `out`."""
    if len(paths) == 1 and (paths[0] / "checkpoints").is_dir():
        run = paths[0]
        chosen = list_checkpoints(run)[-last:] if last > 0 else []
        if not chosen:
            raise ModelError(f"{run}: has no checkpoint to average yet")
    else:
        chosen = list(paths)
        run = chosen[0].parent.parent if (chosen[0] / STATE).exists() else chosen[0]
    if not chosen:
        raise ConfigError("nothing to average; name a run or some checkpoints")
    for path in chosen:
        if not (path / STATE).exists() and not (path / "weights.safetensors").exists():
            raise ModelError(
                f"{path}: no checkpoint and no model (no {STATE} and no weights.safetensors in it)"
            )
    config = Config.load(run / "config.toml")
    tokenizer = Tokenizer.load(_tokenizer_place(run))
    weights = average_weights(chosen)
    with torch.device("meta"):
        model = build(config.model, *tokenizer.sizes)
    adopt_weights(model, weights, where=str(chosen[0]))  # refuses what is of another model
    card = {
        "made_of": f"average of {len(chosen)}: {', '.join(path.name for path in chosen)}",
        "parameters": sum(tensor.numel() for tensor in weights.values()),
    }
    save_model(out, weights, config, tokenizer, card)
    return f"{out}: {card['made_of']}"


def _tokenizer_place(run: Path) -> Path:
    try:
        data = json.loads((run / "run.json").read_text(encoding="utf-8"))["data"]
    except (OSError, ValueError, KeyError, TypeError):
        return run
    return run / str(data)
