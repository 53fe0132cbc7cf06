"""Evaluation computes scores that can be compared with those of others."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.evaluation.metrics import METRICS, Score, Scores, bleu, score
    from dragoman.evaluation.significance import Comparison, Difference, compare

__all__ = ["METRICS", "Comparison", "Difference", "Score", "Scores", "bleu", "compare", "score"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: the brackets of trees are scored without sacreBLEU."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    significance = name in ("Comparison", "Difference", "compare")
    module = import_module(f"{__name__}.{'significance' if significance else 'metrics'}")
    return getattr(module, name)
