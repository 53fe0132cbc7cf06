"""A model on a test set: translate it, score it, and compare it with another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from dragoman.evaluation.metrics import METRICS, Scores, check_counts, score
from dragoman.evaluation.perplexity import Perplexity, perplexity
from dragoman.evaluation.significance import Comparison, compare
from dragoman.inference import Translator

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything measured on a test set."""

    hypotheses: list[str]
    scores: Scores
    perplexity: Perplexity | None
    """None where there is only a file of translations and no model."""
    comparison: Comparison | None

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
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


class _Settings(TypedDict):
    """What scoring and comparing share."""

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
    """Score a model, or translations that are there already, against references.

    `options` are those of `Translator.translate`, such as beam. With a `baseline`, model or
    translations, the difference is tested by paired bootstrap.
    """
    if isinstance(system, Translator):
        check_counts({"source lines": source, "references": references})
        language = language or next(iter(system.config.data.languages[1:]), None)
    hypotheses = _hypotheses(system, source, options)
    settings = _Settings(lowercase=lowercase, tokenize=tokenize, language=language, metrics=metrics)
    scores = score(hypotheses, references, **settings)
    surprise = None
    if isinstance(system, Translator):
        encode = system.tokenizer.encode_batch
        surprise = perplexity(system.model, encode(source), encode(references))
    comparison = None
    if baseline is not None:
        before = _hypotheses(baseline, source, options)
        comparison = compare(before, hypotheses, references, **settings)
    return Evaluation(hypotheses, scores, surprise, comparison)


def _hypotheses(
    system: Translator | Sequence[str], source: Sequence[str], options: dict[str, Any]
) -> list[str]:
    if isinstance(system, Translator):
        return [found.text for found in system.translate_lines(source, **options)]
    return list(system)
