"""Paired bootstrap resampling (Koehn, 2004) tells whether a system is better only by chance.

The test set is drawn anew, sentence by sentence with replacement, and both systems are scored on
each draw. How much the differences vary says how much the choice of the test set matters.
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

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """Hold how a system compares with a baseline by one metric."""

    name: str
    baseline: float
    system: float
    interval: tuple[float, float]
    """95 of 100 draws of the test set have their `delta` between these two."""
    p_value: float
    """How often chance alone would make a difference this large, two-sided."""
    signature: str

    @property
    def delta(self) -> float:
        """Return the system's score minus the baseline's."""
        return self.system - self.baseline

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.name}|{self.signature} = {self.baseline:.2f} -> {self.system:.2f}, "
            f"{self.delta:+.2f} [{low:+.2f}, {high:+.2f}], p = {self.p_value:.4f}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Hold how a system compares with a baseline, by the names of `METRICS`."""

    sentences: int
    resamples: int
    seed: int
    values: dict[str, Difference]

    def __getitem__(self, metric: str) -> Difference:
        return self.values[metric]

    def __str__(self) -> str:
        return "\n".join(map(str, self.values.values()))

    def to_json(self) -> dict[str, Any]:
        """Return a table that `json.dumps` takes."""
        differences = {
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
        return {
            "sentences": self.sentences,
            "resamples": self.resamples,
            "seed": self.seed,
            **differences,
        }


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
    """Score both systems on the same `resamples` draws of the test set, as `score` scores them."""
    check_counts({"baseline hypotheses": baseline, "hypotheses": system, "references": references})
    if resamples < 100:
        raise ConfigError(f"resamples = {resamples} is too few; try 1000")
    values = {}
    for name, metric in make_metrics(metrics, lowercase, tokenize, language).items():
        baseline_NS = sentence_statistics(metric, baseline, references)
        system_NS = sentence_statistics(metric, system, references)
        title, before = score_statistics(metric, baseline_NS.sum(0))
        _, after = score_statistics(metric, system_NS.sum(0))
        deltas = np.array(
            [
                score_statistics(metric, counts_N @ system_NS)[1]
                - score_statistics(metric, counts_N @ baseline_NS)[1]
                for counts_N in bootstrap_samples(len(references), resamples, seed)
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
    """Return the share of draws as far from their mean as the observed difference is from 0.

    The draws, moved to the mean 0, stand for what chance does to two equally good systems. The
    observed draw counts as one of them, so that the share is never 0.
    """
    # Rounding must not decide whether a difference is as large as another.
    far = np.abs(deltas - deltas.mean()) >= abs(observed) - 1e-9
    return float((far.sum() + 1) / (len(deltas) + 1))


def bootstrap_samples(sentences: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Draw the test set anew so many times; yield how often each sentence occurs in a draw."""
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = rng.integers(sentences, size=sentences)
        yield np.bincount(drawn, minlength=sentences).astype(np.float64)


# SacreBLEU's PairedTest gives no interval of the difference and finds a system significantly
# different from itself (p = 0.001); its public `corpus_score`, called for each draw, would take
# minutes for BLEU and hours for TER. So we resample with the two steps that a `Metric` consists of.
def sentence_statistics(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str]
) -> Floats:
    """Return what a metric needs of each sentence; the sum is what it needs of a corpus."""
    rows = metric._extract_corpus_statistics(list(hypotheses), [list(references)])
    return np.array(rows, dtype=np.float64)


def score_statistics(metric: Metric, statistics_S: Floats) -> tuple[str, float]:
    """Return the metric's name, and its value for a sum of sentence statistics."""
    result = metric._compute_score_from_stats(statistics_S.tolist())
    return str(result.name), float(result.score)
