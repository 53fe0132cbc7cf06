"""Translating needs few packages; what other work needs besides is asked for before it begins."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final, NamedTuple

from dragoman.errors import ConfigError


class OptionalPackage(NamedTuple):
    """Hold the name that people know a package by, and the extra of Dragoman that brings it."""

    title: str
    extra: str


OPTIONAL_PACKAGES: Final = {
    "torch": OptionalPackage("PyTorch", "train"),
    "tensorboard": OptionalPackage("TensorBoard", "train"),
    "matplotlib": OptionalPackage("Matplotlib", "train"),
    "sacrebleu": OptionalPackage("sacreBLEU", "evaluate"),
    "transformers": OptionalPackage("Transformers", "export"),
    "ctranslate2": OptionalPackage("CTranslate2", "export"),
    "onnx": OptionalPackage("ONNX", "export"),
    "onnxscript": OptionalPackage("ONNX Script", "export"),
    "onnxruntime": OptionalPackage("ONNX Runtime", "export"),
    "pymarian": OptionalPackage("pymarian", "marian"),
    "zstandard": OptionalPackage("zstandard", "zstd"),
    "ray": OptionalPackage("Ray", "ray"),
}
"""These come with an extra, by the name of their module."""


def has_package(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    try:
        return find_spec(package) is not None
    except ValueError:  # it is imported already, by other means than a file
        return True


def require_package(package: str, work: str) -> None:
    """Raise ConfigError, which says what to install, if there is no package that `work` needs."""
    if not has_package(package):
        raise ConfigError(describe_need(package, work))


def describe_need(package: str, work: str) -> str:
    """Return what to install for `work` that needs a package."""
    return f"{work} needs {OPTIONAL_PACKAGES[package].title}; {pip_command(package)}"


def pip_command(package: str) -> str:
    """Return the command that installs a package with the extra that it belongs to."""
    return f"pip install 'dragoman[{OPTIONAL_PACKAGES[package].extra}]'"


def describe_missing(error: ModuleNotFoundError, work: str) -> str | None:
    """Return what to install for `work`, or None if the module comes with no extra."""
    package = (error.name or "").partition(".")[0]
    return describe_need(package, work) if package in OPTIONAL_PACKAGES else None
