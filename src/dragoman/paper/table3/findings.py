"""Table 3 as measured, and which of the paper's findings it bears out."""

from __future__ import annotations

import dataclasses
import math
import statistics
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from dragoman.config import Config
from dragoman.errors import DataError
from dragoman.paper.paper_values import TABLE_3, Variation

__all__ = [
    "RULE",
    "Difference",
    "Finding",
    "Measured",
    "Metric",
    "Table3",
    "Verdict",
    "difference",
    "findings",
]

Metric: TypeAlias = Literal["bleu", "perplexity"]
Verdict: TypeAlias = Literal["reproduced", "not reproduced", "within noise", "no verdict"]

_ERRORS: Final = 2.0
"""Standard errors below which a difference is noise."""
_EQUAL: Final = 0.3
"""BLEU below which two models are equal."""
RULE: Final = (
    f"A difference below {_ERRORS:g} standard errors is within noise; one that is larger and of the"
    f" other sign is not reproduced. Equal is: within noise, or less than {_EQUAL} BLEU apart. A"
    " single seed tells nothing."
)
"""How a verdict is found."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of Table 3 with a score a seed; those of failed runs are missing."""

    preset: str
    """The paper's row, by its preset."""
    change: str
    """With the values it had here; empty for the base."""
    parameters: int
    steps: int
    perplexity: tuple[float, ...]
    """Of the validation set, a piece."""
    bleu: tuple[float, ...]
    """Of the validation set, greedy."""
    failure: str | None = None
    """Why a run failed, if one did."""

    @property
    def paper(self) -> Variation:
        """The paper's row."""
        return next(paper for paper in TABLE_3 if paper.preset == self.preset)

    def mean(self, metric: Metric) -> float:
        """Over the seeds."""
        return statistics.fmean(getattr(self, metric))

    def deviation(self, metric: Metric) -> float | None:
        """The standard deviation over the seeds; None of fewer than two."""
        values = getattr(self, metric)
        return statistics.stdev(values) if len(values) > 1 else None


@dataclass(frozen=True, slots=True)
class Table3:
    """All rows that were measured, the base first."""

    corpus: str
    base: Config
    seeds: tuple[int, ...]
    rows: tuple[Measured, ...]

    def row(self, preset: str) -> Measured | None:
        """The row that answers to one of the paper's; None if no run of it was finished."""
        return next((row for row in self.rows if row.preset == preset and row.bleu), None)

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Table3:
        """What `to_json` gave, also by way of a file."""
        try:
            rows = [
                Measured(
                    **{
                        **row,
                        "perplexity": tuple(row["perplexity"]),
                        "bleu": tuple(row["bleu"]),
                    }
                )
                for row in values["rows"]
            ]
            base = Config.from_dict(values["base"], where="table3.json")
            return cls(values["corpus"], base, tuple(values["seeds"]), tuple(rows))
        except (KeyError, TypeError):
            raise DataError(
                "table3.json: not a Table 3 of this version; measure it again"
            ) from None


@dataclass(frozen=True, slots=True)
class Difference:
    """One row's mean less another's."""

    value: float
    error: float | None
    """Its standard error over the seeds; None if a row has fewer than two."""

    @property
    def is_noise(self) -> bool:
        """Whether chance may well have made it."""
        return self.error is None or abs(self.value) <= _ERRORS * self.error


def difference(first: Measured, second: Measured, metric: Metric) -> Difference:
    """The first row's mean less the second's."""
    value = first.mean(metric) - second.mean(metric)
    deviations = [row.deviation(metric) for row in (first, second)]
    if None in deviations:
        return Difference(value, None)
    counts = len(first.bleu), len(second.bleu)
    error = math.sqrt(sum(s**2 / n for s, n in zip(deviations, counts, strict=True) if s))
    return Difference(value, error)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the paper reads off its table, and what was measured of it here."""

    claim: str
    metric: Metric
    rows: str
    """Which row less which other."""
    paper: float
    """The paper's difference."""
    measured: Difference | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class _Claim:
    """That one row's figure is above another's, or equal to it."""

    text: str
    above: str
    below: str
    metric: Metric = "bleu"
    equal: bool = False


_CLAIMS: Final = (
    _Claim("one head is worse", "base", "table3-a-heads-1"),
    _Claim("too many heads are worse", "base", "table3-a-heads-32"),
    _Claim("small d_k is worse", "base", "table3-b-d_k-16"),
    _Claim("more layers are better", "table3-c-layers-8", "table3-c-layers-2"),
    _Claim("larger d_model is better", "table3-c-d_model-1024", "table3-c-d_model-256"),
    _Claim("larger d_ff is better", "table3-c-d_ff-4096", "table3-c-d_ff-1024"),
    _Claim("dropout helps", "base", "table3-d-dropout-0.0"),
    _Claim("label smoothing helps BLEU", "base", "table3-d-smoothing-0.0"),
    _Claim("label smoothing hurts perplexity", "base", "table3-d-smoothing-0.0", "perplexity"),
    _Claim("learned positions equal sinusoids", "table3-e-learned", "base", equal=True),
    _Claim("the big model is better", "big", "base"),
)


def findings(table: Table3) -> list[Finding]:
    """Each of the paper's findings (§6.2) with the difference measured here and a verdict."""
    return [_find(claim, table) for claim in _CLAIMS]


def _find(claim: _Claim, table: Table3) -> Finding:
    papers = {paper.preset: paper for paper in TABLE_3}
    above, below = papers[claim.above], papers[claim.below]
    paper = getattr(above, claim.metric) - getattr(below, claim.metric)
    first, second = table.row(claim.above), table.row(claim.below)
    if first is None or second is None:
        rows = f"{_called(above, above.change)} − {_called(below, below.change)}"
        return Finding(claim.text, claim.metric, rows, paper, None, "no verdict")
    found = difference(first, second, claim.metric)
    rows = f"{_called(above, first.change)} − {_called(below, second.change)}"
    return Finding(claim.text, claim.metric, rows, paper, found, _verdict(claim, found))


def _called(paper: Variation, change: str) -> str:
    return paper.row if paper.row in ("base", "big") else change


def _verdict(claim: _Claim, found: Difference) -> Verdict:
    if found.error is None:
        return "no verdict"
    if claim.equal:
        same = found.is_noise or abs(found.value) < _EQUAL
        return "reproduced" if same else "not reproduced"
    if found.is_noise:
        return "within noise"
    return "reproduced" if found.value > 0 else "not reproduced"
