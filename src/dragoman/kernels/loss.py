"""The vocabulary projection and the label-smoothed cross-entropy (§5.4) are one operation.

Scores are made for some positions at a time, in bf16, and overwritten by their own gradient, from
which the gradients of features and weights follow at once: fp32 scores never exist, and of bf16
scores only a slice.
"""

# N positions, M model width, V vocabulary

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

SLICE = 32_768
"""So many positions have scores in memory at one time."""


def project_and_score(
    features: Tensor,
    weight_VM: Tensor,
    outputs: Tensor,
    real: Tensor,
    smoothing: float,
    scale: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return smoothed loss and negative log-likelihood, summed where `real`, times `scale`."""
    loss, nll = _ProjectAndScore.apply(features, weight_VM, outputs, real, smoothing, scale)
    return loss, nll


class _ProjectAndScore(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight_VM: Tensor,
        outputs: Tensor,
        real: Tensor,
        smoothing: float,
        scale: Tensor,
    ) -> tuple[Tensor, Tensor]:
        x_NM = features.reshape(-1, features.shape[-1])
        N, V = len(x_NM), len(weight_VM)
        outputs_N, real_N = outputs.reshape(-1), real.reshape(-1)
        sums_2N = torch.empty(2, N, dtype=torch.float32, device=x_NM.device)
        d_x_NM = torch.empty_like(x_NM)
        d_weight_VM: Tensor | None = None
        # Rows are multiples of 32 bytes, whatever the vocabulary: wide loads and stores need that.
        wide = triton.cdiv(V, 16) * 16
        space = torch.empty(min(N, SLICE), wide, dtype=x_NM.dtype, device=x_NM.device)
        for start in range(0, N, SLICE):
            part = slice(start, min(start + SLICE, N))
            scores_NV = space[: part.stop - start, :V]
            torch.mm(x_NM[part], weight_VM.t(), out=scores_NV)
            loss_scores[(len(scores_NV),)](
                *(scores_NV, outputs_N[part], real_N[part], sums_2N[:, part], scale),
                *(N, V, wide, smoothing),
                BLOCK=4096,
                num_warps=8,
            )
            torch.mm(scores_NV, weight_VM, out=d_x_NM[part])
            if d_weight_VM is None:
                d_weight_VM = scores_NV.t() @ x_NM[part]
            else:
                d_weight_VM.addmm_(scores_NV.t(), x_NM[part])
        ctx.save_for_backward(d_x_NM.view_as(features), d_weight_VM)
        loss, nll = sums_2N.sum(1).unbind()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_x, d_weight = ctx.saved_tensors
        upstream = gradients[0].to(d_x.dtype)  # 1 in training: the scale is already inside
        return d_x * upstream, d_weight * upstream, None, None, None, None


@triton.jit
def loss_scores(scores, outputs, real, sums, scales, N, V, wide, smoothing, BLOCK: tl.constexpr):
    """Compute the losses of one position, and write its scores' gradient over them."""
    row = tl.program_id(0).to(tl.int64)
    own = scores + row * wide
    if tl.load(real + row) == 0:
        for start in range(0, V, BLOCK):
            at = start + tl.arange(0, BLOCK)
            tl.store(own + at, tl.zeros([BLOCK], scores.dtype.element_ty), mask=at < wide)
        tl.store(sums + row, 0.0)
        tl.store(sums + N + row, 0.0)
    else:
        highest = -float("inf")
        total = tl.zeros([BLOCK], tl.float32)
        plain = tl.zeros([BLOCK], tl.float32)
        for start in range(0, V, BLOCK):
            at = start + tl.arange(0, BLOCK)
            score = tl.load(own + at, mask=at < wide, other=0.0).to(tl.float32)
            score = tl.where(at < V, score, -float("inf"))
            now = tl.maximum(highest, tl.max(score))
            total = total * tl.exp(highest - now) + tl.exp(score - now)
            plain += tl.where(at < V, score, 0.0)
            highest = now
        norm = highest + tl.log(tl.sum(total))
        output = tl.load(outputs + row)
        nll = norm - tl.load(own + output).to(tl.float32)
        uniform = norm - tl.sum(plain) / V
        scale = tl.load(scales)
        tl.store(sums + row, ((1 - smoothing) * nll + smoothing * uniform) * scale)
        tl.store(sums + N + row, nll * scale)
        for start in range(0, V, BLOCK):
            at = start + tl.arange(0, BLOCK)
            score = tl.load(own + at, mask=at < wide, other=0.0).to(tl.float32)
            score = tl.where(at < V, score, -float("inf"))
            gradient = tl.exp(score - norm) - smoothing / V
            gradient -= tl.where(at == output, 1 - smoothing, 0.0)
            tl.store(own + at, (gradient * scale).to(scores.dtype.element_ty), mask=at < wide)
