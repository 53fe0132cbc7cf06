"""Adam, the learning rate as a function of the step, and the moving average of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from dragoman.config import TrainingConfig
from dragoman.errors import ModelError

__all__ = ["Adam", "MovingAverage", "learning_rate"]


def learning_rate(config: TrainingConfig, d_model: int, step: int) -> float:
    """The rate of a step, counted from 1."""
    peak, warmup = config.learning_rate, config.warmup_steps
    if config.schedule == "paper":  # eq. 3
        return float(peak * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
    if step < warmup:
        return peak * step / warmup
    if config.schedule == "inverse-sqrt":
        return peak * math.sqrt(warmup / step)
    if config.schedule == "cosine":
        done = min(1.0, (step - warmup) / max(1, config.steps - warmup))
        return peak * (0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2)
    return peak


class Adam:
    """Adam on PyTorch's fused kernel; weight decay, if any, is decoupled and spares 1-d weights.

    torch.optim.AdamW does the same sums, but making one imports torch's compiler, which takes
    longer than everything else before the first step together.
    """

    def __init__(self, model: nn.Module, config: TrainingConfig) -> None:
        self.names = [name for name, _ in model.named_parameters()]
        self.parameters = list(model.parameters())
        self.betas = (config.beta1, config.beta2)
        self.epsilon = config.epsilon
        self.decays = [config.weight_decay if p.ndim >= 2 else 0.0 for p in self.parameters]
        self.exp_avg = [torch.zeros_like(p) for p in self.parameters]
        self.exp_avg_sq = [torch.zeros_like(p) for p in self.parameters]
        self.steps = [torch.zeros((), device=p.device) for p in self.parameters]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update every weight that has a gradient."""
        for decay in sorted(set(self.decays)):
            chosen, gradients = [], []
            for i, parameter in enumerate(self.parameters):
                if self.decays[i] == decay and parameter.grad is not None:
                    chosen.append(i)
                    gradients.append(parameter.grad)
            if not chosen:
                continue
            steps = [self.steps[i] for i in chosen]
            torch._foreach_add_(steps, 1)
            torch._fused_adamw_(
                [self.parameters[i] for i in chosen],
                gradients,
                [self.exp_avg[i] for i in chosen],
                [self.exp_avg_sq[i] for i in chosen],
                [],
                steps,
                lr=rate,
                beta1=self.betas[0],
                beta2=self.betas[1],
                weight_decay=decay,
                eps=self.epsilon,
                amsgrad=False,
                maximize=False,
            )

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """All it remembers, by name."""
        return {
            f"{name}/{key}": tensor
            for key in ("exp_avg", "exp_avg_sq", "steps")
            for name, tensor in zip(self.names, getattr(self, key), strict=True)
        }

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor], *, where: str) -> None:
        """Take back what `tensors` gave."""
        mine = self.tensors()
        if mine.keys() != tensors.keys():
            raise ModelError(f"{where}: the optimiser of another model")
        for name, tensor in mine.items():
            tensor.copy_(tensors[name])


class MovingAverage:
    """An exponential moving average of the weights; young averages forget faster."""

    def __init__(self, parameters: Iterable[Tensor], decay: float) -> None:
        self.parameters = list(parameters)
        self.decay = decay
        self.average = [p.detach().clone() for p in self.parameters]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self.average, self.parameters, 1 - decay)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the weights and their average."""
        for parameter, average in zip(self.parameters, self.average, strict=True):
            kept = parameter.detach().clone()
            parameter.copy_(average)
            average.copy_(kept)
