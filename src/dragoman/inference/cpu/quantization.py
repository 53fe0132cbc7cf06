"""Weights are rounded to int8, packed in the order of the kernel, and kept in a file.

Each output of a matrix has its own scale, max |w| / 127. The kernel takes 64 outputs at a time and
of these 4 inputs at a time: [N / 64][K / 4][64][4]. The file of int8 weights beside a model's own
holds them packed, and the engine uses them where they lie in the page cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError, ModelError
from dragoman.model_directory import LoadedModel
from dragoman.models.supported_settings import unsupported
from dragoman.system.atomic_files import atomic_write

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


def pack_weights(weights: Weights, config: ModelConfig, targets: int) -> PackedWeights:
    """Return all that the kernel needs of a model's weights; `targets` ids can be produced."""
    packed: PackedWeights = {}

    def matrix(name: str, *sources: str, rows: int | None = None, bias: str = "") -> None:
        parts = [np.asarray(weights[f"{source}.weight"])[:rows] for source in sources]
        biases = [f"{source}.bias" for source in sources]
        if not all(one in weights for one in biases):
            biases = [bias] if bias in weights else []
        padding = PADDING_SCORE if name in PROJECTIONS else 0.0
        vector = np.concatenate([weights[one] for one in biases]) if biases else None
        weight = np.concatenate(parts) if len(parts) > 1 else parts[0]
        packed.update(_quantize_matrix(name, weight, vector, padding))

    def as_float32(name: str) -> NDArray[Any]:
        return np.asarray(weights[name]).astype(np.float32)

    def vectors(name: str) -> None:
        for part in ("weight", "bias"):
            packed[f"{name}.{part}"] = as_float32(f"{name}.{part}")

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
        packed["positions"] = as_float32("embedding.positions.weight")
    return packed


def _quantize_matrix(
    name: str, weight_NK: NDArray[Any], bias_N: NDArray[Any] | None, padding: float
) -> PackedWeights:
    outputs, inputs = weight_NK.shape
    blocks = -(-outputs // OUTPUT_BLOCK)
    scale: NDArray[Any] = np.ones(blocks * OUTPUT_BLOCK, np.float32)
    offset: NDArray[Any] = np.zeros(blocks * OUTPUT_BLOCK, np.int32)
    bias: NDArray[Any] = np.full(blocks * OUTPUT_BLOCK, padding, np.float32)
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
        f"{name}.weight": packed.reshape(blocks, -1),
        f"{name}.scale": scale,
        f"{name}.offset": offset,
        f"{name}.bias": bias,
    }


def empty_aligned(size: int) -> NDArray[np.int8]:
    """Return room for `size` weights that begins where a cache line does."""
    room = np.empty(size + CACHE_LINE, np.int8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + size]


def expected_shapes(config: ModelConfig, vocabulary: int) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of a model's weights, without making a model."""
    width, attention_width = config.d_model, config.heads * config.d_k
    found: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int, *, bias: bool) -> None:
        found[f"{name}.weight"] = outputs, inputs
        if bias:
            found[f"{name}.bias"] = (outputs,)

    def attention(name: str) -> None:
        for part in ("query", "key", "value"):
            linear(f"{name}.{part}", attention_width, width, bias=config.attention_bias)
        linear(f"{name}.output", width, attention_width, bias=config.attention_bias)

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


INT8_FILE: Final = "int8.safetensors"
LAYOUT: Final = "1"
"""This changes with the order in which the kernel reads weights."""


def write_int8_file(loaded: LoadedModel) -> Path:
    """Write a model's int8 weights into its directory, and return the file."""
    if reason := unsupported(loaded.config.model, "cpu engine"):
        raise ConfigError(
            f"{loaded.path}: the CPU engine does not support {reason}; PyTorch runs this model"
        )
    metadata = {"layout": LAYOUT, "card": _hash_card(loaded.path)}
    file = loaded.path / INT8_FILE
    atomic_write(file, _serialize(pack_model(loaded), metadata))
    return file


