"""What an engine is to those who use one: the CPU's and the GPU's are two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from dragoman.search.options import Hypothesis, SearchOptions
from dragoman.trees.grammar import Yields

__all__ = ["Searcher", "best_window", "search_each"]

WINDOW: Final = 2000
"""Lines that are searched at a time, unless an engine says otherwise."""


class Searcher(Protocol):
    """A model's weights, and a search over them.

    One that works best with more or fewer lines at a time than others has them as its `window`. One
    that goes on with other sentences while somebody looks at what it has found has `each`.
    """

    def serves(self, options: SearchOptions) -> bool:
        """Whether this is a search the engine knows."""

    def search(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        yields: Yields | None = None,
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each sentence, as `dragoman.search.search` finds them.

        With `yields` they are trees over the words of each sentence.
        """


def search_each(
    engine: Searcher,
    sentences: Sequence[Sequence[int]],
    options: SearchOptions,
    yields: Yields | None = None,
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """What an engine finds for each sentence, by its number, in the order it is found."""
    each = getattr(engine, "each", None)
    if each is None:
        yield from enumerate(engine.search(sentences, options, yields))
    else:
        yield from each(sentences, options, yields)


def best_window(engine: Searcher | None) -> int:
    """How many lines to give an engine at a time."""
    window: int = getattr(engine, "window", WINDOW)
    return window
