"""The GPU engine has a Transformer's weights as one matrix for what has one input.

Both orders of normalisation are the same chain of stages. At each the residual stream takes in what
the sub-layer before left, and a matrix is applied. Post-norm normalises the stream itself, pre-norm
what the matrix sees of it.
"""

# M model width, W = heads times their width, L decoder layers, V targets

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.config import ModelConfig
from dragoman.models.positions import position_table

PROJECTION_MULTIPLE: Final = 64
"""The projection is padded with zeros to a multiple of so many rows, for fast products."""


@dataclass(frozen=True, slots=True)
class Norm:
    """Hold gain and bias, in full precision."""

    gain: Tensor
    bias: Tensor
    epsilon: float


@dataclass(frozen=True, slots=True)
class Matrix:
    """Hold a matrix, outputs × inputs, and the bias that is added."""

    weight: Tensor
    bias: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Hold what a stage does: add to the residual stream, normalise, multiply, activate."""

    norm: Norm | None
    """This is None where post-norm has nothing to normalise yet: after the embedding."""
    matrix: Matrix
    activation: str = ""


@dataclass(frozen=True, slots=True)
class EncoderLayer:
    """Hold self-attention, then the feed-forward layer."""

    attention: Stage
    """It computes queries, keys and values, 3 W."""
    output: Matrix
    inner: Stage
    outer: Matrix


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """Hold self-attention, attention to the source, then the feed-forward layer."""

    attention: Stage
    output: Matrix
    source: Stage
    """It computes queries, W."""
    source_output: Matrix
    inner: Stage
    outer: Matrix


class GpuWeights:
    """Hold all of a model on a device."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        config: ModelConfig,
        targets: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        """Keep matrices in `dtype`; `targets` ids can be produced."""
        self.config, self.targets, self.device, self.dtype = config, targets, device, dtype
        self.post = config.norm == "post"
        self.heads, self.d_k, self.attention_width = (
            config.heads,
            config.d_k,
            config.heads * config.d_k,
        )
        self.layers = config.decoder_layers
        self.scale = config.d_model**0.5
        """Embeddings are multiplied by this."""
        load = _WeightLoader(weights, config, device, dtype)
        shared = config.shared_embeddings
        self.source_pieces = load.tensor("embedding.pieces.weight")
        self.target_pieces = (
            self.source_pieces if shared else load.tensor("target_embedding.pieces.weight")
        )
        self._learned = (
            load.full("embedding.positions.weight") if config.positions == "learned" else None
        )

        norms = load.norms("encoder", config.encoder_layers, "attention", "feed_forward")
        self.encoder = [
            EncoderLayer(
                *load.attention(f"encoder.{i}", norms), *load.feed_forward(f"encoder.{i}", norms)
            )
            for i in range(config.encoder_layers)
        ]
        keys_and_values = [
            f"decoder.{i}.source_attention.{part}"
            for i in range(config.decoder_layers)
            for part in ("key", "value")
        ]
        self.memory = Stage(next(norms), load.matrix(*keys_and_values))
        """It computes keys and values of all decoder layers from the encoder's output, L 2 W."""

        norms = load.norms("decoder", config.decoder_layers, "attention", "source", "feed_forward")
        self.decoder = [
            DecoderLayer(
                *load.attention(f"decoder.{i}", norms),
                *load.source_attention(f"decoder.{i}", norms),
                *load.feed_forward(f"decoder.{i}", norms),
            )
            for i in range(config.decoder_layers)
        ]
        rows = load.tensor(f"{'embedding.pieces' if shared else 'projection'}.weight")[:targets]
        padded = functional.pad(rows, (0, 0, 0, -targets % PROJECTION_MULTIPLE))
        self.projection = Stage(next(norms), Matrix(padded))
        """It computes the scores of the targets, and of padding."""
        self.output_bias = load.full("projection_bias")[:targets] if config.output_bias else None

    def positions(self, length: int) -> Tensor:
        """Return what is added at the first `length` positions, in full precision."""
        return position_table(length, self.config.d_model, self._learned).to(self.device)


class _WeightLoader:
    """Bring weights to the device by name."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        config: ModelConfig,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._weights, self._config, self._device, self._dtype = weights, config, device, dtype

    def full(self, name: str) -> Tensor:
        return self._weights[name].to(self._device, torch.float32).contiguous()

    def tensor(self, name: str) -> Tensor:
        return self._weights[name].to(self._device, self._dtype).contiguous()

    def matrix(self, *names: str) -> Matrix:
        """Return several matrices as one, one below the other."""
        weight = torch.cat([self.tensor(f"{name}.weight") for name in names])
        if f"{names[0]}.bias" not in self._weights:
            return Matrix(weight)
        return Matrix(weight, torch.cat([self.tensor(f"{name}.bias") for name in names]))

    def norms(self, stack: str, layers: int, *parts: str) -> Iterator[Norm | None]:
        """Yield the norms of a stack in the order of its stages, one more than its sub-layers."""
        own = [f"{stack}.{i}.around_{part}.norm" for i in range(layers) for part in parts]
        pre = self._config.norm == "pre"
        for name in [*own, f"{stack}_norm"] if pre else ["", *own]:
            gain, bias = f"{name}.weight", f"{name}.bias"
            epsilon = self._config.norm_epsilon
            yield Norm(self.full(gain), self.full(bias), epsilon) if name else None

    def attention(self, layer: str, norms: Iterator[Norm | None]) -> tuple[Stage, Matrix]:
        own = f"{layer}.attention.attention"
        matrix = self.matrix(*(f"{own}.{part}" for part in ("query", "key", "value")))
        return Stage(next(norms), matrix), self.matrix(f"{own}.output")

    def source_attention(self, layer: str, norms: Iterator[Norm | None]) -> tuple[Stage, Matrix]:
        own = f"{layer}.source_attention"
        return Stage(next(norms), self.matrix(f"{own}.query")), self.matrix(f"{own}.output")

    def feed_forward(self, layer: str, norms: Iterator[Norm | None]) -> tuple[Stage, Matrix]:
        inner = self.matrix(f"{layer}.feed_forward.inner")
        outer = self.matrix(f"{layer}.feed_forward.outer")
        return Stage(next(norms), inner, self._config.activation), outer
