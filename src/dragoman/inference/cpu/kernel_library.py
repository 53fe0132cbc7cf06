"""The compiled kernel is found here, its structures are as in layout.h, and models bound to it.

Wheels bring it; from source it is compiled when Dragoman is installed, if there is a C compiler.
`why_no_kernel` says what is wrong where it cannot be used.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, c_char_p, c_float, c_int, c_int8, c_int32, c_int64, c_uint16, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError, ModelError
from dragoman.models.int8_weights import OUTPUT_BLOCK, PackedWeights
from dragoman.models.sinusoids import sinusoids
from dragoman.text.special_tokens import EOS, FIRST_PIECE

DESCRIPTIONS: Final = {
    "plain": "any machine",
    "sse2": "SSE2",
    "avx2": "AVX2",
    "avx512": "AVX-512",
    "avx_vnni": "AVX-VNNI",
    "avx512_vnni": "AVX-512 with VNNI",
    "amx": "AMX",
    "neon": "NEON",
    "neon_dotprod": "NEON with dot products",
    "neon_i8mm": "NEON with int8 matrices",
    "wasm_simd128": "WebAssembly with SIMD",
}
"""The instruction sets that kernel.c may be compiled for, as people call them."""
SLOW: Final = ("plain", "sse2", "neon")
"""All machines have these, and most have a faster one."""
LIBRARY: Final = {"darwin": "_kernel.dylib", "win32": "_kernel.dll"}.get(sys.platform, "_kernel.so")
"""The library stands beside this file; setup.py gives it the same name."""
FORCED_ISA: Final = "DRAGOMAN_ISA"
"""This environment variable names the instruction set to use; without it the fastest is used."""
ACTIVATIONS: Final = ("relu", "gelu", "swish")
"""The kernel knows an activation by its place here."""
INTERFACE_VERSION: Final = 4
"""This must equal what the library returns: a library left by another version is not used."""


# --- the structures of layout.h ---


class Linear(ctypes.Structure):
    """Hold a matrix of int8 that the kernel multiplies with."""

    _fields_ = (
        ("outputs", c_int),
        ("inputs", c_int),
        ("weight", POINTER(c_int8)),
        ("scale", POINTER(c_float)),
        ("offset", POINTER(c_int32)),
        ("bias", POINTER(c_float)),
    )


class Norm(ctypes.Structure):
    """Hold the gain and the bias of a layer normalisation."""

    _fields_ = (("gain", POINTER(c_float)), ("bias", POINTER(c_float)))


class EncoderLayer(ctypes.Structure):
    """Hold the weights of an encoder layer's attention and feed-forward network."""

    _fields_ = (
        *((name, Linear) for name in ("query_key_value", "output", "inner", "outer")),
        *((name, Norm) for name in ("around_attention", "around_feed_forward")),
    )


class DecoderLayer(ctypes.Structure):
    """Hold the weights of a decoder layer's two attentions and feed-forward network."""

    _fields_ = (
        *(
            (name, Linear)
            for name in (
                *("query_key_value", "output", "source_query", "source_key_value"),
                *("source_output", "inner", "outer"),
            )
        ),
        *((name, Norm) for name in ("around_attention", "around_source", "around_feed_forward")),
    )


class KernelModel(ctypes.Structure):
    """Hold a Transformer as the kernel reads it; the arrays it points to must outlive it."""

    _fields_ = (
        *(
            (name, c_int)
            for name in (
                *("d_model", "heads", "d_k", "d_ff", "encoder_layers", "decoder_layers"),
                *("vocabulary", "pre", "activation", "eos", "first"),
            )
        ),
        ("epsilon", c_float),
        ("scale", c_float),
        ("encoder", POINTER(EncoderLayer)),
        ("decoder", POINTER(DecoderLayer)),
        *((name, Linear) for name in ("source_pieces", "target_pieces", "projection")),
        *((name, Norm) for name in ("encoder_norm", "decoder_norm")),
        ("positions", POINTER(c_float)),
        ("longest", c_int),
    )


