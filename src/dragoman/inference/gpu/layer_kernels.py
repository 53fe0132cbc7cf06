"""These kernels compute a decoder layer for one new position of every hypothesis.

They embed and normalise the residual stream, and attend: each program of attention reads as many
positions as its sentence has, whatever there is room for.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
# A active slots, K beams, R = A K rows, H heads, E width of a head, W = H E, M model width

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.inference.gpu.batch_state import DONE, LENGTH, SOURCE_LENGTH, BatchState
from dragoman.inference.gpu.small_gemm import launch_options
from dragoman.inference.gpu.weights import GpuWeights, Norm
from dragoman.text.special_tokens import BOS


def self_attention(
    qkv: Tensor,
    weights: GpuWeights,
    state: BatchState,
    layer: int,
    batch_size: int,
    *,
    overlap: bool = False,
) -> Tensor:
    """Attend to the pieces before, R W from R 3W; keys and values are put into the cache."""
    rows, E = batch_size * state.beams, weights.d_k
    out = torch.empty(rows, weights.attention_width, dtype=qkv.dtype, device=qkv.device)
    self_attention_kernel[(rows * weights.heads,)](
        *(qkv, out, state.cache_LCW[layer], state.tables_2SKT, state.active_slots, state.info_FS),
        *(state.count + 1, state.max_positions, E**-0.5 * math.log2(math.e)),
        BEAMS=state.beams,
        HEADS=weights.heads,
        E=E,
        WIDTH=triton.next_power_of_2(E),
        STEP=32,
        **launch_options(overlap),
        num_warps=2,
    )
    return out


def source_attention(
    q: Tensor,
    weights: GpuWeights,
    state: BatchState,
    layer: int,
    batch_size: int,
    *,
    overlap: bool = False,
) -> Tensor:
    """Attend to the source, R W from R W; the beams of a sentence share what is read."""
    E = weights.d_k
    out = torch.empty_like(q)
    ROWS = max(16, triton.next_power_of_2(state.beams))
    source_attention_kernel[(batch_size * weights.heads,)](
        *(q, out, state.source_cache_LPW[layer], state.active_slots, state.info_FS),
        *(state.count + 1, state.source, E**-0.5 * math.log2(math.e)),
        BEAMS=state.beams,
        HEADS=weights.heads,
        E=E,
        WIDTH=max(16, triton.next_power_of_2(E)),
        ROWS=ROWS,
        STEP=32,
        **launch_options(overlap),
        num_warps=2 if ROWS == 16 else 4,
    )
    return out


@triton.jit
def self_attention_kernel(
    qkv, out, cache, tables, active_slots, info, slots, max_positions, temperature,
    BEAMS: tl.constexpr, HEADS: tl.constexpr, E: tl.constexpr, WIDTH: tl.constexpr,
    STEP: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Compute one head of one hypothesis."""
    W: tl.constexpr = HEADS * E
    row, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    beam = row % BEAMS
    slot = tl.load(active_slots + row // BEAMS)
    length = tl.load(info + _LENGTH * slots + slot)
    length = tl.where(tl.load(info + _DONE * slots + slot) > 0, 0, length)
    if OVERLAP:  # where sentences are has been known since the step before
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    column = tl.arange(0, WIDTH)
    there = column < E
    mine = qkv + row * (3 * W) + head * E + column
    q = tl.load(mine, mask=there, other=0.0).to(tl.float32) * temperature
    k_own = tl.load(mine + W, mask=there, other=0.0)
    v_own = tl.load(mine + 2 * W, mask=there, other=0.0)
    first = slot.to(tl.int64) * max_positions * BEAMS
    here = cache + (first + length * BEAMS + beam) * (2 * W) + head * E + column
    tl.store(here, k_own, mask=there)
    tl.store(here + W, v_own, mask=there)

    highest = tl.sum(q * k_own.to(tl.float32), 0)
    total = highest * 0 + 1.0
    gathered = v_own.to(tl.float32)
    table = tables + (((length % 2) * slots + slot) * BEAMS + beam) * max_positions
    for start in range(0, length, STEP):
        time = start + tl.arange(0, STEP)
        past = time < length
        entry = time * BEAMS
        if BEAMS > 1:
            entry += tl.load(table + time, mask=past, other=0)
        at = cache + (first + entry)[:, None] * (2 * W) + head * E + column[None, :]
        inside = past[:, None] & there[None, :]
        k = tl.load(at, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(at + W, mask=inside, other=0.0).to(tl.float32)
        score = tl.where(past, tl.sum(q[None, :] * k, 1), -float("inf"))
        now = tl.maximum(highest, tl.max(score, 0))
        weight = tl.exp2(score - now)
        shrink = tl.exp2(highest - now)
        total = total * shrink + tl.sum(weight, 0)
        gathered = gathered * shrink + tl.sum(weight[:, None] * v, 0)
        highest = now
    tl.store(out + row * W + head * E + column, (gathered / total).to(out.dtype.element_ty), there)


@triton.jit
def source_attention_kernel(
    q_in, out, source_cache, active_slots, info, slots, max_positions, temperature,
    BEAMS: tl.constexpr, HEADS: tl.constexpr, E: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, STEP: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Compute one head of all hypotheses of one sentence."""
    W: tl.constexpr = HEADS * E
    sentence, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    slot = tl.load(active_slots + sentence)
    length = tl.load(info + _SOURCE * slots + slot)
    length = tl.where(tl.load(info + _DONE * slots + slot) > 0, 0, length)
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    beam, column = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = (beam[:, None] < BEAMS) & (column[None, :] < E)
    mine = (sentence * BEAMS + beam[:, None]) * W + head * E + column[None, :]
    q = tl.load(q_in + mine, mask=there, other=0.0)
    first = source_cache + slot.to(tl.int64) * max_positions * (2 * W) + head * E

    highest = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    gathered = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(0, length, STEP):
        place = start + tl.arange(0, STEP)
        real = place < length
        k_at = first + place[None, :] * (2 * W) + column[:, None]
        k = tl.load(k_at, mask=real[None, :] & (column[:, None] < E), other=0.0)
        v_at = first + W + place[:, None] * (2 * W) + column[None, :]
        v = tl.load(v_at, mask=real[:, None] & (column[None, :] < E), other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * temperature
        score = tl.where(real[None, :], score, -float("inf"))
        now = tl.maximum(highest, tl.max(score, 1))  # of real max_positions there is always one
        weight = tl.exp2(score - now[:, None])
        shrink = tl.exp2(highest - now)
        total = total * shrink + tl.sum(weight, 1)
        gathered = gathered * shrink[:, None]
        gathered += tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        highest = now
    total = tl.where(total == 0.0, 1.0, total)  # what is done attends to nothing
    tl.store(out + mine, (gathered / total[:, None]).to(out.dtype.element_ty), mask=there)


def embed(
    weights: GpuWeights, state: BatchState, batch_size: int, *, overlap: bool = False
) -> Tensor:
    """Return the embedding of every hypothesis's last piece, R M in full precision.

    This begins a step: it waits for all before it, `overlap` or not; see `small_gemm`.
    """
    M = weights.target_pieces.shape[1]
    rows = batch_size * state.beams
    out = torch.empty(rows, M, dtype=torch.float32, device=weights.device)
    embed_kernel[(rows,)](
        *(
            state.active_slots,
            state.info_FS,
            state.pieces_STK,
            weights.target_pieces,
            state.positions_TM,
        ),
        *(out, weights.scale, state.count + 1, state.max_positions),
        BEAMS=state.beams,
        M=M,
        WIDTH=triton.next_power_of_2(M),
        OVERLAP=overlap,
        num_warps=4,
    )
    return out


def add_and_norm(
    x: Tensor, y: Tensor | None, norm: Norm, post: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return x + y, normalised if that is post-norm; and what the next matrix sees of it."""
    R, M = x.shape
    stream, seen = torch.empty_like(x), torch.empty(R, M, dtype=dtype, device=x.device)
    WIDTH = triton.next_power_of_2(M)
    ROWS = max(1, 1024 // WIDTH)
    norm_kernel[(triton.cdiv(R, ROWS),)](
        *(x, x if y is None else y, norm.gain, norm.bias, stream, seen, R, M, norm.epsilon),
        ADD=y is not None,
        POST=post,
        ROWS=ROWS,
        WIDTH=WIDTH,
        num_warps=max(2, WIDTH // 512),
    )
    return stream, seen


@triton.jit
def embed_kernel(
    active_slots, info, pieces, table, positions, out, scale, slots, max_positions,
    BEAMS: tl.constexpr, M: tl.constexpr, WIDTH: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """Embed the last piece of one hypothesis."""
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0)
    slot = tl.load(active_slots + row // BEAMS)
    length = tl.load(info + _LENGTH * slots + slot)
    length = tl.where(tl.load(info + _DONE * slots + slot) > 0, 0, length)
    piece = tl.load(pieces + (slot * max_positions + length) * BEAMS + row % BEAMS)
    piece = tl.where(length > 0, piece, _BOS).to(tl.int64)
    column = tl.arange(0, WIDTH)
    there = column < M
    x = tl.load(table + piece * M + column, mask=there, other=0.0).to(tl.float32) * scale
    x += tl.load(positions + length * M + column, mask=there, other=0.0)
    tl.store(out + row * M + column, x, mask=there)


@triton.jit
def norm_kernel(
    x_in, y_in, gain, bias, stream, seen, R, M, epsilon,
    ADD: tl.constexpr, POST: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Add and normalise some rows."""
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


_DONE, _LENGTH = tl.constexpr(DONE), tl.constexpr(LENGTH)
_SOURCE, _BOS = tl.constexpr(SOURCE_LENGTH), tl.constexpr(BOS)
