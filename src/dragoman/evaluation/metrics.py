"""BLEU, chrF and TER by sacreBLEU, each with the signature that reproduces it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from dragoman.errors import ConfigError, DataError
from dragoman.text.languages import primary_code, tokenizer_for

__all__ = ["METRICS", "Score", "Scores", "bleu", "make_metrics", "score", "tokenizer_for"]

METRICS: Final = ("bleu", "chrf", "ter")


@dataclass(frozen=True, slots=True)
class Score:
    """One figure, from 0 to 100 (TER may exceed it), and how it came about."""

    name: str
    """As sacreBLEU writes it: BLEU, chrF2 or TER."""
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name}|{self.signature} = {self.value:.2f}"


@dataclass(frozen=True, slots=True)
class Scores:
    """The figures of a test set, by the names of `METRICS`; higher is better but for TER."""

    sentences: int
    values: dict[str, Score]

    def __getitem__(self, metric: str) -> float:
        return self.values[metric].value

    def __str__(self) -> str:
        return "\n".join(map(str, self.values.values()))

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        figures = {
            metric: {"name": s.name, "score": s.value, "signature": s.signature}
            for metric, s in self.values.items()
        }
        return {"sentences": self.sentences, **figures}


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
    language: str | None = None,
    metrics: Sequence[str] = METRICS,
) -> Scores:
    """The figures of translations against one reference each.

    `language` (a code such as "de" or "zh-TW") chooses BLEU's tokeniser unless `tokenize` names
    one; "none" is for text already tokenised. `lowercase` is for BLEU and chrF; TER never minds
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
    """BLEU alone, as `score` computes it."""
    return score(hypotheses, references, language=language, metrics=["bleu"])["bleu"]


def make_metrics(
    names: Sequence[str], lowercase: bool, tokenize: str | None, language: str | None
) -> dict[str, Metric]:
    """SacreBLEU's metrics by our names, in the order asked for."""
    made: dict[str, Metric] = {}
    for name in names:
        if name == "bleu":
            made[name] = _bleu(lowercase, tokenize or tokenizer_for(language))
        elif name == "chrf":
            made[name] = CHRF(lowercase=lowercase)
        elif name == "ter":
            # Without this a Chinese sentence would be a single word.
            asian = primary_code(language) in ("zh", "ja")
            made[name] = TER(normalized=asian, asian_support=asian)
        else:
            raise ConfigError(f"there is no metric '{name}'; there are: {', '.join(METRICS)}")
    return made


def check_counts(texts: dict[str, Sequence[str]]) -> None:
    """Refuse sets of lines that are empty or do not belong together."""
    counts = {name: len(lines) for name, lines in texts.items()}
    if len(set(counts.values())) > 1:
        found = " but ".join(f"{count} {name}" for name, count in counts.items())
        raise DataError(f"there are {found}; line n of each must belong together")
    if not all(counts.values()):
        raise DataError("there is nothing to score: the files have no lines")


def _bleu(lowercase: bool, tokenize: str) -> BLEU:
    known = [name for name in BLEU.TOKENIZERS if name != "spm"]
    if tokenize not in known:
        close = difflib.get_close_matches(tokenize, known, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(known)}"
        raise ConfigError(f"sacreBLEU has no tokeniser '{tokenize}'; {hint}")
    try:
        # force: a text that looks tokenised is the caller's wish, and the signature says so.
        return BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
    except (RuntimeError, ImportError):
        extra = tokenize.removesuffix("-mecab")
        raise ConfigError(
            f"sacreBLEU's tokeniser '{tokenize}' is not installed; "
            f"try: pip install 'sacrebleu[{extra}]', or 'char'"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"sacreBLEU's tokeniser '{tokenize}' cannot be fetched ({error}); try '13a'"
        ) from None
