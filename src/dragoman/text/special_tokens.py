"""The ids every vocabulary begins with."""

from __future__ import annotations

from typing import Final

__all__ = ["BOS", "EOS", "FIRST", "PAD", "UNK"]

PAD: Final = 0
BOS: Final = 1
EOS: Final = 2
UNK: Final = 3
"""Needed by SentencePiece; byte fallback keeps it from ever being produced."""
FIRST: Final = 4
"""The first that is none of these."""
