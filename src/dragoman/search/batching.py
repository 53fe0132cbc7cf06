"""Any number of sentences is searched in batches of similar length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from dragoman.models.api import Model, Rows
from dragoman.search.allowed_outputs import Constraint
from dragoman.search.options import Hypothesis
from dragoman.text.special_tokens import BOS, EOS, PAD

SearchBatch = Callable[[Rows, list[list[int]] | None, Constraint | None], list[list[Hypothesis]]]
"""It searches one batch, with its prefixes and its constraint."""
MakeConstraint = Callable[[Sequence[int]], Constraint]
"""It returns the constraint on a batch of these sentences, given by their indices."""


def source_rows(sentences: Sequence[Sequence[int]], device: torch.device) -> Rows:
    """Return sentences without marks as the encoder reads them: EOS at the end, padded."""
    return _pad_rows([[*ids, EOS] for ids in sentences], device)


def target_rows(sentences: Sequence[Sequence[int]], device: torch.device) -> Rows:
    """Return sentences without marks as the decoder reads them: BOS in front, padded."""
    return _pad_rows([[BOS, *ids] for ids in sentences], device)


def _pad_rows(sentences: list[list[int]], device: torch.device) -> Rows:
    lengths = [len(ids) for ids in sentences]
    ids = [ids + [PAD] * (max(lengths) - len(ids)) for ids in sentences]
    return Rows.one_a_row(torch.tensor(ids, device=device), torch.tensor(lengths, device=device))


def length_sorted_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield indices in batches of similar length, longest first; padded, each fits the budget."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = max(1, batch_tokens // (lengths[order[start]] + 1))
        yield order[start : start + size]
        start += size


@torch.no_grad()
def search_in_batches(
    model: Model,
    sentences: Sequence[Sequence[int]],
    find: SearchBatch,
    *,
    batch_tokens: int,
    prefixes: Sequence[list[int]] | None = None,
    constrain: MakeConstraint | None = None,
) -> list[list[Hypothesis]]:
    """Return what `find` finds for every sentence, in their order; the longest go first."""
    device = next(model.parameters()).device
    results: list[list[Hypothesis]] = [[] for _ in sentences]
    for indices in length_sorted_batches([len(ids) for ids in sentences], batch_tokens):
        rows = source_rows([sentences[i] for i in indices], device)
        forced = None if prefixes is None else [prefixes[i] for i in indices]
        constraint = None if constrain is None else constrain(indices)
        for i, found in zip(indices, find(rows, forced, constraint), strict=True):
            results[i] = found
    return results
