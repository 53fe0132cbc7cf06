"""The residual connection and its normalisation (§3.1) pass over memory once each way.

`sum_partials` is the last stage of every sum over positions: kernels leave one row of partial
sums a program.
"""

# N positions, M model width, P programs of the backward pass

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.kernels.dropout import drop_threshold, dropout_state, keep_mask


def add(x: Tensor, y: Tensor, dropout: float) -> Tensor:
    """Return x + Dropout(y)."""
    out: Tensor = _Add.apply(x, y, dropout)
    return out


def norm(x: Tensor, weight: Tensor, bias: Tensor | None, epsilon: float) -> Tensor:
    """Return LayerNorm(x), or RMSNorm(x) if there is no bias."""
    out: Tensor
    out, _ = _AddAndNorm.apply(x, None, weight, bias, epsilon, 0.0)
    return out


def add_and_norm(
    x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None, epsilon: float, dropout: float
) -> tuple[Tensor, Tensor]:
    """Return LayerNorm(x + Dropout(y)), or RMSNorm if there is no bias; twice, in the same memory.

    The result has two uses, and each takes its own tensor: the gradients of both arrive here
    apart, and adding them costs no pass of its own.
    """
    out: tuple[Tensor, Tensor]
    out = _AddAndNorm.apply(x, y, weight, bias, epsilon, dropout)
    return out


