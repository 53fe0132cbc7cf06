"""PyTorch records where a model looks in the source while it predicts a target."""

# B sentences, H heads, S source pieces, T target pieces

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.models import Model
from dragoman.models.attention import attention_modules, record_attention
from dragoman.search.batching import source_rows, target_rows


def attends_to_source(model: Model) -> bool:
    """Return whether there is attention to the source, and so an alignment."""
    return any("source_attention" in name for name, _ in attention_modules(model))


@torch.no_grad()
def source_attention(
    model: Model, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[dict[str, Tensor]]:
    """Return, for each pair, every attention to the source, H (T + 1) (S + 1), by name.

    Row t is the step that reads BOS (t = 0) or target piece t - 1; the last column is EOS.
    """
    device = next(model.parameters()).device
    with record_attention(model) as recorded:
        model.features(source_rows(sources, device), target_rows(targets, device))
    return [
        {
            name: weights[b, :, : len(targets[b]) + 1, : len(sources[b]) + 1].float().cpu()
            for name, weights in recorded.items()
            if "source_attention" in name
        }
        for b in range(len(sources))
    ]


def mean_attention(attention: dict[str, Tensor]) -> NDArray[np.float32]:
    """Return the mean of what the last layer's heads attend to for each piece, T S."""
    weights: NDArray[np.float32] = last_layer_attention(attention).mean(0).numpy()
    return weights


def last_layer_attention(attention: dict[str, Tensor]) -> Tensor:
    """Return what each head of the last layer attends to to predict each target piece, H T S.

    The heads of an ensemble are those of all its models.
    """
    last = {_member(name): weights for name, weights in attention.items()}
    return torch.cat([weights[:, :-1, :-1] for weights in last.values()])


def _member(name: str) -> str:
    """Return the model of an ensemble that a module belongs to."""
    return name.split(".")[1] if name.startswith("models.") else ""
