"""Every model follows this protocol.

Training calls ``forward`` (or ``features`` and ``logits``) on rows of packed sentences; search
calls ``start`` once and ``step`` for each piece, and rearranges the state in between. Nothing
outside this folder asks which model it holds.
"""

# R rows, L row length (S source, T target), B sentences, K beams, M model width, V targets

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Rows:
    """Hold sentences laid one after another in rows of equal length."""

    ids_RL: Tensor
    segments_RL: Tensor
    """These number the sentences of a row from 1; 0 is padding. A sentence has the same row and
    number on the source and the target side."""
    positions_RL: Tensor
    """These count the positions of each sentence from 0."""

    @classmethod
    def one_a_row(cls, ids_BL: Tensor, lengths_B: Tensor) -> Rows:
        """Return plain padded sentences, the layout of search."""
        positions_L = torch.arange(ids_BL.shape[1], device=ids_BL.device)
        segments_BL = (positions_L < lengths_B[:, None]).to(torch.int32)
        return cls(ids_BL, segments_BL, positions_L.expand_as(ids_BL))

    def to(self, device: torch.device) -> Rows:
        """Return the same rows on a device."""
        move = [
            t.to(device, non_blocking=True)
            for t in (self.ids_RL, self.segments_RL, self.positions_RL)
        ]
        return Rows(*move)


class State(ABC):
    """Remember what a decoder has read of B sentences with K hypotheses each.

    The methods may reuse the state's memory: the old state must not be used afterwards.
    """

    @abstractmethod
    def expand(self, beams: int) -> Self:
        """Repeat the one hypothesis of each sentence `beams` times."""

    @abstractmethod
    def reorder(self, parents_BK: Tensor) -> Self:
        """Let hypothesis k of sentence b continue the old hypothesis parents[b, k] of b."""

    @abstractmethod
    def keep(self, sentences_B: Tensor) -> Self:
        """Keep only these sentences, in this order."""


class Model(nn.Module, ABC):
    """Score the next id of a target, given a source: an encoder-decoder over ids."""

    vocabulary: int
    """This many ids exist, the source's and the target's together."""
    targets: int
    """The ids below this can be produced: all of them, unless `build` was given fewer."""
    projection: nn.Embedding
    """It has a row for each id; those of the targets make scores of features."""
    projection_bias: nn.Parameter | None
    """It has a number for each id, added to its score; most models have none."""
    fast: bool = False
    """It says whether shapes alone decide what is computed, and bf16 weights will do: such a model
    can be trained on a rounded copy, and its steps recorded and replayed."""

    def __init__(self) -> None:
        super().__init__()
        self.register_parameter("projection_bias", None)

    @abstractmethod
    def features(self, source: Rows, target: Rows) -> Tensor:
        """Return the decoder's output at every target position, R T M, teacher-forced."""

    def output_weight(self) -> Tensor:
        """Return the matrix that makes scores of features, V M."""
        weight = self.projection.weight
        return weight if self.targets == self.vocabulary else weight[: self.targets]

    def output_bias(self) -> Tensor | None:
        """Return what is added to the scores, V, or None."""
        bias = self.projection_bias
        return bias if bias is None else bias[: self.targets]

    def logits(self, features: Tensor) -> Tensor:
        """Return unnormalised scores of the next piece, … V of … M."""
        return F.linear(features, self.output_weight(), self.output_bias())

    def log_probabilities(self, features: Tensor) -> Tensor:
        """Return log-probabilities of the next piece, … V of … M, at least in fp32."""
        scores = self.logits(features)
        return scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))

    def forward(self, source: Rows, target: Rows) -> Tensor:
        """Return scores of the piece after every target position, R T V."""
        return self.logits(self.features(source, target))

    @abstractmethod
    def start(self, source: Rows) -> State:
        """Read the source, one sentence a row; return a state with one hypothesis a sentence."""

    @abstractmethod
    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, State]:
        """Append a piece to every hypothesis; return log-probabilities of the next, B K V."""
