"""The CPU engine and the GPU engine share this interface.

An engine holds a model's weights in the form its device computes with, and searches over them.
What no engine supports is computed by `dragoman.inference.torch_engine`.
"""

# X beginnings, G groups of pieces, C candidates, V vocabulary

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.search.constraints.requirements import OutputRequirements
from dragoman.search.options import Hypothesis, SamplingOptions, SearchOptions

if TYPE_CHECKING:
    from dragoman.trees.grammar import SentencesToParse

DEFAULT_WINDOW: Final = 2000
"""Lines are searched so many at a time where no engine asks for more."""


class ForcedDecoding(NamedTuple):
    """Hold what a model says of a translation that is given."""

    log_probs: NDArray[np.float32]
    """These are the log-probabilities of each piece and of the end, T + 1."""
    attention: NDArray[np.float32]
    """This is where it looks to say each piece, the mean of the last layer's heads, T S."""


class NextPieces(NamedTuple):
    """Hold the likeliest pieces of each of some groups after each of some beginnings, best first.

    Where a group has fewer, the rest have the log-probability −∞.
    """

    ids_XGC: NDArray[np.int32]
    log_probs_XGC: NDArray[np.float32]


class Engine(Protocol):
    """Search for the best hypotheses of many sentences with one model."""

    window: int
    """An engine is used best if it is given so many lines at a time."""
    max_beam: int
    """A beam may be so wide."""

    def supports(self, options: SearchOptions) -> bool:
        """Return whether the engine can search with these options."""
        return options.groups == 1 and options.beam <= self.max_beam

    def search_each(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        to_parse: SentencesToParse | None = None,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yield the number of each sentence and its best hypotheses, as soon as they are found.

        They are what `dragoman.search.search` finds, in any order of the sentences. With `to_parse`
        they are trees over the words of each sentence.
        """
        ...

    def search(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        to_parse: SentencesToParse | None = None,
    ) -> list[list[Hypothesis]]:
        """Return what `search_each` finds, in the order of the sentences."""
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        for number, found in self.search_each(sentences, options, to_parse):
            results[number] = found
        return results

    def search_constrained(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        requirements: Sequence[OutputRequirements],
    ) -> list[list[Hypothesis]] | None:
        """Return the best hypotheses of each sentence that are what is required of it.

        There is one with score −∞ where none is possible. None means that this engine cannot
        search so, and PyTorch has to.
        """
        return None

    def supports_sampling(self, options: SamplingOptions) -> bool:
        """Return whether the engine can draw such samples, and PyTorch need not."""
        return False

    def sample(
        self,
        sentences: Sequence[Sequence[int]],
        options: SamplingOptions,
        requirements: Sequence[OutputRequirements],
    ) -> list[list[Hypothesis]] | None:
        """Return samples of each sentence, which it supports, that are what is required of it.

        None means that this engine cannot sample what is so required, and PyTorch has to.
        """
        return None

    def predict_next(
        self,
        source: Sequence[int],
        prefix: Sequence[int],
        words: Sequence[Sequence[int]],
        groups_GV: NDArray[np.bool_],
        count: int,
    ) -> NextPieces | None:
        """Return the `count` likeliest pieces of each group after the prefix and each word.

        A word is some pieces, or none. None means that this engine cannot tell, and PyTorch has to.
        """
        return None

    def force_decode(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[ForcedDecoding] | None:
        """Return what the model says of each target as the translation of its source.

        None means that this engine cannot tell, and PyTorch has to.
        """
        return None
