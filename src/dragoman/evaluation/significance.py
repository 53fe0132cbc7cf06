"""Paired bootstrap resampling (Koehn, 2004): is one system better than another by chance?

The test set is drawn anew, sentence by sentence with replacement, and both systems are scored on
each draw. The spread of the differences says how much the test set's choice matters.
"""

# N sentences, S sufficient statistics of a metric

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric

from dragoman.errors import ConfigError
from dragoman.evaluation.metrics import METRICS, check_counts, make_metrics

__all__ = ["Comparison", "Difference", "compare", "draws", "score", "statistics"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """A system against a baseline by one metric."""

    name: str
    baseline: float
    system: float
    interval: tuple[float, float]
    """Of `delta`: 95 of 100 draws of the test set fall within."""
    p_value: float
    """How often chance alone would make a difference this large, two-sided."""
    signature: str

    @property
    def delta(self) -> float:
        """The system's score less the baseline's."""
        return self.system - self.baseline

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.name}|{self.signature} = {self.baseline:.2f} -> {self.system:.2f}, "
            f"{self.delta:+.2f} [{low:+.2f}, {high:+.2f}], p = {self.p_value:.4f}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """A system against a baseline, by the names of `METRICS`."""

    sentences: int
    resamples: int
    seed: int
    values: dict[str, Difference]

    def __getitem__(self, metric: str) -> Difference:
        return self.values[metric]

    def __str__(self) -> str:
        return "\n".join(map(str, self.values.values()))

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        figures = {
            metric: {
                "name": d.name,
                "baseline": d.baseline,
                "system": d.system,
                "delta": d.delta,
                "interval": list(d.interval),
                "p_value": d.p_value,
                "signature": d.signature,
            }
            for metric, d in self.values.items()
        }
        heads = {"sentences": self.sentences, "resamples": self.resamples, "seed": self.seed}
        return {**heads, **figures}


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    *,
    resamples: int = 1000,
    seed: int = 12345,
    lowercase: bool = False,
    tokenize: str | None = None,
    language: str | None = None,
    metrics: Sequence[str] = METRICS,
) -> Comparison:
    """Both systems on the same `resamples` draws of the test set, as `score` scores them."""
    check_counts({"baseline hypotheses": baseline, "hypotheses": system, "references": references})
    if resamples < 100:
        raise ConfigError(f"resamples = {resamples} are too few to tell anything; try 1000")
    values = {}
    for name, metric in make_metrics(metrics, lowercase, tokenize, language).items():
        baseline_NS = statistics(metric, baseline, references)
        system_NS = statistics(metric, system, references)
        title, before = score(metric, baseline_NS.sum(0))
        _, after = score(metric, system_NS.sum(0))
        deltas = np.array(
            [
                score(metric, counts @ system_NS)[1] - score(metric, counts @ baseline_NS)[1]
                for counts in draws(len(references), resamples, seed)
            ]
        )
        low, high = np.percentile(deltas, [2.5, 97.5])
        signature = metric.get_signature()
        signature.update("bs", resamples)
        signature.update("seed", seed)
        values[name] = Difference(
            title,
            before,
            after,
            (float(low), float(high)),
            p_value(deltas, after - before),
            str(signature),
        )
    return Comparison(len(references), resamples, seed, values)


def p_value(deltas: Floats, observed: float) -> float:
    """The share of draws as far from their mean as the observed difference is from 0.

    The draws, moved to the mean 0, stand for what chance does to two equally good systems. The
    observed draw counts as one of them, so that the share is never 0.
    """
    # Rounding must not decide whether a difference is as large as another.
    far = np.abs(deltas - deltas.mean()) >= abs(observed) - 1e-9
    return float((far.sum() + 1) / (len(deltas) + 1))


def draws(sentences: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each sentence occurs in each draw."""
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = rng.integers(sentences, size=sentences)
        yield np.bincount(drawn, minlength=sentences).astype(np.float64)


# SacreBLEU's own significance tests are made of these two steps. We do not use them, for they
# give no interval of the difference, and call a system significantly different from itself.
def statistics(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Floats:
    """What a metric needs of each sentence; its sum is what it needs of a corpus."""
    rows = metric._extract_corpus_statistics(list(hypotheses), [list(references)])
    return np.array(rows, dtype=np.float64)


def score(metric: Metric, statistics_S: Floats) -> tuple[str, float]:
    """The metric's name, and its value for such a sum."""
    result = metric._compute_score_from_stats(statistics_S.tolist())
    return str(result.name), float(result.score)
