"""A row of Table 2 holds what was measured of a model at each budget."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from dragoman.config import ModelConfig
from dragoman.evaluation.bleu_by_length import Bucket
from dragoman.paper.table2.models import Family

Budget: TypeAlias = Literal["parameters", "flops"]

VALIDATION: Final = "the validation set"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Hold what was measured of one model at one budget; if it failed, the figures are 0."""

    model: str
    preset: str
    family: Family
    budget: Budget
    size: str
    """Describes layers and width, as in `6+6 × 512`."""
    parameters: int
    active: int
    """Counts those that one position uses: fewer than all only with experts."""
    learning_rate: float
    steps: int
    flops: float
    """Counts the operations of all training."""
    tokens_per_second: float = 0.0
    """Is measured as the table's `speed` says; 0 means that it could not be."""
    seconds: float = 0.0
    """Counts training time by the run's clock; other runs may have shared the device."""
    perplexity: float = 0.0
    """Is the perplexity a piece on the test set."""
    bleu: float = 0.0
    by_length: tuple[Bucket, ...] = ()
    failure: str | None = None


def describe_size(model: ModelConfig) -> str:
    """Return a model's layers and width, as in `6+6 × 512`."""
    return f"{model.encoder_layers}+{model.decoder_layers} × {model.d_model}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table2:
    """Hold all rows, and what they have in common."""

    data: str
    pairs: int
    test: str
    """Names the test set's two files, or is `VALIDATION`."""
    sentences: int
    parameters: int
    """Is the budget of each model."""
    steps: int
    """Counts the steps of the first round; the Transformer has as many in both."""
    beam: int
    length_penalty: float
    signature: str
    """Is sacreBLEU's signature of BLEU."""
    device: str
    """Names where speeds were measured."""
    speed: str
    """Says how the rows' tokens per second were measured."""
    rows: tuple[Row, ...]

    def finished_rows(self, budget: Budget) -> tuple[Row, ...]:
        """Return the rows of one budget that did not fail."""
        return tuple(r for r in self.rows if r.budget == budget and r.failure is None)

    @property
    def first_round(self) -> tuple[Row, ...]:
        """Return the rows of the first round, or of the second if there is no other."""
        return self.finished_rows("parameters") or self.finished_rows("flops")

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """Return the table that `to_json` was called on."""
        rows = [
            Row(**{**row, "by_length": tuple(Bucket(**b) for b in row["by_length"])})
            for row in table["rows"]
        ]
        return cls(**{**table, "rows": tuple(rows)})
