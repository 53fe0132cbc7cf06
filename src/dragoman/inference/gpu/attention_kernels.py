"""Kernels of attention for one new position of every hypothesis.

Each program reads as many positions as its sentence has, whatever there is room for.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
# A lanes, K beams, R = A K rows, H heads, E width of a head, W = H E

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.inference.gpu.batch_state import DONE, LENGTH, SOURCE, Slots
from dragoman.inference.gpu.small_gemm import launch
from dragoman.inference.gpu.weights import Weights

__all__ = ["look_at_source", "look_back"]


def look_back(
    qkv: Tensor, weights: Weights, slots: Slots, layer: int, lanes: int, *, overlap: bool = False
) -> Tensor:
    """Self-attention, R W from R 3W; keys and values are left in the cells of this position."""
    rows, E = lanes * slots.beams, weights.d_k
    out = torch.empty(rows, weights.wide, dtype=qkv.dtype, device=qkv.device)
    attend_back[(rows * weights.heads,)](
        *(qkv, out, slots.own_LCW[layer], slots.tables_2SKT, slots.lanes, slots.marks),
        *(slots.count + 1, slots.places, E**-0.5 * math.log2(math.e)),
        BEAMS=slots.beams,
        HEADS=weights.heads,
        E=E,
        WIDTH=triton.next_power_of_2(E),
        STEP=32,
        **launch(overlap),
        num_warps=2,
    )
    return out


def look_at_source(
    q: Tensor, weights: Weights, slots: Slots, layer: int, lanes: int, *, overlap: bool = False
) -> Tensor:
    """Attention to the source, R W from R W; the beams of a sentence share what is read."""
    E = weights.d_k
    out = torch.empty_like(q)
    ROWS = max(16, triton.next_power_of_2(slots.beams))
    attend_to_source[(lanes * weights.heads,)](
        *(q, out, slots.source_LPW[layer], slots.lanes, slots.marks),
        *(slots.count + 1, slots.source, E**-0.5 * math.log2(math.e)),
        BEAMS=slots.beams,
        HEADS=weights.heads,
        E=E,
        WIDTH=max(16, triton.next_power_of_2(E)),
        ROWS=ROWS,
        STEP=32,
        **launch(overlap),
        num_warps=2 if ROWS == 16 else 4,
    )
    return out


@triton.jit
def attend_back(
    qkv, out, cells, tables, lanes, marks, slots, places, temperature,
    BEAMS: tl.constexpr, HEADS: tl.constexpr, E: tl.constexpr, WIDTH: tl.constexpr,
    STEP: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """One head of one hypothesis."""
    W: tl.constexpr = HEADS * E
    row, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    beam = row % BEAMS
    slot = tl.load(lanes + row // BEAMS)
    length = tl.load(marks + _LENGTH * slots + slot)
    length = tl.where(tl.load(marks + _DONE * slots + slot) > 0, 0, length)
    if OVERLAP:  # where sentences are has been known since the step before
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    wide = tl.arange(0, WIDTH)
    there = wide < E
    mine = qkv + row * (3 * W) + head * E + wide
    q = tl.load(mine, mask=there, other=0.0).to(tl.float32) * temperature
    k_own = tl.load(mine + W, mask=there, other=0.0)
    v_own = tl.load(mine + 2 * W, mask=there, other=0.0)
    first = slot.to(tl.int64) * places * BEAMS
    here = cells + (first + length * BEAMS + beam) * (2 * W) + head * E + wide
    tl.store(here, k_own, mask=there)
    tl.store(here + W, v_own, mask=there)

    highest = tl.sum(q * k_own.to(tl.float32), 0)
    total = highest * 0 + 1.0
    gathered = v_own.to(tl.float32)
    table = tables + (((length % 2) * slots + slot) * BEAMS + beam) * places
    for start in range(0, length, STEP):
        time = start + tl.arange(0, STEP)
        past = time < length
        cell = time * BEAMS
        if BEAMS > 1:
            cell += tl.load(table + time, mask=past, other=0)
        at = cells + (first + cell)[:, None] * (2 * W) + head * E + wide[None, :]
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
    tl.store(out + row * W + head * E + wide, (gathered / total).to(out.dtype.element_ty), there)


@triton.jit
def attend_to_source(
    q_in, out, memory, lanes, marks, slots, places, temperature,
    BEAMS: tl.constexpr, HEADS: tl.constexpr, E: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, STEP: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """One head of all hypotheses of one sentence."""
    W: tl.constexpr = HEADS * E
    lane, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    slot = tl.load(lanes + lane)
    length = tl.load(marks + _SOURCE * slots + slot)
    length = tl.where(tl.load(marks + _DONE * slots + slot) > 0, 0, length)
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    beam, wide = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = (beam[:, None] < BEAMS) & (wide[None, :] < E)
    mine = (lane * BEAMS + beam[:, None]) * W + head * E + wide[None, :]
    q = tl.load(q_in + mine, mask=there, other=0.0)
    first = memory + slot.to(tl.int64) * places * (2 * W) + head * E

    highest = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    gathered = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(0, length, STEP):
        place = start + tl.arange(0, STEP)
        real = place < length
        k_at = first + place[None, :] * (2 * W) + wide[:, None]
        k = tl.load(k_at, mask=real[None, :] & (wide[:, None] < E), other=0.0)
        v_at = first + W + place[:, None] * (2 * W) + wide[None, :]
        v = tl.load(v_at, mask=real[:, None] & (wide[None, :] < E), other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * temperature
        score = tl.where(real[None, :], score, -float("inf"))
        now = tl.maximum(highest, tl.max(score, 1))  # of real places there is always one
        weight = tl.exp2(score - now[:, None])
        shrink = tl.exp2(highest - now)
        total = total * shrink + tl.sum(weight, 1)
        gathered = gathered * shrink[:, None]
        gathered += tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        highest = now
    total = tl.where(total == 0.0, 1.0, total)  # nothing to look at in what is done
    tl.store(out + mine, (gathered / total[:, None]).to(out.dtype.element_ty), mask=there)


_DONE, _LENGTH = tl.constexpr(DONE), tl.constexpr(LENGTH)
_SOURCE = tl.constexpr(SOURCE)
