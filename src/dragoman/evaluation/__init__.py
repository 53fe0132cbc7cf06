"""Evaluation computes scores that can be compared with those of others.

`dragoman.evaluation.perplexity` needs torch and is therefore not imported here.
"""

from __future__ import annotations

from dragoman.evaluation.metrics import METRICS, Score, Scores, bleu, score
from dragoman.evaluation.significance import Comparison, Difference, compare

__all__ = ["METRICS", "Comparison", "Difference", "Score", "Scores", "bleu", "compare", "score"]