class StepInput(ctypes.Structure):
    """Hold the pieces that one step computes, and where their sentences keep what they need."""

    _fields_ = (
        *((name, c_int) for name in ("count", "predicted", "candidates", "beams", "table_width")),
        *((name, c_void_p) for name in ("ids", "positions", "hypotheses", "cache_tables")),
        *((name, c_void_p) for name in ("source_lengths", "source_caches", "cache")),
        ("cache_positions", c_int64),
        ("projection", POINTER(Linear)),
        *((name, c_void_p) for name in ("projection_ids", "token_kinds", "allowed")),
        ("kind_count", c_int),
        ("sentence_projections", POINTER(Linear)),
        ("sentence_projection_ids", POINTER(c_void_p)),
        ("min_confidence", c_float),
        ("next", c_void_p),
        ("attention_width", c_int),
    )


class StepOutput(ctypes.Structure):
    """Hold the arrays that a step writes its best candidates to, and what else is asked for."""

    _fields_ = tuple(
        (name, c_void_p) for name in ("ids", "log_probs", "next_log_probs", "attention")
    )


# --- the library ---


@cache
def _load() -> tuple[Any, str]:
    """Return the library, or None and why it cannot be used."""
    file = _find_library()
    if file is None:
        return None, "the compiled kernel is missing"
    try:
        library = ctypes.CDLL(str(file))
        version = library.dragoman_interface_version()
    except OSError as error:
        return None, f"the compiled kernel cannot be loaded on this machine ({error})"
    except AttributeError:
        version = None
    if version != INTERFACE_VERSION:
        return None, f"the compiled kernel is of another version of Dragoman ({file.name})"
    library.dragoman_new_scratch.restype = c_void_p
    library.dragoman_new_scratch.argtypes = [c_int]
    library.dragoman_free_scratch.argtypes = [c_void_p]
    library.dragoman_encode.argtypes = [
        *(POINTER(KernelModel), c_void_p, c_int, c_void_p, c_void_p, POINTER(POINTER(c_uint16)))
    ]
    library.dragoman_step.argtypes = [
        *(POINTER(KernelModel), c_void_p, POINTER(StepInput), POINTER(StepOutput))
    ]
    library.dragoman_instruction_set.restype = c_char_p
    use_instruction_set(library, os.environ.get(FORCED_ISA))
    return library, ""


def _find_library() -> Path | None:
    file = Path(__file__).with_name(LIBRARY)
    return file if file.exists() else None


def load_kernel() -> Any:
    """Return the library, using the best instruction set of this machine; None without one."""
    return _load()[0]


def why_no_kernel() -> str:
    """Return why the kernel cannot be used; an empty string if it can."""
    return _load()[1]


def find_instruction_sets(library: Any) -> dict[str, int]:
    """Return those that the library is compiled for and the machine has, the slowest first."""
    there = {}
    number = 0
    while (name := _name_of(library, number)) is not None:
        if library.dragoman_has_instruction_set(number):
            there[name] = number
        number += 1
    return there


def use_instruction_set(library: Any, name: str | None = None) -> None:
    """Compute with an instruction set from now on; with the fastest if none is named."""
    there = find_instruction_sets(library)
    name = name or list(there)[-1]
    if name not in there:
        raise ConfigError(
            f"{FORCED_ISA}={name}: this machine or this build has no such instruction set; it has "
            f"{', '.join(there)}"
        )
    library.dragoman_use_instruction_set(there[name])


def used_instruction_set() -> str:
    """Return the instruction set that the kernel uses, as people call it."""
    library = load_kernel()
    return DESCRIPTIONS[_name_of(library, library.dragoman_used_instruction_set())]


