"""BLEU by the length of the source sentence shows where a model loses its points."""

# N sentences, S sufficient statistics of BLEU

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

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
class LengthBucket:
    """Say how many sentences there are that are `shortest` to `longest` long."""

    shortest: int
    """The length of the shortest sentence there is, not the bucket's bound."""
    longest: int
    sentences: int

    @property
    def lengths(self) -> str:
        """Return the lengths as the head of a table shows them: 11–15."""
        if self.longest == self.shortest:
            return str(self.longest)
        return f"{self.shortest}–{self.longest}"


@dataclass(frozen=True, slots=True)
class Bucket(LengthBucket):
    """Hold corpus BLEU of the sentences whose sources have such lengths."""

    bleu: float
    low: float
    """95 of 100 draws of these sentences score between `low` and `high`."""
    high: float


def bleu_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    language: str | None = None,
    edges: Sequence[int] = EDGES,
    min_sentences: int = MIN_SENTENCES,
    resamples: int = 1000,
    seed: int = 12345,
) -> tuple[Bucket, ...]:
    """Score translations in buckets of source length, shortest first.

    A length is the source's number of words between white space; `language` is the target's and
    chooses BLEU's tokeniser. A bucket of fewer than `min_sentences` is merged with the next longer
    one, the last with the one before.
    """
    check_counts({"sources": sources, "hypotheses": hypotheses, "references": references})
    lengths = [len(source.split()) for source in sources]
    metric = make_bleu(language)
    statistics_NS = sentence_statistics(metric, hypotheses, references)
    buckets = []
    for members in group_by_length(lengths, edges, min_sentences):
        chosen_NS = statistics_NS[members]
        drawn = [
            score_statistics(metric, counts_N @ chosen_NS)[1]
            for counts_N in bootstrap_samples(len(members), resamples, seed)
        ]
        low, high = np.percentile(drawn, [2.5, 97.5])
        buckets.append(
            Bucket(
                min(lengths[i] for i in members),
                max(lengths[i] for i in members),
                len(members),
                score_statistics(metric, chosen_NS.sum(0))[1],
                float(low),
                float(high),
            )
        )
    return tuple(buckets)


def group_by_length(
    lengths: Sequence[int], edges: Sequence[int], min_sentences: int
) -> list[list[int]]:
    """Return the sentences of each bucket, by their indices; a small bucket joins a neighbour."""
    bucket_N = np.searchsorted(edges, lengths)
    groups: list[list[int]] = [[]]
    for bucket in range(len(edges) + 1):
        if len(groups[-1]) >= min_sentences:
            groups.append([])
        groups[-1] += np.flatnonzero(bucket_N == bucket).tolist()
    if len(groups) > 1 and len(groups[-1]) < min_sentences:
        last = groups.pop()
        groups[-1] += last
    return groups
