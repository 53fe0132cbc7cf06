"""Subword regularisation: another segmentation of a sentence each time it is seen.

BPE-dropout (Provilkov et al., 2020) for BPE, sampling from the n best (Kudo, 2018) for unigram
models. SentencePiece can draw too, but what it draws differs from one process to the next whatever
the seed, and a resumed run must see what the uninterrupted one saw. Here every draw is a function
of (word, slot): a word has `SLOTS` segmentations, made when first needed, and an occurrence takes
one of them.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, islice, pairwise
from math import exp, inf
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dragoman.text.normalization import SPACE_MARK
from dragoman.text.tokenizer import Tokenizer

__all__ = ["SubwordSampler"]

SLOTS: Final = 32
"""Draws of a word before they repeat: enough for what is likely, few enough to be remembered."""

REMEMBERED: Final = 500_000
"""Draws that are remembered, some 100 MB; then the older half is forgotten. What is needed again
is drawn again, as it was."""


class SubwordSampler:
    """Cuts sentences into pieces again; `alpha` is BPE's dropout or the unigram's smoothing."""

    def __init__(self, tokenizer: Tokenizer, alpha: float) -> None:
        self.tokenizer = tokenizer
        self.alpha = alpha
        self._drawn: dict[tuple[str, int], list[int]] = {}
        self._known: dict[str, tuple[list[list[int]], list[float]]] = {}
        self._scores = tokenizer.scores
        self._worth = {piece: self._scores[i] for piece, i in tokenizer.vocabulary.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return SubwordSampler, (self.tokenizer, self.alpha)  # each process fills its own memory

    def __call__(self, sentences: Sequence[NDArray[np.integer[Any]]], seed: int) -> list[list[int]]:
        """The same texts in other pieces."""
        texts = self.tokenizer.decode_batch([ids.tolist() for ids in sentences])
        words = [text.split(" ") for text in texts]
        slots = np.random.Generator(np.random.PCG64(seed)).integers(
            SLOTS, size=sum(map(len, words))
        )
        drawn = self._drawn
        chosen = iter(slots.tolist())
        sampled = []
        for sentence in words:
            ids: list[int] = []
            for word in sentence:
                key = (word, next(chosen))
                pieces = drawn.get(key)
                if pieces is None:
                    if len(drawn) >= REMEMBERED:
                        for old in list(islice(drawn, REMEMBERED // 2)):
                            del drawn[old]
                    pieces = drawn[key] = self._draw(*key)
                ids += pieces
            sampled.append(ids)
        return sampled

    def _draw(self, word: str, slot: int) -> list[int]:
        chance = Random(zlib.crc32(word.encode()) * SLOTS + slot).random
        if self.tokenizer.kind == "bpe":
            return self._drop_merges(word, chance)
        candidates, sums = self._candidates(word)
        return candidates[bisect_right(sums, chance() * sums[-1], hi=len(sums) - 1)]

    def _candidates(self, word: str) -> tuple[list[list[int]], list[float]]:
        """The n best segmentations, and running sums of their P^alpha."""
        known = self._known.get(word)
        if known is None:
            candidates = self.tokenizer.best_segmentations(word, SLOTS)
            totals = [self.alpha * sum(self._scores[i] for i in ids) for ids in candidates]
            weights = [exp(total - max(totals)) for total in totals]
            known = self._known[word] = candidates, list(accumulate(weights))
        return known

    def _drop_merges(self, word: str, chance: Callable[[], float]) -> list[int]:
        """Merge the likeliest pair again and again, each pair left out with probability alpha."""
        vocabulary, worth, alpha = self.tokenizer.vocabulary, self._worth.get, self.alpha
        spelt = SPACE_MARK + word
        parts = list(spelt)
        if not vocabulary.keys() >= set(parts) or any(s in spelt for s in self.tokenizer.symbols):
            return self.tokenizer.encode(word)  # bytes and symbols of the user have no merges
        worths = [worth(left + right, -inf) for left, right in pairwise(parts)]
        while True:
            best, place = -inf, -1
            for i, score in enumerate(worths):
                if score > best and chance() >= alpha:
                    best, place = score, i
            if place < 0:
                return [vocabulary[part] for part in parts]
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
            del worths[place]  # and the pairs beside it have changed
            if place > 0:
                worths[place - 1] = worth(parts[place - 1] + parts[place], -inf)
            if place < len(worths):
                worths[place] = worth(parts[place] + parts[place + 1], -inf)
