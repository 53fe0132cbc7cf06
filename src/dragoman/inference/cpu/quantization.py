"""A Transformer's weights in int8, in the order the kernel reads them.

Each output of a matrix has its own scale, max |w| / 127. The kernel takes 64 outputs at a time and
of these 4 inputs at a time: [N / 64][K / 4][64][4].
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.config import ModelConfig
from dragoman.errors import ModelError
from dragoman.inference.cpu import kernel_library
from dragoman.text.special_tokens import EOS, FIRST

__all__ = [
    "BLOCK",
    "LINE",
    "NEVER",
    "Packed",
    "Weights",
    "bind",
    "lines",
    "pack",
    "shapes",
    "sinusoids",
    "why_not",
]


BLOCK: Final = 64
LINE: Final = 64
"""Bytes that a processor reads at once: weights that begin where such a line does are read in
about a tenth less time."""
AT_ONCE: Final = 32
"""Blocks that are rounded at a time, so that a large matrix needs no second room its size."""
NEVER: Final = -1e30
"""The score of an output that is only padding."""
PROJECTIONS: Final = ("projection", "embedding")
"""Matrices whose outputs may be the scores of pieces."""
ACTIVATIONS: Final = ("relu", "gelu", "swish")

Weights: TypeAlias = Mapping[str, Any]
"""A model's weights by name: arrays, or whatever numpy can see as such."""
Packed: TypeAlias = dict[str, NDArray[Any]]
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


def pack(weights: Weights, config: ModelConfig, targets: int) -> Packed:
    """All that the kernel needs of a model's weights; `targets` ids can be produced."""
    packed: Packed = {}

    def matrix(name: str, *sources: str, rows: int | None = None, bias: str = "") -> None:
        parts = [np.asarray(weights[f"{source}.weight"])[:rows] for source in sources]
        biases = [f"{source}.bias" for source in sources]
        if not all(one in weights for one in biases):
            biases = [bias] if bias in weights else []
        padding = NEVER if name in PROJECTIONS else 0.0
        vector = np.concatenate([weights[one] for one in biases]) if biases else None
        weight = np.concatenate(parts) if len(parts) > 1 else parts[0]
        packed.update(_matrix(name, weight, vector, padding))

    def copied(name: str) -> NDArray[Any]:
        return np.asarray(weights[name]).astype(np.float32)

    def vectors(name: str) -> None:
        for part in ("weight", "bias"):
            packed[f"{name}.{part}"] = copied(f"{name}.{part}")

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
        packed["positions"] = copied("embedding.positions.weight")
    return packed


