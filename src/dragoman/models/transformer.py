"""The Transformer stands here to be read beside §3 of the paper, in its order.

§3.1 is `Residual`, `EncoderLayer` and `DecoderLayer`; §3.2 `SelfAttention`, with the formulas of
attention in `attention.py`; §3.3 `FeedForward`; §3.4 `Embedding`; §3.5 is in `positions.py`. Then
comes `Transformer`, the whole, and what it remembers while it writes one piece after another.

The defaults are the paper's. Options that are not: pre-norm, RMSNorm, rotary and relative
positions, restricted self-attention (§4), GELU, Swish and SwiGLU, mixtures of experts, dropout
inside attention and feed-forward layers, unshared embeddings, biases of attention and output.
"""

# R rows, S source length, T target length, B sentences, K beams, M model width, H heads,
# E width of a head

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman import kernels
from dragoman.config import ModelConfig
from dragoman.models.api import Model, Rows, State
from dragoman.models.attention import AttentionMask, Linear, MultiHeadAttention
from dragoman.models.experts import Experts
from dragoman.models.positions import LearnedPositions, RelativeBias, added_positions, rotate
from dragoman.models.supported_settings import unsupported

# --- §3.1 encoder and decoder stacks ---


class ResidualStream(NamedTuple):
    """Carry what flows from sub-layer to sub-layer twice: each of its two uses has its own tensor.

    They are equal, and on the fast path they share their memory. The kernel that made both gets
    their gradients apart, and adding these costs no pass of its own.
    """

    residual: Tensor
    """The next sub-layer's output is added to this one."""
    for_sublayer: Tensor
    """The next sub-layer reads this one."""

    @classmethod
    def of(cls, x: Tensor) -> ResidualStream:
        """Return a stream that begins with this tensor."""
        return cls(x, x)


class Residual(nn.Module):
    """Frame a sub-layer: LayerNorm(x + Dropout(Sublayer(x))) (§3.1, §5.4), or pre-norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = norm(config)
        self.pre = config.norm == "pre"
        self.dropout = config.dropout

    def forward(
        self, stream: ResidualStream, sublayer: Callable[[Tensor], Tensor]
    ) -> ResidualStream:
        """Return the stream with what the sub-layer makes of it added."""
        x = stream.residual
        y = sublayer(self.norm(x) if self.pre else stream.for_sublayer)
        if kernels.usable(x) and kernels.usable(y):
            return self._add_fast(x, y)
        x = x + F.dropout(y, self.dropout, self.training)
        return ResidualStream.of(x if self.pre else self.norm(x))

    def _add_fast(self, x: Tensor, y: Tensor) -> ResidualStream:
        rate = self.dropout if self.training else 0.0
        if self.pre:
            return ResidualStream.of(kernels.add(x, y, rate))
        norm = self.norm
        return ResidualStream(*kernels.add_and_norm(x, y, norm.weight, norm.bias, norm.eps, rate))


class LayerNorm(nn.LayerNorm):
    """Normalise to mean 0 and variance 1, then apply gain and bias, which keep full precision."""

    full_precision = True

    def forward(self, x: Tensor) -> Tensor:
        """Return … M of … M."""
        if kernels.usable(x):
            fast: Tensor = kernels.norm(x, self.weight, self.bias, self.eps)
            return fast
        return super().forward(x)


class RMSNorm(nn.RMSNorm):
    """Normalise to mean square 1, then apply a gain, which keeps full precision."""

    full_precision = True
    bias = None

    def forward(self, x: Tensor) -> Tensor:
        """Return … M of … M."""
        if kernels.usable(x):
            fast: Tensor = kernels.norm(x, self.weight, None, self.eps)
            return fast
        return super().forward(x)


def norm(config: ModelConfig) -> LayerNorm | RMSNorm:
    """Return the normalisation that a config asks for."""
    kind = RMSNorm if config.norm_kind == "rms" else LayerNorm
    return kind(config.d_model, eps=config.norm_epsilon)


class EncoderLayer(nn.Module):
    """Apply self-attention, then the feed-forward layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.around_attention = Residual(config)
        self.feed_forward = feed_forward(config)
        self.around_feed_forward = Residual(config)

    def forward(self, x: ResidualStream, mask: AttentionMask) -> ResidualStream:
        """Return R S M of R S M."""
        x = self.around_attention(x, lambda y: self.attention(y, mask))
        out: ResidualStream = self.around_feed_forward(
            x, lambda y: self.feed_forward(y, mask.queries)
        )
        return out


