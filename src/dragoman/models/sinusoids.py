"""The sinusoids of §3.5 are in numpy: engines that must not import PyTorch share them.

All other positions are in `dragoman.models.positions`, which makes tensors of these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def sinusoids(length: int, d_model: int) -> NDArray[np.float32]:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same."""
    positions = np.arange(length, dtype=np.float64)[:, None]
    rates = 10000.0 ** (-np.arange(0, d_model, 2, dtype=np.float64) / d_model)
    table = np.empty((length, d_model), np.float32)
    table[:, 0::2] = np.sin(positions * rates)
    table[:, 1::2] = np.cos(positions * rates)
    return table
