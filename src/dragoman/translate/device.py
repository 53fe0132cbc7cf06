"""Where a model is to compute."""

from __future__ import annotations

import torch

from dragoman.errors import ConfigError

__all__ = ["pick"]


def pick(device: str) -> str:
    """The device by its name; auto is the GPU if there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise ConfigError(f"there is no device '{device}' here; try cpu or auto") from None
    return device
