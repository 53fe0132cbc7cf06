"""Muon (Jordan et al., 2024): matrices move by their momentum made orthogonal, the rest by Adam.

The update of a matrix has all singular values near 1, so that no direction of the gradient drowns
the others; times 0.2 √(longer side) it is as large as Adam's (Liu et al., 2025), and one learning
rate serves both.
"""

# N matrices of one shape, R rows, C columns

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import sqrt

import torch
from torch import Tensor, nn

from dragoman.config import TrainingConfig
from dragoman.training.optimizer import Adam
from dragoman.training.precision import Twin, linear_weights

__all__ = ["Muon", "orthogonal", "together"]

MOMENTUM = 0.95


class Muon(Adam):
    """Orthogonal momentum for the matrices of linear layers; Adam for everything else."""

    def __init__(self, model: nn.Module, config: TrainingConfig, twin: Twin | None = None) -> None:
        super().__init__(model, config, twin)
        self.matrices = linear_weights(model)
        by_shape = sorted(self.matrices, key=lambda name: self.matrices[name].shape)
        groups = groupby(by_shape, key=lambda name: self.matrices[name].shape)
        self.groups = [list(names) for _, names in groups]
        """Names of matrices of one shape, which are made orthogonal together."""
        self.momenta = [
            torch.zeros(len(names), *shape, device=self.steps.device)
            for names in self.groups
            for shape in [self.matrices[names[0]].shape]
        ]

    def chosen(self, model: nn.Module) -> dict[str, nn.Parameter]:
        """The weights that Adam moves: those of no linear layer."""
        matrices = linear_weights(model)
        return {name: p for name, p in model.named_parameters() if name not in matrices}

    @torch.no_grad()
    def step(
        self,
        rate: float | Tensor,
        *,
        divide_by: Tensor | None = None,
        skip: Tensor | None = None,
    ) -> None:
        """See Adam."""
        super().step(rate, divide_by=divide_by, skip=skip)
        for names, momentum_NRC in zip(self.groups, self.momenta, strict=True):
            weights = [self.matrices[name] for name in names]
            self._move(weights, momentum_NRC, rate, divide_by, skip)
        if self.twin is not None:
            self.twin.take_weights()

    def _move(
        self,
        weights: list[nn.Parameter],
        momentum_NRC: Tensor,
        rate: float | Tensor,
        divide_by: Tensor | None,
        skip: Tensor | None,
    ) -> None:
        gradient_NRC = together([_gradient(weight) for weight in weights])
        if divide_by is not None:
            gradient_NRC = gradient_NRC / divide_by
        after_NRC = momentum_NRC.lerp(gradient_NRC, 1 - MOMENTUM)
        update_NRC = orthogonal(gradient_NRC.lerp(after_NRC, MOMENTUM))  # Nesterov's
        update_NRC *= 0.2 * sqrt(max(update_NRC.shape[1:]))
        weights_NRC = together(weights)
        moved_NRC = weights_NRC * (1 - rate * self.decay) - rate * update_NRC
        if skip is not None:  # what was skipped may not be a number, and 0 times that is none
            moved_NRC = torch.where(skip > 0, weights_NRC, moved_NRC)
            after_NRC = torch.where(skip > 0, momentum_NRC, after_NRC)
        momentum_NRC.copy_(after_NRC)
        weights_NRC.copy_(moved_NRC)
        if weights_NRC.data_ptr() != weights[0].data_ptr():
            torch._foreach_copy_([w.data for w in weights], list(weights_NRC.unbind()))

    def tensors(self) -> dict[str, Tensor]:
        """See Adam."""
        named = zip(self.groups, self.momenta, strict=True)
        return super().tensors() | {
            f"{name}/momentum": momentum
            for names, momentum_NRC in named
            for name, momentum in zip(names, momentum_NRC.unbind(), strict=True)
        }


def _gradient(weight: nn.Parameter) -> Tensor:
    return weight.grad if weight.grad is not None else torch.zeros_like(weight)


def together(matrices: Sequence[Tensor]) -> Tensor:
    """Matrices of one shape as one tensor, N R C: a view if they lie end to end, else a copy."""
    first = matrices[0]
    bytes_of_one = first.numel() * first.element_size()
    end_to_end = all(
        matrix.is_contiguous() and matrix.data_ptr() == first.data_ptr() + i * bytes_of_one
        for i, matrix in enumerate(matrices)
    )
    if not end_to_end:
        return torch.stack(list(matrices))
    return first.detach().as_strided(
        (len(matrices), *first.shape), (first.numel(), *first.stride()), first.storage_offset()
    )


def orthogonal(x_NRC: Tensor, steps: int = 5) -> Tensor:
    """U Vᵀ of each matrix U S Vᵀ, nearly: singular values come to lie between 0.7 and 1.2.

    Newton and Schulz's iteration with a quintic that is steep at 0, in bf16 on a GPU.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = x_NRC.shape[1] > x_NRC.shape[2]
    x = x_NRC.mT if tall else x_NRC
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    x = x.to(torch.bfloat16) if x.is_cuda else x
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    x = x.to(x_NRC.dtype)
    return x.mT if tall else x
