"""Where a model is to compute."""

from __future__ import annotations

import ctypes
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from dragoman.errors import ConfigError

__all__ = ["pick"]

DRIVER: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""What NVIDIA's driver installs for programs to load."""
SIGNS: Final = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg", "/dev/nvmap")
"""What there is where the driver runs, on a server, under Windows' Linux and on a Jetson."""


def pick(device: str) -> str:
    """The device by its name; auto is the GPU if there is one.

    PyTorch is imported only where there may be a GPU, or one is asked for.
    """
    if device == "cpu" or (device == "auto" and not _may_have_gpu()):
        return "cpu"
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise ConfigError(f"there is no device '{device}' here; try cpu or auto") from None
    return device


def _may_have_gpu() -> bool:
    """False only where PyTorch could use none: it is built for none, or nothing is of a driver."""
    if sys.modules.get("torch") is not None:
        return True
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    built = _version(Path(spec.origin).with_name("version.py"))
    if getattr(built, "hip", "unknown") is not None:
        return True
    return getattr(built, "cuda", "unknown") is not None and _has_driver()


def _version(file: Path) -> ModuleType | None:
    """The small file in which PyTorch says what it is built for, run without the rest of it."""
    spec = spec_from_file_location("torch_version", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception:  # then PyTorch itself is to be asked
        return None
    return module


def _has_driver() -> bool:
    """Either of two signs will do: a library may lie where only PyTorch looks for it."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        return any(Path(sign).exists() for sign in SIGNS)
    return True
