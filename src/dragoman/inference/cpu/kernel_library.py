"""The compiled kernel: its structures as in layout.h, and where it is found."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_float, c_int, c_int8, c_int32, c_int64, c_uint16, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Final

__all__ = [
    "VERSIONS",
    "DecoderLayer",
    "EncoderLayer",
    "Found",
    "Linear",
    "Model",
    "Norm",
    "Rows",
    "kernel",
]

VERSIONS: Final = ("any machine", "AVX2", "AVX-512 with VNNI")
"""For what the kernel is compiled, the slowest first."""


class Linear(ctypes.Structure):
    """A matrix of int8, as the kernel reads it."""

    _fields_ = (
        ("outputs", c_int),
        ("inputs", c_int),
        ("weight", POINTER(c_int8)),
        ("scale", POINTER(c_float)),
        ("offset", POINTER(c_int32)),
        ("bias", POINTER(c_float)),
    )


class Norm(ctypes.Structure):
    """Gain and bias."""

    _fields_ = (("gain", POINTER(c_float)), ("bias", POINTER(c_float)))


class EncoderLayer(ctypes.Structure):
    """Self-attention and the feed-forward layer."""

    _fields_ = (
        *((name, Linear) for name in ("query_key_value", "output", "inner", "outer")),
        *((name, Norm) for name in ("around_attention", "around_feed_forward")),
    )


class DecoderLayer(ctypes.Structure):
    """Self-attention, attention to the source, and the feed-forward layer."""

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


class Model(ctypes.Structure):
    """All of a Transformer."""

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


class Rows(ctypes.Structure):
    """The pieces of a step."""

    _fields_ = (
        *((name, c_int) for name in ("count", "chosen", "candidates", "beams", "table_width")),
        *((name, c_void_p) for name in ("ids", "positions", "hypotheses", "tables")),
        *((name, c_void_p) for name in ("source_lengths", "memories", "cache")),
        ("cache_cells", c_int64),
        ("projection", POINTER(Linear)),
        *((name, c_void_p) for name in ("names", "kinds", "allowed")),
        ("kind_count", c_int),
        ("own", POINTER(Linear)),
        ("own_names", POINTER(c_void_p)),
        ("sure", c_float),
    )


class Found(ctypes.Structure):
    """What a step finds."""

    _fields_ = tuple((name, c_void_p) for name in ("ids", "log_probs"))


@cache
def kernel() -> Any:
    """The library, set to the best this machine has; None where it has not been compiled."""
    places = sorted(Path(__file__).parent.glob("_kernel*.so"))
    if not places:
        return None
    try:
        library = ctypes.CDLL(str(places[0]))
    except OSError:  # compiled for another machine
        return None
    library.dragoman_scratch.restype = c_void_p
    library.dragoman_scratch.argtypes = [c_int]
    library.dragoman_free.argtypes = [c_void_p]
    library.dragoman_encode.argtypes = [
        *(POINTER(Model), c_void_p, c_int, c_void_p, c_void_p, POINTER(POINTER(c_uint16)))
    ]
    library.dragoman_step.argtypes = [POINTER(Model), c_void_p, POINTER(Rows), POINTER(Found)]
    library.dragoman_choose(len(VERSIONS) - 1)
    return library
