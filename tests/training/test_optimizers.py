"""Adam against PyTorch's; Muon against its definition."""

from __future__ import annotations

import math

import pytest
import torch

from dragoman.config import TrainingConfig
from dragoman.training.optimizers import (
    MUON_MOMENTUM,
    Adam,
    Muon,
    orthogonalize,
    stack_matrices,
)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_is_torch_s_bit_for_bit(decay: float) -> None:
    """The paper's β and ε, and a weight decay that spares the bias."""
    torch.manual_seed(1)
    ours, theirs = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    adam = Adam(ours, TrainingConfig(weight_decay=decay))
    reference = torch.optim.AdamW(
        [
            {"params": [theirs.weight], "weight_decay": decay},
            {"params": [theirs.bias], "weight_decay": 0.0},
        ],
        betas=(0.9, 0.98),
        eps=1e-9,
        fused=True,
    )
    for step in range(1, 6):
        x = torch.randn(4, 5)
        for layer in (ours, theirs):
            layer.zero_grad()
            layer(x).square().sum().backward()
        adam.step(0.01 * step)
        for group in reference.param_groups:
            group["lr"] = 0.01 * step
        reference.step()
        assert torch.equal(ours.weight, theirs.weight)
        assert torch.equal(ours.bias, theirs.bias)


def test_an_orthogonal_matrix_has_singular_values_near_1() -> None:
    torch.manual_seed(1)
    for shape in ((3, 20, 20), (2, 16, 64), (2, 64, 16)):
        x = torch.randn(*shape)
        found = orthogonalize(x)
        assert found.shape == x.shape
        values = torch.linalg.svdvals(found)
        assert values.min() > 0.3
        assert values.max() < 1.3
        u, _, v = torch.linalg.svd(x, full_matrices=False)
        cosine = (found * (u @ v)).sum() / (found.norm() * (u @ v).norm())
        assert cosine > 0.95, "the directions are those of U Vᵀ"


def test_muon_moves_matrices_by_orthogonal_momentum_and_the_rest_by_adam() -> None:
    torch.manual_seed(2)
    layers = [torch.nn.Linear(6, 6), torch.nn.Linear(6, 6), torch.nn.Embedding(5, 6)]
    model, reference = torch.nn.ModuleList(layers), torch.nn.ModuleList(layers[2:])
    config = TrainingConfig(optimizer="muon", weight_decay=0.1)
    muon = Muon(model, config)
    start = [layer.weight.detach().clone() for layer in layers]
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    gradients = [layer.weight.grad.clone() for layer in layers]  # type: ignore[union-attr]
    muon.step(torch.tensor(0.01))
    for i in (0, 1):  # the first momentum is (1 - μ)g, and Nesterov's step g(1 - μ) + μ(1 - μ)g
        moved = orthogonalize(gradients[i][None] * (1 - MUON_MOMENTUM) * (1 + MUON_MOMENTUM))[0]
        expected = start[i] * (1 - 0.01 * 0.1) - 0.01 * 0.2 * math.sqrt(6) * moved
        torch.testing.assert_close(layers[i].weight.detach(), expected)
    after = layers[2].weight.detach().clone()
    with torch.no_grad():
        layers[2].weight.copy_(start[2])
    layers[2].weight.grad = gradients[2]
    Adam(reference, config).step(0.01)
    torch.testing.assert_close(after, layers[2].weight.detach())


def test_muon_skips_what_is_not_a_number() -> None:
    torch.manual_seed(3)
    model = torch.nn.ModuleList([torch.nn.Linear(6, 4), torch.nn.Linear(6, 4)])
    muon = Muon(model, TrainingConfig(optimizer="muon"))
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    muon.step(0.01)
    before = [p.detach().clone() for p in model.parameters()]
    saved = {name: tensor.clone() for name, tensor in muon.state_tensors().items()}
    assert any("momentum" in name and tensor.any() for name, tensor in saved.items())
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, math.nan)
    muon.step(torch.tensor(0.01), skip=torch.tensor(1.0))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(torch.equal(saved[name], tensor) for name, tensor in muon.state_tensors().items())


def test_matrices_end_to_end_are_not_copied() -> None:
    flat = torch.arange(24.0)
    parts = [flat[8 * i : 8 * i + 8].view(2, 4) for i in range(3)]
    assert stack_matrices(parts[1:]).data_ptr() == parts[1].data_ptr()
    assert torch.equal(stack_matrices(parts[1:]), torch.stack(parts[1:]))
    apart = [parts[0], parts[2]]
    assert stack_matrices(apart).data_ptr() != parts[0].data_ptr()
    assert torch.equal(stack_matrices(apart), torch.stack(apart))
