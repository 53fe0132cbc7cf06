"""The optimiser's kernels go over all weights as one vector.

`GradientGatherer` brings many bf16 gradients into one fp32 vector, with the sum of their squares,
in one launch. `adam_update` is Adam, which also rounds the weights for the next step.
"""

# C chunks of the vector

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.kernels.residual import sum_partials

CHUNK = 65_536
"""A program moves so many elements."""


class GradientGatherer:
    """Move tensors of given sizes to their places in a vector.

    The kernel finds the tensors by their addresses, which are written to the device before each
    use; in a captured graph they stay what they were.
    """

    def __init__(self, sizes: Sequence[int], device: torch.device) -> None:
        starts = accumulate(sizes, initial=0)
        chunks = [
            (number, first, min(CHUNK, size - first), start + first)
            for number, (size, start) in enumerate(zip(sizes, starts, strict=False))
            for first in range(0, size, CHUNK)
        ]
        self._chunks_C4 = torch.tensor(chunks, dtype=torch.int64, device=device)
        self._even = all(size % 8 == 0 for size in sizes)
        self._addresses = torch.empty(len(sizes), dtype=torch.int64, device=device)
        self._on_host: list[Tensor] = []  # what a copy in a graph reads must stay where it is

    def __call__(self, tensors: Sequence[Tensor], into: Tensor, *, add: bool) -> Tensor:
        """Copy or add the tensors to `into`; return the sum of the squares of the result."""
        addresses = torch.tensor([t.data_ptr() for t in tensors], dtype=torch.int64)
        if into.is_cuda:
            addresses = addresses.pin_memory()
            if torch.cuda.is_current_stream_capturing():
                self._on_host.append(addresses)
        self._addresses.copy_(addresses, non_blocking=True)
        aligned = self._even and all(t.data_ptr() % 16 == 0 for t in tensors)
        C = len(self._chunks_C4)
        partial_C1 = torch.empty(C, 1, dtype=torch.float32, device=into.device)
        gather_gradients[(C,)](
            *(self._addresses, self._chunks_C4, into, partial_C1),
            **{"ADD": add, "ALIGNED": aligned, "CHUNK": CHUNK, "BLOCK": 4096, "num_warps": 8},
        )
        return sum_partials(partial_C1, torch.float32)[0]


@triton.jit
def gather_gradients(
    addresses, chunks, into, partial,
    ADD: tl.constexpr, ALIGNED: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy one chunk of the gradients into the vector, and sum its squares."""
    chunk = chunks + tl.program_id(0) * 4
    address = tl.load(addresses + tl.load(chunk))
    first, count, place_start = tl.load(chunk + 1), tl.load(chunk + 2), tl.load(chunk + 3)
    if ALIGNED:  # wide loads and stores
        address = tl.multiple_of(address, 16)
        first, count = tl.multiple_of(first, 8), tl.multiple_of(count, 8)
        place_start = tl.multiple_of(place_start, 8)
    source = address.to(tl.pointer_type(tl.bfloat16)) + first
    place = into + place_start
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, CHUNK, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(source + at, mask=at < count, other=0.0).to(tl.float32)
        if ADD:
            value += tl.load(place + at, mask=at < count, other=0.0)
        tl.store(place + at, value, mask=at < count)
        total += value * value
    tl.store(partial + tl.program_id(0), tl.sum(total))


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
    """Take one step in place, and round the first weights into `rounded`, as many as that holds.

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
    """Update some of the weights."""
    proceed = True
    if SKIP:
        proceed = tl.load(skip) == 0
    if proceed:
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
