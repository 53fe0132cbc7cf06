"""Multi-head attention (§3.2) over packed rows, and the way to watch its weights.

Attention is computed by PyTorch's fused kernel, or in training on a GPU by our own. Only while
something observes it are the weights formed one by one: ``with watch(model) as seen: model(...)``
leaves them in ``seen``.
"""

# R rows (or sentences), T queries, S keys, H heads, K query/key width, V value width, M model width

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman import kernels
from dragoman.config import ModelConfig
from dragoman.models.api import Rows

__all__ = [
    "Linear",
    "MultiHeadAttention",
    "RelativeBias",
    "Sight",
    "Watchable",
    "cross_mask",
    "rotate",
    "self_mask",
    "watch",
    "watchable",
]


# cuDNN's attention plans anew for every length, which takes a tenth of a second at each piece of a
# translation; PyTorch's other kernels do not.
torch.backends.cuda.enable_cudnn_sdp(False)


class Linear(nn.Linear):
    """A matrix, and a bias unless told otherwise."""

    def reset_parameters(self) -> None:
        """Xavier uniform; biases are zero."""
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class Watchable(nn.Module):
    """An attention of any kind, whose weights can be looked at."""

    observer: Callable[[Tensor], None] | None = None
    """Called with the weights, R H T S, whenever they are computed; None: nobody looks."""


class MultiHeadAttention(Watchable):
    """Concat(head_1 … head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.d_k, self.d_v = config.heads, config.d_k, config.d_v
        self.dropout = config.attention_dropout
        bias = config.attention_bias
        self.query = Linear(config.d_model, config.heads * config.d_k, bias=bias)
        self.key = Linear(config.d_model, config.heads * config.d_k, bias=bias)
        self.value = Linear(config.d_model, config.heads * config.d_v, bias=bias)
        self.output = Linear(config.heads * config.d_v, config.d_model, bias=bias)

    def is_fast(self, x: Tensor) -> bool:
        """Whether our own kernels can compute this."""
        plain = self.observer is not None or self.query.bias is not None
        return not plain and kernels.usable(x) and kernels.fits(self.d_k, self.d_v)

    def attend_fast(self, x: Tensor, memory: Tensor | None, sight: Sight) -> Tensor:
        """The same as projecting, `attend` and its mask, with one product for what has one input.

        Without a memory the rows attend to themselves.
        """
        if memory is None:
            weights = (self.query.weight, self.key.weight, self.value.weight)
            queries, keys_values = F.linear(x, torch.cat(weights)), None
        else:
            queries = self.query(x)
            keys_values = F.linear(memory, torch.cat((self.key.weight, self.value.weight)))
        heads: Tensor = kernels.attend(
            queries,
            keys_values,
            sight.sentences,
            heads=self.heads,
            d_k=self.d_k,
            causal=sight.causal,
            window=sight.window,
            dropout=self.dropout if self.training else 0.0,
        )
        merged: Tensor = self.output(heads)
        return merged

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


def watchable(model: nn.Module) -> list[tuple[str, Watchable]]:
    """Every attention of the model, by its module's name."""
    return [(n, m) for n, m in model.named_modules() if isinstance(m, Watchable)]


@contextmanager
def watch(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the weights of every attention of the model, by module name, as they are computed."""
    seen: dict[str, Tensor] = {}
    modules = watchable(model)

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


class Sight:
    """Which keys the queries of packed rows may see: those of their own sentence."""

    def __init__(
        self, queries: Rows, keys: Rows | None = None, *, causal: bool = False, window: int = 0
    ) -> None:
        self.queries, self.keys = queries, queries if keys is None else keys
        self.causal, self.window = causal, window

    @cached_property
    def mask(self) -> Tensor:
        """R 1 T S, for the plain path."""
        if self.keys is self.queries:
            return self_mask(self.queries, causal=self.causal, window=self.window)
        return cross_mask(self.queries.segments_RL, self.keys.segments_RL)

    @cached_property
    def sentences(self) -> Any:
        """Where they lie, for the fast path."""
        return kernels.Sentences(self.queries.segments_RL, self.keys.segments_RL)


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
