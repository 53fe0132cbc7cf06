"""Another segmentation of every sentence each epoch: subword regularisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.text.tokenizer import Tokenizer

__all__ = ["subword_sampler"]


def subword_sampler(tokenizer: Tokenizer, alpha: float) -> SubwordSampler | None:
    """The sampler of `Batches` for data.subword_sampling = alpha; none where that is 0."""
    return SubwordSampler(tokenizer, alpha) if alpha > 0 else None


@dataclass(frozen=True, slots=True)
class SubwordSampler:
    """Spells sentences out and cuts them into pieces again."""

    tokenizer: Tokenizer
    alpha: float

    def __call__(self, sentences: Sequence[NDArray[np.integer[Any]]], seed: int) -> list[list[int]]:
        """The same texts in other pieces."""
        texts = self.tokenizer.decode_batch([ids.tolist() for ids in sentences])
        return self.tokenizer.encode_batch(texts, sampling=self.alpha, seed=seed)
