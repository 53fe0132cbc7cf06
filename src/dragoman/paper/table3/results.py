"""Table 3's results hold scores, and say which of the paper's findings they reproduce."""

from __future__ import annotations

import dataclasses
import math
import statistics
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from dragoman.config import Config
from dragoman.errors import DataError
from dragoman.paper.paper_values import TABLE_3, Variation

Metric: TypeAlias = Literal["bleu", "perplexity"]
Verdict: TypeAlias = Literal["reproduced", "not reproduced", "within noise", "no verdict"]

_NOISE_ERRORS: Final = 2.0
"""The number of standard errors below which a difference is noise."""
_EQUAL_BLEU: Final = 0.3
"""The difference in BLEU below which two models are equal."""
VERDICT_RULE: Final = (
    f"A difference below {_NOISE_ERRORS:g} standard errors is within noise; one that is larger and "
    f"of the other sign is not reproduced. Equal is: within noise, or less than {_EQUAL_BLEU} BLEU "
    "apart. A single seed tells nothing."
)
"""How a verdict is found, in the words of the table's note."""


@dataclass(frozen=True, slots=True)
class VariationResult:
    """Hold the scores of a row of Table 3, one for each seed; those of failed runs are missing."""

    preset: str
    """Names the paper's row by its preset."""
    change: str
    """Says what was changed, with the values here; empty for the base."""
    parameters: int
    steps: int
    perplexity: tuple[float, ...]
    """Is the perplexity a piece on the validation set."""
    bleu: tuple[float, ...]
    """Is the greedy BLEU on the validation set."""
    failure: str | None = None
    """Says why a run failed, if one did."""

    @property
    def paper(self) -> Variation:
        """Return the paper's row."""
        return next(paper for paper in TABLE_3 if paper.preset == self.preset)

    def mean(self, metric: Metric) -> float:
        """Return the mean over the seeds."""
        return statistics.fmean(getattr(self, metric))

    def deviation(self, metric: Metric) -> float | None:
        """Return the standard deviation over the seeds; None for fewer than two."""
        values = getattr(self, metric)
        return statistics.stdev(values) if len(values) > 1 else None


@dataclass(frozen=True, slots=True)
class Table3:
    """Hold all rows that were measured, the base first."""

    corpus: str
    base: Config
    seeds: tuple[int, ...]
    rows: tuple[VariationResult, ...]

    def row(self, preset: str) -> VariationResult | None:
        """Return the row of a preset, or None if no run of it was finished."""
        return next((row for row in self.rows if row.preset == preset and row.bleu), None)

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Table3:
        """Return the table that `to_json` was called on; raise DataError for anything else."""
        try:
            rows = [
                VariationResult(
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
    """Hold how far one row's mean is above another's."""

    value: float
    error: float | None
    """Is the standard error over the seeds; None if a row has fewer than two."""

    @property
    def is_noise(self) -> bool:
        """Return whether chance may well explain it."""
        return self.error is None or abs(self.value) <= _NOISE_ERRORS * self.error


def compare_rows(first: VariationResult, second: VariationResult, metric: Metric) -> Difference:
    """Return the first row's mean less the second's."""
    value = first.mean(metric) - second.mean(metric)
    deviations = [row.deviation(metric) for row in (first, second)]
    if None in deviations:
        return Difference(value, None)
    counts = len(first.bleu), len(second.bleu)
    error = math.sqrt(sum(s**2 / n for s, n in zip(deviations, counts, strict=True) if s))
    return Difference(value, error)


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold something the paper reads off its table, and what was measured of it here."""

    claim: str
    metric: Metric
    rows: str
    """Names the row and the one that is subtracted from it."""
    paper: float
    """Is the paper's difference."""
    measured: Difference | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class _Claim:
    """Claim that one row's figure is above another's, or equal to it."""

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


def check_findings(table: Table3) -> list[Finding]:
    """Return each of the paper's findings (§6.2) with our difference and a verdict."""
    return [_check_claim(claim, table) for claim in _CLAIMS]


def _check_claim(claim: _Claim, table: Table3) -> Finding:
    papers = {paper.preset: paper for paper in TABLE_3}
    above, below = papers[claim.above], papers[claim.below]
    paper = getattr(above, claim.metric) - getattr(below, claim.metric)
    first, second = table.row(claim.above), table.row(claim.below)
    if first is None or second is None:
        rows = f"{_row_name(above, above.change)} − {_row_name(below, below.change)}"
        return Finding(claim.text, claim.metric, rows, paper, None, "no verdict")
    found = compare_rows(first, second, claim.metric)
    rows = f"{_row_name(above, first.change)} − {_row_name(below, second.change)}"
    return Finding(claim.text, claim.metric, rows, paper, found, _verdict(claim, found))


def _row_name(paper: Variation, change: str) -> str:
    return paper.row if paper.row in ("base", "big") else change


def _verdict(claim: _Claim, found: Difference) -> Verdict:
    if found.error is None:
        return "no verdict"
    if claim.equal:
        same = found.is_noise or abs(found.value) < _EQUAL_BLEU
        return "reproduced" if same else "not reproduced"
    if found.is_noise:
        return "within noise"
    return "reproduced" if found.value > 0 else "not reproduced"


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Hold how many parameters a row of the paper's has by its equations."""

    paper: Variation
    parameters: int
