"""Which models another runtime can run: decided by the config alone, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from dragoman.config import Config, ModelConfig
from dragoman.errors import ConfigError

__all__ = ["RUNTIMES", "check_fit", "obstacle", "require"]

RUNTIMES: Final = ("huggingface", "ctranslate2", "onnx")
"""Where a model can go."""

PACKAGES: Final = {
    "huggingface": ("transformers",),
    "ctranslate2": ("ctranslate2",),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
}
"""What has to be installed for that."""

Rule = Callable[[ModelConfig], bool]

_ANYWHERE: dict[str, Rule] = {
    "architecture": lambda m: m.architecture == "transformer",
    "experts": lambda m: m.experts == 0,
}
_PLAIN_ATTENTION: dict[str, Rule] = {
    "window": lambda m: m.window == 0,
    "positions": lambda m: m.positions in ("sinusoidal", "learned"),
    "d_k": lambda m: m.heads * m.d_k == m.d_model,
    "d_v": lambda m: m.heads * m.d_v == m.d_model,
}
_RULES: dict[str, dict[str, Rule]] = {
    "huggingface": {
        **_ANYWHERE,
        **_PLAIN_ATTENTION,
        "norm_kind": lambda m: m.norm_kind == "layer",
        "activation": lambda m: m.activation != "swiglu",
        # Of learned positions only Blenderbot, pre-norm, keeps all when it is saved again.
        "norm": lambda m: m.norm == "pre" or m.positions == "sinusoidal",
    },
    "ctranslate2": {**_ANYWHERE, **_PLAIN_ATTENTION},
    "onnx": _ANYWHERE,
}
"""For each runtime, what must hold of each setting of the model."""


def obstacle(config: Config, to: str) -> str | None:
    """The first setting that keeps a model from a runtime, as `key = value`; None: it fits."""
    if config.data.task != "translation":
        return f"data.task = {config.data.task}"
    for key, holds in _RULES[to].items():
        if not holds(config.model):
            also = f" with model.positions = {config.model.positions}" if key == "norm" else ""
            return f"model.{key} = {getattr(config.model, key)}{also}"
    return None


def check_fit(config: Config, to: str) -> None:
    """Refuse a model that the runtime does not have, naming what prevents it."""
    if to not in RUNTIMES:
        raise ConfigError(f"--to {to}: there is no such runtime; choose {', '.join(RUNTIMES)}")
    found = obstacle(config, to)
    if found is None:
        return
    others = [other for other in RUNTIMES if obstacle(config, other) is None]
    advice = f"try --to {others[0]}" if others else "no other runtime has it either"
    raise ConfigError(f"{found} cannot be exported to {to}: it has no such model; {advice}")


def require(*packages: str) -> None:
    """Refuse to begin without these packages."""
    for name in packages:
        if find_spec(name) is None:
            raise ConfigError(
                f'{name} is not installed; install it with: pip install "dragoman[export]"'
            )
