"""The embedding layer (§3.4) is one pass: pieces times √d_model, plus positions, then dropout."""

# N positions of all rows, M model width

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.kernels.dropout import drop_threshold, dropout_state, keep_mask


def embed(
    ids: Tensor,
    weight_VM: Tensor,
    scale: float,
    positions: Tensor,
    table: Tensor | None,
    dropout: float,
) -> Tensor:
    """Return Dropout(weight[ids] · scale + table[positions]), … M; the table has no gradient."""
    out: Tensor = _Embed.apply(ids, weight_VM, scale, positions, table, dropout)
    return out


class _Embed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        ids: Tensor,
        weight_VM: Tensor,
        scale: float,
        positions: Tensor,
        table: Tensor | None,
        dropout: float,
    ) -> Tensor:
        M = weight_VM.shape[1]
        out = weight_VM.new_empty(*ids.shape, M)
        state = dropout_state(out.device)
        site = state.next_site() if dropout else 0
        numbers = (state.words, site, drop_threshold(dropout), scale / (1 - dropout))
        embedding_forward[(ids.numel(),)](
            *(ids.contiguous(), weight_VM, positions.contiguous(), table, out, M, scale, *numbers),
            **{"TABLE": table is not None, "DROPOUT": dropout > 0},
            WIDTH=triton.next_power_of_2(M),
            num_warps=2,
        )
        ctx.save_for_backward(ids)
        ctx.numbers, ctx.dropout, ctx.size = numbers, dropout, weight_VM.shape[0]
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_out = gradients[0].contiguous()
        (ids,) = ctx.saved_tensors
        d_rows = torch.empty_like(d_out)
        grid = (triton.cdiv(d_out.numel(), 4096),)
        embedding_backward[grid](
            d_out, d_rows, d_out.numel(), *ctx.numbers, ctx.dropout > 0, BLOCK=4096
        )
        d_weight = torch.ops.aten.embedding_dense_backward(d_rows, ids, ctx.size, -1, False)
        return None, d_weight, None, None, None, None


@triton.jit(do_not_specialize=["site", "limit"])
def embedding_forward(
    ids, weight, positions, table, out, M, scale, words, site, limit, kept_scale,
    TABLE: tl.constexpr, DROPOUT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Embed the piece at one position, and apply dropout."""
    row = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    there = column < M
    piece = tl.load(ids + row).to(tl.int64)
    x = tl.load(weight + piece * M + column, mask=there, other=0.0).to(tl.float32) * scale
    if TABLE:
        position = tl.load(positions + row)
        x += tl.load(table + position * M + column, mask=there, other=0.0).to(tl.float32)
    at = row * M + column
    if DROPOUT:
        x = tl.where(keep_mask(words, site, at.to(tl.uint32), limit), x * (kept_scale / scale), 0.0)
    tl.store(out + at, x.to(out.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=["site", "limit"])
def embedding_backward(
    d_out, d_rows, size, words, site, limit, kept_scale, DROPOUT: tl.constexpr, BLOCK: tl.constexpr
):
    """Pass a gradient through the dropout and the scale."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < size
    d = tl.load(d_out + at, mask=there, other=0.0).to(tl.float32) * kept_scale
    if DROPOUT:
        d = tl.where(keep_mask(words, site, at.to(tl.uint32), limit), d, 0.0)
    tl.store(d_rows + at, d.to(d_rows.dtype.element_ty), mask=there)
