"""Which layer, word and heads are drawn when nobody says: rules, and how a caption states them.

The end of the sentence counts nowhere, nor does a word's look at itself: heads with nothing to do
rest there.
"""

# H heads, T words that look, S words they look at; the last of each is the end of its sentence

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError

__all__ = [
    "RULES",
    "different_heads",
    "farthest_word",
    "find_word",
    "paper_layer",
    "sharpest_heads",
    "sharpest_word",
]

Weights: TypeAlias = NDArray[np.floating[Any]]

RULES: Final = {
    "layer": "the layer nearest to five sixths of the way up, as the paper's layer 5 of 6",
    "farthest_word": "the word (no mark) whose heads look farthest: for each head the largest "
    "product of weight and distance, added up",
    "sharpest_word": "the word (no mark) from which one head has the most weight on a word that is "
    "not its neighbour",
    "sharpest_heads": "those with the most weight from there on any one other word",
    "different_heads": "the head that on average has the most weight on one other word, and the "
    "head that has the most where the first does not look",
}
"""By the name of the function that follows it; `paper_layer` follows the first."""


def paper_layer(layers: int) -> int:
    """The layer to draw, counted from 1: 5 of 6."""
    return max(1, round(layers * 5 / 6))


def farthest_word(weights_HSS: Weights, words: Sequence[int]) -> int:
    """See RULES; one of `words`."""
    reach_S = (_others(weights_HSS) * _distance(weights_HSS)).max(-1).sum(0)
    return max(words, key=lambda word: reach_S[word])


def sharpest_word(weights_HSS: Weights, words: Sequence[int]) -> int:
    """See RULES; one of `words`."""
    far_S = np.where(_distance(weights_HSS) > 1, _others(weights_HSS), 0).max((0, 2))
    return max(words, key=lambda word: far_S[word])


def sharpest_heads(weights_HSS: Weights, word: int, count: int = 2) -> tuple[int, ...]:
    """See RULES; sharpest first."""
    order = np.argsort(-_others(weights_HSS)[:, word].max(-1), kind="stable")
    return tuple(map(int, order[:count]))


def different_heads(weights_HTS: Weights, *, itself: bool = True) -> tuple[int, ...]:
    """See RULES; one if there is but one. `itself`: both columns are the same sentence."""
    others_HTS = _others(weights_HTS, itself)[:, :-1]
    first = int(others_HTS.max(-1).mean(-1).argmax())
    elsewhere_H = (others_HTS - others_HTS[first]).max(-1).mean(-1)
    elsewhere_H[first] = -1
    return (first, int(elsewhere_H.argmax())) if len(weights_HTS) > 1 else (first,)


def find_word(words: Sequence[str], word: str) -> int:
    """Where a word stands first; letters of another case will do."""
    for fold in (str, str.casefold):
        folded = [fold(one) for one in words]
        if fold(word) in folded:
            return folded.index(fold(word))
    raise ConfigError(f"the sentence has no word '{word}'; choose one of: {' '.join(words)}")


def _others(weights_HTS: Weights, itself: bool = True) -> Weights:
    """The weights without those on the end, and without those on the word itself."""
    others = weights_HTS.copy()
    others[:, :, -1] = 0
    if itself:
        others[:, _distance(weights_HTS) == 0] = 0
    return others


def _distance(weights_HSS: Weights) -> NDArray[np.int64]:
    places = np.arange(weights_HSS.shape[-1])
    distance_SS: NDArray[np.int64] = np.abs(places[:, None] - places)
    return distance_SS
