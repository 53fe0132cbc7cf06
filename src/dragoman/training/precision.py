"""What a step computes in: the weights themselves, or a bf16 copy of them for the fast path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import accumulate
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils import deterministic as _deterministic

from dragoman import kernels
from dragoman.models import Model

__all__ = [
    "Twin",
    "computes_fast",
    "determined",
    "linear_weights",
    "wants_bf16",
]


Precision = Literal["auto", "fp32", "bf16"]


def wants_bf16(precision: Precision, device: torch.device) -> bool:
    """Whether arithmetic is to be in bf16."""
    gpu = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return precision == "bf16" or (precision == "auto" and gpu)


def computes_fast(precision: Precision, device: torch.device) -> bool:
    """Whether training takes the kernels' path."""
    return wants_bf16(precision, device) and kernels.supported(device)


def linear_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """The matrices of the model's linear layers, by name."""
    chosen = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    return {name: p for name, p in model.named_parameters() if id(p) in chosen}


class Twin:
    """A bf16 copy of a model, which computes while the model keeps fp32; norms are not rounded.

    Weights and gradients lie end to end in memory, so that either goes over in one copy: matrices
    of linear layers first, those of one shape together, then other matrices, then rounded biases,
    then norms. The model's norms are the copy's own.
    """

    def __init__(self, model: Model) -> None:
        self.model = deepcopy(model)
        exact = {
            id(parameter)
            for module in self.model.modules()
            if getattr(module, "full_precision", False)
            for parameter in module.parameters(recurse=False)
        }
        pairs = list(zip(model.parameters(), self.model.parameters(), strict=True))
        linear = {id(weight) for weight in linear_weights(self.model).values()}
        pairs.sort(
            key=lambda pair: (
                id(pair[1]) in exact,
                pair[1].ndim < 2,
                id(pair[1]) not in linear,
                pair[1].shape,
            )
        )
        self.originals, self.copies = [a for a, _ in pairs], [b for _, b in pairs]
        self.rounded = sum(id(copy) not in exact for copy in self.copies)
        device = self.originals[0].device
        self.matrices = sum(p.numel() for p in self.originals if p.ndim >= 2)
        """How many of the weights are in matrices."""
        self.weights = torch.cat([p.detach().flatten() for p in self.originals])
        self.gradients = torch.zeros_like(self.weights)
        size = sum(p.numel() for p in self.copies[: self.rounded])
        self._weights, self._gradients = self.weights[:size], self.gradients[:size]
        self.copied = self._weights.to(torch.bfloat16)
        self._gather = kernels.Gather([p.numel() for p in self.copies[: self.rounded]], device)
        self._exact_gradients = self.gradients[size:]
        start = 0
        for i, (original, copy) in enumerate(pairs):
            part = slice(start, start + original.numel())
            original.data = self.weights[part].view_as(original)
            original.grad = self.gradients[part].view_as(original)
            rounded = i < self.rounded
            copy.data = self.copied[part].view_as(copy) if rounded else original.data
            start = part.stop

    @torch.no_grad()
    def take_weights(self) -> None:
        """The model's weights, rounded."""
        self.copied.copy_(self._weights)

    def parts(self, vector: Tensor, parameters: Iterable[nn.Parameter]) -> list[Tensor]:
        """What a vector over all weights holds for each of these parameters of the model."""
        ends = accumulate(original.numel() for original in self.originals)
        starts = {id(p): end - p.numel() for p, end in zip(self.originals, ends, strict=True)}
        return [vector[starts[id(p)] :][: p.numel()].view_as(p) for p in parameters]

    @torch.no_grad()
    def give_gradients(self, *, add: bool) -> Tensor:
        """Copy the gradients found to the model, or add them to those it has; the norm of them."""
        found = [
            copy.grad.contiguous() if copy.grad is not None else torch.zeros_like(copy)
            for copy in self.copies
        ]
        squares: Tensor = self._gather(found[: self.rounded], self._gradients, add=add)
        if self.rounded < len(found):
            exact = torch.cat([gradient.flatten() for gradient in found[self.rounded :]])
            self._exact_gradients.copy_(self._exact_gradients + exact if add else exact)
            squares = squares + self._exact_gradients.square().sum()
        return squares.sqrt()

    def forget_gradients(self) -> None:
        """The next backward pass writes instead of adding."""
        for copy in self.copies:
            copy.grad = None


# PART training.determinism: The same bits every time, where a GPU would otherwise be free to
# choose.


deterministic: Any = _deterministic  # its attribute is made in a way that mypy cannot see


@contextmanager
def determined(enabled: bool) -> Iterator[None]:
    """Allow only kernels that give the same bits every time, while the block runs."""
    if not enabled:
        yield
        return
    # cuBLAS reads this when it is first used; a workspace of its own keeps its sums in order.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    filled = deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    deterministic.fill_uninitialized_memory = False  # nothing reads it unwritten
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        deterministic.fill_uninitialized_memory = filled
