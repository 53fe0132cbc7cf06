"""Search finds the best target ids for source ids. It knows no model, only `Model`.

Options and hypotheses can be used without PyTorch; the searches import it when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dragoman.search.options import (
    Hypothesis,
    Limits,
    SamplingOptions,
    SearchOptions,
    length_penalty,
)

if TYPE_CHECKING:
    from dragoman.models import Model, Rows
    from dragoman.search.allowed_outputs import Constraint
    from dragoman.search.beam import beam_search
    from dragoman.search.constraints.phrase_constraint import PhraseConstraint
    from dragoman.search.diverse import diverse_search
    from dragoman.search.greedy import greedy_search
    from dragoman.search.sampling import sample

__all__ = [
    "Constraint",
    "Hypothesis",
    "Limits",
    "SamplingOptions",
    "SearchOptions",
    "beam_search",
    "diverse_search",
    "greedy_search",
    "length_penalty",
    "phrase_constrained_search",
    "sample",
    "search",
]

_HOMES = {
    "Constraint": "allowed_outputs",
    "beam_search": "beam",
    "diverse_search": "diverse",
    "greedy_search": "greedy",
    "sample": "sampling",
}


def __getattr__(name: str) -> Any:
    """Import a search when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman.search' has no attribute {name!r}")
    return getattr(import_module(f"dragoman.search.{_HOMES[name]}"), name)


def search(
    model: Model,
    source: Rows,
    options: SearchOptions,
    *,
    prefixes: list[list[int]] | None = None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses by the search that the options ask for.

    That is diverse beam search if there are groups, greedy search for a beam of 1, which gives the
    same result sooner, and else beam search.
    """
    from dragoman.search.beam import beam_search
    from dragoman.search.diverse import diverse_search
    from dragoman.search.greedy import greedy_search

    if options.groups > 1:
        return diverse_search(model, source, options, prefixes=prefixes, constraint=constraint)
    chosen = greedy_search if options.beam == 1 else beam_search
    return chosen(model, source, options, prefixes=prefixes, constraint=constraint)


def phrase_constrained_search(
    model: Model,
    source: Rows,
    options: SearchOptions,
    phrases: PhraseConstraint,
    *,
    prefixes: list[list[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Return what beam search finds among outputs that contain certain phrases.

    The beam is divided among hypotheses by how much of the phrases they still lack.
    """
    from dragoman.search.beam import beam_search

    choose = phrases.choose
    return beam_search(model, source, options, prefixes=prefixes, constraint=phrases, choose=choose)
