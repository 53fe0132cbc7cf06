"""Search: from a model and source ids to the best target ids. It knows no model, only `Model`.

What is searched for and what is found can be named without PyTorch; what searches imports it.
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
    from dragoman.search.beam import beam_search
    from dragoman.search.dispatch import banked_search, search
    from dragoman.search.diverse import diverse_search
    from dragoman.search.greedy import greedy_search
    from dragoman.search.sampling import sample
    from dragoman.search.search_space import Constraint

__all__ = [
    "Constraint",
    "Hypothesis",
    "Limits",
    "SamplingOptions",
    "SearchOptions",
    "banked_search",
    "beam_search",
    "diverse_search",
    "greedy_search",
    "length_penalty",
    "sample",
    "search",
]

_HOMES = {
    "Constraint": "search_space",
    "banked_search": "dispatch",
    "beam_search": "beam",
    "diverse_search": "diverse",
    "greedy_search": "greedy",
    "sample": "sampling",
    "search": "dispatch",
}


def __getattr__(name: str) -> Any:
    """Import what searches when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman.search' has no attribute {name!r}")
    return getattr(import_module(f"dragoman.search.{_HOMES[name]}"), name)
