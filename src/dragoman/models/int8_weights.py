"""Weights are rounded to int8 and packed in the order of the CPU engine's kernel, and unpacked.

Each output of a matrix has its own scale, max |w| / 127. The kernel takes 64 outputs at a time and
of these 4 inputs at a time: [N / 64][K / 4][64][4].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from dragoman.config import ModelConfig
from dragoman.errors import ModelError

LAYOUT: Final = "1"
"""This changes with the order in which the kernel reads weights. A model may have no others, so
that files of every layout before must still be read."""
OUTPUT_BLOCK: Final = 64
"""The kernel computes so many outputs at a time."""
CACHE_LINE: Final = 64
"""A processor reads so many bytes at once. Weights that begin where such a line does are read in
about a tenth less time."""
BLOCKS_AT_ONCE: Final = 32
"""So many blocks are rounded at a time, so that a large matrix needs no second copy its size."""
PADDING_SCORE: Final = -1e30
"""An output that is only padding has this score."""
PROJECTIONS: Final = ("projection", "embedding")
"""The outputs of these matrices may be the scores of pieces."""

Weights: TypeAlias = Mapping[str, Any]
"""A model's weights are given by name: as arrays, or whatever numpy can view as such."""
PackedWeights: TypeAlias = dict[str, NDArray[Any]]
"""Arrays are held by name: NAME.weight, NAME.scale, NAME.offset, NAME.bias of a matrix, and
vectors."""


