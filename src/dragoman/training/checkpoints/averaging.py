"""The weights of several checkpoints are averaged into one model (§6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from dragoman.config import Config
from dragoman.errors import ConfigError, ModelError
from dragoman.model_directory import INT8_FILE, WEIGHTS_FILE, open_model, save_model
from dragoman.models import build
from dragoman.models.weights import adopt_weights, read_tensors
from dragoman.run_directory import list_checkpoints
from dragoman.training.checkpoints.checkpoint import STATE_FILE, Checkpoint
from dragoman.training.run_json import RunFile
from dragoman.trees.tokenizer_kinds import load_tokenizer


def average_checkpoints(paths: Sequence[Path], out: Path, *, last: int = 5) -> str:
    """Write the mean of a run's last checkpoints, or of these checkpoints or models, to `out`."""
    if len(paths) == 1 and (paths[0] / "checkpoints").is_dir():
        run = paths[0]
        chosen = list_checkpoints(run)[-last:] if last > 0 else []
        if not chosen:
            raise ModelError(f"{run}: has no checkpoint to average yet")
    else:
        chosen = list(paths)
        run = chosen[0].parent.parent if (chosen[0] / STATE_FILE).exists() else chosen[0]
    if not chosen:
        raise ConfigError("nothing to average; give a run or some checkpoints")
    for path in chosen:
        if not (path / STATE_FILE).exists() and not (path / WEIGHTS_FILE).exists():
            if (path / INT8_FILE).exists():
                open_model(path).require_whole_weights("averaging")
            raise ModelError(
                f"{path}: neither a checkpoint nor a model (no {STATE_FILE} and no {WEIGHTS_FILE} "
                "in it)"
            )
    config = Config.load(run / "config.toml")
    run_file = RunFile.read(run)  # a model has none: its tokeniser is in its own directory
    tokenizer = load_tokenizer(run / run_file.data if run_file else run)
    weights = average_weights(chosen)
    with torch.device("meta"):
        model = build(config.model, *tokenizer.sizes)
    adopt_weights(model, weights, where=str(chosen[0]))  # refuses the weights of another model
    card = {
        "made_of": f"average of {len(chosen)}: {', '.join(path.name for path in chosen)}",
        "parameters": sum(tensor.numel() for tensor in weights.values()),
    }
    save_model(out, weights, config, tokenizer, card)
    return f"{out}: {card['made_of']}"


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean weights of several checkpoints or models, summed in double precision.

    A checkpoint with a moving average gives that in place of its weights.
    """
    total: dict[str, Tensor] = {}
    for path in paths:
        weights = _read_weights(path)
        if not total:
            total = {name: tensor.double() for name, tensor in weights.items()}
            continue
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in total.items()}:
            raise ModelError(f"{path}: not the same model as {paths[0]}; they cannot be averaged")
        for name, tensor in weights.items():
            total[name] += tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}


def _read_weights(path: Path) -> dict[str, Tensor]:
    if not (path / STATE_FILE).exists():
        return read_tensors(path / WEIGHTS_FILE)
    checkpoint = Checkpoint(path)
    checkpoint.shards.verify()
    return checkpoint.read_weights()
