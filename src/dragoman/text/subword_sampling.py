"""Subword regularisation cuts a sentence into other pieces each time it is seen.

It is BPE-dropout (Provilkov et al., 2020) for BPE, and sampling from the n best (Kudo, 2018) for
unigram models. SentencePiece can draw too, but what it draws differs from one process to the next
whatever the seed, and a resumed run must see what the uninterrupted one saw. Here every draw is a
function of (word, number): a word has `DRAWS_PER_WORD` segmentations, made when first needed, and
an occurrence takes one of them.
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

DRAWS_PER_WORD: Final = 32
"""A word's draws repeat after this many: enough for what is likely, few enough to remember."""

REMEMBERED_DRAWS: Final = 500_000
"""So many draws are remembered, some 100 MB; then the older half is forgotten. What is needed
again is drawn again, as it was."""


class SubwordSampler:
    """Cut sentences into pieces again; `alpha` is BPE's dropout or the unigram's smoothing."""

    def __init__(self, tokenizer: Tokenizer, alpha: float) -> None:
        self.tokenizer = tokenizer
        self.alpha = alpha
        self._drawn: dict[tuple[str, int], list[int]] = {}
        self._known: dict[str, tuple[list[list[int]], list[float]]] = {}
        self._scores = tokenizer.scores
        self._merge_scores = {piece: self._scores[i] for piece, i in tokenizer.vocabulary.items()}
        # A parser has hundreds of symbols, and nearly no word has a character of one.
        self._symbol_starts = frozenset(symbol[0] for symbol in tokenizer.symbols)
        self._tags = frozenset(tokenizer.tags.values())

    def __reduce__(self) -> tuple[Any, ...]:
        return SubwordSampler, (self.tokenizer, self.alpha)  # each process fills its own memory

    def __call__(self, sentences: Sequence[NDArray[np.integer[Any]]], seed: int) -> list[list[int]]:
        """Return the same texts in other pieces."""
        texts = self.tokenizer.decode_batch([ids.tolist() for ids in sentences])
        words = [text.split(" ") for text in texts]
        numbers = np.random.Generator(np.random.PCG64(seed)).integers(
            DRAWS_PER_WORD, size=sum(map(len, words))
        )
        drawn = self._drawn
        chosen = iter(numbers.tolist())
        sampled = []
        for before, sentence in zip(sentences, words, strict=True):
            ids = [int(one) for one in before[:1] if int(one) in self._tags]  # no text has it
            for word in sentence:
                key = (word, next(chosen))
                pieces = drawn.get(key)
                if pieces is None:
                    if len(drawn) >= REMEMBERED_DRAWS:
                        for old in list(islice(drawn, REMEMBERED_DRAWS // 2)):
                            del drawn[old]
                    pieces = drawn[key] = self._draw(*key)
                ids += pieces
            sampled.append(ids)
        return sampled

    def _draw(self, word: str, number: int) -> list[int]:
        chance = Random(zlib.crc32(word.encode()) * DRAWS_PER_WORD + number).random
        if self.tokenizer.kind == "bpe":
            return self._drop_merges(word, chance)
        candidates, sums = self._candidates(word)
        return candidates[bisect_right(sums, chance() * sums[-1], hi=len(sums) - 1)]

    def _candidates(self, word: str) -> tuple[list[list[int]], list[float]]:
        """Return the n best segmentations, and running sums of their P^alpha."""
        known = self._known.get(word)
        if known is None:
            candidates = self.tokenizer.best_segmentations(word, DRAWS_PER_WORD)
            totals = [self.alpha * sum(self._scores[i] for i in ids) for ids in candidates]
            weights = [exp(total - max(totals)) for total in totals]
            known = self._known[word] = candidates, list(accumulate(weights))
        return known

    def _drop_merges(self, word: str, chance: Callable[[], float]) -> list[int]:
        """Merge the likeliest pair again and again, each pair left out with probability alpha."""
        vocabulary, merge_score, alpha = (
            self.tokenizer.vocabulary,
            self._merge_scores.get,
            self.alpha,
        )
        spelt = SPACE_MARK + word
        parts = list(spelt)
        if not vocabulary.keys() >= set(parts) or (
            not self._symbol_starts.isdisjoint(parts)
            and any(symbol in spelt for symbol in self.tokenizer.symbols)
        ):
            return self.tokenizer.encode(word)  # bytes and symbols of the user have no merges
        scores = [merge_score(left + right, -inf) for left, right in pairwise(parts)]
        while True:
            best, place = -inf, -1
            for i, score in enumerate(scores):
                if score > best and chance() >= alpha:
                    best, place = score, i
            if place < 0:
                return [vocabulary[part] for part in parts]
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
            del scores[place]  # and the pairs beside it have changed
            if place > 0:
                scores[place - 1] = merge_score(parts[place - 1] + parts[place], -inf)
            if place < len(scores):
                scores[place] = merge_score(parts[place] + parts[place + 1], -inf)
