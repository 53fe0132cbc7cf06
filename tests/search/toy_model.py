"""A small autoregressive model made of random tables, and its hypotheses by enumeration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Self

import torch
from torch import Tensor

from dragoman.models.api import Model, Rows, State
from dragoman.search import Hypothesis, Limits, length_penalty
from dragoman.text.special_tokens import BOS, EOS

FIRST = 4  # the first id that is a piece of text


@dataclass
class ToyState(State):
    keys_B: Tensor
    before_BK: Tensor
    """The piece before the last one."""

    def expand(self, beams: int) -> Self:
        assert self.before_BK.shape[1] == 1
        return type(self)(self.keys_B, self.before_BK.repeat(1, beams))

    def reorder(self, parents_BK: Tensor) -> Self:
        return type(self)(self.keys_B, self.before_BK.gather(1, parents_BK))

    def keep(self, sentences_B: Tensor) -> Self:
        return type(self)(self.keys_B[sentences_B], self.before_BK[sentences_B])


class Toy(Model):
    """The next piece depends on the last two and on a sum over the source."""

    KEYS = 13

    def __init__(self, seed: int = 0, pieces: int = 3, sharpness: float = 2.0) -> None:
        super().__init__()
        self.vocabulary = self.targets = FIRST + pieces
        generator = torch.Generator().manual_seed(seed)
        shape = (self.KEYS, self.vocabulary, self.vocabulary, self.vocabulary)
        logits = torch.randn(shape, generator=generator) * sharpness
        self.register_buffer("table", logits.log_softmax(-1))
        self.starts = 0
        self.rows_stepped: list[int] = []

    def keys(self, source: Rows) -> Tensor:
        weighted = source.ids_RL * (source.positions_RL + 1) * (source.segments_RL > 0)
        return weighted.sum(1) % self.KEYS

    def start(self, source: Rows) -> ToyState:
        self.starts += 1
        keys_B = self.keys(source)
        return ToyState(keys_B, torch.full_like(keys_B, BOS)[:, None])

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, ToyState]:
        assert isinstance(state, ToyState)
        assert ids_BK.shape == state.before_BK.shape
        self.rows_stepped.append(len(ids_BK))
        return self.table[state.keys_B[:, None], state.before_BK, ids_BK], ToyState(
            state.keys_B, ids_BK
        )

    def features(self, source: Rows, target: Rows) -> Tensor:
        raise NotImplementedError

    def output_weight(self) -> Tensor:
        raise NotImplementedError

    def log_prob(self, key: int, ids: list[int]) -> float:
        """The sum over a finished sequence, piece by piece."""
        padded = [BOS, BOS, *ids, EOS]
        return sum(
            float(self.table[key, a, b, c])
            for a, b, c in zip(padded, padded[1:], padded[2:], strict=False)
        )


def sources(*lengths: int) -> Rows:
    """Sentences of so many pieces each, different, with their EOS."""
    width = max(lengths) + 1
    ids_BL = torch.zeros(len(lengths), width, dtype=torch.int64)
    for row, length in enumerate(lengths):
        ids_BL[row, :length] = torch.arange(length) * (row + 3) % 7 + FIRST
        ids_BL[row, length] = EOS
    return Rows.one_a_row(ids_BL, torch.tensor(lengths) + 1)


def only(source: Rows, row: int) -> Rows:
    """One sentence of a batch, alone and without padding."""
    length = int((source.segments_RL[row] > 0).sum())
    return Rows.one_a_row(source.ids_RL[row : row + 1, :length], torch.tensor([length]))


def exhaustive(
    model: Toy, source: Rows, limits: Limits, ceiling: int, prefix: list[int]
) -> list[Hypothesis]:
    """Every sequence of the space of a single sentence, best first."""
    key = int(model.keys(source)[0])
    found = []
    for pieces in range(max(limits.min_length, len(prefix)), ceiling + 1):
        for rest in product(range(FIRST, model.vocabulary), repeat=pieces - len(prefix)):
            ids = [*prefix, *rest]
            log_prob = model.log_prob(key, ids)
            score = log_prob / length_penalty(pieces, limits.length_penalty)
            if not math.isinf(score):
                found.append(Hypothesis(ids, score, log_prob))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)