def _shape(width: int) -> dict[str, int]:
    """Return how many rows and warps a program has: 16 numbers a thread."""
    WIDTH = triton.next_power_of_2(width)
    ROWS = max(1, 1024 // WIDTH)
    return {"ROWS": ROWS, "WIDTH": WIDTH, "num_warps": max(2, WIDTH // 512)}


class _Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, dropout: float) -> Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        state = dropout_state(x.device)
        ctx.numbers = (
            state.next_site() if dropout else 0,
            drop_threshold(dropout),
            1 / (1 - dropout),
        )
        ctx.words, ctx.dropout = state.words, dropout
        grid = (triton.cdiv(x.numel(), 4096),)
        residual_add[grid](x, y, out, x.numel(), state.words, *ctx.numbers, dropout > 0, BLOCK=4096)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_out = gradients[0].contiguous()
        if not ctx.dropout:
            return d_out, d_out, None
        d_y = torch.empty_like(d_out)
        grid = (triton.cdiv(d_out.numel(), 4096),)
        residual_drop[grid](d_out, d_y, d_out.numel(), ctx.words, *ctx.numbers, BLOCK=4096)
        return d_out, d_y, None


class _AddAndNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor | None,
        weight: Tensor,
        bias: Tensor | None,
        epsilon: float,
        dropout: float,
    ) -> tuple[Tensor, Tensor]:
        x = x.contiguous()
        y = None if y is None else y.contiguous()
        M = x.shape[-1]
        N = x.numel() // M
        out = torch.empty_like(x)
        total = x if y is None else torch.empty_like(x)
        mean_N = torch.empty(N, dtype=torch.float32, device=x.device)
        rate_N = torch.empty(N, dtype=torch.float32, device=x.device)
        state = dropout_state(x.device)
        site = state.next_site() if dropout else 0
        ctx.numbers = (site, drop_threshold(dropout), 1 / (1 - dropout))
        ctx.words, ctx.dropout = state.words, dropout
        shape = _shape(M)
        residual_norm_forward[(triton.cdiv(N, shape["ROWS"]),)](
            *(x, y, weight, bias, total, out, mean_N, rate_N, N, M, epsilon),
            *(state.words, *ctx.numbers),
            **{"ADD": y is not None, "CENTRE": bias is not None, "DROPOUT": dropout > 0},
            **shape,
        )
        ctx.save_for_backward(total, weight, mean_N, rate_N)
        ctx.add, ctx.centre = y is not None, bias is not None
        ctx.set_materialize_grads(False)
        # Not a view, which would keep `out` alive as long as somebody has it.
        again = torch.empty_like(out[:0])
        again.set_(out.untyped_storage(), out.storage_offset(), out.shape, out.stride())
        return out, again

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        d_out, *more = (d.contiguous() for d in gradients if d is not None)
        total, weight, mean_N, rate_N = ctx.saved_tensors
        M = total.shape[-1]
        N = total.numel() // M
        d_x = torch.empty_like(total)
        d_y = torch.empty_like(total) if ctx.dropout else d_x
        P = _programs(N, total.device)
        partial_P2M = torch.empty(P, 2, M, dtype=torch.float32, device=total.device)
        residual_norm_backward[(P,)](
            *(
                d_out,
                more[0] if more else None,
                total,
                weight,
                mean_N,
                rate_N,
                d_x,
                d_y,
                partial_P2M,
                N,
                M,
            ),
            *(ctx.words, *ctx.numbers),
            **{"TWO": bool(more), "CENTRE": ctx.centre, "DROPOUT": ctx.dropout > 0},
            **_shape(M),
        )
        d_weight, d_bias = sum_partials(partial_P2M.flatten(1), weight.dtype).view(2, M).unbind()
        return (
            d_x,
            d_y if ctx.add else None,
            d_weight,
            d_bias if ctx.centre else None,
            None,
            None,
        )


def _programs(rows: int, device: torch.device) -> int:
    """Return how many programs share the rows: a few a multiprocessor, each with enough rows."""
    if device.type != "cuda":
        return 4
    most = 8 * torch.cuda.get_device_properties(device).multi_processor_count
    return max(1, min(most, rows // 16))


@triton.jit(do_not_specialize=["site", "limit"])
def residual_add(
    x_in, y_in, out, size, words, site, limit, inverse_keep,
    DROPOUT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add x and Dropout(y)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < size
    x = tl.load(x_in + at, mask=there, other=0.0).to(tl.float32)
    y = tl.load(y_in + at, mask=there, other=0.0).to(tl.float32)
    if DROPOUT:
        y = tl.where(keep_mask(words, site, at.to(tl.uint32), limit), y * inverse_keep, 0.0)
    tl.store(out + at, (x + y).to(out.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=["site", "limit"])
def residual_drop(d_out, d_y, size, words, site, limit, inverse_keep, BLOCK: tl.constexpr):
    """Pass a gradient through a dropout."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < size
    d = tl.load(d_out + at, mask=there, other=0.0).to(tl.float32)
    d = tl.where(keep_mask(words, site, at.to(tl.uint32), limit), d * inverse_keep, 0.0)
    tl.store(d_y + at, d.to(d_y.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=["site", "limit"])
def residual_norm_forward(
    x_in, y_in, weight, bias, total_out, out, means, rates, N, M, epsilon,
    words, site, limit, inverse_keep,
    ADD: tl.constexpr, CENTRE: tl.constexpr, DROPOUT: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Compute of some positions the sum, its mean and 1/σ, and the normalised sum."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    there = (row[:, None] < N) & (column[None, :] < M)
    at = row[:, None] * M + column[None, :]
    z = tl.load(x_in + at, mask=there, other=0.0).to(tl.float32)
    if ADD:
        y = tl.load(y_in + at, mask=there, other=0.0).to(tl.float32)
        if DROPOUT:
            y = tl.where(keep_mask(words, site, at.to(tl.uint32), limit), y * inverse_keep, 0.0)
        rounded = (z + y).to(total_out.dtype.element_ty)
        tl.store(total_out + at, rounded, mask=there)
        z = rounded.to(tl.float32)  # the backward pass will see the rounded sum
    gain = tl.load(weight + column, mask=column < M, other=0.0).to(tl.float32)
    if CENTRE:
        mean = tl.sum(z, 1) / M
        centred = tl.where(there, z - mean[:, None], 0.0)
        tl.store(means + row, mean, mask=row < N)
    else:
        centred = z
    rate = 1 / tl.sqrt(tl.sum(centred * centred, 1) / M + epsilon)
    result = centred * rate[:, None] * gain[None, :]
    if CENTRE:
        result += tl.load(bias + column, mask=column < M, other=0.0).to(tl.float32)[None, :]
    tl.store(out + at, result.to(out.dtype.element_ty), mask=there)
    tl.store(rates + row, rate, mask=row < N)


@triton.jit(do_not_specialize=["site", "limit"])
def residual_norm_backward(
    d_out, d_again, total, weight, means, rates, d_x, d_y, partial, N, M,
    words, site, limit, inverse_keep,
    TWO: tl.constexpr, CENTRE: tl.constexpr, DROPOUT: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Compute gradients of every P-th group of positions, and a share of the gain's."""
    column = tl.arange(0, WIDTH)
    gain = tl.load(weight + column, mask=column < M, other=0.0).to(tl.float32)
    d_gain = tl.zeros([ROWS, WIDTH], tl.float32)
    d_bias = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(tl.program_id(0) * ROWS, N, tl.num_programs(0) * ROWS):
        row = start + tl.arange(0, ROWS)
        there = (row[:, None] < N) & (column[None, :] < M)
        at = row[:, None] * M + column[None, :]
        d = tl.load(d_out + at, mask=there, other=0.0).to(tl.float32)
        if TWO:
            d += tl.load(d_again + at, mask=there, other=0.0).to(tl.float32)
        z = tl.load(total + at, mask=there, other=0.0).to(tl.float32)
        rate = tl.load(rates + row, mask=row < N, other=0.0)
        if CENTRE:
            z = z - tl.load(means + row, mask=row < N, other=0.0)[:, None]
        unit = tl.where(there, z * rate[:, None], 0.0)
        d_gain += d * unit
        d_unit = d * gain[None, :]
        d_z = d_unit - unit * (tl.sum(d_unit * unit, 1) / M)[:, None]
        if CENTRE:
            d_bias += d
            d_z = d_z - (tl.sum(d_unit, 1) / M)[:, None]
        d_z = d_z * rate[:, None]
        tl.store(d_x + at, d_z.to(d_x.dtype.element_ty), mask=there)
        if DROPOUT:
            keep = keep_mask(words, site, at.to(tl.uint32), limit)
            d_z = tl.where(keep, d_z * inverse_keep, 0.0)
            tl.store(d_y + at, d_z.to(d_y.dtype.element_ty), mask=there)
    own = partial + tl.program_id(0) * 2 * M + column
    tl.store(own, tl.sum(d_gain, 0), mask=column < M)
    tl.store(own + M, tl.sum(d_bias, 0), mask=column < M)


def sum_partials(partial_PM: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the sum of what programs left, one row each, always in the same order: M of P M."""
    P, M = partial_PM.shape
    out = torch.empty(M, dtype=dtype, device=partial_PM.device)
    partial_sums[(triton.cdiv(M, 16),)](
        partial_PM, out, P, M, ROWS=256, COLUMNS=16, num_warps=8, num_stages=2
    )
    return out


@triton.jit
def partial_sums(partial, out, P, M, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Add up the partial sums of a block of columns."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, P, ROWS):
        row = start + tl.arange(0, ROWS)
        there = (row[:, None] < P) & (column[None, :] < M)
        total += tl.load(partial + row[:, None] * M + column[None, :], mask=there, other=0.0)
    result = tl.sum(total, 0).to(out.dtype.element_ty)
    tl.store(out + column, result, mask=column < M)
