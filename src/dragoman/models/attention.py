"""Multi-head attention (§3.2) over packed rows, and the way to watch its weights.

Attention is computed by PyTorch's fused kernel. Only while something observes it are the weights
formed one by one: ``with watch(model) as seen: model(...)`` leaves them in ``seen``.
"""

# R rows (or sentences), T queries, S keys, H heads, K query/key width, V value width, M model width

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.models.api import Rows

__all__ = [
    "Linear",
    "MultiHeadAttention",
    "RelativeBias",
    "cross_mask",
    "rotate",
    "self_mask",
    "watch",
]


class Linear(nn.Linear):
    """A matrix, and a bias unless told otherwise."""

    def reset_parameters(self) -> None:
        """Xavier uniform; biases are zero."""
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class MultiHeadAttention(nn.Module):
    """Concat(head_1 … head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V); no biases."""

    observer: Callable[[Tensor], None] | None = None
    """Called with the weights, R H T S, whenever they are computed; None: fused, no weights."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = config.attention_dropout
        self.query = Linear(config.d_model, config.heads * config.d_k, bias=False)
        self.key = Linear(config.d_model, config.heads * config.d_k, bias=False)
        self.value = Linear(config.d_model, config.heads * config.d_v, bias=False)
        self.output = Linear(config.heads * config.d_v, config.d_model, bias=False)

    def split(self, x: Tensor) -> Tensor:
        """R T (H·K) to R H T K."""
        heads: Tensor = x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return heads

    def attend(
        self,
        q_RHTK: Tensor,
        k_RHSK: Tensor,
        v_RHSV: Tensor,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """softmax(QKᵀ/√d_k + bias)V W^O, R T M, where the mask's True may be attended to."""
        if bias is not None:
            mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
        dropout = self.dropout if self.training else 0.0
        if self.observer is None:
            heads_RHTV = F.scaled_dot_product_attention(q_RHTK, k_RHSK, v_RHSV, mask, dropout)
        else:
            scores_RHTS = q_RHTK @ k_RHSK.transpose(-1, -2) * q_RHTK.shape[-1] ** -0.5
            if mask is not None and mask.dtype == torch.bool:
                scores_RHTS = scores_RHTS.masked_fill(~mask, -torch.inf)
            elif mask is not None:
                scores_RHTS = scores_RHTS + mask
            weights_RHTS = scores_RHTS.softmax(-1)
            self.observer(weights_RHTS)
            heads_RHTV = F.dropout(weights_RHTS, dropout) @ v_RHSV
        merged: Tensor = self.output(heads_RHTV.transpose(1, 2).flatten(-2))
        return merged


@contextmanager
def watch(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the weights of every attention of the model, by module name, as they are computed."""
    seen: dict[str, Tensor] = {}
    modules = [(n, m) for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)]

    def remember(name: str) -> Callable[[Tensor], None]:
        def observer(weights: Tensor) -> None:
            seen[name] = weights.detach()

        return observer

    try:
        for name, module in modules:
            module.observer = remember(name)
        yield seen
    finally:
        for _, module in modules:
            module.observer = None


def self_mask(rows: Rows, *, causal: bool, window: int = 0) -> Tensor:
    """R 1 L L: a position sees its own sentence, its past if causal, its window if restricted."""
    mask = rows.segments_RL[:, :, None] == rows.segments_RL[:, None, :]
    if causal or window:
        ahead = rows.positions_RL[:, None, :] - rows.positions_RL[:, :, None]
        if causal:
            mask = mask & (ahead <= 0)
        if window:
            mask = mask & (ahead.abs() <= window)
    return mask[:, None]


def cross_mask(target: Tensor, source: Tensor) -> Tensor:
    """R 1 T S from segments: a target position sees the source of its own sentence.

    Padding sees everything: it counts nowhere, and a row of −∞ would be not-a-number.
    """
    return ((target[:, :, None] == source[:, None, :]) | (target[:, :, None] == 0))[:, None]


def rotate(x_RHTK: Tensor, positions_RT: Tensor) -> Tensor:
    """Rotary positions: turn each pair of features by an angle that grows with the position."""
    half = x_RHTK.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half, device=x_RHTK.device) / half)
    angles = positions_RT[:, None, :, None] * frequencies
    cos, sin = angles.cos().to(x_RHTK.dtype), angles.sin().to(x_RHTK.dtype)
    left, right = x_RHTK[..., :half], x_RHTK[..., half:]
    return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)


class RelativeBias(nn.Module):
    """A learned number for each head and distance, added to the scores; far distances share one."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.max_distance = config.max_distance
        self.table = nn.Embedding(2 * config.max_distance + 1, config.heads)
        nn.init.zeros_(self.table.weight)

    def forward(self, queries_RT: Tensor, keys_RS: Tensor) -> Tensor:
        """R H T S from positions."""
        distance = (keys_RS[:, None, :] - queries_RT[:, :, None]).clamp(
            -self.max_distance, self.max_distance
        )
        bias: Tensor = self.table(distance + self.max_distance)
        return bias.permute(0, 3, 1, 2)
