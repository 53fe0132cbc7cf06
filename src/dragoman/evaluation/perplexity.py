"""Perplexity measures how improbable a model finds reference translations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.errors import DataError
from dragoman.inference.scoring import LogProbabilities


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Hold the negative log-likelihood of a test set, without label smoothing."""

    nll: float
    """The sum over all pieces, in nats."""
    pieces: int
    """The number of target pieces, one EOS a sentence included."""

    @property
    def per_piece(self) -> float:
        """Return what the paper's tables give; it is not comparable between vocabularies."""
        return math.exp(self.nll / self.pieces)

    def per_word(self, words: int) -> float:
        """Return the perplexity a word instead, which is comparable between vocabularies."""
        return math.exp(self.nll / words)

    def to_json(self) -> dict[str, Any]:
        """Return a table that `json.dumps` takes."""
        return {"perplexity": self.per_piece, "nll": self.nll, "pieces": self.pieces}


def perplexity(
    log_probabilities: LogProbabilities,
    source: Sequence[Sequence[int]],
    target: Sequence[Sequence[int]],
) -> Perplexity:
    """Measure perplexity on pairs of ids without BOS and EOS, teacher-forced.

    `log_probabilities` is a translator's: what translates is what is measured.
    """
    if len(source) != len(target):
        raise DataError(
            f"there are {len(source)} source but {len(target)} target sentences; "
            "they must correspond line by line"
        )
    if not source:
        raise DataError("there is nothing to measure: the files have no lines")
    nll = -math.fsum(math.fsum(each) for each in log_probabilities(source, target))
    return Perplexity(nll, sum(len(ids) + 1 for ids in target))
