"""Kernels of the residual stream: its embedding, its normalisation, and products of few rows.

Many rows are multiplied by PyTorch. With few a product is no more than reading the matrix, and what
costs is the number of kernels: here the sum, the normalisation, the product, its bias and its
activation are one.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
# R rows, M model width, N outputs

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.text.symbols import BOS
from dragoman.translate.gpu.slots import DONE, LENGTH, Slots
from dragoman.translate.gpu.weights import Matrix, Norm, Weights

__all__ = ["FEW", "add_and_norm", "embed", "few_rows"]

FEW = 16
"""Rows that a program multiplies at a time; the least that the device's units take."""
ACTIVATIONS = ("", "relu", "gelu", "swish")


def embed(weights: Weights, slots: Slots, lanes: int) -> Tensor:
    """The last piece of every hypothesis and its position, R M in full precision."""
    M = weights.target_pieces.shape[1]
    rows = lanes * slots.beams
    out = torch.empty(rows, M, dtype=torch.float32, device=weights.device)
    embed_rows[(rows,)](
        *(slots.lanes, slots.marks, slots.pieces_STK, weights.target_pieces, slots.positions_TM),
        *(out, weights.scale, slots.count + 1, slots.places),
        BEAMS=slots.beams,
        M=M,
        WIDTH=triton.next_power_of_2(M),
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


def few_rows(
    x: Tensor,
    y: Tensor | None,
    norm: Norm | None,
    matrix: Matrix,
    activation: str,
    *,
    post: bool,
    keeps: bool,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """What a stage does, at most FEW rows; without `keeps` the first of both means nothing."""
    (R, M), N = x.shape, len(matrix.weight)
    out = torch.empty(R, N, dtype=dtype, device=x.device)
    stream = torch.empty_like(x) if keeps else x
    WIDTH = triton.next_power_of_2(M)
    COLUMNS = 16 if N <= 4096 else 64
    nothing = x
    few_rows_product[(triton.cdiv(N, COLUMNS),)](
        *(x, nothing if y is None else y),
        *((nothing, nothing) if norm is None else (norm.gain, norm.bias)),
        *(matrix.weight, nothing if matrix.bias is None else matrix.bias, stream, out, R, N),
        norm.epsilon if norm is not None else 0.0,
        ADD=y is not None,
        NORM=norm is not None,
        POST=post,
        KEEP=keeps,
        BIAS=matrix.bias is not None,
        ACTIVATION=ACTIVATIONS.index(activation),
        M=M,
        WIDTH=WIDTH,
        ROWS=FEW,
        COLUMNS=COLUMNS,
        STEP=min(max(16, WIDTH), 8192 // COLUMNS),
        num_warps=4,
        num_stages=3,
    )
    return stream, out


@triton.jit
def embed_rows(
    lanes, marks, pieces, table, positions, out, scale, slots, places,
    BEAMS: tl.constexpr, M: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """One hypothesis."""
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


@triton.jit
def few_rows_product(
    x_in, y_in, gain, shift, weight, bias, stream, out, R, N, epsilon,
    ADD: tl.constexpr, NORM: tl.constexpr, POST: tl.constexpr, KEEP: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, M: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Some outputs of all rows; the first program also keeps the stream."""
    row = tl.arange(0, ROWS)
    output = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    mean = tl.zeros([ROWS], tl.float32)
    rate = tl.zeros([ROWS], tl.float32)
    if NORM:  # no name from here is used below: a loop may not change a shape
        wide = tl.arange(0, WIDTH)
        real = (row[:, None] < R) & (wide[None, :] < M)
        whole = row[:, None] * M + wide[None, :]
        sum_ = tl.load(x_in + whole, mask=real, other=0.0).to(tl.float32)
        if ADD:
            sum_ += tl.load(y_in + whole, mask=real, other=0.0).to(tl.float32)
        mean = tl.sum(sum_, 1) / M
        centred = tl.where(real, sum_ - mean[:, None], 0.0)
        rate = 1 / tl.sqrt(tl.sum(centred * centred, 1) / M + epsilon)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, M, STEP):
        column = start + tl.arange(0, STEP)
        inside = column < M
        there = (row[:, None] < R) & inside[None, :]
        at = row[:, None] * M + column[None, :]
        w_at = weight + output[None, :] * M + column[:, None]
        w = tl.load(w_at, mask=(output[None, :] < N) & inside[:, None], other=0.0)
        x = tl.load(x_in + at, mask=there, other=0.0).to(tl.float32)
        if ADD:
            x += tl.load(y_in + at, mask=there, other=0.0).to(tl.float32)
        z = x
        if NORM:
            z = (x - mean[:, None]) * rate[:, None]
            z = z * tl.load(gain + column, mask=inside, other=0.0)[None, :]
            z += tl.load(shift + column, mask=inside, other=0.0)[None, :]
        if KEEP:  # noqa: SIM102 - known to the compiler, and the other is not
            if tl.program_id(0) == 0:
                kept = z if POST else x
                tl.store(stream + at, kept.to(stream.dtype.element_ty), mask=there)
        total += tl.dot(z.to(w.dtype), w, input_precision="ieee")
    if BIAS:
        total += tl.load(bias + output, mask=output < N, other=0.0).to(tl.float32)[None, :]
    if ACTIVATION == 1:
        total = tl.maximum(total, 0.0)
    if ACTIVATION == 2:
        total = 0.5 * total * (1 + tl.erf(total * 0.7071067811865476))
    if ACTIVATION == 3:
        total = total / (1 + tl.exp(-total))
    out_at = out + row[:, None] * N + output[None, :]
    tl.store(
        out_at, total.to(out.dtype.element_ty), mask=(row[:, None] < R) & (output[None, :] < N)
    )


_DONE, _LENGTH, _BOS = tl.constexpr(DONE), tl.constexpr(LENGTH), tl.constexpr(BOS)
