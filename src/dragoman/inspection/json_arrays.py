"""Arrays as JSON carries them: small enough to send, and exact where a number is read."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

import torch
from torch import Tensor

__all__ = ["exact", "matrix", "weights"]

FEW: Final = 8
"""Numbers of a row that are sent as they are; the others only colour a picture."""
USUAL: Final = 0.995
"""The share of numbers that is coloured as it is; the others are as strong as the strongest."""


def weights(values: Tensor) -> dict[str, Any]:
    """Numbers from 0 to 1 in 16 bits each."""
    whole = (values.float() * 65535).round().clamp(0, 65535).to(torch.int32).cpu().numpy()
    return {"shape": list(values.shape), "u16": _base64(whole.astype("<u2").tobytes())}


def exact(values: Tensor) -> dict[str, Any]:
    """Numbers of any size in 32 bits each; −∞ is one of them."""
    data = values.float().cpu().numpy().astype("<f4").tobytes()
    return {"shape": list(values.shape), "f32": _base64(data)}


def matrix(values: Tensor, columns: int = 512) -> dict[str, Any]:
    """The first few numbers of every row as they are, and as many columns as told in 8 bits.

    The 8 bits are of [-peak, peak], within which nearly all are: one that stands out would leave
    the others pale.
    """
    shown = values[..., :columns].float()
    sizes = shown.abs()
    peak = float(sizes.quantile(USUAL) or sizes.max()) if sizes.numel() else 0.0
    scaled = shown * (127 / peak if peak else 0.0)
    levels = scaled.round().clamp(-127, 127).to(torch.int8).cpu().numpy()
    return {
        "shape": list(values.shape),
        "first": exact(values[..., :FEW]),
        "map": {"shape": list(shown.shape), "i8": _base64(levels.tobytes())},
        "peak": peak,
    }


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
