"""A model is evaluated on a test set: it is translated, scored, and compared with a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from dragoman.evaluation.metrics import METRICS, Scores, check_counts, score
from dragoman.evaluation.perplexity import Perplexity, perplexity
from dragoman.evaluation.significance import Comparison, compare
from dragoman.inference import Translator


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Hold everything measured on a test set."""

    hypotheses: list[str]
    scores: Scores
    perplexity: Perplexity | None
    """None if translations were scored and no model was there."""
    comparison: Comparison | None

    def to_json(self) -> dict[str, Any]:
        """Return a table that `json.dumps` takes."""
        table = self.scores.to_json()
        if self.perplexity is not None:
            table["perplexity"] = self.perplexity.to_json()
        if self.comparison is not None:
            table["comparison"] = self.comparison.to_json()
        return table

    def __str__(self) -> str:
        lines = [str(self.scores)]
        if self.perplexity is not None:
            lines.append(
                f"perplexity = {self.perplexity.per_piece:.3f} a piece "
                f"({self.perplexity.pieces:,} pieces, one EOS a sentence)"
            )
        if self.comparison is not None:
            lines += ["against the baseline, by paired bootstrap:", str(self.comparison)]
        return "\n".join(lines)


class _ScoreOptions(TypedDict):
    """Hold the options that `score` and `compare` share."""

    lowercase: bool
    tokenize: str | None
    language: str | None
    metrics: Sequence[str]


def evaluate(
    system: Translator | Sequence[str],
    references: Sequence[str],
    source: Sequence[str] = (),
    *,
    baseline: Translator | Sequence[str] | None = None,
    lowercase: bool = False,
    tokenize: str | None = None,
    language: str | None = None,
    metrics: Sequence[str] = METRICS,
    **options: Any,
) -> Evaluation:
    """Score a model, or translations made before, against references.

    `options` are those of `Translator.translate`, such as beam. With a `baseline`, a model or its
    translations, the difference is tested by paired bootstrap resampling.
    """
    if isinstance(system, Translator):
        check_counts({"source lines": source, "references": references})
        language = language or system.config.data.target_language
    hypotheses = _translate(system, source, options)
    settings = _ScoreOptions(
        lowercase=lowercase, tokenize=tokenize, language=language, metrics=metrics
    )
    scores = score(hypotheses, references, **settings)
    measured = None
    if isinstance(system, Translator) and not system.through:
        encode = system.tokenizer.encode_batch
        measured = perplexity(system.log_probabilities, encode(source), encode(references))
    comparison = None
    if baseline is not None:
        before = _translate(baseline, source, options)
        comparison = compare(before, hypotheses, references, **settings)
    return Evaluation(hypotheses, scores, measured, comparison)


def _translate(
    system: Translator | Sequence[str], source: Sequence[str], options: dict[str, Any]
) -> list[str]:
    """Return the translations of a model, or those that are given in its place."""
    if isinstance(system, Translator):
        return [found.text for found in system.translate_lines(source, raw=True, **options)]
    return list(system)
