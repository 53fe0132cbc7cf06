"""The last stage of sums over positions: kernels leave one row of partial sums a program."""

# P programs, M columns

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["sum_partials"]


def sum_partials(partial_PM: Tensor, dtype: torch.dtype) -> Tensor:
    """The sum over programs, M, always in the same order."""
    P, M = partial_PM.shape
    out = torch.empty(M, dtype=dtype, device=partial_PM.device)
    partial_sums[(triton.cdiv(M, 16),)](
        partial_PM, out, P, M, ROWS=256, COLUMNS=16, num_warps=8, num_stages=2
    )
    return out


@triton.jit
def partial_sums(partial, out, P, M, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Some columns."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, P, ROWS):
        row = start + tl.arange(0, ROWS)
        there = (row[:, None] < P) & (column[None, :] < M)
        total += tl.load(partial + row[:, None] * M + column[None, :], mask=there, other=0.0)
    result = tl.sum(total, 0).to(out.dtype.element_ty)
    tl.store(out + column, result, mask=column < M)
