"""These kernels compute attention within the sentences of packed rows.

Rows hold several sentences, one after another, so the keys a block of queries may see lie close
together: a program reads where they begin and end and visits only those. Padding attends to
nothing, and its result is 0.
"""

# R rows, T queries and S keys of a row, H heads, K query/key width, V value width

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from dragoman.kernels.dropout import drop_threshold, dropout_state, keep_mask

BLOCK = 64
"""A program has so many queries (or, for their gradients, keys)."""
STEP = 32
"""It visits so many keys (or queries) at a time."""


class SentenceSpans:
    """Tell where the sentences of packed queries and keys lie; all layers share one."""

    def __init__(self, query_segments_RT: Tensor, key_segments_RS: Tensor) -> None:
        self.queries, self.keys = query_segments_RT.contiguous(), key_segments_RS.contiguous()
        self.of_queries = _spans(self.queries, self.keys)
        """R blocks 2: the keys that a block of queries may attend to begin and end here."""
        self.of_keys = _spans(self.keys, self.queries)
        """R blocks 2: the queries that may attend to a block of keys begin and end here."""


def _spans(own_RT: Tensor, other_RS: Tensor) -> Tensor:
    """Return where the sentences of each block of `own` begin and end in `other`, R blocks 2."""
    (R, T), S = own_RT.shape, other_RS.shape[1]
    blocks = triton.cdiv(T, BLOCK)
    spans = torch.empty(R, blocks, 2, dtype=torch.int32, device=own_RT.device)
    attention_spans[(blocks, R)](
        own_RT, other_RS, spans, T, S, BLOCK=BLOCK, LENGTH=triton.next_power_of_2(S), num_warps=2
    )
    return spans


def attend(
    queries: Tensor,
    keys_values: Tensor | None,
    spans: SentenceSpans,
    *,
    heads: int,
    d_k: int,
    causal: bool = False,
    window: int = 0,
    dropout: float = 0.0,
) -> Tensor:
    """Return softmax(QKᵀ/√d_k)V within each sentence, R T (H·V).

    `queries` is R T (H·K) and `keys_values` R S (H·K + H·V); in self-attention `queries` holds
    queries, keys and values, R T (H·K + H·K + H·V), and `keys_values` is None.
    """
    out: Tensor = _Attention.apply(queries, keys_values, spans, heads, d_k, causal, window, dropout)
    return out


