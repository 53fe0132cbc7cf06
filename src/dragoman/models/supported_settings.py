"""Each implementation of the models declares here, once and without PyTorch, what it supports.

The model in PyTorch (`dragoman.models.transformer`) computes everything that a config can ask for.
All others are written for some of it: the two engines, the exports, the Triton kernels of training,
the formulas that count operations, and the inspection of a layer's activations. Whoever adds a
setting to `ModelConfig` says here which of them have it; a test holds each of them to its word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

from dragoman.config import ModelConfig

Implementation: TypeAlias = Literal[
    "pytorch",
    "cpu engine",
    "gpu engine",
    "huggingface",
    "ctranslate2",
    "onnx",
    "marian",
    "marian int8",
    "fast training",
    "attention kernel",
    "self-attention kernel",
    "feed-forward kernel",
    "embedding kernel",
    "flop formulas",
    "layer activations",
]
IMPLEMENTATIONS: Final[tuple[Implementation, ...]] = get_args(Implementation)

Rules: TypeAlias = dict[str, Callable[[ModelConfig], bool]]
"""A set of rules maps settings to what must hold of them; two settings are joined by a space."""

_TRANSFORMER: Rules = {"architecture": lambda m: m.architecture == "transformer"}
_NO_EXPERTS: Rules = {"experts": lambda m: m.experts == 0}
_FULL_ATTENTION: Rules = {"window": lambda m: m.window == 0}
_ANY_POSITIONS: Rules = {  # named, so that a new kind is refused until it has been tried
    "positions": lambda m: m.positions in ("sinusoidal", "learned", "rotary", "relative")
}
_ADDED_POSITIONS: Rules = {"positions": lambda m: m.positions in ("sinusoidal", "learned")}
_LAYER_NORM: Rules = {"norm_kind": lambda m: m.norm_kind == "layer"}
_PLAIN_ACTIVATION: Rules = {"activation": lambda m: m.activation in ("relu", "gelu", "swish")}

_ENGINE: Rules = {
    **_TRANSFORMER,
    **_ADDED_POSITIONS,
    "positions shared_embeddings": lambda m: m.positions != "learned" or m.shared_embeddings,
    **_LAYER_NORM,
    **_PLAIN_ACTIVATION,
    **_FULL_ATTENTION,
    **_NO_EXPERTS,
    "d_v": lambda m: m.d_v == m.d_k,
    "d_k": lambda m: m.d_k % 4 == 0,
    "d_ff": lambda m: m.d_ff % 4 == 0,
    "d_model": lambda m: m.d_model % 4 == 0,
}
_EXPORT: Rules = {**_TRANSFORMER, **_NO_EXPERTS, **_ANY_POSITIONS}
_PLAIN_ATTENTION: Rules = {
    **_FULL_ATTENTION,
    **_ADDED_POSITIONS,
    "d_k": lambda m: m.heads * m.d_k == m.d_model,
    "d_v": lambda m: m.heads * m.d_v == m.d_model,
}
_MARIAN: Rules = {**_EXPORT, **_PLAIN_ATTENTION, **_PLAIN_ACTIVATION}
_ATTENTION_KERNEL: Rules = {
    "attention_bias": lambda m: not m.attention_bias,
    "d_k": lambda m: _is_tile_width(m.d_k),
    "d_v": lambda m: _is_tile_width(m.d_v),
}

_RULES: Final[dict[Implementation, Rules]] = {
    "pytorch": {},
    "cpu engine": _ENGINE,
    # The widest head that its attention kernel holds in registers.
    "gpu engine": {**_ENGINE, "d_k": lambda m: m.d_k % 4 == 0 and m.d_k <= 256},
    "huggingface": {
        **_EXPORT,
        **_PLAIN_ATTENTION,
        **_LAYER_NORM,
        **_PLAIN_ACTIVATION,
        # Of learned positions only Blenderbot, pre-norm, keeps all when it is saved again.
        "norm positions": lambda m: m.norm == "pre" or m.positions == "sinusoidal",
    },
    "ctranslate2": {**_EXPORT, **_PLAIN_ATTENTION},
    "onnx": _EXPORT,
    "marian": _MARIAN,
    # The type of Marian's models that has int8 computes sinusoids, and pre-norm only in training.
    "marian int8": {
        **_MARIAN,
        **_LAYER_NORM,
        "norm": lambda m: m.norm == "post",
        "positions": lambda m: m.positions == "sinusoidal",
        "d_model": lambda m: m.d_model % 64 == 0,  # a register of AVX-512
        "d_ff": lambda m: m.d_ff % 64 == 0,
    },
    # A gate decides by what it reads, and a recorded step must not.
    "fast training": {**_TRANSFORMER, **_NO_EXPERTS, **_ANY_POSITIONS},
    "attention kernel": _ATTENTION_KERNEL,
    "self-attention kernel": {**_ATTENTION_KERNEL, **_ADDED_POSITIONS},
    "feed-forward kernel": {
        "activation": lambda m: m.activation == "relu",
        "activation_dropout": lambda m: m.activation_dropout == 0,
    },
    "embedding kernel": {
        "positions": lambda m: m.positions in ("sinusoidal", "rotary", "relative"),
    },
    "flop formulas": {**_TRANSFORMER, **_NO_EXPERTS, **_ANY_POSITIONS},
    "layer activations": {**_TRANSFORMER, **_ANY_POSITIONS},
}
"""For each implementation, what must hold of each setting of the model."""


def unsupported(config: ModelConfig, implementation: Implementation) -> str | None:
    """Return the first setting that an implementation does not support, or None if it has all.

    The reason is one line, as in "model.norm = post with model.positions = learned".
    """
    for keys, holds in _RULES[implementation].items():
        if not holds(config):
            return " with ".join(
                f"model.{key} = {_show(getattr(config, key))}" for key in keys.split()
            )
    return None


def _is_tile_width(width: int) -> bool:
    """Return whether a Triton tile can have this width: a power of two that it holds at once."""
    return 16 <= width <= 128 and width.bit_count() == 1


def _show(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
