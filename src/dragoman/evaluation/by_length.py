"""BLEU by the length of the source: where a model loses what it loses."""

# N sentences

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.evaluation.metrics import check_counts, make_metrics
from dragoman.evaluation.significance import draws, score, statistics

__all__ = ["EDGES", "Bucket", "by_length"]

EDGES: Final = (5, 10, 15, 20, 30, 40, 50, 60, 80)
"""The longest sentence of each bucket but the last, which has no end."""
LEAST: Final = 50
"""Corpus BLEU of fewer sentences says little."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Corpus BLEU of the sentences of some lengths."""

    shortest: int
    """Of the sentences that are there, not the bucket's bound."""
    longest: int
    sentences: int
    bleu: float
    low: float
    """95 of 100 draws of these sentences score between `low` and `high`."""
    high: float

    @property
    def lengths(self) -> str:
        """As a table's head has it: 11–15."""
        return (
            f"{self.shortest}–{self.longest}" if self.longest > self.shortest else str(self.longest)
        )

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        return cls(**table)


def by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    language: str | None = None,
    lengths: Sequence[int] | None = None,
    edges: Sequence[int] = EDGES,
    least: int = LEAST,
    resamples: int = 1000,
    seed: int = 12345,
) -> tuple[Bucket, ...]:
    """BLEU of translations in buckets of source length, shortest first.

    A length is the source's number of words between white space, unless `lengths` are given, in
    pieces for instance; `language` is the target's and chooses BLEU's tokeniser. A bucket of fewer
    than `least` sentences is joined to the next longer one, the last to the one before.
    """
    check_counts({"sources": sources, "hypotheses": hypotheses, "references": references})
    if lengths is None:
        lengths = [len(source.split()) for source in sources]
    elif len(lengths) != len(sources):
        raise DataError(f"there are {len(lengths)} lengths for {len(sources)} sources")
    lengths_N = np.array(lengths)
    (metric,) = make_metrics(["bleu"], False, None, language).values()
    statistics_NS = statistics(metric, hypotheses, references)
    buckets = []
    for members in _members(np.searchsorted(edges, lengths_N), len(edges) + 1, least):
        chosen_NS = statistics_NS[members]
        drawn = [
            score(metric, counts @ chosen_NS)[1] for counts in draws(len(members), resamples, seed)
        ]
        low, high = np.percentile(drawn, [2.5, 97.5])
        buckets.append(
            Bucket(
                int(lengths_N[members].min()),
                int(lengths_N[members].max()),
                len(members),
                score(metric, chosen_NS.sum(0))[1],
                float(low),
                float(high),
            )
        )
    return tuple(buckets)


def _members(bucket_N: NDArray[np.integer[Any]], buckets: int, least: int) -> list[list[int]]:
    """The sentences of each bucket, small ones joined to a neighbour."""
    joined: list[list[int]] = [[]]
    for bucket in range(buckets):
        if len(joined[-1]) >= least:
            joined.append([])
        joined[-1] += np.flatnonzero(bucket_N == bucket).tolist()
    if len(joined) > 1 and len(joined[-1]) < least:
        last = joined.pop()
        joined[-1] += last
    return joined