class DecoderLayer(nn.Module):
    """Apply masked self-attention, attention to the source, then the feed-forward layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.around_attention = Residual(config)
        self.source_attention = MultiHeadAttention(config)
        self.around_source = Residual(config)
        self.feed_forward = feed_forward(config)
        self.around_feed_forward = Residual(config)
        self.window = config.window

    def forward(
        self, x: ResidualStream, mask: AttentionMask, memory: Tensor, source_mask: AttentionMask
    ) -> ResidualStream:
        """Return R T M of R T M, all positions at once, given the encoder's output R S M."""

        def attend_to_source(y: Tensor) -> Tensor:
            if self.source_attention.is_fast(y):
                return self.source_attention.attend_fast(y, memory, source_mask)
            return self.attend_to_source(y, *self.project_source(memory), source_mask.mask)

        x = self.around_attention(x, lambda y: self.attention(y, mask))
        x = self.around_source(x, attend_to_source)
        out: ResidualStream = self.around_feed_forward(
            x, lambda y: self.feed_forward(y, mask.queries)
        )
        return out

    def project_source(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of the encoder's output, R H S E each."""
        a = self.source_attention
        return a.split(a.key(memory)), a.split(a.value(memory))

    def attend_to_source(self, x: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Return R T M of R T M and the source's keys and values."""
        a = self.source_attention
        return a.attend(a.split(a.query(x)), k, v, mask)

    def step(self, x: ResidualStream, cache: LayerCache, source_mask: Tensor) -> ResidualStream:
        """Return B K M of B K M, one new position of every hypothesis; the cache grows by it."""
        x = self.around_attention(x, lambda y: self._attend_to_past(y, cache))
        # The K hypotheses of a sentence are K queries to the one copy of its source.
        x = self.around_source(
            x, lambda y: self.attend_to_source(y, cache.source_k, cache.source_v, source_mask)
        )
        out: ResidualStream = self.around_feed_forward(x, self.feed_forward)
        return out

    def _attend_to_past(self, x_BKM: Tensor, cache: LayerCache) -> Tensor:
        B, K, M = x_BKM.shape
        position = cache.own_k.length
        now = torch.full((B * K, 1), position, device=x_BKM.device)
        q, k, v = self.attention.project(x_BKM.reshape(B * K, 1, M), now)
        cache.own_k.append(k.view(B, K, *k.shape[1::2]))
        cache.own_v.append(v.view(B, K, *v.shape[1::2]))
        first = max(0, position - self.window) if self.window else 0
        past = torch.arange(first, position + 1, device=x_BKM.device)[None]
        y = self.attention.attention.attend(
            q,
            cache.own_k.since(first),
            cache.own_v.since(first),
            bias=self.attention.bias(now[:1], past),
        )
        return y.view(B, K, M)


# --- §3.2 attention; the formulas are in attention.py ---


class SelfAttention(nn.Module):
    """Let a sequence attend to itself, with the positions that act inside attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.rotary = config.positions == "rotary"
        self.relative = RelativeBias(config) if config.positions == "relative" else None
        self.has_kernel = unsupported(config, "self-attention kernel") is None

    def project(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, R H T E each."""
        a = self.attention
        q, k, v = a.split(a.query(x)), a.split(a.key(x)), a.split(a.value(x))
        return (rotate(q, positions), rotate(k, positions), v) if self.rotary else (q, k, v)

    def bias(self, queries: Tensor, keys: Tensor) -> Tensor | None:
        """Return what relative positions add to the scores, if they do."""
        return self.relative(queries, keys) if self.relative is not None else None

    def forward(self, x: Tensor, mask: AttentionMask) -> Tensor:
        """Return R T M of R T M."""
        if self.has_kernel and self.attention.is_fast(x):
            return self.attention.attend_fast(x, None, mask)
        positions = mask.queries.positions_RL
        q, k, v = self.project(x, positions)
        return self.attention.attend(q, k, v, mask.mask, self.bias(positions, positions))


# --- §3.3 position-wise feed-forward networks ---


class FeedForward(nn.Module):
    """Compute FFN(x) = max(0, xW1 + b1)W2 + b2 (eq. 2), or with GELU, Swish or a gate (SwiGLU)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.dropout = config.activation_dropout
        self.inner = Linear(config.d_model, config.d_ff)
        self.outer = Linear(config.d_ff, config.d_model)
        if self.activation == "swiglu":
            self.gate = Linear(config.d_model, config.d_ff)
        self.has_kernel = unsupported(config, "feed-forward kernel") is None

    def forward(self, x: Tensor, rows: Rows | None = None) -> Tensor:
        """Return … M of … M, each position by itself; the rows, which name padding, are ignored."""
        if self.has_kernel and kernels.usable(x):
            w1, w2 = self.inner, self.outer
            fast: Tensor = kernels.relu_feed_forward(x, (w1.weight, w1.bias), (w2.weight, w2.bias))
            return fast
        inner = self.activate(self.inner(x), x)
        out: Tensor = self.outer(F.dropout(inner, self.dropout, self.training))
        return out

    def activate(self, inner: Tensor, x: Tensor) -> Tensor:
        """Return the activation of the inner layer's sums; a gate also reads the layer's input."""
        match self.activation:
            case "relu":
                return F.relu(inner)
            case "gelu":
                return F.gelu(inner)
            case "swish":
                return F.silu(inner)
        return F.silu(self.gate(x)) * inner


def feed_forward(config: ModelConfig) -> FeedForward | Experts:
    """Return the feed-forward layer, or a mixture of them."""
    return Experts(config, FeedForward) if config.experts else FeedForward(config)


# --- §3.4 embeddings; §3.5 positions are in positions.py ---


class TokenEmbedding(nn.Embedding):
    """Learn a vector for each piece, of unit length on average."""

    def reset_parameters(self) -> None:
        """Initialise by N(0, 1/d_model): times √d_model it has the scale of the sinusoids."""
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)


class Embedding(nn.Module):
    """Embed pieces times √d_model (§3.4), plus positions (§3.5), then dropout (§5.4)."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.dropout = config.dropout
        self.pieces = TokenEmbedding(vocabulary, config.d_model)
        self.positions = added_positions(config)
        self.has_kernel = unsupported(config, "embedding kernel") is None

    def forward(self, ids: Tensor, positions: Tensor, longest: int) -> Tensor:
        """Return … M of ids and positions, which are all below `longest`."""
        weight, added = self.pieces.weight, self.positions
        if self.has_kernel and kernels.usable(weight):
            assert not isinstance(added, LearnedPositions)
            table = None if added is None else added.table_of(longest, weight.device)
            rate = self.dropout if self.training else 0.0
            fast: Tensor = kernels.embed(ids, weight, self.scale, positions, table, rate)
            return fast
        x: Tensor = self.pieces(ids) * self.scale
        if added is not None:
            x = x + added(positions, longest).to(x.dtype)
        return F.dropout(x, self.dropout, self.training)


# --- the whole model ---


class Transformer(Model):
    """Encode and decode as in §3.1, with shared embeddings (§3.4)."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.fast = unsupported(config, "fast training") is None
        self.config = config
        self.vocabulary = vocabulary
        self.embedding = Embedding(config, vocabulary)
        self.target_embedding = (
            self.embedding if config.shared_embeddings else Embedding(config, vocabulary)
        )
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        # Pre-norm leaves the stacks' outputs unnormalised; post-norm has nothing left to do.
        pre = config.norm == "pre"
        self.encoder_norm = norm(config) if pre else nn.Identity()
        self.decoder_norm = norm(config) if pre else nn.Identity()
        self.projection = (
            self.embedding.pieces
            if config.shared_embeddings
            else TokenEmbedding(vocabulary, config.d_model)
        )
        if config.output_bias:
            self.projection_bias = nn.Parameter(torch.zeros(vocabulary))

    def encode(self, source: Rows) -> Tensor:
        """Return the encoder's output, R S M."""
        length = source.ids_RL.shape[1]
        mask = AttentionMask(source, window=self.config.window)
        x = ResidualStream.of(self.embedding(source.ids_RL, source.positions_RL, length))
        for layer in self.encoder:
            x = layer(x, mask)
        out: Tensor = self.encoder_norm(x.residual)
        return out

    def features(self, source: Rows, target: Rows) -> Tensor:
        """Return the decoder's output at every target position, as `Model.features` says."""
        memory = self.encode(source)
        length = target.ids_RL.shape[1]
        mask = AttentionMask(target, causal=True, window=self.config.window)
        source_mask = AttentionMask(target, source)
        x = ResidualStream.of(self.target_embedding(target.ids_RL, target.positions_RL, length))
        for layer in self.decoder:
            x = layer(x, mask, memory, source_mask)
        out: Tensor = self.decoder_norm(x.residual)
        return out

    def start(self, source: Rows) -> TransformerState:
        """Read the source and return the first state, as `Model.start` says."""
        memory = self.encode(source)
        c = self.config
        empty_k = memory.new_empty(len(memory), 1, c.heads, 0, c.d_k)
        empty_v = memory.new_empty(len(memory), 1, c.heads, 0, c.d_v)
        layers = [
            LayerCache(GrowingCache(empty_k), GrowingCache(empty_v), *layer.project_source(memory))
            for layer in self._decoder_layers()
        ]
        return TransformerState(layers, (source.segments_RL > 0)[:, None, None, :])

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, TransformerState]:
        """Append a piece to every hypothesis, as `Model.step` says."""
        assert isinstance(state, TransformerState)
        now = torch.full_like(ids_BK, state.length)
        x = ResidualStream.of(self.target_embedding(ids_BK, now, state.length + 1))
        for layer, cache in zip(self._decoder_layers(), state.layers, strict=True):
            x = layer.step(x, cache, state.source_mask)
        return self.log_probabilities(self.decoder_norm(x.residual)), state

    def _decoder_layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]


