"""These are the ids every vocabulary begins with."""

from __future__ import annotations

from typing import Final

PAD: Final = 0
BOS: Final = 1
EOS: Final = 2
UNK: Final = 3
"""SentencePiece needs it; byte fallback keeps it from ever being produced."""
FIRST_PIECE: Final = 4
"""The first id that is none of these."""
