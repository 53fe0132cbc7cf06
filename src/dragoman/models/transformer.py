"""The Transformer (§3), to be read beside the paper.

The defaults are the paper's. Options that are not: pre-norm, RMSNorm, rotary and relative
positions, restricted self-attention, GELU, Swish and SwiGLU, mixtures of experts, dropout inside
attention and feed-forward layers, unshared embeddings, biases of attention and of the output.
"""

# R rows, S source length, T target length, B sentences, K beams, M model width, H heads,
# E width of a head

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman import kernels
from dragoman.config import ModelConfig
from dragoman.models.api import Model, Rows, State
from dragoman.models.attention import Linear, MultiHeadAttention, RelativeBias, Sight, rotate
from dragoman.models.experts import Experts

__all__ = ["Transformer", "sinusoids"]


def sinusoids(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same (§3.5)."""
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(positions * rates)
    table[:, 1::2] = torch.cos(positions * rates)
    return table.float()


class Pieces(nn.Embedding):
    """A vector for each piece, of unit length on average."""

    def reset_parameters(self) -> None:
        """N(0, 1/d_model): times √d_model it has the scale of the sinusoids."""
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)


class Embedding(nn.Module):
    """Pieces times √d_model, plus positions, then dropout (§3.4, §3.5, §5.4)."""

    table: Tensor

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.dropout = config.dropout
        self.pieces = Pieces(vocabulary, config.d_model)
        self.kind = config.positions
        if self.kind == "learned":
            self.positions = Pieces(config.max_positions, config.d_model)
        elif self.kind == "sinusoidal":
            # Made when it is first needed, and again when a sentence is longer than any before.
            empty = torch.empty(0, config.d_model, device="cpu")  # real even in a meta model
            self.register_buffer("table", empty, persistent=False)

    def forward(self, ids: Tensor, positions: Tensor, longest: int) -> Tensor:
        """… M from ids and positions, which are all below `longest`."""
        weight = self.pieces.weight
        if self.kind == "sinusoidal" and longest > len(self.table):
            self.table = sinusoids(max(256, 2 * longest), weight.shape[-1]).to(weight.device)
        if self.kind != "learned" and kernels.usable(weight):
            table = self.table if self.kind == "sinusoidal" else None
            rate = self.dropout if self.training else 0.0
            fast: Tensor = kernels.embed(ids, weight, self.scale, positions, table, rate)
            return fast
        x: Tensor = self.pieces(ids) * self.scale
        if self.kind == "sinusoidal":
            x = x + self.table[positions].to(x.dtype)
        elif self.kind == "learned":
            # Past the last learned position there is nothing better than the last.
            x = x + self.positions(positions.clamp(max=self.positions.num_embeddings - 1))
        return F.dropout(x, self.dropout, self.training)


class FeedForward(nn.Module):
    """FFN(x) = max(0, xW1 + b1)W2 + b2 (eq. 2), or with GELU or Swish, or gated (SwiGLU)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.dropout = config.activation_dropout
        self.inner = Linear(config.d_model, config.d_ff)
        self.outer = Linear(config.d_ff, config.d_model)
        if self.activation == "swiglu":
            self.gate = Linear(config.d_model, config.d_ff)

    def forward(self, x: Tensor, rows: Rows | None = None) -> Tensor:
        """… M from … M, each position by itself; padding like any other, whatever the rows say."""
        if self.activation == "relu" and kernels.usable(x) and not self.dropout:
            w1, w2 = self.inner, self.outer
            fast: Tensor = kernels.relu_feed_forward(x, (w1.weight, w1.bias), (w2.weight, w2.bias))
            return fast
        if self.activation == "relu":
            inner = F.relu(self.inner(x))
        elif self.activation == "gelu":
            inner = F.gelu(self.inner(x))
        elif self.activation == "swish":
            inner = F.silu(self.inner(x))
        else:
            inner = F.silu(self.gate(x)) * self.inner(x)
        out: Tensor = self.outer(F.dropout(inner, self.dropout, self.training))
        return out


def feed_forward(config: ModelConfig) -> FeedForward | Experts:
    """The feed-forward layer of §3.3, or a mixture of them."""
    return Experts(config, FeedForward) if config.experts else FeedForward(config)


class LayerNorm(nn.LayerNorm):
    """To mean 0 and variance 1, then gain and bias, which keep full precision (§3.1)."""

    full_precision = True

    def forward(self, x: Tensor) -> Tensor:
        """… M from … M."""
        if kernels.usable(x):
            fast: Tensor = kernels.norm(x, self.weight, self.bias, self.eps)
            return fast
        return super().forward(x)


class RMSNorm(nn.RMSNorm):
    """To mean square 1, then gain."""

    full_precision = True
    bias = None

    def forward(self, x: Tensor) -> Tensor:
        """… M from … M."""
        if kernels.usable(x):
            fast: Tensor = kernels.norm(x, self.weight, None, self.eps)
            return fast
        return super().forward(x)


def norm(config: ModelConfig) -> LayerNorm | RMSNorm:
    """The normalisation of the config."""
    kind = RMSNorm if config.norm_kind == "rms" else LayerNorm
    return kind(config.d_model, eps=config.norm_epsilon)


class Residual(nn.Module):
    """The frame of every sub-layer: LayerNorm(x + Dropout(Sublayer(x))) (§3.1, §5.4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = norm(config)
        self.pre = config.norm == "pre"
        self.dropout = config.dropout

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x with what the sub-layer makes of it added."""
        y = sublayer(self.norm(x) if self.pre else getattr(x, "again", x))
        if kernels.usable(x) and kernels.usable(y):
            return self._fast(x, y)
        x = x + F.dropout(y, self.dropout, self.training)
        return x if self.pre else self.norm(x)

    def _fast(self, x: Tensor, y: Tensor) -> Tensor:
        rate = self.dropout if self.training else 0.0
        if self.pre:
            total: Tensor = kernels.add(x, y, rate)
            return total
        norm = self.norm
        out: Tensor
        out, again = kernels.add_and_norm(x, y, norm.weight, norm.bias, norm.eps, rate)
        out.again = again  # type: ignore[attr-defined] # for the next sub-layer; see the kernel
        return out


class SelfAttention(nn.Module):
    """Attention of a sequence to itself, with the positions that act inside attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.rotary = config.positions == "rotary"
        self.relative = RelativeBias(config) if config.positions == "relative" else None

    def project(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each R H T E."""
        a = self.attention
        q, k, v = a.split(a.query(x)), a.split(a.key(x)), a.split(a.value(x))
        return (rotate(q, positions), rotate(k, positions), v) if self.rotary else (q, k, v)

    def bias(self, queries: Tensor, keys: Tensor) -> Tensor | None:
        """What relative positions add to the scores."""
        return self.relative(queries, keys) if self.relative is not None else None

    def forward(self, x: Tensor, sight: Sight) -> Tensor:
        """R T M from R T M."""
        if self.attention.is_fast(x) and not self.rotary and self.relative is None:
            return self.attention.attend_fast(x, None, sight)
        positions = sight.queries.positions_RL
        q, k, v = self.project(x, positions)
        return self.attention.attend(q, k, v, sight.mask, self.bias(positions, positions))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.around_attention = Residual(config)
        self.feed_forward = feed_forward(config)
        self.around_feed_forward = Residual(config)

    def forward(self, x: Tensor, sight: Sight) -> Tensor:
        """R S M from R S M."""
        x = self.around_attention(x, lambda y: self.attention(y, sight))
        out: Tensor = self.around_feed_forward(x, lambda y: self.feed_forward(y, sight.queries))
        return out


class Past:
    """What every hypothesis has kept of its pieces so far, B K H T E, in memory that grows.

    A new piece is written where there is room for it; only reordering copies.
    """

    def __init__(self, memory: Tensor) -> None:
        self.memory = memory  # B K H C E, C ≥ T
        self.length = 0

    def append(self, x_BKHE: Tensor) -> None:
        """One more position of every hypothesis."""
        B, K, H, room, E = self.memory.shape
        if self.length == room:
            grown = self.memory.new_empty(B, K, H, max(16, room + room // 2), E)
            grown[:, :, :, : self.length] = self.memory[:, :, :, : self.length]
            self.memory = grown
        self.memory[:, :, :, self.length] = x_BKHE
        self.length += 1

    def since(self, first: int) -> Tensor:
        """From a position on, BK H T E."""
        return self.memory[:, :, :, first : self.length].flatten(0, 1)

    def expand(self, beams: int) -> None:
        """See State."""
        self.memory = self.memory.expand(-1, beams, -1, -1, -1).contiguous()

    def reorder(self, parents_BK: Tensor) -> None:
        """See State."""
        B, K = parents_BK.shape
        rows_B1 = K * torch.arange(B, device=parents_BK.device)[:, None]
        chosen = self.memory.flatten(0, 1).index_select(0, (rows_B1 + parents_BK).flatten())
        self.memory = chosen.view(self.memory.shape)

    def keep(self, sentences_B: Tensor) -> None:
        """See State."""
        self.memory = self.memory.index_select(0, sentences_B)


@dataclass(slots=True)
class LayerCache:
    """Keys and values of one decoder layer."""

    own_k: Past
    own_v: Past
    source_k: Tensor  # B H S E: the source, once a sentence
    source_v: Tensor


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the source, then the feed-forward layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.around_attention = Residual(config)
        self.source_attention = MultiHeadAttention(config)
        self.around_source = Residual(config)
        self.feed_forward = feed_forward(config)
        self.around_feed_forward = Residual(config)
        self.window = config.window

    def source(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder's output, R H S E."""
        a = self.source_attention
        return a.split(a.key(memory)), a.split(a.value(memory))

    def look_at_source(self, x: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """R T M from R T M."""
        a = self.source_attention
        return a.attend(a.split(a.query(x)), k, v, mask)

    def forward(self, x: Tensor, sight: Sight, memory: Tensor, source_sight: Sight) -> Tensor:
        """R T M from R T M, all positions at once."""

        def attend_to_source(y: Tensor) -> Tensor:
            if self.source_attention.is_fast(y):
                return self.source_attention.attend_fast(y, memory, source_sight)
            return self.look_at_source(y, *self.source(memory), source_sight.mask)

        x = self.around_attention(x, lambda y: self.attention(y, sight))
        x = self.around_source(x, attend_to_source)
        out: Tensor = self.around_feed_forward(x, lambda y: self.feed_forward(y, sight.queries))
        return out

    def step(self, x_BKM: Tensor, cache: LayerCache, source_mask: Tensor) -> Tensor:
        """B K M from B K M, one new position of every hypothesis; grows the cache."""
        x = self.around_attention(x_BKM, lambda y: self._look_back(y, cache))
        # The K hypotheses of a sentence are K queries to the one copy of its source.
        x = self.around_source(
            x, lambda y: self.look_at_source(y, cache.source_k, cache.source_v, source_mask)
        )
        out: Tensor = self.around_feed_forward(x, self.feed_forward)
        return out

    def _look_back(self, x_BKM: Tensor, cache: LayerCache) -> Tensor:
        B, K, M = x_BKM.shape
        position = cache.own_k.length
        here = torch.full((B * K, 1), position, device=x_BKM.device)
        q, k, v = self.attention.project(x_BKM.reshape(B * K, 1, M), here)
        cache.own_k.append(k.view(B, K, *k.shape[1::2]))
        cache.own_v.append(v.view(B, K, *v.shape[1::2]))
        first = max(0, position - self.window) if self.window else 0
        past = torch.arange(first, position + 1, device=x_BKM.device)[None]
        y = self.attention.attention.attend(
            q,
            cache.own_k.since(first),
            cache.own_v.since(first),
            bias=self.attention.bias(here[:1], past),
        )
        return y.view(B, K, M)


class TransformerState(State):
    """The caches of all layers, and which source positions are real."""

    def __init__(self, layers: list[LayerCache], source_mask: Tensor) -> None:
        self.layers = layers
        self.source_mask = source_mask  # B 1 1 S

    @property
    def length(self) -> int:
        """How many pieces have been read."""
        return self.layers[0].own_k.length

    def expand(self, beams: int) -> TransformerState:
        """See State."""
        for past in self._pasts():
            past.expand(beams)
        return self

    def reorder(self, parents_BK: Tensor) -> TransformerState:
        """See State."""
        for past in self._pasts():
            past.reorder(parents_BK)
        return self

    def keep(self, sentences_B: Tensor) -> TransformerState:
        """See State."""
        for past in self._pasts():
            past.keep(sentences_B)
        for layer in self.layers:
            layer.source_k = layer.source_k[sentences_B]
            layer.source_v = layer.source_v[sentences_B]
        self.source_mask = self.source_mask[sentences_B]
        return self

    def _pasts(self) -> Iterator[Past]:
        for layer in self.layers:
            yield from (layer.own_k, layer.own_v)


class Transformer(Model):
    """Encoder and decoder of §3.1 with shared embeddings (§3.4)."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.fast = not config.experts  # a gate decides by what it sees
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
            else Pieces(vocabulary, config.d_model)
        )
        if config.output_bias:
            self.projection_bias = nn.Parameter(torch.zeros(vocabulary))

    def encode(self, source: Rows) -> Tensor:
        """The encoder's output, R S M."""
        sight = Sight(source, window=self.config.window)
        x: Tensor = self.embedding(source.ids_RL, source.positions_RL, source.ids_RL.shape[1])
        for layer in self.encoder:
            x = layer(x, sight)
        out: Tensor = self.encoder_norm(x)
        return out

    def features(self, source: Rows, target: Rows) -> Tensor:
        """See Model."""
        memory = self.encode(source)
        sight = Sight(target, causal=True, window=self.config.window)
        source_sight = Sight(target, source)
        length = target.ids_RL.shape[1]
        x: Tensor = self.target_embedding(target.ids_RL, target.positions_RL, length)
        for layer in self.decoder:
            x = layer(x, sight, memory, source_sight)
        out: Tensor = self.decoder_norm(x)
        return out

    def _decoder(self) -> list[DecoderLayer]:
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def start(self, source: Rows) -> TransformerState:
        """See Model."""
        memory = self.encode(source)
        c = self.config
        empty_k = memory.new_empty(len(memory), 1, c.heads, 0, c.d_k)
        empty_v = memory.new_empty(len(memory), 1, c.heads, 0, c.d_v)
        layers = [
            LayerCache(Past(empty_k), Past(empty_v), *layer.source(memory))
            for layer in self._decoder()
        ]
        return TransformerState(layers, (source.segments_RL > 0)[:, None, None, :])

    def step(self, ids_BK: Tensor, state: State) -> tuple[Tensor, TransformerState]:
        """See Model."""
        assert isinstance(state, TransformerState)
        here = torch.full_like(ids_BK, state.length)
        x: Tensor = self.target_embedding(ids_BK, here, state.length + 1)
        for layer, cache in zip(self._decoder(), state.layers, strict=True):
            x = layer.step(x, cache, state.source_mask)
        return self.log_probabilities(self.decoder_norm(x)), state
