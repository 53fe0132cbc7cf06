"""The decoder's attention says which source word each target word comes from."""

# S source pieces, T target pieces

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.text.tokenizer import Tokenizer


def word_alignment(
    attention_TS: NDArray[np.float32],
    tokenizer: Tokenizer,
    source: Sequence[int],
    target: Sequence[int],
) -> list[tuple[int, int]]:
    """Return pairs (source word, target word) of white-space words; every word is in one.

    The weights are those of the step that predicts a target piece, averaged over the heads of the
    last layer: of all layers and of both steps, the best in most models (docs/log.md). A target
    word takes the source word it attends to most; a source word that none has taken, the target
    word that attends to it most (docs/decoding.md).
    """
    if not source or not target:
        return []
    source_words = np.array(tokenizer.word_indices(source))
    target_words = np.array(tokenizer.word_indices(target))
    read, said = source_words >= 0, target_words >= 0  # marks belong to no word
    if not (read.any() and said.any()):
        return []
    table = np.zeros((target_words.max() + 1, source_words.max() + 1))
    places = np.ix_(target_words[said], source_words[read])
    np.add.at(table, places, attention_TS[np.ix_(said, read)])
    counts = np.bincount(target_words[said], minlength=len(table))
    table /= np.maximum(counts, 1)[:, None]
    pairs = [(int(other), word) for word, other in enumerate(table.argmax(1).tolist())]
    taken = {other for other, _ in pairs}
    free = [(word, int(other)) for word, other in enumerate(table.argmax(0).tolist())]
    return sorted([*pairs, *(pair for pair in free if pair[0] not in taken)])