# --- what it remembers between two steps ---


class GrowingCache:
    """Keep the keys, or values, of every hypothesis so far, B K H T E, in memory that grows.

    A new piece is written where there is room for it; only reordering copies.
    """

    def __init__(self, memory: Tensor) -> None:
        self.memory = memory  # B K H C E, C ≥ T
        self.length = 0

    def append(self, x_BKHE: Tensor) -> None:
        """Add one more position of every hypothesis."""
        B, K, H, room, E = self.memory.shape
        if self.length == room:
            grown = self.memory.new_empty(B, K, H, max(16, room + room // 2), E)
            grown[:, :, :, : self.length] = self.memory[:, :, :, : self.length]
            self.memory = grown
        self.memory[:, :, :, self.length] = x_BKHE
        self.length += 1

    def since(self, first: int) -> Tensor:
        """Return what was kept from a position on, BK H T E."""
        return self.memory[:, :, :, first : self.length].flatten(0, 1)

    def expand(self, beams: int) -> None:
        """Repeat the hypothesis of each sentence, as `State.expand` says."""
        self.memory = self.memory.expand(-1, beams, -1, -1, -1).contiguous()

    def reorder(self, parents_BK: Tensor) -> None:
        """Let hypotheses continue others, as `State.reorder` says."""
        B, K = parents_BK.shape
        rows_B1 = K * torch.arange(B, device=parents_BK.device)[:, None]
        chosen = self.memory.flatten(0, 1).index_select(0, (rows_B1 + parents_BK).flatten())
        self.memory = chosen.view(self.memory.shape)

    def keep(self, sentences_B: Tensor) -> None:
        """Keep only some sentences, as `State.keep` says."""
        self.memory = self.memory.index_select(0, sentences_B)


@dataclass(slots=True)
class LayerCache:
    """Hold the keys and values of one decoder layer."""

    own_k: GrowingCache
    own_v: GrowingCache
    source_k: Tensor  # B H S E: the source, once a sentence
    source_v: Tensor


class TransformerState(State):
    """Hold the caches of all layers, and which source positions are real."""

    def __init__(self, layers: list[LayerCache], source_mask: Tensor) -> None:
        self.layers = layers
        self.source_mask = source_mask  # B 1 1 S

    @property
    def length(self) -> int:
        """Return how many pieces have been read."""
        return self.layers[0].own_k.length

    def expand(self, beams: int) -> TransformerState:
        """Repeat the hypothesis of each sentence, as `State.expand` says."""
        for cache in self._caches():
            cache.expand(beams)
        return self

    def reorder(self, parents_BK: Tensor) -> TransformerState:
        """Let hypotheses continue others, as `State.reorder` says."""
        for cache in self._caches():
            cache.reorder(parents_BK)
        return self

    def keep(self, sentences_B: Tensor) -> TransformerState:
        """Keep only some sentences, as `State.keep` says."""
        for cache in self._caches():
            cache.keep(sentences_B)
        for layer in self.layers:
            layer.source_k = layer.source_k[sentences_B]
            layer.source_v = layer.source_v[sentences_B]
        self.source_mask = self.source_mask[sentences_B]
        return self

    def _caches(self) -> Iterator[GrowingCache]:
        for layer in self.layers:
            yield from (layer.own_k, layer.own_v)
