"""Word alignment: which source word each target word comes from, by the decoder's attention."""

# B sentences, H heads, S source pieces, T target pieces

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.models import Model
from dragoman.models.attention import attention_modules, record_attention
from dragoman.search.batching import source_rows, target_rows
from dragoman.text.tokenizer import Tokenizer


def attends_to_source(model: Model) -> bool:
    """Return whether there is attention to the source, and so an alignment."""
    return any("source_attention" in name for name, _ in attention_modules(model))


@torch.no_grad()
def source_attention(
    model: Model, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[dict[str, Tensor]]:
    """Return, for each pair, every attention to the source, H (T + 1) (S + 1), by name.

    Row t is the step that reads BOS (t = 0) or target piece t - 1; the last column is EOS.
    """
    device = next(model.parameters()).device
    with record_attention(model) as recorded:
        model.features(source_rows(sources, device), target_rows(targets, device))
    return [
        {
            name: weights[b, :, : len(targets[b]) + 1, : len(sources[b]) + 1].float().cpu()
            for name, weights in recorded.items()
            if "source_attention" in name
        }
        for b in range(len(sources))
    ]


def last_layer_attention(attention: dict[str, Tensor]) -> Tensor:
    """Return what each head of the last layer attends to to predict each target piece, H T S.

    The heads of an ensemble are those of all its models.
    """
    last = {_member(name): weights for name, weights in attention.items()}
    return torch.cat([weights[:, :-1, :-1] for weights in last.values()])


def _member(name: str) -> str:
    """Return the model of an ensemble that a module belongs to."""
    return name.split(".")[1] if name.startswith("models.") else ""


def word_alignment(
    attention: dict[str, Tensor], tokenizer: Tokenizer, source: Sequence[int], target: Sequence[int]
) -> list[tuple[int, int]]:
    """Return pairs (source word, target word) of white-space words; every word is in one.

    The weights are those of the step that predicts a target piece, averaged over the heads of the
    last layer: of all layers and of both steps, the best in most models (docs/log.md). A target
    word takes the source word it attends to most; a source word that none has taken, the target
    word that attends to it most (docs/decoding.md).
    """
    if not source or not target:
        return []
    weights_TS = last_layer_attention(attention).mean(0)
    source_words = torch.tensor(tokenizer.word_indices(source))
    target_words = torch.tensor(tokenizer.word_indices(target))
    read, said = source_words >= 0, target_words >= 0  # marks belong to no word
    if not (read.any() and said.any()):
        return []
    shape = int(target_words.max()) + 1, int(source_words.max()) + 1
    by_source = torch.zeros(int(said.sum()), shape[1])
    by_source.index_add_(1, source_words[read], weights_TS[said][:, read])
    table = torch.zeros(shape).index_add_(0, target_words[said], by_source)
    table /= target_words[said].bincount(minlength=shape[0])[:, None].clamp(min=1)
    pairs = [(int(other), word) for word, other in enumerate(table.argmax(1).tolist())]
    taken = {other for other, _ in pairs}
    free = [(word, other) for word, other in enumerate(table.argmax(0).tolist())]
    return sorted([*pairs, *(pair for pair in free if pair[0] not in taken)])
