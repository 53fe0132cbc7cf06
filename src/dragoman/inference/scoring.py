"""Scoring says how probable a model finds given translations, piece by piece."""

# B sentences, L length of their rows, N real positions, M model width

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from dragoman.errors import DataError
from dragoman.inference.translation_types import ScoredTranslation
from dragoman.models import Model
from dragoman.search.batching import length_sorted_batches, source_rows, target_rows
from dragoman.search.options import length_penalty
from dragoman.text.tokenizer import Tokenizer

POSITIONS_AT_ONCE: Final = 1024
"""Log-probabilities of this many positions exist at once, however large the batch is."""


@torch.no_grad()
def score_pairs(
    model: Model,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    alpha: float,
    batch_tokens: int,
) -> list[ScoredTranslation]:
    """Return the log-probability of each target given its source, in their order.

    A line is taken whole, and so must fit in a batch. A pair without text costs nothing, as in
    translation.
    """
    if len(sources) != len(targets):
        raise DataError(
            f"there are {len(sources)} source but {len(targets)} target lines; they must "
            "correspond line by line"
        )
    source = tokenizer.encode_batch(sources) if sources else []
    target = tokenizer.encode_batch(targets) if targets else []
    lengths = [max(len(s), len(t)) for s, t in zip(source, target, strict=True)]
    for number, length in enumerate(lengths, 1):
        if length >= batch_tokens:
            raise DataError(
                f"line {number} has {length:,} pieces, more than a batch holds "
                f"({batch_tokens:,}); split it, or raise search.batch_tokens in the model's config"
            )
    device = next(model.parameters()).device
    results: list[ScoredTranslation | None] = [None] * len(source)
    for batch in length_sorted_batches(lengths, batch_tokens):
        wanted = source_rows([target[i] for i in batch], device)  # its pieces, then EOS
        real_BL = wanted.segments_RL > 0
        features_NM = model.features(
            source_rows([source[i] for i in batch], device),
            target_rows([target[i] for i in batch], device),
        )[real_BL]
        parts = zip(
            features_NM.split(POSITIONS_AT_ONCE),
            wanted.ids_RL[real_BL].split(POSITIONS_AT_ONCE),
            strict=True,
        )
        found = [
            model.log_probabilities(features).gather(1, ids[:, None])[:, 0]
            for features, ids in parts
        ]
        each = torch.cat(found).split([len(target[i]) + 1 for i in batch])
        for i, log_probs_L in zip(batch, each, strict=True):
            log_probs = log_probs_L.tolist() if source[i] or target[i] else [0.0]
            total = sum(log_probs)
            results[i] = ScoredTranslation(
                (*tokenizer.pieces(target[i]), "</s>"),
                tuple(log_probs),
                total,
                total / length_penalty(len(target[i]), alpha),
            )
    return [one for one in results if one is not None]
