"""The loss against numbers worked by hand."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from dragoman.config import Config
from dragoman.data.batching.batches import Batches
from dragoman.data.prepare import Prepared
from dragoman.models import build
from dragoman.training.loss import Criterion, TensorBatch, label_smoothed_loss

CPU = torch.device("cpu")


def test_label_smoothing_equals_a_number_worked_by_hand() -> None:
    logits = torch.tensor([[math.log(0.7), math.log(0.2), math.log(0.1)]])
    loss, nll = label_smoothed_loss(logits, torch.tensor([0]), 0.3)
    uniform = -(math.log(0.7) + math.log(0.2) + math.log(0.1)) / 3
    assert nll.item() == pytest.approx(-math.log(0.7))
    assert loss.item() == pytest.approx(0.7 * -math.log(0.7) + 0.3 * uniform)


def test_label_smoothing_equals_torch() -> None:
    logits, output = torch.randn(20, 50), torch.randint(50, (20,))
    for smoothing in (0.0, 0.1, 0.2):
        loss, _ = label_smoothed_loss(logits, output, smoothing)
        expected = F.cross_entropy(logits, output, label_smoothing=smoothing, reduction="sum")
        torch.testing.assert_close(loss, expected)


@pytest.fixture
def batch(prepared: Prepared) -> TensorBatch:
    batches = Batches(prepared.train, batch_tokens=512, row_length=64, seed=1)
    return TensorBatch.from_batch(next(batches.epoch()), CPU)


def test_padding_is_not_in_the_loss(prepared: Prepared, tiny: Config, batch: TensorBatch) -> None:
    model = build(tiny.model, len(prepared.tokenizer)).eval()
    logits = model(batch.source, batch.target)
    real = batch.target.segments_RL > 0
    assert not real.all(), "there is some padding to tell apart"
    expected = F.cross_entropy(logits[real], batch.output_RT[real].long(), reduction="sum")
    torch.testing.assert_close(Criterion(model).eval()(batch)[1], expected)


def test_r_drop_costs_nothing_without_dropout(
    prepared: Prepared, tiny: Config, batch: TensorBatch
) -> None:
    config = tiny.overridden(["model.dropout=0.0"]).model
    model = build(config, len(prepared.tokenizer)).train()
    plain, _ = Criterion(model, label_smoothing=0.1).train()(batch)
    doubled, _ = Criterion(model, label_smoothing=0.1, r_drop=5.0).train()(batch)
    torch.testing.assert_close(doubled, plain)


def test_r_drop_charges_for_disagreement(
    prepared: Prepared, tiny: Config, batch: TensorBatch
) -> None:
    model = build(tiny.overridden(["model.dropout=0.3"]).model, len(prepared.tokenizer)).train()
    losses = []
    for weight in (1e-9, 1.0):
        torch.manual_seed(3)
        losses.append(Criterion(model, r_drop=weight).train()(batch)[0].item())
    assert losses[1] > losses[0]
