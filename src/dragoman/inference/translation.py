"""What a translator is asked for, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.search import SamplingOptions, SearchOptions

__all__ = ["Alternative", "Request", "Run", "Scored", "Segment", "Settings", "Translation"]


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
class Alternative:
    """A word a translation could go on with."""

    word: str
    """Empty: the translation ends."""
    probability: float
    """Of this word after the prefix, in all spellings that were found."""
    translation: str
    """The best translation that begins so."""
    score: float
    """Of that."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "word": self.word,
            "probability": round(self.probability, 6),
            "translation": self.translation,
            "score": round(self.score, 6),
        }


@dataclass(frozen=True, slots=True)
class Scored:
    """A translation that was shown to a model."""

    tokens: tuple[str, ...]
    """Its pieces, and the end."""
    log_probs: tuple[float, ...]
    """Of each."""
    log_prob: float
    score: float
    """`log_prob` / length penalty: what search ranks by."""

    def to_dict(self, *, tokens: bool = False) -> dict[str, Any]:
        """As JSON holds it, with every piece if asked for."""
        table: dict[str, Any] = {
            "log_prob": round(self.log_prob, 6),
            "score": round(self.score, 6),
            "pieces": len(self.tokens),
        }
        if tokens:
            table["tokens"] = list(self.tokens)
            table["log_probs"] = [round(one, 6) for one in self.log_probs]
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


@dataclass(frozen=True, slots=True)
class Settings:
    """How to search, and whether to align."""

    search: SearchOptions
    sampling: SamplingOptions | None = None
    align: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text that is searched at once."""

    owner: int
    text: str
    prefix: str
    must: tuple[str, ...]
    must_not: tuple[str, ...]
    joint: str | None
    """What joins its translation with the next segment's; None: it is the last."""

    @property
    def free(self) -> bool:
        """Whether nothing is asked of its translation."""
        return not (self.prefix or self.must or self.must_not)