class PackedMatrix(NamedTuple):
    """Say which weights of a model one matrix of the kernel is made of."""

    name: str
    sources: tuple[str, ...]
    """These modules have its rows, one after another."""
    outputs: int
    inputs: int
    bias: str = ""
    """This is its bias, if the modules have none of their own."""

    @property
    def blocks(self) -> int:
        """Return how many blocks of outputs it has; the last is padded."""
        return -(-self.outputs // OUTPUT_BLOCK)

    @property
    def padding_bias(self) -> float:
        """Return the bias of outputs that are only padding."""
        return PADDING_SCORE if self.name in PROJECTIONS else 0.0


def packed_matrices(config: ModelConfig, vocabulary: int, targets: int) -> Iterator[PackedMatrix]:
    """Yield the matrices that the kernel multiplies with; `targets` ids can be produced."""
    width, inner, attention = config.d_model, config.d_ff, config.heads * config.d_k
    for stack, count in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for layer in (f"{stack}.{number}" for number in range(count)):
            own = f"{layer}.attention.attention"
            three = tuple(f"{own}.{part}" for part in ("query", "key", "value"))
            yield PackedMatrix(f"{layer}.query_key_value", three, 3 * attention, width)
            yield PackedMatrix(f"{layer}.output", (f"{own}.output",), width, attention)
            yield PackedMatrix(f"{layer}.inner", (f"{layer}.feed_forward.inner",), inner, width)
            yield PackedMatrix(f"{layer}.outer", (f"{layer}.feed_forward.outer",), width, inner)
            if stack == "decoder":
                source = f"{layer}.source_attention"
                yield PackedMatrix(f"{layer}.source_query", (f"{source}.query",), attention, width)
                two = (f"{source}.key", f"{source}.value")
                yield PackedMatrix(f"{layer}.source_key_value", two, 2 * attention, width)
                yield PackedMatrix(
                    f"{layer}.source_output", (f"{source}.output",), width, attention
                )
    yield PackedMatrix("embedding", ("embedding.pieces",), vocabulary, width)
    shared, bias = config.shared_embeddings, "projection_bias" if config.output_bias else ""
    if not shared:
        yield PackedMatrix("target_embedding", ("target_embedding.pieces",), vocabulary, width)
    if not shared or targets < vocabulary or bias:
        source = "embedding.pieces" if shared else "projection"
        yield PackedMatrix("projection", (source,), targets, width, bias)


def packed_vectors(config: ModelConfig) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yield what the kernel has as it is: its name there, the model's name for it, its shape."""
    norms = ["encoder_norm", "decoder_norm"] if config.norm == "pre" else []
    for stack, count in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        parts = ["attention", "feed_forward", *(["source"] if stack == "decoder" else [])]
        norms += [f"{stack}.{n}.around_{part}.norm" for n in range(count) for part in parts]
    for norm in norms:
        for part in ("weight", "bias"):
            yield f"{norm}.{part}", f"{norm}.{part}", (config.d_model,)
    if config.positions == "learned":
        shape = config.max_positions, config.d_model
        yield "positions", "embedding.positions.weight", shape


def pack_weights(weights: Weights, config: ModelConfig, targets: int) -> PackedWeights:
    """Return all that the kernel needs of a model's weights; `targets` ids can be produced."""
    packed: PackedWeights = {}
    vocabulary = len(weights["embedding.pieces.weight"])
    for matrix in packed_matrices(config, vocabulary, targets):
        parts = [np.asarray(weights[f"{one}.weight"])[: matrix.outputs] for one in matrix.sources]
        biases = [f"{one}.bias" for one in matrix.sources]
        if not all(one in weights for one in biases):
            biases = [matrix.bias] if matrix.bias else []
        bias = np.concatenate([weights[one] for one in biases]) if biases else None
        weight = np.concatenate(parts) if len(parts) > 1 else parts[0]
        packed.update(_quantize_matrix(matrix, weight, bias))
    for name, own_name, _ in packed_vectors(config):
        packed[name] = np.asarray(weights[own_name]).astype(np.float32)
    return packed


def unpack_weights(
    packed: PackedWeights, config: ModelConfig, vocabulary: int, targets: int
) -> dict[str, NDArray[np.float32]]:
    """Return a model's weights from packed ones of the right shapes, as they were rounded.

    What was not packed, since no such piece can be produced, is 0.
    """
    shapes = expected_shapes(config, vocabulary)
    weights: dict[str, NDArray[np.float32]] = {}

    def keep(name: str, rows: NDArray[Any]) -> None:
        if name in shapes and name not in weights:
            weights[name] = np.zeros(shapes[name], np.float32)
            weights[name][: len(rows)] = rows

    for matrix in packed_matrices(config, vocabulary, targets):
        weight, bias = _dequantize_matrix(matrix, packed)
        rows = len(weight) // len(matrix.sources)
        for number, source in enumerate(matrix.sources):
            part = slice(number * rows, (number + 1) * rows)
            keep(f"{source}.weight", weight[part])
            keep(f"{source}.bias", bias[part])
        keep(matrix.bias, bias)
    for name, own_name, _ in packed_vectors(config):
        keep(own_name, packed[name])
    return weights


def check_packed_weights(
    packed: PackedWeights, config: ModelConfig, vocabulary: int, targets: int, *, where: str
) -> None:
    """Raise ModelError for packed weights of another model, naming the first that does not fit."""
    wanted: dict[str, tuple[tuple[int, ...], Any]] = {
        name: (shape, np.float32) for name, _, shape in packed_vectors(config)
    }
    for matrix in packed_matrices(config, vocabulary, targets):
        padded = matrix.blocks * OUTPUT_BLOCK
        wanted[f"{matrix.name}.weight"] = (matrix.blocks, OUTPUT_BLOCK * matrix.inputs), np.int8
        wanted[f"{matrix.name}.scale"] = (padded,), np.float32
        wanted[f"{matrix.name}.offset"] = (padded,), np.int32
        wanted[f"{matrix.name}.bias"] = (padded,), np.float32
    for name, (shape, dtype) in wanted.items():
        found = packed.get(name)
        if found is None or found.shape != shape or found.dtype != dtype:
            raise ModelError(f"{where}: {name} is missing, or belongs to another model")
    if more := packed.keys() - wanted.keys():
        raise ModelError(f"{where}: {min(more)} belongs to another model")


def _quantize_matrix(
    matrix: PackedMatrix, weight_NK: NDArray[Any], bias_N: NDArray[Any] | None
) -> PackedWeights:
    outputs, inputs = weight_NK.shape
    blocks = matrix.blocks
    scale: NDArray[Any] = np.ones(blocks * OUTPUT_BLOCK, np.float32)
    offset: NDArray[Any] = np.zeros(blocks * OUTPUT_BLOCK, np.int32)
    bias: NDArray[Any] = np.full(blocks * OUTPUT_BLOCK, matrix.padding_bias, np.float32)
    bias[:outputs] = 0.0 if bias_N is None else bias_N[:outputs]
    packed = empty_aligned(blocks * OUTPUT_BLOCK * inputs).reshape(
        blocks, inputs // 4, OUTPUT_BLOCK, 4
    )
    for first in range(0, blocks, BLOCKS_AT_ONCE):
        last = min(first + BLOCKS_AT_ONCE, blocks)
        rows = slice(first * OUTPUT_BLOCK, min(last * OUTPUT_BLOCK, outputs))
        weight = np.asarray(weight_NK[rows], np.float32)
        rounded = np.zeros(((last - first) * OUTPUT_BLOCK, inputs), np.int8)
        with np.errstate(invalid="ignore"):  # a NaN is found later, in the scale
            scale[rows] = np.maximum(np.abs(weight).max(axis=1), 1e-12) / 127
            rounded[: len(weight)] = np.rint(weight / scale[rows, None])
        sums = rounded.sum(axis=1, dtype=np.int32)
        offset[first * OUTPUT_BLOCK : last * OUTPUT_BLOCK] = 128 * sums
        packed[first:last] = rounded.reshape(-1, OUTPUT_BLOCK, inputs // 4, 4).transpose(0, 2, 1, 3)
    return {
        f"{matrix.name}.weight": packed.reshape(blocks, -1),
        f"{matrix.name}.scale": scale,
        f"{matrix.name}.offset": offset,
        f"{matrix.name}.bias": bias,
    }


def _dequantize_matrix(
    matrix: PackedMatrix, packed: PackedWeights
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the weights and biases of a matrix, without padding."""
    weight, scale, bias = (packed[f"{matrix.name}.{part}"] for part in ("weight", "scale", "bias"))
    blocks = weight.reshape(matrix.blocks, matrix.inputs // 4, OUTPUT_BLOCK, 4)
    rows = blocks.transpose(0, 2, 1, 3).reshape(-1, matrix.inputs)[: matrix.outputs]
    return rows * scale[: matrix.outputs, None], bias[: matrix.outputs]


def empty_aligned(size: int) -> NDArray[np.int8]:
    """Return room for `size` weights that begins where a cache line does."""
    room = np.empty(size + CACHE_LINE, np.int8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + size]


def expected_shapes(config: ModelConfig, vocabulary: int) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of a model's weights, without making a model."""
    shapes = {name: shape for _, name, shape in packed_vectors(config)}
    for matrix in packed_matrices(config, vocabulary, vocabulary):
        rows = matrix.outputs // len(matrix.sources)
        for source in matrix.sources:
            shapes[f"{source}.weight"] = rows, matrix.inputs
            if "feed_forward" in source or (config.attention_bias and "attention" in source):
                shapes[f"{source}.bias"] = (rows,)
        if matrix.bias:
            shapes[matrix.bias] = (rows,)
    return shapes


def serialize_packed(packed: PackedWeights, metadata: dict[str, str]) -> bytes:
    """Return a file whose weights begin where cache lines do, for they are used where they lie."""
    header = int.from_bytes(save(packed, metadata | {"padding": ""})[:8], "little")
    return save(packed, metadata | {"padding": " " * (-(8 + header) % CACHE_LINE)})
