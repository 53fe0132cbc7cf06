"""The optimiser that works on a bf16 copy moves the weights as the plain one does."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from dragoman.config import ModelConfig, TrainingConfig
from dragoman.models import build
from dragoman.training.optimizers import Adam, Muon
from dragoman.training.precision import Bf16Copy


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Adam, Muon])
def test_a_twin_gives_gradients_and_takes_weights(kind: type[Adam], device: torch.device) -> None:
    torch.manual_seed(1)
    config = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, heads=2)
    fast = build(config, 24).to(device)
    plain = deepcopy(fast)
    bf16_copy = Bf16Copy(fast)
    training = TrainingConfig(weight_decay=0.01)
    ours, theirs = kind(fast, training, bf16_copy), kind(plain, training)
    assert ours.state_tensors().keys() == theirs.state_tensors().keys()
    for step in range(1, 4):
        for copy, parameter in zip(bf16_copy.model.parameters(), plain.parameters(), strict=True):
            copy.grad = torch.randn_like(parameter).to(copy.dtype)
            parameter.grad = copy.grad.float()
        norm = bf16_copy.copy_gradients_to_model(add=False)
        squares = sum(p.grad.square().sum() for p in plain.parameters() if p.grad is not None)
        torch.testing.assert_close(norm, torch.as_tensor(squares).sqrt())
        ours.step(torch.tensor(0.01 * step, device=device), skip=torch.zeros((), device=device))
        theirs.step(0.01 * step)
        for (name, mine), other in zip(fast.named_parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(mine, other, atol=2e-5, rtol=1e-4, msg=name)
    for name, tensor in ours.state_tensors().items():
        torch.testing.assert_close(
            tensor, theirs.state_tensors()[name], atol=2e-5, rtol=1e-4, msg=name
        )
    for copy, parameter in zip(bf16_copy.model.parameters(), fast.parameters(), strict=True):
        torch.testing.assert_close(copy.float(), parameter, atol=1e-6, rtol=2**-7)


@pytest.mark.slow
def test_gradients_of_slices_add_up(device: torch.device) -> None:
    config = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, heads=2)
    model = build(config, 24).to(device)
    bf16_copy = Bf16Copy(model)
    for number in (1.0, 2.0):
        for copy in bf16_copy.model.parameters():
            copy.grad = torch.full_like(copy, number)
        norm = bf16_copy.copy_gradients_to_model(add=True)
        bf16_copy.clear_gradients()
    assert all(p.grad is not None and (p.grad == 3).all() for p in model.parameters())
    assert norm.item() == pytest.approx(3 * sum(p.numel() for p in model.parameters()) ** 0.5)
