"""The choice of the device that a model computes on."""

from __future__ import annotations

import ctypes
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from dragoman.errors import ConfigError

__all__ = ["choose_device"]

CUDA_DRIVER: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""NVIDIA's driver installs this library for programs to load."""
DRIVER_FILES: Final = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg", "/dev/nvmap")
"""These exist where the driver runs: on a server, under Windows' Linux and on a Jetson."""


def choose_device(device: str) -> str:
    """Return the device of this name; auto is the GPU if there is one.

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
    """Return False only where PyTorch could use none: it is built for none, or has no driver."""
    if sys.modules.get("torch") is not None:
        return True
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    built = _read_torch_version(Path(spec.origin).with_name("version.py"))
    if getattr(built, "hip", "unknown") is not None:
        return True
    return getattr(built, "cuda", "unknown") is not None and _has_cuda_driver()


def _read_torch_version(file: Path) -> ModuleType | None:
    """Run the small file in which PyTorch says what it is built for, without the rest of it."""
    spec = spec_from_file_location("torch_version", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception:  # then PyTorch itself has to say
        return None
    return module


def _has_cuda_driver() -> bool:
    """Return whether there is a driver; its library may lie where only PyTorch looks for it."""
    try:
        ctypes.CDLL(CUDA_DRIVER)
    except OSError:
        return any(Path(sign).exists() for sign in DRIVER_FILES)
    return True
