"""A Transformer's weights in int8, in the order the kernel reads them.

Each output of a matrix has its own scale, max |w| / 127. The kernel takes 64 outputs at a time and
of these 4 inputs at a time: [N / 64][K / 4][64][4].
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.errors import ModelError
from dragoman.models.transformer import sinusoids
from dragoman.text.symbols import EOS, FIRST
from dragoman.translate.engine import native

__all__ = ["Packed", "bind", "pack", "why_not"]

BLOCK: Final = 64
NEVER: Final = -1e30
"""The score of an output that is only padding."""
PROJECTIONS: Final = ("projection", "embedding")
"""Matrices whose outputs may be the scores of pieces."""
ACTIVATIONS: Final = ("relu", "gelu", "swish")

Packed = dict[str, NDArray[Any]]
"""Arrays by name: NAME.weight, NAME.scale, NAME.offset, NAME.bias of a matrix, and vectors."""


def why_not(config: ModelConfig) -> str:
    """What keeps the kernel from computing such a model, as the setting is called; or nothing."""
    reasons = {
        f"model.architecture = {config.architecture}": config.architecture != "transformer",
        f"model.positions = {config.positions}": config.positions not in ("sinusoidal", "learned"),
        "model.positions = learned with model.shared_embeddings = false": (
            config.positions == "learned" and not config.shared_embeddings
        ),
        f"model.norm_kind = {config.norm_kind}": config.norm_kind != "layer",
        f"model.activation = {config.activation}": config.activation not in ACTIVATIONS,
        f"model.window = {config.window}": config.window != 0,
        f"model.experts = {config.experts}": config.experts != 0,
        f"model.d_v = {config.d_v}": config.d_v != config.d_k,
        f"model.d_k = {config.d_k}": config.d_k % 4 != 0,
        f"model.d_ff = {config.d_ff}": config.d_ff % 4 != 0,
        f"model.d_model = {config.d_model}": config.d_model % 4 != 0,
    }
    return next((name for name, applies in reasons.items() if applies), "")


def pack(weights: Mapping[str, Tensor], config: ModelConfig, targets: int) -> Packed:
    """All that the kernel needs of a model's weights; `targets` ids can be produced."""
    packed: Packed = {}

    def matrix(name: str, *sources: str, rows: int | None = None, bias: str = "") -> None:
        weight = torch.cat([weights[f"{source}.weight"][:rows] for source in sources])
        biases = [weights.get(f"{source}.bias") for source in sources]
        vector = weights.get(bias) if bias else None
        if all(one is not None for one in biases):
            vector = torch.cat([one for one in biases if one is not None])
        packed.update(_matrix(name, weight, vector, NEVER if name in PROJECTIONS else 0.0))

    def vectors(name: str) -> None:
        for part in ("weight", "bias"):
            packed[f"{name}.{part}"] = weights[f"{name}.{part}"].float().numpy()

    for stack, count in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(count):
            layer = f"{stack}.{number}"
            own = f"{layer}.attention.attention"
            matrix(f"{layer}.query_key_value", *(f"{own}.{x}" for x in ("query", "key", "value")))
            matrix(f"{layer}.output", f"{own}.output")
            matrix(f"{layer}.inner", f"{layer}.feed_forward.inner")
            matrix(f"{layer}.outer", f"{layer}.feed_forward.outer")
            vectors(f"{layer}.around_attention.norm")
            vectors(f"{layer}.around_feed_forward.norm")
            if stack == "decoder":
                source = f"{layer}.source_attention"
                matrix(f"{layer}.source_query", f"{source}.query")
                matrix(f"{layer}.source_key_value", f"{source}.key", f"{source}.value")
                matrix(f"{layer}.source_output", f"{source}.output")
                vectors(f"{layer}.around_source.norm")
    if config.norm == "pre":
        vectors("encoder_norm")
        vectors("decoder_norm")
    bias = "projection_bias" if config.output_bias else ""
    shared = config.shared_embeddings
    matrix("embedding", "embedding.pieces")
    if not shared:
        matrix("target_embedding", "target_embedding.pieces")
    if not shared or targets < len(weights["embedding.pieces.weight"]) or bias:
        matrix(
            "projection", "embedding.pieces" if shared else "projection", rows=targets, bias=bias
        )
    if config.positions == "learned":
        packed["positions"] = weights["embedding.positions.weight"].float().numpy()
    return packed


