"""Scoring says how probable a model finds given translations, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dragoman.errors import DataError
from dragoman.inference.translation_types import ScoredTranslation
from dragoman.search.options import length_penalty
from dragoman.text.tokenizer import Tokenizer

LogProbabilities = Callable[[Sequence[Sequence[int]], Sequence[Sequence[int]]], list[list[float]]]
"""Such a function returns the log-probabilities of each target's pieces and of its end."""


def score_pairs(
    tokenizer: Tokenizer,
    sources: Sequence[str],
    targets: Sequence[str],
    log_probabilities: LogProbabilities,
    *,
    alpha: float,
    longest: int,
    cut: bool = False,
) -> list[ScoredTranslation]:
    """Return the log-probability of each target given its source, in their order.

    A line is taken whole, and so must have fewer than `longest` pieces; with `cut`, such a line is
    not computed, and costs nothing. Nor does a pair without text, as in translation.
    """
    if len(sources) != len(targets):
        raise DataError(
            f"there are {len(sources)} source but {len(targets)} target lines; they must "
            "correspond line by line"
        )
    pairs = list(
        zip(*(tokenizer.encode_batch(list(side)) for side in (sources, targets)), strict=True)
    )
    lengths = [max(map(len, pair)) for pair in pairs]
    for number, length in enumerate(lengths, 1):
        if length >= longest and not cut:
            raise DataError(
                f"line {number} has {length:,} pieces, more than a batch holds "
                f"({longest:,}); split it, or raise search.batch_tokens in the model's config"
            )
    log_probs = [[0.0] * (len(target) + 1) for _, target in pairs]
    computed = [i for i, length in enumerate(lengths) if 0 < length < longest]
    some = [[pairs[i][side] for i in computed] for side in (0, 1)]
    for i, each in zip(computed, log_probabilities(some[0], some[1]), strict=True):
        log_probs[i] = each
    return [
        ScoredTranslation(
            (*tokenizer.pieces(target), "</s>"),
            tuple(each),
            sum(each),
            sum(each) / length_penalty(len(target), alpha),
        )
        for (_, target), each in zip(pairs, log_probs, strict=True)
    ]
