"""This kernel multiplies few rows, with the sum, norm, bias and activation in the same pass.

Many rows are multiplied by PyTorch. With few a product is no more than reading the matrix, and what
costs is the number of kernels, and in each of them what waits for what.

Where kernels overlap, each may begin before the one before it has ended. It reads what no kernel of
this step has written, the matrix above all, then waits. (CUDA's programmatic dependent launch.)
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
# R rows, M inputs, N outputs

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.inference.gpu.weights import Matrix, Norm

MAX_ROWS = 16
"""A program multiplies so many rows at a time; the tensor cores take no fewer."""
MAX_SUMMED_ROWS = 4
"""Up to so many rows are multiplied without tensor cores."""
MAX_TILE = 16384
"""A program sums up at most so many products."""
ACTIVATIONS = ("", "relu", "gelu", "swish")


def can_overlap(device: torch.device) -> bool:
    """Return whether kernels of few rows may overlap on a device."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < (9, 0):
        return False
    return all(
        hasattr(tl.extra.cuda, name) for name in ("gdc_wait", "gdc_launch_dependents")
    ) and hasattr(_options(), "launch_pdl")


def _options() -> Any:
    from triton.backends.nvidia.compiler import CUDAOptions

    return CUDAOptions


def launch_options(overlap: bool) -> dict[str, Any]:
    """Return what a kernel is launched with: not every Triton knows the option."""
    return {"OVERLAP": True, "launch_pdl": True} if overlap else {"OVERLAP": False}


def small_gemm(
    x: Tensor,
    y: Tensor | None,
    norm: Norm | None,
    matrix: Matrix,
    activation: str,
    *,
    post: bool,
    keep_stream: bool,
    dtype: torch.dtype,
    overlap: bool = False,
) -> tuple[Tensor, Tensor]:
    """Apply a stage to at most MAX_ROWS rows; return the stream and the outputs.

    Without `keep_stream` the first of both means unused.
    """
    (R, M), N = x.shape, len(matrix.weight)
    out = torch.empty(R, N, dtype=dtype, device=x.device)
    stream = torch.empty_like(x) if keep_stream else x
    unused = x
    tensors = (
        *(x, unused if y is None else y),
        *((unused, unused) if norm is None else (norm.gain, norm.bias)),
        *(matrix.weight, unused if matrix.bias is None else matrix.bias, stream, out),
    )
    epsilon = 0.0 if norm is None else norm.epsilon
    WIDTH, ROWS = triton.next_power_of_2(M), triton.next_power_of_2(R)
    kind = {
        "ADD": y is not None,
        "NORM": norm is not None,
        "POST": post,
        "KEEP": keep_stream,
        "BIAS": matrix.bias is not None,
        "ACTIVATION": ACTIVATIONS.index(activation),
        "M": M,
        "WIDTH": WIDTH,
        **launch_options(overlap),
    }
    wide = N > 4096
    most = min(MAX_SUMMED_ROWS, 1) if wide else MAX_SUMMED_ROWS
    if most >= R and ROWS * WIDTH <= MAX_TILE:
        # As many programs as the device has processors, or more.
        COLUMNS = min(32 if wide else 8 if N > 1024 else 4, MAX_TILE // (ROWS * WIDTH))
        summed_product_kernel[(triton.cdiv(N, COLUMNS),)](
            *tensors,
            *(N, epsilon),
            **kind,
            R=R,
            ROWS=ROWS,
            COLUMNS=COLUMNS,
            num_warps=4 if ROWS * WIDTH * COLUMNS <= 4096 else 8,
        )
        return stream, out
    COLUMNS = 64 if wide else 16
    dot_product_kernel[(triton.cdiv(N, COLUMNS),)](
        *tensors,
        *(R, N, epsilon),
        **kind,
        ROWS=MAX_ROWS,
        COLUMNS=COLUMNS,
        STEP=min(max(16, WIDTH), 8192 // COLUMNS),
        num_warps=4,
        num_stages=3,
    )
    return stream, out


@triton.jit
def summed_product_kernel(
    x_in, y_in, gain, shift, weight, bias, stream, out, N, epsilon,
    ADD: tl.constexpr, NORM: tl.constexpr, POST: tl.constexpr, KEEP: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, M: tl.constexpr, WIDTH: tl.constexpr,
    OVERLAP: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Compute some outputs of all rows; the first program also writes the stream."""
    output = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    column, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    real, inside = output < N, column < M
    # The matrix is what takes longest to arrive: it is asked for first.
    at = weight + output[:, None] * M + column[None, :]
    w = tl.load(at, mask=real[:, None] & inside[None, :], other=0.0)
    if NORM:
        scale = tl.load(gain + column, mask=inside, other=0.0)
        offset = tl.load(shift + column, mask=inside, other=0.0)
    if BIAS:
        added = tl.load(bias + output, mask=real, other=0.0).to(tl.float32)
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    there = (row[:, None] < R) & inside[None, :]
    at = row[:, None] * M + column[None, :]
    x = tl.load(x_in + at, mask=there, other=0.0).to(tl.float32)
    if ADD:
        x += tl.load(y_in + at, mask=there, other=0.0).to(tl.float32)
    z = x
    if NORM:
        mean = tl.sum(x, 1) / M
        centred = tl.where(there, x - mean[:, None], 0.0)
        rate = 1 / tl.sqrt(tl.sum(centred * centred, 1) / M + epsilon)
        z = centred * rate[:, None] * scale[None, :] + offset[None, :]
    if KEEP:  # noqa: SIM102 - known to the compiler, and the other is not
        if tl.program_id(0) == 0:
            kept = z if POST else x
            tl.store(stream + at, kept.to(stream.dtype.element_ty), mask=there)
    z = z.to(w.dtype).to(tl.float32)
    w = w.to(tl.float32)
    total = tl.sum(z * w, 1)[None, :] if ROWS == 1 else tl.sum(z[:, None, :] * w[None, :, :], 2)
    if BIAS:
        total += added[None, :]
    total = activate(total, ACTIVATION)
    at = out + row[:, None] * N + output[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=(row[:, None] < R) & real[None, :])


@triton.jit
def dot_product_kernel(
    x_in, y_in, gain, shift, weight, bias, stream, out, R, N, epsilon,
    ADD: tl.constexpr, NORM: tl.constexpr, POST: tl.constexpr, KEEP: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, M: tl.constexpr, WIDTH: tl.constexpr,
    OVERLAP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Compute the same with tensor cores."""
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
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
    total = activate(total, ACTIVATION)
    out_at = out + row[:, None] * N + output[None, :]
    tl.store(
        out_at, total.to(out.dtype.element_ty), mask=(row[:, None] < R) & (output[None, :] < N)
    )


@triton.jit
def activate(x, KIND: tl.constexpr):
    """Apply the activation with this number in ACTIVATIONS."""
    if KIND == 1:
        x = tl.maximum(x, 0.0)
    if KIND == 2:
        x = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    if KIND == 3:
        x = x / (1 + tl.exp(-x))
    return x
