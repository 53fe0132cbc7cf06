"""Arrays are written in JSON small enough to send, and exact where a person reads a number."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

import torch
from torch import Tensor

EXACT_COLUMNS: Final = 8
"""So many numbers of a row are sent exactly; the others only colour a picture."""
COLOUR_QUANTILE: Final = 0.995
"""Numbers above this quantile have the strongest colour."""


def encode_weights(values: Tensor) -> dict[str, Any]:
    """Encode numbers from 0 to 1 in 16 bits each."""
    whole = (values.float() * 65535).round().clamp(0, 65535).to(torch.int32).cpu().numpy()
    return {"shape": list(values.shape), "u16": _base64(whole.astype("<u2").tobytes())}


def encode_exact(values: Tensor) -> dict[str, Any]:
    """Encode numbers of any size, −∞ included, in 32 bits each."""
    data = values.float().cpu().numpy().astype("<f4").tobytes()
    return {"shape": list(values.shape), "f32": _base64(data)}


def encode_matrix(values: Tensor, columns: int = 512) -> dict[str, Any]:
    """Encode the first few numbers of every row exactly, and the first `columns` in 8 bits.

    The 8 bits cover [-peak, peak], within which nearly all numbers lie: if they covered an outlier,
    it would leave the others pale.
    """
    shown = values[..., :columns].float()
    sizes = shown.abs()
    peak = float(sizes.quantile(COLOUR_QUANTILE) or sizes.max()) if sizes.numel() else 0.0
    scaled = shown * (127 / peak if peak else 0.0)
    levels = scaled.round().clamp(-127, 127).to(torch.int8).cpu().numpy()
    return {
        "shape": list(values.shape),
        "first": encode_exact(values[..., :EXACT_COLUMNS]),
        "map": {"shape": list(shown.shape), "i8": _base64(levels.tobytes())},
        "peak": peak,
    }


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
