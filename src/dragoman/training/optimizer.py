"""Adam, the learning rate as a function of the step, and the moving average of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from dragoman.config import TrainingConfig

__all__ = ["MovingAverage", "learning_rate", "make_optimizer"]


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


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam; weight decay, if any, is decoupled and spares biases and norms."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=0.0, betas=(config.beta1, config.beta2), eps=config.epsilon, fused=True
    )


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