def _matrix(
    name: str, weight_NK: NDArray[Any], bias_N: NDArray[Any] | None, padding: float
) -> Packed:
    outputs, inputs = weight_NK.shape
    blocks = -(-outputs // BLOCK)
    scale: NDArray[Any] = np.ones(blocks * BLOCK, np.float32)
    offset: NDArray[Any] = np.zeros(blocks * BLOCK, np.int32)
    bias: NDArray[Any] = np.full(blocks * BLOCK, padding, np.float32)
    bias[:outputs] = 0.0 if bias_N is None else bias_N[:outputs]
    packed = lines(blocks * BLOCK * inputs).reshape(blocks, inputs // 4, BLOCK, 4)
    for first in range(0, blocks, AT_ONCE):
        last = min(first + AT_ONCE, blocks)
        rows = slice(first * BLOCK, min(last * BLOCK, outputs))
        weight = np.asarray(weight_NK[rows], np.float32)
        rounded = np.zeros(((last - first) * BLOCK, inputs), np.int8)
        with np.errstate(invalid="ignore"):  # what is no number is found by its scale
            scale[rows] = np.maximum(np.abs(weight).max(axis=1), 1e-12) / 127
            rounded[: len(weight)] = np.rint(weight / scale[rows, None])
        offset[first * BLOCK : last * BLOCK] = 128 * rounded.sum(axis=1, dtype=np.int32)
        packed[first:last] = rounded.reshape(-1, BLOCK, inputs // 4, 4).transpose(0, 2, 1, 3)
    return {
        f"{name}.weight": packed.reshape(blocks, -1),
        f"{name}.scale": scale,
        f"{name}.offset": offset,
        f"{name}.bias": bias,
    }


def lines(size: int) -> NDArray[np.int8]:
    """Room for so many weights, from the beginning of a line on."""
    room = np.empty(size + LINE, np.int8)
    start = -room.ctypes.data % LINE
    return room[start : start + size]


def sinusoids(length: int, d_model: int) -> NDArray[np.float32]:
    """The table of `dragoman.models.transformer.sinusoids`, without PyTorch."""
    positions = np.arange(length, dtype=np.float64)[:, None]
    rates = 10000.0 ** (-np.arange(0, d_model, 2, dtype=np.float64) / d_model)
    table = np.empty((length, d_model), np.float32)
    table[:, 0::2] = np.sin(positions * rates)
    table[:, 1::2] = np.cos(positions * rates)
    return table


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

    def linear(self, name: str, outputs: int, inputs: int) -> kernel_library.Linear:
        """A matrix of at least so many outputs."""
        padded = outputs + -outputs % BLOCK
        return kernel_library.Linear(
            padded,
            inputs,
            self.array(f"{name}.weight", padded * inputs, ctypes.c_int8),
            self.array(f"{name}.scale", padded, ctypes.c_float),
            self.array(f"{name}.offset", padded, ctypes.c_int32),
            self.array(f"{name}.bias", padded, ctypes.c_float),
        )

    def norm(self, name: str) -> kernel_library.Norm:
        """Gain and bias."""
        return kernel_library.Norm(
            *(self.array(f"{name}.{x}", self._width, ctypes.c_float) for x in ("weight", "bias"))
        )

    def layers(self, kind: Any, stack: str, count: int) -> Any:
        """All layers of a stack."""
        made = (kind * count)()
        for number in range(count):
            for field, what in kind._fields_:
                name = f"{stack}.{number}.{field}"
                is_matrix = what is kernel_library.Linear
                part = (
                    self.linear(name, *self._sizes[field])
                    if is_matrix
                    else self.norm(f"{name}.norm")
                )
                setattr(made[number], field, part)
        return made


def bind(packed: Packed, config: ModelConfig, targets: int, longest: int) -> kernel_library.Model:
    """The kernel's structure over these arrays, which must outlive it."""
    binder = _Binder(packed, config)
    if config.positions == "sinusoidal":
        packed["positions"] = sinusoids(longest, config.d_model)
    vocabulary = len(packed.get("embedding.scale", ()))  # with its padding
    pieces = binder.linear("embedding", vocabulary, config.d_model)
    norms = {}
    if config.norm == "pre":
        norms = {name: binder.norm(name) for name in ("encoder_norm", "decoder_norm")}
    return kernel_library.Model(
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
        encoder=binder.layers(kernel_library.EncoderLayer, "encoder", config.encoder_layers),
        decoder=binder.layers(kernel_library.DecoderLayer, "decoder", config.decoder_layers),
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


# PART translate.engine.shapes: What the weights of a Transformer are called and how large each
# is, without making one.


def shapes(config: ModelConfig, vocabulary: int) -> dict[str, tuple[int, ...]]:
    """Of all weights of a model that the kernel can compute."""
    width, attended = config.d_model, config.heads * config.d_k
    found: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int, *, bias: bool) -> None:
        found[f"{name}.weight"] = outputs, inputs
        if bias:
            found[f"{name}.bias"] = (outputs,)

    def attention(name: str) -> None:
        for part in ("query", "key", "value"):
            linear(f"{name}.{part}", attended, width, bias=config.attention_bias)
        linear(f"{name}.output", width, attended, bias=config.attention_bias)

    def norm(name: str) -> None:
        found[f"{name}.weight"] = found[f"{name}.bias"] = (width,)

    def layer(name: str) -> None:
        attention(f"{name}.attention.attention")
        norm(f"{name}.around_attention.norm")
        linear(f"{name}.feed_forward.inner", config.d_ff, width, bias=True)
        linear(f"{name}.feed_forward.outer", width, config.d_ff, bias=True)
        norm(f"{name}.around_feed_forward.norm")

    for number in range(config.encoder_layers):
        layer(f"encoder.{number}")
    for number in range(config.decoder_layers):
        layer(f"decoder.{number}")
        attention(f"decoder.{number}.source_attention")
        norm(f"decoder.{number}.around_source.norm")
    if config.norm == "pre":
        norm("encoder_norm")
        norm("decoder_norm")
    found["embedding.pieces.weight"] = vocabulary, width
    if not config.shared_embeddings:
        found["target_embedding.pieces.weight"] = found["projection.weight"] = vocabulary, width
    if config.positions == "learned":
        found["embedding.positions.weight"] = config.max_positions, width
    if config.output_bias:
        found["projection_bias"] = (vocabulary,)
    return found