def _serialize(packed: PackedWeights, metadata: dict[str, str]) -> bytes:
    """Return a file whose weights begin where cache lines do, for they are used where they lie."""
    header = int.from_bytes(save(packed, metadata | {"padding": ""})[:8], "little")
    return save(packed, metadata | {"padding": " " * (-(8 + header) % CACHE_LINE)})


def find_int8_file(directory: Path) -> Path | None:
    """Return the int8 weights in a model's directory, if there are any."""
    file = directory / INT8_FILE
    return file if file.exists() else None


def pack_model(loaded: LoadedModel) -> PackedWeights:
    """Pack a model's weights one after another from their file; refuse those of another model."""
    weights = MappedSafetensors(loaded.weights_file)
    vocabulary, targets = loaded.tokenizer.sizes
    wanted = expected_shapes(loaded.config.model, vocabulary)
    if weights.shapes != wanted:
        from dragoman.models.weights import check_shapes

        check_shapes(weights.shapes, wanted, where=str(loaded.weights_file))
    return pack_weights(weights, loaded.config.model, targets)


def read_int8_file(file: Path) -> PackedWeights:
    """Map the packed weights of an int8 file; refuse one that is damaged or of another model."""
    try:
        mapped = MappedSafetensors(file)
        if mapped.metadata.get("layout") != LAYOUT:
            raise ModelError(f"{file}: written by another version of Dragoman")
        if mapped.metadata.get("card") != _hash_card(file.parent):
            raise ModelError(f"{file}: does not belong to the model beside it")
        return mapped.map_all()
    except ModelError as error:
        raise ModelError(f"{error}; {how_to_make_again(file)}") from None


def how_to_make_again(file: Path) -> str:
    """Return the advice that errors about an int8 file end with."""
    return f"make it again with: dragoman quantize {file.parent}"


def _hash_card(directory: Path) -> str:
    return hashlib.sha256((directory / "card.json").read_bytes()).hexdigest()


DTYPES: Final = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": np.uint16,
    "I32": np.int32,
    "I8": np.int8,
}
"""numpy has no bfloat16; its 16 bits are the first of a float32."""


class MappedSafetensors(Mapping[str, NDArray[Any]]):
    """Map each tensor of a file by name when it is taken; its memory is the page cache's.

    A tensor is mapped by itself and unmapped with its last reference, so that going through a file
    takes the memory of its largest.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            with safe_open(file, framework="np") as tensors:  # which checks the whole header
                self.metadata: dict[str, str] = tensors.metadata() or {}
            with file.open("rb") as opened:
                size = int.from_bytes(opened.read(8), "little")
                table: dict[str, dict[str, Any]] = json.loads(opened.read(size))
        except FileNotFoundError:
            raise ModelError(f"{file}: no such file; the directory is incomplete") from None
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelError(f"{file}: truncated or not a safetensors file ({error})") from None
        table.pop("__metadata__", None)
        self._start, self._table = 8 + size, table

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._array(self._bytes(), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all tensors."""
        return {name: tuple(entry["shape"]) for name, entry in self._table.items()}

    def map_all(self) -> dict[str, NDArray[Any]]:
        """Return all tensors over one mapping, which lasts as long as any of them."""
        whole = self._bytes()
        return {name: self._array(whole, name) for name in self}

    def _bytes(self) -> NDArray[Any]:
        return np.asarray(np.memmap(self._file, np.uint8, mode="r"))

    def _array(self, whole: NDArray[Any], name: str) -> NDArray[Any]:
        entry = self._table[name]
        first, last = (self._start + offset for offset in entry["data_offsets"])
        try:
            dtype = DTYPES[entry["dtype"]]
        except KeyError:
            raise ModelError(
                f"{self._file}: {name} has the unexpected type {entry['dtype']}"
            ) from None
        found = whole[first:last].view(dtype).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            return (found.astype(np.uint32) << 16).view(np.float32)
        return found
