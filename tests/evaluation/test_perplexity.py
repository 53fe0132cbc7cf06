from __future__ import annotations

import json
import math
import random

import pytest
import torch
from torch import Tensor

from dragoman.errors import DataError
from dragoman.evaluation.perplexity import perplexity
from dragoman.models.api import Model, Rows, State


class Bigrams(Model):
    """The next piece depends on the last one and on the first of the source."""

    vocabulary = 9

    def __init__(self) -> None:
        super().__init__()
        logits = torch.randn(9, 9, 9, generator=torch.Generator().manual_seed(0))
        self.table = torch.nn.Parameter(logits)
        self.largest = 0

    def features(self, source: Rows, target: Rows) -> Tensor:
        assert not self.training
        self.largest = max(self.largest, source.ids_RL.numel(), target.ids_RL.numel())
        return self.table[source.ids_RL[:, :1], target.ids_RL]

    def output_weight(self) -> Tensor:
        raise NotImplementedError

    def logits(self, features: Tensor) -> Tensor:
        return features + 3.0  # unnormalised

    def start(self, source: Rows) -> State:
        raise NotImplementedError

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, State]:
        raise NotImplementedError

    def nll(self, source: list[int], target: list[int]) -> float:
        """The definition, piece by piece; 1 begins and 2 ends a sentence."""
        first = source[0] if source else 2
        probs = self.table.detach()[first].softmax(-1)
        return -sum(
            math.log(float(probs[last, piece]))
            for last, piece in zip([1, *target], [*target, 2], strict=True)
        )


def _pairs(count: int) -> tuple[list[list[int]], list[list[int]]]:
    rng = random.Random(3)
    source, target = (
        [rng.choices(range(4, 9), k=rng.randint(0, 12)) for _ in range(count)] for _ in range(2)
    )
    return source, target


@pytest.mark.parametrize("batch_tokens", [1, 60, 100_000])
def test_perplexity_equals_its_definition_however_it_is_batched(batch_tokens: int) -> None:
    model, (source, target) = Bigrams(), _pairs(200)
    found = perplexity(model, source, target, batch_tokens=batch_tokens)
    nll = sum(map(model.nll, source, target))
    pieces = sum(len(ids) + 1 for ids in target)
    assert found.pieces == pieces
    assert found.nll == pytest.approx(nll, rel=1e-5)
    assert found.per_piece == pytest.approx(math.exp(nll / pieces), rel=1e-5)
    assert found.per_word(1000) == pytest.approx(math.exp(nll / 1000), rel=1e-5)
    assert model.largest <= max(batch_tokens, 13)


def test_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary() -> None:
    model, (source, target) = Bigrams(), _pairs(20)
    torch.nn.init.zeros_(model.table)
    assert perplexity(model, source, target).per_piece == pytest.approx(9)


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_off_meanwhile_and_the_model_left_as_it_was(training: bool) -> None:
    model = Bigrams().train(training)
    perplexity(model, *_pairs(3))
    assert model.training is training


def test_perplexity_is_json() -> None:
    found = perplexity(Bigrams(), *_pairs(3))
    assert json.loads(json.dumps(found.to_json()))["perplexity"] == found.per_piece


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="2 source but 1 target sentences"):
        perplexity(Bigrams(), [[4], [5]], [[4]])
    with pytest.raises(DataError, match="nothing to measure"):
        perplexity(Bigrams(), [], [])
