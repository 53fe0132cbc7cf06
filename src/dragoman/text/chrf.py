"""ChrF of every two of some sentences, as sacreBLEU computes it of one sentence, in numpy.

Minimum Bayes risk decoding needs it of all candidates against each other, which pair by pair would
take a hundred times as long. Test sets are scored by sacreBLEU itself.
"""

# N texts

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.text.ngram_overlap import ngram_overlaps

CHARACTERS: Final = 6
"""N-grams have up to so many characters, spaces left out."""
BETA: Final = 2
"""Recall counts so many times as much as precision."""


def pairwise_chrf(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return chrF2, from 0 to 100, of each text (rows) with each as its reference (columns)."""
    precisions_NN = np.zeros((len(texts), len(texts)))
    recalls_NN, orders_NN = precisions_NN.copy(), precisions_NN.copy()
    characters = [list(map(ord, "".join(text.split()))) for text in texts]
    for counts_N, shared_NN in ngram_overlaps(characters, CHARACTERS):
        # Only lengths that both texts have count.
        both_NN = (counts_N[:, None] > 0) & (counts_N[None] > 0)
        sizes_N = np.maximum(counts_N, 1)
        precisions_NN += shared_NN / sizes_N[:, None]
        recalls_NN += shared_NN / sizes_N[None]
        orders_NN += both_NN
    precisions_NN /= np.maximum(orders_NN, 1)
    recalls_NN /= np.maximum(orders_NN, 1)
    scores_NN = (1 + BETA**2) * precisions_NN * recalls_NN
    weighted_NN = BETA**2 * precisions_NN + recalls_NN
    return np.asarray(100 * np.divide(scores_NN, weighted_NN, out=scores_NN, where=weighted_NN > 0))
