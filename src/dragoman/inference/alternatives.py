"""The likeliest next words of a translation are found, and what each would lead to."""

# W words at work, G groups of pieces, C candidates, V vocabulary

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.inference.engine import NextPieces
from dragoman.inference.translation_types import Alternative
from dragoman.search.constraints.requirements import OutputRequirements
from dragoman.search.options import Hypothesis
from dragoman.text.special_tokens import EOS
from dragoman.text.tokenizer import Tokenizer

MAX_WORD_PIECES: Final = 24
MIN_END_PROBABILITY: Final = 0.1
"""What ends with less probability than this is not a word but the beginning of one."""
LIKELIEST_PIECES: Final = 1024
"""The probability that a word ends is that of so many pieces which can follow it, at most."""

Flags = NDArray[np.bool_]
Predict = Callable[[Sequence[Sequence[int]], Flags, int], NextPieces]
"""Such a function gets words, groups of pieces G V and a count, and returns the likeliest pieces of
each group after each word."""
Complete = Callable[[list[OutputRequirements]], list[list[Hypothesis]]]
"""Such a function returns the best translations that are what is required of each."""


def find_alternatives(
    tokenizer: Tokenizer,
    prefix: Sequence[int],
    starts_V: Flags,
    count: int,
    predict: Predict,
    complete: Complete,
) -> list[Alternative]:
    """Return the `count` likeliest next words after a prefix; `starts` begin words."""
    words: dict[str, tuple[list[int], float]] = {}
    for ids, probability in next_words(starts_V, count, predict):
        word = tokenizer.decode(ids)
        if word or not ids:  # a piece may spell nothing
            spelling, total = words.get(word, (ids, 0.0))
            words[word] = spelling, total + probability
    best = sorted(words.items(), key=lambda item: -item[1][1])[:count]
    end_V = np.arange(len(starts_V)) == EOS
    completed = complete(
        [
            OutputRequirements([*prefix, *ids], after_prefix=starts_V | end_V if word else end_V)
            for word, (ids, _) in best
        ]
    )
    return [
        Alternative(word, probability, tokenizer.decode(one[0].ids), one[0].score)
        for (word, (_, probability)), one in zip(best, completed, strict=True)
    ]


def next_words(starts_V: Flags, count: int, predict: Predict) -> list[tuple[list[int], float]]:
    """Return words as pieces, with their probabilities; one may be there in several spellings.

    A word ends where a piece that begins one, or EOS, follows. Without pieces the sentence ends.
    """
    end_V = np.arange(len(starts_V)) == EOS
    # What ends a word, and what continues it.
    groups_GV = np.stack([starts_V | end_V, ~(starts_V | end_V)])
    wide = min(LIKELIEST_PIECES, len(starts_V))
    ids, log_probs = predict([()], np.stack([end_V, starts_V & ~end_V]), max(8, 2 * count))
    found: list[tuple[list[int], float]] = [([], float(log_probs[0, 0, 0]))]
    possible = log_probs[0, 1] > -inf
    words = [[piece] for piece in ids[0, 1, possible].tolist()]
    sums_W = log_probs[0, 1, possible].astype(np.float64)
    for _ in range(MAX_WORD_PIECES if words else 0):
        ids_WGC, log_probs_WGC = predict(words, groups_GV, wide)
        over_W = np.logaddexp.reduce(log_probs_WGC[:, 0].astype(np.float64), axis=1)
        ended = zip(words, (sums_W + over_W).tolist(), over_W.tolist(), strict=True)
        found += [(word, total) for word, total, over in ended if over > log(MIN_END_PROBABILITY)]
        found.sort(key=lambda one: -one[1])
        totals_WC = sums_W[:, None] + log_probs_WGC[:, 1]
        index_W = np.argsort(-totals_WC, axis=None, kind="stable")[: len(words)]
        index_W = index_W[totals_WC.ravel()[index_W] > -inf]
        sums_W = totals_WC.ravel()[index_W]
        if not len(sums_W) or (len(found) >= count and sums_W.max() <= found[count - 1][1]):
            break  # a longer word is less probable than all of these
        parents_W, last_W = index_W // totals_WC.shape[1], ids_WGC[:, 1].ravel()[index_W]
        going = zip(parents_W.tolist(), last_W.tolist(), strict=True)
        words = [[*words[parent], piece] for parent, piece in going]
    return [(ids, exp(value)) for ids, value in found if value > -inf]
