"""Greedy search: always the likeliest piece."""

from __future__ import annotations

from torch import Tensor

from dragoman.models.api import Model, Rows
from dragoman.search.hypotheses import Hypothesis, SearchOptions
from dragoman.search.paths import follow
from dragoman.search.space import Constraint, Space

__all__ = ["greedy_search"]


def greedy_search(
    model: Model,
    source: Rows,
    options: SearchOptions,
    *,
    prefixes: list[list[int]] | None = None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """One hypothesis a sentence: exactly what `beam_search` finds with a beam of 1, sooner.

    The `beam`, `n_best` and `stop_early` of the options mean nothing here.
    """
    space = Space(source, model.targets, options, prefixes, constraint)
    return follow(model, source, space, options, 1, _likeliest)


def _likeliest(totals_BKV: Tensor, sentences_B: Tensor, length: int) -> Tensor:
    return totals_BKV.argmax(dim=2)  # the first of equals, as in best_of