def _matrix(name: str, weight: Tensor, bias: Tensor | None, padding: float) -> Packed:
    outputs, inputs = weight.shape
    room = -outputs % BLOCK
    scale = weight.float().abs().amax(dim=1).clamp(min=1e-12) / 127
    rounded = torch.zeros(outputs + room, inputs, dtype=torch.int8)
    rounded[:outputs] = (weight.float() / scale[:, None]).round().to(torch.int8)
    blocks = rounded.view(-1, BLOCK, inputs // 4, 4).transpose(1, 2).contiguous()
    offset = 128 * rounded.sum(dim=1, dtype=torch.int32)
    vector = torch.full((outputs + room,), padding)
    vector[:outputs] = 0.0 if bias is None else bias.float()
    scales = torch.cat([scale, torch.ones(room)])
    return {
        f"{name}.weight": blocks.flatten(1).numpy(),
        f"{name}.scale": scales.numpy(),
        f"{name}.offset": offset.numpy(),
        f"{name}.bias": vector.numpy(),
    }


class _Binder:
    """Structures of the kernel over arrays; what is missing or misshapen is refused."""

    def __init__(self, packed: Packed, config: ModelConfig) -> None:
        self.packed = packed
        attended = config.heads * config.d_k
        self._sizes = {
            "query_key_value": (3 * attended, config.d_model),
            "output": (config.d_model, attended),
            "source_query": (attended, config.d_model),
            "source_key_value": (2 * attended, config.d_model),
            "source_output": (config.d_model, attended),
            "inner": (config.d_ff, config.d_model),
            "outer": (config.d_model, config.d_ff),
        }
        self._width = config.d_model

    def array(self, name: str, size: int, kind: Any) -> Any:
        """A pointer to an array of so many numbers."""
        found = self.packed.get(name)
        if found is None or found.size != size or found.dtype != np.dtype(kind):
            raise ModelError(f"{name} is missing, or of another model")
        if found.dtype == np.float32 and not np.isfinite(found).all():
            raise ModelError(f"{name} holds what is no number: the model's training has failed")
        assert found.flags.c_contiguous
        return found.ctypes.data_as(ctypes.POINTER(kind))

    def linear(self, name: str, outputs: int, inputs: int) -> native.Linear:
        """A matrix of at least so many outputs."""
        padded = outputs + -outputs % BLOCK
        return native.Linear(
            padded,
            inputs,
            self.array(f"{name}.weight", padded * inputs, ctypes.c_int8),
            self.array(f"{name}.scale", padded, ctypes.c_float),
            self.array(f"{name}.offset", padded, ctypes.c_int32),
            self.array(f"{name}.bias", padded, ctypes.c_float),
        )

    def norm(self, name: str) -> native.Norm:
        """Gain and bias."""
        return native.Norm(
            *(self.array(f"{name}.{x}", self._width, ctypes.c_float) for x in ("weight", "bias"))
        )

    def layers(self, kind: Any, stack: str, count: int) -> Any:
        """All layers of a stack."""
        made = (kind * count)()
        for number in range(count):
            for field, what in kind._fields_:
                name = f"{stack}.{number}.{field}"
                is_matrix = what is native.Linear
                part = (
                    self.linear(name, *self._sizes[field])
                    if is_matrix
                    else self.norm(f"{name}.norm")
                )
                setattr(made[number], field, part)
        return made


def bind(packed: Packed, config: ModelConfig, targets: int, longest: int) -> native.Model:
    """The kernel's structure over these arrays, which must outlive it."""
    binder = _Binder(packed, config)
    if config.positions == "sinusoidal":
        packed["positions"] = sinusoids(longest, config.d_model).float().numpy()
    vocabulary = len(packed.get("embedding.scale", ()))  # with its padding
    pieces = binder.linear("embedding", vocabulary, config.d_model)
    norms = {}
    if config.norm == "pre":
        norms = {name: binder.norm(name) for name in ("encoder_norm", "decoder_norm")}
    return native.Model(
        d_model=config.d_model,
        heads=config.heads,
        d_k=config.d_k,
        d_ff=config.d_ff,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        vocabulary=targets,
        pre=config.norm == "pre",
        activation=ACTIVATIONS.index(config.activation),
        eos=EOS,
        first=FIRST,
        epsilon=config.norm_epsilon,
        scale=config.d_model**0.5,
        encoder=binder.layers(native.EncoderLayer, "encoder", config.encoder_layers),
        decoder=binder.layers(native.DecoderLayer, "decoder", config.decoder_layers),
        source_pieces=pieces,
        target_pieces=(
            binder.linear("target_embedding", vocabulary, config.d_model)
            if "target_embedding.scale" in packed
            else pieces
        ),
        projection=(
            binder.linear("projection", targets, config.d_model)
            if "projection.scale" in packed
            else pieces
        ),
        positions=binder.array("positions", packed["positions"].size, ctypes.c_float),
        longest=len(packed["positions"]),
        **norms,
    )
