"""Multi-head attention (§3.2) is computed over packed rows; its weights can be recorded.

Attention is computed by PyTorch's fused kernel, or in training on a GPU by our own. The weights are
formed one by one only while somebody records them: ``with record_attention(model) as weights:
model(...)`` leaves them in ``weights``.
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
from dragoman.models.supported_settings import unsupported

# cuDNN's attention plans anew for every length, which takes a tenth of a second at each piece of a
# translation; PyTorch's other kernels do not.
torch.backends.cuda.enable_cudnn_sdp(False)


class Linear(nn.Linear):
    """Multiply by a matrix and, unless told otherwise, add a bias."""

    def reset_parameters(self) -> None:
        """Initialise the matrix by Xavier's uniform distribution and the bias by zero."""
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


# --- which positions may attend to which ---


class AttentionMask:
    """Tell which keys the queries of packed rows may attend to: those of their own sentence.

    Made once for all layers. The plain path uses `mask`, the Triton kernel uses `spans`.
    """

    def __init__(
        self, queries: Rows, keys: Rows | None = None, *, causal: bool = False, window: int = 0
    ) -> None:
        self.queries, self.keys = queries, queries if keys is None else keys
        self.causal, self.window = causal, window

    @cached_property
    def mask(self) -> Tensor:
        """Return R 1 T S: True where a query may attend to a key."""
        if self.keys is self.queries:
            return self_mask(self.queries, causal=self.causal, window=self.window)
        return cross_mask(self.queries.segments_RL, self.keys.segments_RL)

    @cached_property
    def spans(self) -> Any:
        """Return where the sentences lie in the rows, as `kernels.attend` reads it."""
        return kernels.SentenceSpans(self.queries.segments_RL, self.keys.segments_RL)


def self_mask(rows: Rows, *, causal: bool, window: int = 0) -> Tensor:
    """Return R 1 L L: a position sees its own sentence, its past if causal, its window if any."""
    mask = rows.segments_RL[:, :, None] == rows.segments_RL[:, None, :]
    if causal or window:
        ahead = rows.positions_RL[:, None, :] - rows.positions_RL[:, :, None]
        if causal:
            mask = mask & (ahead <= 0)
        if window:
            mask = mask & (ahead.abs() <= window)
    return mask[:, None]


def cross_mask(target: Tensor, source: Tensor) -> Tensor:
    """Return R 1 T S from segments: a target position sees the source of its own sentence.

    Padding sees everything: it counts nowhere, and a row of −∞ would be not-a-number.
    """
    return ((target[:, :, None] == source[:, None, :]) | (target[:, :, None] == 0))[:, None]


# --- attention ---


class RecordableAttention(nn.Module):
    """Attend in any way, and call `observer`, if there is one, with the weights, R H T S."""

    observer: Callable[[Tensor], None] | None = None


class MultiHeadAttention(RecordableAttention):
    """Compute Concat(head_1 … head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.d_k, self.d_v = config.heads, config.d_k, config.d_v
        self.dropout = config.attention_dropout
        bias = config.attention_bias
        self.query = Linear(config.d_model, config.heads * config.d_k, bias=bias)
        self.key = Linear(config.d_model, config.heads * config.d_k, bias=bias)
        self.value = Linear(config.d_model, config.heads * config.d_v, bias=bias)
        self.output = Linear(config.heads * config.d_v, config.d_model, bias=bias)
        self.has_kernel = unsupported(config, "attention kernel") is None

    def split(self, x: Tensor) -> Tensor:
        """Return the heads of a projection, R H T K of R T (H·K)."""
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
        """Return softmax(QKᵀ/√d_k + bias)V W^O, R T M, attending where the mask is True (eq. 1)."""
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

    def is_fast(self, x: Tensor) -> bool:
        """Return whether our own kernel computes this attention, so that `attend_fast` may."""
        return self.has_kernel and self.observer is None and kernels.usable(x)

    def attend_fast(self, x: Tensor, memory: Tensor | None, mask: AttentionMask) -> Tensor:
        """Return what projecting and `attend` give, with one product for what has one input.

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
            mask.spans,
            heads=self.heads,
            d_k=self.d_k,
            causal=mask.causal,
            window=mask.window,
            dropout=self.dropout if self.training else 0.0,
        )
        merged: Tensor = self.output(heads)
        return merged


# --- recording ---


def attention_modules(model: nn.Module) -> list[tuple[str, RecordableAttention]]:
    """Return every attention of a model with its module's name."""
    return [(n, m) for n, m in model.named_modules() if isinstance(m, RecordableAttention)]


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Yield a dictionary that collects, by module name, the weights of every attention computed."""
    recorded: dict[str, Tensor] = {}
    modules = attention_modules(model)

    def recorder(name: str) -> Callable[[Tensor], None]:
        def observer(weights: Tensor) -> None:
            recorded[name] = weights.detach()

        return observer

    try:
        for name, module in modules:
            module.observer = recorder(name)
        yield recorded
    finally:
        for _, module in modules:
            module.observer = None
