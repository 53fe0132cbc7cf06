"""What a translator is asked for, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Request", "Run", "Translation"]


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of one text."""

    source: str
    text: str
    score: float
    """Log-probability / length penalty, summed over the segments of a long line."""
    tokens: tuple[str, ...]
    """The target pieces as the model produced them."""
    alignment: tuple[tuple[int, int], ...] = ()
    """(source word, target word) by white-space words, if asked for."""
    alternatives: tuple[Translation, ...] = ()
    """With n_best or samples: the others, best first."""
    log_prob: float = 0.0
    """The sum of the model's log-probabilities of every piece and of the end."""

    @property
    def pharaoh(self) -> str:
        """The alignment as Pharaoh writes it: 0-0 1-2 …"""
        return " ".join(f"{source}-{target}" for source, target in self.alignment)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        table: dict[str, Any] = {
            "text": self.text,
            "score": round(self.score, 6),
            "tokens": list(self.tokens),
        }
        if self.alignment:
            table["alignment"] = [list(pair) for pair in self.alignment]
        if self.alternatives:
            table["alternatives"] = [other.to_dict() for other in self.alternatives]
        return table


@dataclass(frozen=True, slots=True)
class Request:
    """A text to translate, and what is asked of its translation."""

    text: str
    prefix: str = ""
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()


Run = Callable[[Sequence[Request]], list[Translation]]
"""What translates some requests, with alignments."""
