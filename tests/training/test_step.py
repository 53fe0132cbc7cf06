"""One optimiser step and its guard."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from dragoman.config import Config
from dragoman.data.batching.batches import Batches
from dragoman.data.prepare import Prepared
from dragoman.models import build
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.loss import Criterion
from dragoman.training.step import Stepper, StepResult


@pytest.fixture
def batches(prepared: Prepared) -> Batches:
    return Batches(prepared.train, batch_tokens=512, row_length=64, seed=1)


def stepper(config: Config, prepared: Prepared) -> Stepper:
    torch.manual_seed(1)
    model = build(config.model, len(prepared.tokenizer))
    return Stepper(config, model, torch.device("cpu"), Ranks())


def state(taken: Stepper) -> dict[str, Tensor]:
    found = {f"moments/{n}": t.clone() for n, t in taken.optimizer.state_tensors().items()}
    return found | {n: p.detach().clone() for n, p in taken.model.named_parameters()}


def take(taken: Stepper, batches: Batches, steps: range) -> list[StepResult]:
    for step, (batch, _) in zip(steps, batches.stream(), strict=False):
        taken.run(batch, step)
    return list(taken.take_results(wait=True))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("factor", [math.nan, math.inf, 100.0])
def test_a_bad_step_leaves_weights_and_moments_untouched(
    factor: float,
    optimizer: str,
    tiny: Config,
    prepared: Prepared,
    batches: Batches,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = stepper(tiny.overridden([f"training.optimizer={optimizer}"]), prepared)
    assert not any(result.skipped for result in take(taken, batches, range(1, 6)))
    before = state(taken)
    plain = Criterion.forward
    with monkeypatch.context() as patched:
        patched.setattr(
            Criterion,
            "forward",
            lambda self, *inputs: tuple(value * factor for value in plain(self, *inputs)),
        )
        (result,) = take(taken, batches, range(6, 7))
    assert result.skipped
    after = state(taken)
    assert all(torch.equal(before[name], after[name]) for name in before)
    (result,) = take(taken, batches, range(7, 8))
    assert not result.skipped
    assert not all(torch.equal(before[name], tensor) for name, tensor in state(taken).items())


def test_a_loss_that_grows_slowly_is_no_spike(
    tiny: Config, prepared: Prepared, batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = stepper(tiny, prepared)
    take(taken, batches, range(1, 4))
    plain = Criterion.forward
    monkeypatch.setattr(
        Criterion,
        "forward",
        lambda self, *inputs: tuple(value * 3 for value in plain(self, *inputs)),
    )
    assert not any(result.skipped for result in take(taken, batches, range(4, 7)))


def test_results_say_what_the_steps_were(
    tiny: Config, prepared: Prepared, batches: Batches
) -> None:
    found = take(stepper(tiny, prepared), batches, range(1, 4))
    assert [result.step for result in found] == [1, 2, 3]
    shapes = [batch for batch, _ in zip((b for b, _ in batches.stream()), range(3), strict=False)]
    assert [r.tokens for r in found] == [batch.target_tokens for batch in shapes]
    assert all(0 < r.fill <= 1 and r.gradient_norm > 0 and r.nll <= r.loss * 2 for r in found)
