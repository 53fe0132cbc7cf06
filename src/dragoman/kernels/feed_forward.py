"""The feed-forward layer (§3.3) has the ReLU fused into the first product and its gradient."""

# N positions, M model width, F inner width, P programs along the positions

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.kernels.residual import sum_partials


def relu_feed_forward(
    x: Tensor, inner: tuple[Tensor, Tensor], outer: tuple[Tensor, Tensor]
) -> Tensor:
    """Return FFN(x) (eq. 2), … M of … M; `inner` and `outer` are a weight and its bias."""
    out: Tensor = _FeedForward.apply(x, *inner, *outer)
    return out


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w1_FM: Tensor, b1: Tensor, w2_MF: Tensor, b2: Tensor
    ) -> Tensor:
        x_NM = x.reshape(-1, x.shape[-1])
        hidden_NF = torch._addmm_activation(b1, x_NM, w1_FM.t())
        ctx.save_for_backward(x_NM, hidden_NF, w1_FM, w2_MF)
        return torch.addmm(b2, hidden_NF, w2_MF.t()).view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        x_NM, hidden_NF, w1_FM, w2_MF = ctx.saved_tensors
        d_NM = gradients[0].reshape(-1, gradients[0].shape[-1])
        d_hidden_NF = d_NM @ w2_MF
        d_w2 = d_NM.t() @ hidden_NF
        d_b1 = relu_backward(d_hidden_NF, hidden_NF)
        d_x = (d_hidden_NF @ w1_FM).view(gradients[0].shape)
        return d_x, d_hidden_NF.t() @ x_NM, d_b1, d_w2, _sum_columns(d_NM, None)


def relu_backward(d_hidden_NF: Tensor, hidden_NF: Tensor) -> Tensor:
    """Clear the gradient in place where the ReLU was 0, and return its sum over positions, F."""
    return _sum_columns(d_hidden_NF, hidden_NF)


def _sum_columns(x_NF: Tensor, gate_NF: Tensor | None) -> Tensor:
    """Return the sum over positions, F; with a gate, first clear x in place where that is 0."""
    N, F = x_NF.shape
    ROWS, COLUMNS = 16, 128
    P = max(1, min(128, N // (4 * ROWS)))
    partial_PF = torch.empty(P, F, dtype=torch.float32, device=x_NF.device)
    feed_forward_columns[(triton.cdiv(F, COLUMNS), P)](
        *(x_NF, gate_NF, partial_PF, N, F),
        **{"GATE": gate_NF is not None, "ROWS": ROWS, "COLUMNS": COLUMNS, "num_warps": 4},
    )
    return sum_partials(partial_PF, x_NF.dtype)


@triton.jit
def feed_forward_columns(
    x, gate, partial, N, F, GATE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Sum some columns of every P-th group of positions."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(tl.program_id(1) * ROWS, N, tl.num_programs(1) * ROWS):
        row = start + tl.arange(0, ROWS)
        there = (row[:, None] < N) & (column[None, :] < F)
        at = row[:, None] * F + column[None, :]
        value = tl.load(x + at, mask=there, other=0.0)
        if GATE:
            value = tl.where(tl.load(gate + at, mask=there, other=0.0) > 0, value, 0.0)
            tl.store(x + at, value, mask=there)
        total += value.to(tl.float32)
    tl.store(partial + tl.program_id(1) * F + column, tl.sum(total, 0), mask=column < F)
