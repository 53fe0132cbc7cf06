"""SacreBLEU computes BLEU, chrF and TER, each with the signature that reproduces it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from dragoman.errors import ConfigError, DataError
from dragoman.text.bleu import make_bleu
from dragoman.text.languages import ter_counts_characters

METRICS: Final = ("bleu", "chrf", "ter")


@dataclass(frozen=True, slots=True)
class Score:
    """Hold one score, from 0 to 100 (TER may exceed it), and how it was computed."""

    name: str
    """As sacreBLEU writes it: BLEU, chrF2 or TER."""
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name}|{self.signature} = {self.value:.2f}"


@dataclass(frozen=True, slots=True)
class Scores:
    """Hold the scores of a test set by the names of `METRICS`; higher is better but for TER."""

    sentences: int
    values: dict[str, Score]

    def __getitem__(self, metric: str) -> float:
        return self.values[metric].value

    def __str__(self) -> str:
        return "\n".join(map(str, self.values.values()))

    def to_json(self) -> dict[str, Any]:
        """Return a table that `json.dumps` takes."""
        scores = {
            metric: {"name": s.name, "score": s.value, "signature": s.signature}
            for metric, s in self.values.items()
        }
        return {"sentences": self.sentences, **scores}


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
    language: str | None = None,
    metrics: Sequence[str] = METRICS,
) -> Scores:
    """Score translations against one reference each.

    `language` (a code such as "de" or "zh-TW") chooses BLEU's tokeniser unless `tokenize` names
    one; "none" is for text already tokenised. `lowercase` is for BLEU and chrF; TER always ignores
    case.
    """
    check_counts({"hypotheses": hypotheses, "references": references})
    values = {}
    for name, metric in make_metrics(metrics, lowercase, tokenize, language).items():
        result = metric.corpus_score(list(hypotheses), [list(references)])
        values[name] = Score(result.name, result.score, str(metric.get_signature()))
    return Scores(len(hypotheses), values)


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], *, language: str | None = None
) -> float:
    """Return BLEU alone, as `score` computes it."""
    return score(hypotheses, references, language=language, metrics=["bleu"])["bleu"]


def make_metrics(
    names: Sequence[str], lowercase: bool, tokenize: str | None, language: str | None
) -> dict[str, Metric]:
    """Return sacreBLEU's metrics by our names, in the order asked for."""
    made: dict[str, Metric] = {}
    for name in names:
        if name == "bleu":
            made[name] = make_bleu(language, tokenize=tokenize, lowercase=lowercase)
        elif name == "chrf":
            made[name] = CHRF(lowercase=lowercase)
        elif name == "ter":
            asian = ter_counts_characters(language)
            made[name] = TER(normalized=asian, asian_support=asian)
        else:
            raise ConfigError(f"there is no metric '{name}'; choose from: {', '.join(METRICS)}")
    return made


def check_counts(texts: dict[str, Sequence[str]]) -> None:
    """Raise DataError if sets of lines, given by their names, are empty or of unequal length."""
    counts = {name: len(lines) for name, lines in texts.items()}
    if len(set(counts.values())) > 1:
        found = " but ".join(f"{count} {name}" for name, count in counts.items())
        raise DataError(f"there are {found}; they must correspond line by line")
    if not all(counts.values()):
        raise DataError("there is nothing to score: the files have no lines")
