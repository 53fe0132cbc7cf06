"""Subword regularisation: another segmentation of a sentence each time it is seen.

BPE-dropout (Provilkov et al., 2020) for BPE, sampling from the n best (Kudo, 2018) for unigram
models. SentencePiece can draw too, but what it draws differs from one process to the next whatever
the seed, and a resumed run must see what the uninterrupted one saw. Here every draw is a function
of (word, slot): a word has `SLOTS` segmentations, made when first needed, and an occurrence takes
one of them.
"""

from __future__ import annotations

import math
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dragoman.text.normalization import SPACE_MARK
from dragoman.text.tokenizer import Tokenizer

__all__ = ["SubwordSampler"]

SLOTS: Final = 32
"""Draws of a word before they repeat: enough for what is likely, few enough to be remembered."""

REMEMBERED: Final = 500_000
"""Draws that are remembered, some 100 MB; then all are forgotten, and drawn again as they were."""


class SubwordSampler:
    """Cuts sentences into pieces again; `alpha` is BPE's dropout or the unigram's smoothing."""

    def __init__(self, tokenizer: Tokenizer, alpha: float) -> None:
        self.tokenizer = tokenizer
        self.alpha = alpha
        self._drawn: dict[tuple[str, int], list[int]] = {}
        self._known: dict[str, tuple[list[list[int]], list[float]]] = {}
        self._scores = tokenizer.scores

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
                        drawn.clear()
                    pieces = drawn[key] = self._draw(*key)
                ids += pieces
            sampled.append(ids)
        return sampled

    def _draw(self, word: str, slot: int) -> list[int]:
        chances = _Chances(zlib.crc32(word.encode()) * SLOTS + slot)
        if self.tokenizer.kind == "bpe":
            return self._drop_merges(word, chances)
        candidates, sums = self._candidates(word)
        return candidates[bisect_right(sums, chances.next() * sums[-1], hi=len(sums) - 1)]

    def _candidates(self, word: str) -> tuple[list[list[int]], list[float]]:
        """The n best segmentations, and running sums of their P^alpha."""
        known = self._known.get(word)
        if known is None:
            candidates = self.tokenizer.best_segmentations(word, SLOTS)
            totals = [self.alpha * sum(self._scores[i] for i in ids) for ids in candidates]
            weights = [math.exp(total - max(totals)) for total in totals]
            known = self._known[word] = candidates, list(accumulate(weights))
        return known

    def _drop_merges(self, word: str, chances: _Chances) -> list[int]:
        """Merge the likeliest pair again and again, each pair left out with probability alpha."""
        vocabulary, scores = self.tokenizer.vocabulary, self._scores
        parts = list(SPACE_MARK + word)
        usual = self.tokenizer.encode(word)
        if any(part not in vocabulary for part in parts) or not self.tokenizer.is_plain(usual):
            return usual  # bytes and symbols of the user have no merges

        def worth(left: str, right: str) -> float:
            merged = vocabulary.get(left + right)
            return -math.inf if merged is None else scores[merged]

        worths = [worth(*pair) for pair in pairwise(parts)]
        while True:
            best, place = -math.inf, -1
            for i, score in enumerate(worths):
                if score > best and chances.next() >= self.alpha:
                    best, place = score, i
            if place < 0:
                return [vocabulary[part] for part in parts]
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
            del worths[place]  # and the pairs beside it have changed
            if place > 0:
                worths[place - 1] = worth(parts[place - 1], parts[place])
            if place < len(worths):
                worths[place] = worth(parts[place], parts[place + 1])


class _Chances:
    """Numbers in [0, 1), cheap and the same everywhere: a 64-bit congruential generator."""

    def __init__(self, seed: int) -> None:
        self._state = (seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & 0xFFFFFFFFFFFFFFFF
        self.next()

    def next(self) -> float:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self._state >> 11) / 9007199254740992.0
