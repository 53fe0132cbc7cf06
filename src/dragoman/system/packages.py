"""Translating needs few packages; what other work needs besides is asked for before it begins."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from dragoman.errors import ConfigError

TRAINING_PACKAGES: Final = {
    "torch": "PyTorch",
    "sacrebleu": "sacreBLEU",
    "tensorboard": "TensorBoard",
    "matplotlib": "Matplotlib",
}
"""These come with dragoman[train]: the module, and the name that people know it by."""


def require_package(package: str, work: str) -> None:
    """Raise ConfigError, which says what to install, if there is no package that `work` needs."""
    if find_spec(package) is None:
        raise ConfigError(_describe(package, work))


def describe_missing(error: ModuleNotFoundError, work: str) -> str | None:
    """Return what to install for `work`, or None if the module comes with no extra."""
    package = (error.name or "").partition(".")[0]
    return _describe(package, work) if package in TRAINING_PACKAGES else None


def _describe(package: str, work: str) -> str:
    return f"{work} needs {TRAINING_PACKAGES[package]}; pip install 'dragoman[train]'"
