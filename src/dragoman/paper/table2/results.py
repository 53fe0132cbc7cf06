"""The rows of Table 2: who takes part, and what is found of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from dragoman.evaluation.by_length import Bucket

__all__ = ["CONTENDERS", "VALIDATION", "Budget", "Contender", "Family", "Row", "Table2"]

Budget: TypeAlias = Literal["parameters", "flops"]
Family: TypeAlias = Literal["fixed", "attention", "other"]


@dataclass(frozen=True, slots=True)
class Contender:
    """A row to be: whose preset it is, and how it comes to know its source."""

    name: str
    preset: str
    family: Family
    """By one fixed vector, by attention, or otherwise."""
    paper: str | None = None
    """The row of the paper's Table 2 that corresponds."""
    rate: float | None = None
    """Its peak learning rate as a multiple of the Transformer's; None: as their presets have it."""


CONTENDERS: Final = (
    Contender("feed-forward", "feed-forward", "other"),
    # Its preset's rate is for four times the width; here 10.2 becomes a perplexity of 9.0.
    Contender("RNN", "rnn", "fixed", rate=1.0),
    Contender("GRU", "gru", "fixed"),
    Contender("LSTM", "lstm", "fixed"),
    Contender("LSTM + dot attention", "lstm-dot", "attention"),
    Contender("LSTM + additive attention", "lstm-additive", "attention"),
    Contender("GNMT", "gnmt", "attention", "GNMT + RL"),
    Contender("ByteNet", "bytenet", "other", "ByteNet"),
    Contender("ConvS2S", "convs2s", "attention", "ConvS2S"),
    Contender("mixture of experts", "moe", "attention", "MoE"),
    Contender("restricted self-attention", "restricted", "attention"),
    Contender("Transformer", "base", "attention", "Transformer (base)"),
)
"""In the order of the story; the last sets the FLOPs."""


VALIDATION: Final = "the validation set"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One model at one budget; without a model there is a failure, and the figures are 0."""

    model: str
    preset: str
    family: Family
    budget: Budget
    size: str
    """Layers and widths, in words."""
    parameters: int
    active: int
    """Those a position uses: fewer than all only with experts."""
    learning_rate: float
    steps: int
    flops: float
    """Of all training."""
    tokens_per_second: float = 0.0
    """Of the model alone on the device, as the table's `speed` says; 0: could not be measured."""
    seconds: float = 0.0
    """Of training, by the run's clock, beside the runs that shared the device."""
    perplexity: float = 0.0
    """Of the test set, a piece."""
    bleu: float = 0.0
    by_length: tuple[Bucket, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Table2:
    """All rows, and what they have in common."""

    data: str
    pairs: int
    test: str
    """Its two files, or `VALIDATION`."""
    sentences: int
    parameters: int
    """The budget of each."""
    steps: int
    """Of the first round; the Transformer's of both."""
    beam: int
    length_penalty: float
    signature: str
    """Of BLEU, by sacreBLEU."""
    device: str
    """Where speeds were measured."""
    speed: str
    """What the rows' tokens per second are."""
    rows: tuple[Row, ...]

    def at(self, budget: Budget) -> tuple[Row, ...]:
        """The rows of one budget that have a model."""
        return tuple(r for r in self.rows if r.budget == budget and r.failure is None)

    @property
    def first_round(self) -> tuple[Row, ...]:
        """The rows of the first round, or of the second if that is all there is."""
        return self.at("parameters") or self.at("flops")

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        rows = [
            Row(**{**row, "by_length": tuple(Bucket.from_json(b) for b in row["by_length"])})
            for row in table["rows"]
        ]
        return cls(**{**table, "rows": tuple(rows)})
