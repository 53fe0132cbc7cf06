"""The optimisers Adam and Muon move the weights by their gradients.

Muon (Jordan et al., 2024) moves matrices by their momentum made orthogonal, and the rest by Adam.
The update of a matrix has all singular values near 1, so that no direction of the gradient drowns
the others; times 0.2 √(longer side) it is as large as Adam's (Liu et al., 2025), and one learning
rate serves both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from dragoman import kernels
from dragoman.config import TrainingConfig
from dragoman.training.distributed.parallel import local_tensor
from dragoman.training.precision import Bf16Copy, linear_weights

# N matrices of one shape, R rows, C columns

MUON_MOMENTUM = 0.95


class Adam:
    """Move weights by Adam; weight decay, if any, is decoupled and spares 1-d weights.

    The kernel is ours if the model has a bf16 copy, PyTorch's otherwise. torch.optim.AdamW computes
    the same, but making one imports torch's compiler, which takes longer than everything else
    before the first step together.
    """

    def __init__(
        self, model: nn.Module, config: TrainingConfig, bf16_copy: Bf16Copy | None = None
    ) -> None:
        self.bf16_copy = bf16_copy
        self.parameters = list(model.parameters())
        moved = self.select_parameters(model)
        self.names, self.moved = list(moved), list(moved.values())
        """These are the parameters that Adam moves, by their names."""
        self.betas = (config.beta1, config.beta2)
        self.epsilon = config.epsilon
        self.decay = config.weight_decay
        self.decays = [config.weight_decay if p.ndim >= 2 else 0.0 for p in self.moved]
        if bf16_copy is not None:
            self.moments = tuple(torch.zeros_like(bf16_copy.weights) for _ in range(2))
            self.exp_avg, self.exp_avg_sq = (
                bf16_copy.split_by_parameter(moment, self.moved) for moment in self.moments
            )
        else:
            self.exp_avg = [torch.zeros_like(p) for p in self.moved]
            self.exp_avg_sq = [torch.zeros_like(p) for p in self.moved]
        self.steps = torch.zeros((), device=self.parameters[0].device)
        self.recent_loss = torch.zeros((), device=self.parameters[0].device)
        """This is a moving average of the loss, to detect spikes by; 0 before the first step."""

    def select_parameters(self, model: nn.Module) -> dict[str, nn.Parameter]:
        """Return the parameters that Adam moves, which are all."""
        return dict(model.named_parameters())

    @torch.no_grad()
    def step(
        self, rate: float | Tensor, *, divide_by: Tensor | None = None, skip: Tensor | None = None
    ) -> None:
        """Update every weight that has a gradient.

        Gradients are divided by `divide_by` first; nothing changes if `skip` is 1. Neither is read
        on the host, which would wait for the device.
        """
        self.steps += 1 if skip is None else 1 - skip
        if self.bf16_copy is not None:
            assert isinstance(rate, Tensor)
            self._step_with_kernel(self.bf16_copy, rate, divide_by, skip)
            return
        for decay in sorted(set(self.decays)):
            chosen, gradients = [], []
            for i, parameter in enumerate(self.moved):
                if self.decays[i] == decay and parameter.grad is not None:
                    chosen.append(i)
                    gradients.append(local_tensor(parameter.grad))
            if not chosen:
                continue
            torch._fused_adamw_(
                [local_tensor(self.moved[i]) for i in chosen],
                gradients,
                [local_tensor(self.exp_avg[i]) for i in chosen],
                [local_tensor(self.exp_avg_sq[i]) for i in chosen],
                [],
                [self.steps] * len(chosen),
                lr=rate,
                beta1=self.betas[0],
                beta2=self.betas[1],
                weight_decay=decay,
                eps=self.epsilon,
                amsgrad=False,
                maximize=False,
                grad_scale=divide_by,
                found_inf=skip,
            )

    def _step_with_kernel(
        self, bf16_copy: Bf16Copy, rate: Tensor, divide_by: Tensor | None, skip: Tensor | None
    ) -> None:
        # Parameters that Adam does not move come first.
        first = sum(p.numel() for p in self.parameters) - sum(p.numel() for p in self.moved)
        vectors = (bf16_copy.weights, bf16_copy.gradients, *self.moments, bf16_copy.bf16_weights)
        kernels.adam_update(
            *(vector[first:] for vector in vectors),
            rate=rate,
            steps=self.steps,
            divide_by=divide_by,
            skip=skip,
            betas=self.betas,
            epsilon=self.epsilon,
            decay=self.decay,
            decayed=bf16_copy.matrix_elements - first,
        )

    def zero_grad(self) -> None:
        """Forget the gradients of all weights."""
        for parameter in self.parameters:
            parameter.grad = None

    def state_tensors(self) -> dict[str, Tensor]:
        """Return every tensor that the optimiser remembers between steps, by name."""
        return {
            f"{name}/{key}": tensor
            for key in ("exp_avg", "exp_avg_sq")
            for name, tensor in zip(self.names, getattr(self, key), strict=True)
        } | {"steps": self.steps, "recent_loss": self.recent_loss}


class Muon(Adam):
    """Move the matrices of linear layers by orthogonal momentum, everything else by Adam.

    torch.optim.Muon is not used: it makes one matrix orthogonal at a time instead of a stack of
    them, and reads the learning rate on the host, which a CUDA graph cannot.
    """

    def __init__(
        self, model: nn.Module, config: TrainingConfig, bf16_copy: Bf16Copy | None = None
    ) -> None:
        super().__init__(model, config, bf16_copy)
        self.matrices = linear_weights(model)
        by_shape = sorted(self.matrices, key=lambda name: self.matrices[name].shape)
        groups = groupby(by_shape, key=lambda name: self.matrices[name].shape)
        self.groups = [list(names) for _, names in groups]
        """These are the names of matrices of one shape, which are made orthogonal together."""
        self.momenta = [
            torch.zeros(len(names), *shape, device=self.steps.device)
            for names in self.groups
            for shape in [self.matrices[names[0]].shape]
        ]

    def select_parameters(self, model: nn.Module) -> dict[str, nn.Parameter]:
        """Return the parameters that Adam moves: those that are no matrix of a linear layer."""
        matrices = linear_weights(model)
        return {name: p for name, p in model.named_parameters() if name not in matrices}

    @torch.no_grad()
    def step(
        self, rate: float | Tensor, *, divide_by: Tensor | None = None, skip: Tensor | None = None
    ) -> None:
        """Update every weight, as Adam.step does."""
        super().step(rate, divide_by=divide_by, skip=skip)
        for names, momentum_NRC in zip(self.groups, self.momenta, strict=True):
            weights = [self.matrices[name] for name in names]
            self._update_matrices(weights, momentum_NRC, rate, divide_by, skip)
        if self.bf16_copy is not None:
            self.bf16_copy.refresh_weights()

    def _update_matrices(
        self,
        weights: list[nn.Parameter],
        momentum_NRC: Tensor,
        rate: float | Tensor,
        divide_by: Tensor | None,
        skip: Tensor | None,
    ) -> None:
        gradient_NRC = stack_matrices([_gradient(weight) for weight in weights])
        if divide_by is not None:
            gradient_NRC = gradient_NRC / divide_by
        after_NRC = momentum_NRC.lerp(gradient_NRC, 1 - MUON_MOMENTUM)
        update_NRC = orthogonalize(gradient_NRC.lerp(after_NRC, MUON_MOMENTUM))  # Nesterov's
        update_NRC *= 0.2 * math.sqrt(max(update_NRC.shape[1:]))
        weights_NRC = stack_matrices(weights)
        moved_NRC = weights_NRC * (1 - rate * self.decay) - rate * update_NRC
        if skip is not None:  # a skipped update may be NaN, and 0 times NaN is NaN
            moved_NRC = torch.where(skip > 0, weights_NRC, moved_NRC)
            after_NRC = torch.where(skip > 0, momentum_NRC, after_NRC)
        momentum_NRC.copy_(after_NRC)
        weights_NRC.copy_(moved_NRC)
        if weights_NRC.data_ptr() != weights[0].data_ptr():
            torch._foreach_copy_([w.data for w in weights], list(weights_NRC.unbind()))

    def state_tensors(self) -> dict[str, Tensor]:
        """Return every tensor that the optimiser remembers between steps, by name."""
        named = zip(self.groups, self.momenta, strict=True)
        return super().state_tensors() | {
            f"{name}/momentum": momentum
            for names, momentum_NRC in named
            for name, momentum in zip(names, momentum_NRC.unbind(), strict=True)
        }


def _gradient(weight: nn.Parameter) -> Tensor:
    return weight.grad if weight.grad is not None else torch.zeros_like(weight)


def stack_matrices(matrices: Sequence[Tensor]) -> Tensor:
    """Stack matrices of one shape to N R C: a view if they lie end to end, or a copy."""
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


def orthogonalize(x_NRC: Tensor, steps: int = 5) -> Tensor:
    """Return nearly U Vᵀ of each matrix U S Vᵀ: singular values come to lie between 0.7 and 1.2.

    This is the iteration of Newton and Schulz with a quintic that is steep at 0, in bf16 on a GPU.
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
