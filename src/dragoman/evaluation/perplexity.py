"""Perplexity measures how improbable a model finds reference translations."""

# B sentences, L length of their rows, N real positions, M model width

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.errors import DataError
from dragoman.models.api import Model
from dragoman.search.batching import length_sorted_batches, source_rows, target_rows

POSITIONS_AT_A_TIME = 1024
"""Logits of so many positions are in memory at once, however large the batch."""


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Hold the negative log-likelihood of a test set, without label smoothing."""

    nll: float
    """The sum over all pieces, in nats."""
    pieces: int
    """The number of target pieces, one EOS a sentence included."""

    @property
    def per_piece(self) -> float:
        """Return what the paper's tables give; it is not comparable between vocabularies."""
        return math.exp(self.nll / self.pieces)

    def per_word(self, words: int) -> float:
        """Return the perplexity a word instead, which is comparable between vocabularies."""
        return math.exp(self.nll / words)

    def to_json(self) -> dict[str, Any]:
        """Return a table that `json.dumps` takes."""
        return {"perplexity": self.per_piece, "nll": self.nll, "pieces": self.pieces}


@torch.no_grad()
def perplexity(
    model: Model,
    source: Sequence[Sequence[int]],
    target: Sequence[Sequence[int]],
    *,
    batch_tokens: int = 4096,
    device: torch.device | str | None = None,
) -> Perplexity:
    """Measure perplexity on pairs of ids without BOS and EOS, teacher-forced.

    The model is used without dropout and left in its mode; `device` is by default its own.
    """
    if len(source) != len(target):
        raise DataError(
            f"there are {len(source)} source but {len(target)} target sentences; "
            "they must correspond line by line"
        )
    if not source:
        raise DataError("there is nothing to measure: the files have no lines")
    where = torch.device(device) if device is not None else _device(model)
    nll = torch.zeros((), dtype=torch.float64, device=where)
    training = model.training
    model.eval()
    try:
        lengths = [max(len(s), len(t)) for s, t in zip(source, target, strict=True)]
        for batch in length_sorted_batches(lengths, batch_tokens):
            src = source_rows([source[i] for i in batch], where)
            tgt = target_rows([target[i] for i in batch], where)
            wanted = source_rows([target[i] for i in batch], where)  # its pieces, then EOS
            real_BL = wanted.segments_RL > 0
            features_NM = model.features(src, tgt)[real_BL]
            nll += _nll(model, features_NM, wanted.ids_RL[real_BL])
    finally:
        model.train(training)
    return Perplexity(nll.item(), sum(len(ids) + 1 for ids in target))


def _nll(model: Model, features_NM: Tensor, wanted_N: Tensor) -> Tensor:
    slices = zip(
        features_NM.split(POSITIONS_AT_A_TIME), wanted_N.split(POSITIONS_AT_A_TIME), strict=True
    )
    losses = [
        functional.cross_entropy(model.logits(features).float(), wanted, reduction="none")
        for features, wanted in slices
    ]
    return torch.cat(losses).double().sum()


def _device(model: Model) -> torch.device:
    tensor = next(model.parameters(), None)
    return torch.device("cpu") if tensor is None else tensor.device
