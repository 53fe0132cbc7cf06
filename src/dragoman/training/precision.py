"""A step computes in fp32, in bf16 by autocast, or on a bf16 copy of the weights.

The fast path computes with a bf16 copy of the weights, which kernels need. With
`training.deterministic` only algorithms that give the same bits every time are used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from itertools import accumulate
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils import deterministic as _deterministic

from dragoman import kernels
from dragoman.models import Model

Precision = Literal["auto", "fp32", "bf16"]


def uses_bf16(precision: Precision, device: torch.device) -> bool:
    """Return whether arithmetic is in bf16 on this device."""
    gpu = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return precision == "bf16" or (precision == "auto" and gpu)


def cpu_multiplies_bf16() -> bool:
    """Return whether this CPU multiplies bf16 faster than fp32."""
    with suppress(AttributeError, RuntimeError):  # PyTorch does not promise to have these
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return False


def uses_kernels(precision: Precision, device: torch.device) -> bool:
    """Return whether training takes the fast path of `dragoman.kernels` on this device."""
    return uses_bf16(precision, device) and kernels.supported(device)


def linear_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the matrices of the model's linear layers, by name."""
    chosen = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    return {name: p for name, p in model.named_parameters() if id(p) in chosen}


class Bf16Copy:
    """Compute with a bf16 copy of a model, which keeps fp32 weights; norms are not rounded.

    Weights and gradients lie end to end in memory, so that one copy moves all of either: matrices
    of linear layers first, those of one shape together, then other matrices, then rounded biases,
    then norms. The copy shares the model's norms.
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
        self.rounded_count = sum(id(copy) not in exact for copy in self.copies)
        device = self.originals[0].device
        self.matrix_elements = sum(p.numel() for p in self.originals if p.ndim >= 2)
        self.weights = torch.cat([p.detach().flatten() for p in self.originals])
        self.gradients = torch.zeros_like(self.weights)
        size = sum(p.numel() for p in self.copies[: self.rounded_count])
        self._rounded_weights, self._rounded_gradients = self.weights[:size], self.gradients[:size]
        self.bf16_weights = self._rounded_weights.to(torch.bfloat16)
        self._gather = kernels.GradientGatherer(
            [p.numel() for p in self.copies[: self.rounded_count]], device
        )
        self._exact_gradients = self.gradients[size:]
        start = 0
        for i, (original, copy) in enumerate(pairs):
            place = slice(start, start + original.numel())
            original.data = self.weights[place].view_as(original)
            original.grad = self.gradients[place].view_as(original)
            rounded = i < self.rounded_count
            copy.data = self.bf16_weights[place].view_as(copy) if rounded else original.data
            start = place.stop

    @torch.no_grad()
    def refresh_weights(self) -> None:
        """Copy the model's weights to the copy, rounded."""
        self.bf16_weights.copy_(self._rounded_weights)

    def split_by_parameter(
        self, vector: Tensor, parameters: Iterable[nn.Parameter]
    ) -> list[Tensor]:
        """Return views of a vector over all weights, one for each of these parameters."""
        ends = accumulate(original.numel() for original in self.originals)
        starts = {id(p): end - p.numel() for p, end in zip(self.originals, ends, strict=True)}
        return [vector[starts[id(p)] :][: p.numel()].view_as(p) for p in parameters]

    @torch.no_grad()
    def copy_gradients_to_model(self, *, add: bool) -> Tensor:
        """Copy the gradients to the model, or add them to those it has; return their norm."""
        found = [
            copy.grad.contiguous() if copy.grad is not None else torch.zeros_like(copy)
            for copy in self.copies
        ]
        squares: Tensor = self._gather(
            found[: self.rounded_count], self._rounded_gradients, add=add
        )
        if self.rounded_count < len(found):
            exact = torch.cat([gradient.flatten() for gradient in found[self.rounded_count :]])
            self._exact_gradients.copy_(self._exact_gradients + exact if add else exact)
            squares = squares + self._exact_gradients.square().sum()
        return squares.sqrt()

    def clear_gradients(self) -> None:
        """Forget the gradients, so that the next backward pass does not add to them."""
        for copy in self.copies:
            copy.grad = None


deterministic: Any = _deterministic  # its attribute is made in a way that mypy cannot see


@contextmanager
def deterministic_algorithms(enabled: bool) -> Iterator[None]:
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