def why_slow() -> str:
    """Return why the kernel uses a slow instruction set; an empty string if it does not."""
    library = load_kernel()
    used = _name_of(library, library.dragoman_used_instruction_set())
    if used not in SLOW:
        return ""
    if os.environ.get(FORCED_ISA):
        return f"{FORCED_ISA}={used} says so"
    names: list[str] = []
    while (name := _name_of(library, len(names))) is not None:
        names.append(name)
    faster = [DESCRIPTIONS[name] for name in names if name not in SLOW]
    return f"this processor has none of {', '.join(faster)}" if faster else ""


def _name_of(library: Any, number: int) -> Any:
    """Return the name of an instruction set that the kernel is compiled for; None: no more."""
    name = library.dragoman_instruction_set(number)
    return name and name.decode()


# --- a model for it ---


class _Binder:
    """Make the kernel's structures over arrays, and refuse those that are missing or misshapen."""

    def __init__(self, packed: PackedWeights, config: ModelConfig) -> None:
        self.packed = packed
        attention_width = config.heads * config.d_k
        self._sizes = {
            "query_key_value": (3 * attention_width, config.d_model),
            "output": (config.d_model, attention_width),
            "source_query": (attention_width, config.d_model),
            "source_key_value": (2 * attention_width, config.d_model),
            "source_output": (config.d_model, attention_width),
            "inner": (config.d_ff, config.d_model),
            "outer": (config.d_model, config.d_ff),
        }
        self._d_model = config.d_model

    def array(self, name: str, size: int, kind: Any) -> Any:
        """Return a pointer to the array `name` of `size` numbers."""
        found = self.packed.get(name)
        if found is None or found.size != size or found.dtype != np.dtype(kind):
            raise ModelError(f"{name} is missing, or belongs to another model")
        if found.dtype == np.float32 and not np.isfinite(found).all():
            raise ModelError(f"{name} holds infinite numbers or NaN: the training has failed")
        assert found.flags.c_contiguous
        return found.ctypes.data_as(ctypes.POINTER(kind))

    def linear(self, name: str, outputs: int, inputs: int) -> Linear:
        """Return a matrix of at least `outputs` outputs."""
        padded = outputs + -outputs % OUTPUT_BLOCK
        return Linear(
            padded,
            inputs,
            self.array(f"{name}.weight", padded * inputs, ctypes.c_int8),
            self.array(f"{name}.scale", padded, ctypes.c_float),
            self.array(f"{name}.offset", padded, ctypes.c_int32),
            self.array(f"{name}.bias", padded, ctypes.c_float),
        )

    def norm(self, name: str) -> Norm:
        """Return the gain and the bias of a layer normalisation."""
        return Norm(
            *(self.array(f"{name}.{x}", self._d_model, ctypes.c_float) for x in ("weight", "bias"))
        )

    def layers(self, kind: Any, stack: str, count: int) -> Any:
        """Return all layers of the encoder or the decoder."""
        layers = (kind * count)()
        for number in range(count):
            for field, field_type in kind._fields_:
                name = f"{stack}.{number}.{field}"
                part = (
                    self.linear(name, *self._sizes[field])
                    if field_type is Linear
                    else self.norm(f"{name}.norm")
                )
                setattr(layers[number], field, part)
        return layers


def bind_model(
    packed: PackedWeights, config: ModelConfig, targets: int, longest: int
) -> KernelModel:
    """Return the kernel's structure over packed weights, which must outlive it.

    Sinusoids are added to the packed weights for `longest` positions.
    """
    binder = _Binder(packed, config)
    if config.positions == "sinusoidal":
        packed["positions"] = sinusoids(longest, config.d_model)
    vocabulary = len(packed.get("embedding.scale", ()))  # with its padding
    pieces = binder.linear("embedding", vocabulary, config.d_model)
    norms = {}
    if config.norm == "pre":
        norms = {name: binder.norm(name) for name in ("encoder_norm", "decoder_norm")}
    return KernelModel(
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
        first=FIRST_PIECE,
        epsilon=config.norm_epsilon,
        scale=config.d_model**0.5,
        encoder=binder.layers(EncoderLayer, "encoder", config.encoder_layers),
        decoder=binder.layers(DecoderLayer, "decoder", config.decoder_layers),
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
