"""Kernels of the residual stream: its embedding and its normalisation."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
# R rows, M model width

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.inference.gpu.batch_state import DONE, LENGTH, Slots
from dragoman.inference.gpu.weights import Norm, Weights
from dragoman.text.special_tokens import BOS

__all__ = ["add_and_norm", "embed"]


def embed(weights: Weights, slots: Slots, lanes: int, *, overlap: bool = False) -> Tensor:
    """The last piece of every hypothesis and its position, R M in full precision.

    This begins a step: it waits for all before it, `overlap` or not; see `few`.
    """
    M = weights.target_pieces.shape[1]
    rows = lanes * slots.beams
    out = torch.empty(rows, M, dtype=torch.float32, device=weights.device)
    embed_rows[(rows,)](
        *(slots.lanes, slots.marks, slots.pieces_STK, weights.target_pieces, slots.positions_TM),
        *(out, weights.scale, slots.count + 1, slots.places),
        BEAMS=slots.beams,
        M=M,
        WIDTH=triton.next_power_of_2(M),
        OVERLAP=overlap,
        num_warps=4,
    )
    return out


def add_and_norm(
    x: Tensor, y: Tensor | None, norm: Norm, post: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """x + y, normalised if that is post-norm; and what the next matrix sees of it."""
    R, M = x.shape
    stream, seen = torch.empty_like(x), torch.empty(R, M, dtype=dtype, device=x.device)
    WIDTH = triton.next_power_of_2(M)
    ROWS = max(1, 1024 // WIDTH)
    norm_rows[(triton.cdiv(R, ROWS),)](
        *(x, x if y is None else y, norm.gain, norm.bias, stream, seen, R, M, norm.epsilon),
        ADD=y is not None,
        POST=post,
        ROWS=ROWS,
        WIDTH=WIDTH,
        num_warps=max(2, WIDTH // 512),
    )
    return stream, seen


@triton.jit
def embed_rows(
    lanes, marks, pieces, table, positions, out, scale, slots, places,
    BEAMS: tl.constexpr, M: tl.constexpr, WIDTH: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """One hypothesis."""
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0)
    slot = tl.load(lanes + row // BEAMS)
    length = tl.load(marks + _LENGTH * slots + slot)
    length = tl.where(tl.load(marks + _DONE * slots + slot) > 0, 0, length)
    piece = tl.load(pieces + (slot * places + length) * BEAMS + row % BEAMS)
    piece = tl.where(length > 0, piece, _BOS).to(tl.int64)
    column = tl.arange(0, WIDTH)
    there = column < M
    x = tl.load(table + piece * M + column, mask=there, other=0.0).to(tl.float32) * scale
    x += tl.load(positions + length * M + column, mask=there, other=0.0)
    tl.store(out + row * M + column, x, mask=there)


@triton.jit
def norm_rows(
    x_in, y_in, gain, bias, stream, seen, R, M, epsilon,
    ADD: tl.constexpr, POST: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Some rows."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    there = (row[:, None] < R) & (column[None, :] < M)
    at = row[:, None] * M + column[None, :]
    x = tl.load(x_in + at, mask=there, other=0.0).to(tl.float32)
    if ADD:
        x += tl.load(y_in + at, mask=there, other=0.0).to(tl.float32)
    mean = tl.sum(x, 1) / M
    centred = tl.where(there, x - mean[:, None], 0.0)
    rate = 1 / tl.sqrt(tl.sum(centred * centred, 1) / M + epsilon)
    z = centred * rate[:, None] * tl.load(gain + column, mask=column < M, other=0.0)[None, :]
    z += tl.load(bias + column, mask=column < M, other=0.0)[None, :]
    if POST:
        x = z
    tl.store(stream + at, x.to(stream.dtype.element_ty), mask=there)
    tl.store(seen + at, z.to(seen.dtype.element_ty), mask=there)


_DONE, _LENGTH, _BOS = tl.constexpr(DONE), tl.constexpr(LENGTH), tl.constexpr(BOS)
