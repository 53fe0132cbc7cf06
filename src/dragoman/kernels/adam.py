"""Adam over all weights as one vector, which also rounds them for the next step."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["adam_update"]


@torch.no_grad()
def adam_update(
    weights: Tensor,
    gradients: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    rounded: Tensor,
    *,
    rate: Tensor,
    steps: Tensor,
    divide_by: Tensor | None,
    skip: Tensor | None,
    betas: tuple[float, float],
    epsilon: float,
    decay: float,
    decayed: int,
) -> None:
    """One step in place; the first weights are rounded into `rounded`, as many as that holds.

    The first `decayed` weights decay. Gradients are divided by `divide_by`; if `skip` is 1 nothing
    changes. `steps` counts this step already.
    """
    size, BLOCK = weights.numel(), 4096
    adam_step[(triton.cdiv(size, BLOCK),)](
        *(weights, gradients, exp_avg, exp_avg_sq, rounded, size, rounded.numel(), decayed),
        *(rate, steps, divide_by, skip, *betas, *map(math.log2, betas), epsilon, decay),
        **{"DIVIDE": divide_by is not None, "SKIP": skip is not None, "DECAY": decay > 0},
        BLOCK=BLOCK,
        num_warps=8,
    )


@triton.jit
def adam_step(
    weights, gradients, exp_avg, exp_avg_sq, rounded, size, rounded_size, decayed,
    rate_in, steps_in, divide_by, skip, beta1, beta2, log_beta1, log_beta2, epsilon, decay,
    DIVIDE: tl.constexpr, SKIP: tl.constexpr, DECAY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Some of the weights."""
    go_on = True
    if SKIP:
        go_on = tl.load(skip) == 0
    if go_on:
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        there = at < size
        rate, steps = tl.load(rate_in), tl.load(steps_in)
        weight = tl.load(weights + at, mask=there, other=0.0)
        g = tl.load(gradients + at, mask=there, other=0.0)
        if DIVIDE:
            g = g / tl.load(divide_by)
        m = tl.load(exp_avg + at, mask=there, other=0.0)
        v = tl.load(exp_avg_sq + at, mask=there, other=0.0)
        m += (g - m) * (1 - beta1)
        v = beta2 * v + (1 - beta2) * g * g
        if DECAY:
            weight = tl.where(at < decayed, weight * (1 - rate * decay), weight)
        first = 1 - tl.exp2(steps * log_beta1)
        second = 1 - tl.exp2(steps * log_beta2)
        weight -= rate / first * m / (tl.sqrt(v) / tl.sqrt(second) + epsilon)
        tl.store(weights + at, weight, mask=there)
        tl.store(exp_avg + at, m, mask=there)
        tl.store(exp_avg_sq + at, v, mask=there)
        tl.store(rounded + at, weight.to(rounded.dtype.element_ty), mask=at < rounded_size)
