"""Evaluation: figures that compare with others'.

`dragoman.evaluation.perplexity` needs torch and is therefore not imported here.
"""

from __future__ import annotations

from dragoman.evaluation.metrics import METRICS, Score, Scores, bleu, score, tokenizer_for
from dragoman.evaluation.significance import Comparison, Difference, compare

__all__ = [
    "METRICS",
    "Comparison",
    "Difference",
    "Score",
    "Scores",
    "bleu",
    "compare",
    "score",
    "tokenizer_for",
]
