"""Here files of text become batches: readers, cleaning, the doctor, the store, batching."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Progress"]

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with what is being done, how many pairs are done, and of how many if that is known."""
