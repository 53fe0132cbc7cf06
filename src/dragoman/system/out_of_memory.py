"""This module recognises that a device, or the host, has run out of memory."""

from __future__ import annotations

import sys
from typing import Final

_OUT_OF_MEMORY: Final = (
    "out of memory",  # CUDA
    "CUBLAS_STATUS_ALLOC_FAILED",
    "DefaultCPUAllocator: can't allocate memory",
)
"""One of these is in a RuntimeError of PyTorch when a device, or the host, has no memory left."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether this error says that the device, or the host, has no memory left."""
    torch_error = getattr(sys.modules.get("torch"), "OutOfMemoryError", ())  # needs no torch
    if isinstance(error, (MemoryError, torch_error)):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _OUT_OF_MEMORY)
