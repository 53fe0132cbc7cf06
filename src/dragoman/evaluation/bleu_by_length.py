"""BLEU by the length of the source sentence shows where a model loses its points."""

# N sentences, S sufficient statistics of BLEU

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.evaluation.metrics import check_counts
from dragoman.evaluation.significance import (
    bootstrap_samples,
    score_statistics,
    sentence_statistics,
)
from dragoman.text.bleu import make_bleu

EDGES: Final = (5, 10, 15, 20, 30, 40, 50, 60, 80)
"""The longest sentence of each bucket but the last, which has no limit."""
MIN_SENTENCES: Final = 50
"""Corpus BLEU of fewer sentences says little."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Hold corpus BLEU of the sentences whose sources are `shortest` to `longest` long."""

    shortest: int
    """The length of the shortest sentence there is, not the bucket's bound."""
    longest: int
    sentences: int
    bleu: float
    low: float
    """95 of 100 draws of these sentences score between `low` and `high`."""
    high: float

    @property
    def lengths(self) -> str:
        """Return the lengths as the head of a table shows them: 11–15."""
        if self.longest == self.shortest:
            return str(self.longest)
        return f"{self.shortest}–{self.longest}"

    def to_json(self) -> dict[str, Any]:
        """Return a table that `json.dumps` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """Return the bucket that `to_json` made the table of."""
        return cls(**table)


def bleu_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    language: str | None = None,
    lengths: Sequence[int] | None = None,
    edges: Sequence[int] = EDGES,
    min_sentences: int = MIN_SENTENCES,
    resamples: int = 1000,
    seed: int = 12345,
) -> tuple[Bucket, ...]:
    """Score translations in buckets of source length, shortest first.

    A length is the source's number of words between white space, unless `lengths` are given, in
    pieces for instance; `language` is the target's and chooses BLEU's tokeniser. A bucket of fewer
    than `min_sentences` is merged with the next longer one, the last with the one before.
    """
    check_counts({"sources": sources, "hypotheses": hypotheses, "references": references})
    if lengths is None:
        lengths = [len(source.split()) for source in sources]
    elif len(lengths) != len(sources):
        raise DataError(f"there are {len(lengths)} lengths for {len(sources)} sources")
    lengths_N = np.array(lengths)
    metric = make_bleu(language)
    statistics_NS = sentence_statistics(metric, hypotheses, references)
    buckets = []
    for members in _bucket_members(
        np.searchsorted(edges, lengths_N), len(edges) + 1, min_sentences
    ):
        chosen_NS = statistics_NS[members]
        drawn = [
            score_statistics(metric, counts_N @ chosen_NS)[1]
            for counts_N in bootstrap_samples(len(members), resamples, seed)
        ]
        low, high = np.percentile(drawn, [2.5, 97.5])
        buckets.append(
            Bucket(
                int(lengths_N[members].min()),
                int(lengths_N[members].max()),
                len(members),
                score_statistics(metric, chosen_NS.sum(0))[1],
                float(low),
                float(high),
            )
        )
    return tuple(buckets)


def _bucket_members(
    bucket_N: NDArray[np.integer[Any]], buckets: int, min_sentences: int
) -> list[list[int]]:
    """Return the sentences of each bucket, small buckets merged with a neighbour."""
    merged: list[list[int]] = [[]]
    for bucket in range(buckets):
        if len(merged[-1]) >= min_sentences:
            merged.append([])
        merged[-1] += np.flatnonzero(bucket_N == bucket).tolist()
    if len(merged) > 1 and len(merged[-1]) < min_sentences:
        last = merged.pop()
        merged[-1] += last
    return merged