def _split_projection(
    a: Tensor, b: Tensor | None, heads: int, d_k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Q, K and V as views of what holds them."""
    wide = heads * d_k
    keys_values = a[..., wide:] if b is None else b
    return a[..., :wide], keys_values[..., :wide], keys_values[..., wide:]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys_values: Tensor | None,
        spans: SentenceSpans,
        heads: int,
        d_k: int,
        causal: bool,
        window: int,
        dropout: float,
    ) -> Tensor:
        q, k, v = _split_projection(queries, keys_values, heads, d_k)
        (R, T, _), S, d_v = q.shape, k.shape[1], v.shape[-1] // heads
        state = dropout_state(q.device)
        site = state.next_site() if dropout else 0
        out = torch.empty(R, T, heads * d_v, dtype=q.dtype, device=q.device)
        scale_RHT = torch.empty(R, heads, T, dtype=torch.float32, device=q.device)
        ctx.spans = spans
        ctx.numbers = (state.words, site, drop_threshold(dropout), 1 / (1 - dropout), d_k**-0.5)
        ctx.settings = {
            "HEADS": heads,
            "D_K": d_k,
            "D_V": d_v,
            "CAUSAL": causal,
            "WINDOW": window,
            "DROPOUT": dropout > 0,
            "BLOCK": BLOCK,
            "STEP": STEP,
            "num_warps": 4,
            "num_stages": 2,
        }
        attention_forward[(triton.cdiv(T, BLOCK), R * heads)](
            *(q, k, v, out, scale_RHT, spans.queries, spans.keys, spans.of_queries),
            *(T, S, *q.stride()[:2], *k.stride()[:2], *v.stride()[:2], *ctx.numbers),
            **ctx.settings,
        )
        ctx.save_for_backward(queries, keys_values, out, scale_RHT)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_out = gradients[0].contiguous()
        queries, keys_values, out, scale_RHT = ctx.saved_tensors
        heads, d_k, spans = ctx.settings["HEADS"], ctx.settings["D_K"], ctx.spans
        q, k, v = _split_projection(queries, keys_values, heads, d_k)
        (R, T, _), S = q.shape, k.shape[1]
        d_queries = torch.empty_like(queries)
        d_keys_values = None if keys_values is None else torch.empty_like(keys_values)
        gradient_q, gradient_k, gradient_v = _split_projection(d_queries, d_keys_values, heads, d_k)
        delta_RHT = torch.empty_like(scale_RHT)
        strides = (*q.stride()[:2], *k.stride()[:2], *v.stride()[:2])
        attention_backward_queries[(triton.cdiv(T, BLOCK), R * heads)](
            *(q, k, v, out, d_out, gradient_q, scale_RHT, delta_RHT),
            *(spans.queries, spans.keys, spans.of_queries, T, S, *strides, *ctx.numbers),
            **ctx.settings,
        )
        attention_backward_keys[(triton.cdiv(S, BLOCK), R * heads)](
            *(q, k, v, d_out, gradient_k, gradient_v, scale_RHT, delta_RHT),
            *(spans.queries, spans.keys, spans.of_keys, T, S, *strides, *ctx.numbers),
            **ctx.settings,
        )
        return d_queries, d_keys_values, *[None] * 6


LOG2_E = tl.constexpr(math.log2(math.e))


@triton.jit
def attention_spans(own, other, spans, T, S, BLOCK: tl.constexpr, LENGTH: tl.constexpr):
    """Find the span of one block of one row; padding, which is segment 0, counts nowhere."""
    row = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    segment = tl.load(own + row * T + at, mask=at < T, other=0)
    first = tl.min(tl.where(segment > 0, segment, 2147483647))
    there = tl.arange(0, LENGTH)
    other_segment = tl.load(other + row * S + there, mask=there < S, other=0)
    inside = (other_segment >= first) & (other_segment <= tl.max(segment))
    span = spans + (row * tl.num_programs(0) + tl.program_id(0)) * 2
    tl.store(span, tl.min(tl.where(inside, there, S)))
    tl.store(span + 1, tl.max(tl.where(inside, there + 1, 0)))


@triton.jit
def _visible(query, key, query_segment, key_segment, CAUSAL: tl.constexpr, WINDOW: tl.constexpr):
    """Return which keys each query may attend to; all four broadcast against each other."""
    seen = (query_segment == key_segment) & (query_segment > 0)
    if CAUSAL:
        seen = seen & (key <= query)
    if WINDOW > 0:
        seen = seen & (key - query <= WINDOW) & (query - key <= WINDOW)
    return seen


@triton.jit
def _weight_number(pair, query, key, T, S):
    """Return the number of an attention weight among all, for its dropout."""
    return ((pair * T + query) * S + key).to(tl.uint32)


@triton.jit(do_not_specialize=["site", "limit"])
def attention_forward(
    q_in, k_in, v_in, out, scales, query_segments, key_segments, spans,
    T, S, q_row, q_at, k_row, k_at, v_row, v_at,
    words, site, limit, inverse_keep, temperature,
    HEADS: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, DROPOUT: tl.constexpr,
    BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Attend with a block of queries of one head; also write log2 Σ exp of their scores."""
    pair = tl.program_id(1)
    row, head = pair // HEADS, pair % HEADS
    query = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide_k, wide_v = tl.arange(0, D_K), tl.arange(0, D_V)
    there = query < T
    query_segment = tl.load(query_segments + row * T + query, mask=there, other=0)
    span = spans + (row * tl.num_programs(0) + tl.program_id(0)) * 2
    begin, end = tl.load(span), tl.load(span + 1)
    if CAUSAL:
        end = tl.minimum(end, (tl.program_id(0) + 1) * BLOCK)
    q_at_block = q_in + row * q_row + query[:, None] * q_at + head * D_K + wide_k[None, :]
    q = tl.load(q_at_block, mask=there[:, None], other=0.0)
    highest = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    weighted = tl.zeros([BLOCK, D_V], tl.float32)
    for start in range(begin // STEP * STEP, end, STEP):
        key = start + tl.arange(0, STEP)
        inside = key < S
        k_at_block = k_in + row * k_row + key[None, :] * k_at + head * D_K + wide_k[:, None]
        k = tl.load(k_at_block, mask=inside[None, :], other=0.0)
        key_segment = tl.load(key_segments + row * S + key, mask=inside, other=-1)
        seen = _visible(
            query[:, None], key[None, :], query_segment[:, None], key_segment[None, :],
            CAUSAL, WINDOW,
        )  # fmt: skip
        score = tl.dot(q, k, input_precision="ieee") * (temperature * LOG2_E)
        score = tl.where(seen, score, -float("inf"))
        now = tl.maximum(highest, tl.max(score, 1))
        base = tl.where(now == -float("inf"), 0.0, now)
        weight = tl.exp2(score - base[:, None])
        shrink = tl.exp2(highest - base)
        total = total * shrink + tl.sum(weight, 1)
        if DROPOUT:
            index = _weight_number(pair, query[:, None], key[None, :], T, S)
            weight = tl.where(keep_mask(words, site, index, limit), weight * inverse_keep, 0.0)
        v_at_block = v_in + row * v_row + key[:, None] * v_at + head * D_V + wide_v[None, :]
        v = tl.load(v_at_block, mask=inside[:, None], other=0.0)
        weighted = weighted * shrink[:, None]
        weighted += tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        highest = now
    nothing_seen = total == 0.0
    total = tl.where(nothing_seen, 1.0, total)
    out_at = out + (row * T + query[:, None]) * (HEADS * D_V) + head * D_V + wide_v[None, :]
    tl.store(out_at, (weighted / total[:, None]).to(out.dtype.element_ty), mask=there[:, None])
    scale = tl.where(nothing_seen, float("inf"), highest + tl.log2(total))
    tl.store(scales + pair * T + query, scale, mask=there)


@triton.jit(do_not_specialize=["site", "limit"])
def attention_backward_queries(
    q_in, k_in, v_in, out, d_out, d_q, scales, deltas, query_segments, key_segments, spans,
    T, S, q_row, q_at, k_row, k_at, v_row, v_at,
    words, site, limit, inverse_keep, temperature,
    HEADS: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, DROPOUT: tl.constexpr,
    BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of a block of queries of one head, and row sums that the keys need."""
    pair = tl.program_id(1)
    row, head = pair // HEADS, pair % HEADS
    query = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide_k, wide_v = tl.arange(0, D_K), tl.arange(0, D_V)
    there = query < T
    query_segment = tl.load(query_segments + row * T + query, mask=there, other=0)
    span = spans + (row * tl.num_programs(0) + tl.program_id(0)) * 2
    begin, end = tl.load(span), tl.load(span + 1)
    if CAUSAL:
        end = tl.minimum(end, (tl.program_id(0) + 1) * BLOCK)
    q_offset = row * q_row + query[:, None] * q_at + head * D_K + wide_k[None, :]
    q = tl.load(q_in + q_offset, mask=there[:, None], other=0.0)
    out_offset = (row * T + query[:, None]) * (HEADS * D_V) + head * D_V + wide_v[None, :]
    result = tl.load(out + out_offset, mask=there[:, None], other=0.0)
    d_result = tl.load(d_out + out_offset, mask=there[:, None], other=0.0)
    delta = tl.sum(result.to(tl.float32) * d_result.to(tl.float32), 1)
    tl.store(deltas + pair * T + query, delta, mask=there)
    scale = tl.load(scales + pair * T + query, mask=there, other=float("inf"))
    gradient = tl.zeros([BLOCK, D_K], tl.float32)
    for start in range(begin // STEP * STEP, end, STEP):
        key = start + tl.arange(0, STEP)
        inside = key < S
        k_at_block = k_in + row * k_row + key[:, None] * k_at + head * D_K + wide_k[None, :]
        k = tl.load(k_at_block, mask=inside[:, None], other=0.0)
        v_at_block = v_in + row * v_row + key[:, None] * v_at + head * D_V + wide_v[None, :]
        v = tl.load(v_at_block, mask=inside[:, None], other=0.0)
        key_segment = tl.load(key_segments + row * S + key, mask=inside, other=-1)
        seen = _visible(
            query[:, None], key[None, :], query_segment[:, None], key_segment[None, :],
            CAUSAL, WINDOW,
        )  # fmt: skip
        score = tl.dot(q, tl.trans(k), input_precision="ieee") * (temperature * LOG2_E)
        weight = tl.where(seen, tl.exp2(score - scale[:, None]), 0.0)
        d_weight = tl.dot(d_result, tl.trans(v), input_precision="ieee")
        if DROPOUT:
            index = _weight_number(pair, query[:, None], key[None, :], T, S)
            d_weight = tl.where(keep_mask(words, site, index, limit), d_weight * inverse_keep, 0.0)
        d_score = weight * (d_weight - delta[:, None])
        gradient += tl.dot(d_score.to(k.dtype), k, input_precision="ieee")
    tl.store(d_q + q_offset, (gradient * temperature).to(d_q.dtype.element_ty), mask=there[:, None])


@triton.jit(do_not_specialize=["site", "limit"])
def attention_backward_keys(
    q_in, k_in, v_in, d_out, d_k, d_v, scales, deltas, query_segments, key_segments, spans,
    T, S, q_row, q_at, k_row, k_at, v_row, v_at,
    words, site, limit, inverse_keep, temperature,
    HEADS: tl.constexpr, D_K: tl.constexpr, D_V: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, DROPOUT: tl.constexpr,
    BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Compute gradients of a block of keys and values of one head; scores are keys × queries."""
    pair = tl.program_id(1)
    row, head = pair // HEADS, pair % HEADS
    key = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide_k, wide_v = tl.arange(0, D_K), tl.arange(0, D_V)
    inside = key < S
    key_segment = tl.load(key_segments + row * S + key, mask=inside, other=0)
    span = spans + (row * tl.num_programs(0) + tl.program_id(0)) * 2
    begin, end = tl.load(span), tl.load(span + 1)
    if CAUSAL:
        begin = tl.maximum(begin, tl.program_id(0) * BLOCK)
    k_offset = row * k_row + key[:, None] * k_at + head * D_K + wide_k[None, :]
    v_offset = row * v_row + key[:, None] * v_at + head * D_V + wide_v[None, :]
    k = tl.load(k_in + k_offset, mask=inside[:, None], other=0.0)
    v = tl.load(v_in + v_offset, mask=inside[:, None], other=0.0)
    gradient_k = tl.zeros([BLOCK, D_K], tl.float32)
    gradient_v = tl.zeros([BLOCK, D_V], tl.float32)
    for start in range(begin // STEP * STEP, end, STEP):
        query = start + tl.arange(0, STEP)
        there = query < T
        q_at_block = q_in + row * q_row + query[:, None] * q_at + head * D_K + wide_k[None, :]
        q = tl.load(q_at_block, mask=there[:, None], other=0.0)
        out_offset = (row * T + query[:, None]) * (HEADS * D_V) + head * D_V + wide_v[None, :]
        d_result = tl.load(d_out + out_offset, mask=there[:, None], other=0.0)
        query_segment = tl.load(query_segments + row * T + query, mask=there, other=-1)
        scale = tl.load(scales + pair * T + query, mask=there, other=float("inf"))
        delta = tl.load(deltas + pair * T + query, mask=there, other=0.0)
        seen = _visible(
            query[None, :], key[:, None], query_segment[None, :], key_segment[:, None],
            CAUSAL, WINDOW,
        )  # fmt: skip
        score = tl.dot(k, tl.trans(q), input_precision="ieee") * (temperature * LOG2_E)
        weight = tl.where(seen, tl.exp2(score - scale[None, :]), 0.0)
        d_weight = tl.dot(v, tl.trans(d_result), input_precision="ieee")
        dropped = weight
        if DROPOUT:
            index = _weight_number(pair, query[None, :], key[:, None], T, S)
            keep = keep_mask(words, site, index, limit)
            d_weight = tl.where(keep, d_weight * inverse_keep, 0.0)
            dropped = tl.where(keep, weight * inverse_keep, 0.0)
        gradient_v += tl.dot(dropped.to(v.dtype), d_result, input_precision="ieee")
        d_score = weight * (d_weight - delta[None, :])
        gradient_k += tl.dot(d_score.to(q.dtype), q, input_precision="ieee")
    tl.store(
        d_k + k_offset, (gradient_k * temperature).to(d_k.dtype.element_ty), mask=inside[:, None]
    )
    tl.store(d_v + v_offset, gradient_v.to(d_v.dtype.element_ty), mask=inside[:, None])
