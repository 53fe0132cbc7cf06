"""Which search does what is asked for."""

from __future__ import annotations

from dragoman.models.api import Model, Rows
from dragoman.search.beam import beam_search
from dragoman.search.constraints.phrases import Lexical
from dragoman.search.diverse import diverse_search
from dragoman.search.greedy import greedy_search
from dragoman.search.options import Hypothesis, SearchOptions
from dragoman.search.search_space import Constraint

__all__ = ["banked_search", "search"]


def search(
    model: Model,
    source: Rows,
    options: SearchOptions,
    *,
    prefixes: list[list[int]] | None = None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """Beam search, or its equal for a beam of 1, greedy search; in groups, if there are."""
    if options.groups > 1:
        return diverse_search(model, source, options, prefixes=prefixes, constraint=constraint)
    find = greedy_search if options.beam == 1 else beam_search
    return find(model, source, options, prefixes=prefixes, constraint=constraint)


def banked_search(
    model: Model,
    source: Rows,
    options: SearchOptions,
    lexical: Lexical,
    *,
    prefixes: list[list[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Beam search for what contains certain phrases, the beam shared out by what is there."""
    choose = lexical.choose
    return beam_search(model, source, options, prefixes=prefixes, constraint=lexical, choose=choose)
