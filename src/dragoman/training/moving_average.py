"""A moving average of the weights is kept during training, which often scores better than they."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from dragoman.training.distributed.parallel import local_tensor


class MovingAverage:
    """Keep an exponential moving average of the weights, which forgets faster in early steps."""

    def __init__(self, parameters: Iterable[Tensor], decay: float) -> None:
        self.parameters = list(parameters)
        self.decay = decay
        self.average = [p.detach().clone() for p in self.parameters]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after a step to the average."""
        decay = min(self.decay, (1 + step) / (10 + step))
        average = [local_tensor(t) for t in self.average]
        weights = [local_tensor(p) for p in self.parameters]
        torch._foreach_lerp_(average, weights, 1 - decay)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the weights and their average."""
        for parameter, mean in zip(self.parameters, self.average, strict=True):
            weight, average = local_tensor(parameter), local_tensor(mean)
            kept = weight.clone()
            weight.copy_(average)
            average.copy_(kept)
