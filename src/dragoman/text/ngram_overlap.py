"""How many n-grams each two of some texts share: what chrF and BLEU are made of.

A text is a row of symbols: characters, or words, as numbers.
"""

# N texts, P positions of all texts, E entries (an n-gram of a text at its k-th occurrence there),
# D distinct entries

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

CELLS_AT_ONCE: Final = 1 << 22
"""A table of texts and entries has at most about so many cells at a time."""


class NgramOverlap(NamedTuple):
    """Hold how many n-grams of one length texts have, and share with each other."""

    counts_N: NDArray[np.int64]
    shared_NN: NDArray[np.int64]
    """An n-gram that one text has a times and another b times is shared min(a, b) times."""


def ngram_overlaps(texts: Sequence[Sequence[int]], longest: int) -> Iterator[NgramOverlap]:
    """Yield the overlap of n-grams of each length from 1 to `longest`.

    min(a, b) is the number of k for which both texts have a k-th occurrence, so that overlaps are
    the product of a table of zeros and ones with itself.
    """
    sizes = np.array([len(text) for text in texts], np.int64)
    owners_P = np.repeat(np.arange(len(texts)), sizes)
    room_P = np.repeat(np.cumsum(sizes), sizes) - np.arange(sizes.sum())
    flat = np.array([symbol for text in texts for symbol in text], np.int64)
    distinct, symbols_P = np.unique(flat, return_inverse=True)
    grams_P = np.zeros_like(symbols_P)
    for length in range(1, longest + 1):
        places = np.flatnonzero(room_P >= length)
        counts_N = np.maximum(sizes - length + 1, 0)
        if not len(places):
            yield NgramOverlap(counts_N, np.zeros((len(texts), len(texts)), np.int64))
            continue
        # An n-gram is the one before it, and a symbol more.
        keys = grams_P[places] * len(distinct) + symbols_P[places + length - 1]
        owners = owners_P[places]
        order_E = np.argsort(keys * len(texts) + owners, kind="stable")
        keys_E, owners_E = keys[order_E], owners[order_E]
        new_gram_E = np.append(True, keys_E[1:] != keys_E[:-1])
        new_run_E = new_gram_E | np.append(True, owners_E[1:] != owners_E[:-1])
        grams_E, numbers_E = np.cumsum(new_gram_E) - 1, np.arange(len(order_E))
        times_E = numbers_E - np.maximum.accumulate(np.where(new_run_E, numbers_E, 0))
        widths = np.maximum.reduceat(times_E, np.flatnonzero(new_gram_E)) + 1
        columns_E = (np.cumsum(widths) - widths)[grams_E] + times_E
        shared_NN = _count_shared(owners_E, columns_E, len(texts))
        np.fill_diagonal(shared_NN, counts_N)
        yield NgramOverlap(counts_N, shared_NN)
        grams_P = np.zeros_like(grams_P)
        grams_P[places[order_E]] = grams_E


def _count_shared(
    owners_E: NDArray[np.int64], columns_E: NDArray[np.int64], texts: int
) -> NDArray[np.int64]:
    """Return in how many columns each two different texts both have an entry, N N."""
    shared_NN = np.zeros((texts, texts), np.float64)
    several_D = np.bincount(columns_E) > 1
    kept_E = several_D[columns_E]
    owners, columns = owners_E[kept_E], (np.cumsum(several_D) - 1)[columns_E[kept_E]]
    order = np.argsort(columns, kind="stable")
    owners, columns = owners[order], columns[order]
    step = max(1, CELLS_AT_ONCE // texts)
    for first in range(0, int(several_D.sum()), step):
        begin, end = np.searchsorted(columns, (first, first + step))
        table_ND = np.zeros((texts, int(columns[end - 1]) - first + 1), np.float32)
        table_ND[owners[begin:end], columns[begin:end] - first] = 1
        shared_NN += table_ND @ table_ND.T
    return shared_NN.astype(np.int64)
