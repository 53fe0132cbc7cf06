"""The rows of Table 4: what is found of each parser."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from dragoman.config import Config
from dragoman.paper.paper_values import TABLE_4, ParserScore
from dragoman.paper.table4.scores import Scores

__all__ = ["PAPERS", "Row", "Table4", "Tried", "size"]

PAPERS: Final = next(row for row in TABLE_4 if row.parser.startswith("Transformer"))
"""The paper's row that the preset `parsing` is the counterpart of."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A setting that was tried on the development trees."""

    setting: str
    f1: float | None
    """None: it failed."""
    chosen: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One parser; without scores there is a failure."""

    parser: str
    training: str = ""
    """What it learned from, in words, where that is known."""
    size: str = ""
    """Layers and width, in words."""
    parameters: int = 0
    """0: not known."""
    steps: int = 0
    minutes: float = 0.0
    """Of training, by the run's clock."""
    dropout: float | None = None
    learning_rate: float | None = None
    """As its config has it: a factor of the paper's schedule, or a peak."""
    beam: int | None = None
    """None: its trees were there."""
    length_penalty: float | None = None
    scores: Scores | None = None
    """With its beam."""
    greedy: Scores | None = None
    tried: tuple[Tried, ...] = ()
    failure: str | None = None

    @property
    def paper(self) -> ParserScore | None:
        """The paper's row of the same model."""
        return PAPERS if self.parser == "parsing" else None

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """What `asdict` and JSON made of it."""
        scores = {
            name: None if table[name] is None else Scores.from_json(table[name])
            for name in ("scores", "greedy")
        }
        tried = tuple(Tried(**one) for one in table["tried"])
        return cls(**{**table, **scores, "tried": tried})


@dataclass(frozen=True, kw_only=True, slots=True)
class Table4:
    """All rows, and what they have in common."""

    name: str
    wsj: bool
    """Whether the trees are those that the paper's figures are of."""
    held_out: bool
    """Whether the test trees are other ones than those that settings are chosen on."""
    sentences: int
    """Of the test set."""
    words: int
    rows: tuple[Row, ...]
    command: str
    """That makes the table again."""

    @property
    def scored(self) -> list[tuple[Row, Scores]]:
        """The rows that have scores."""
        return [(row, row.scores) for row in self.rows if row.scores is not None]

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        return {**asdict(self), "paper": [asdict(row) for row in TABLE_4]}

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        own = {key: value for key, value in table.items() if key != "paper"}
        return cls(**{**own, "rows": tuple(map(Row.from_json, table["rows"]))})


def size(config: Config) -> str:
    """Layers and width."""
    model = config.model
    return f"{model.encoder_layers}+{model.decoder_layers} × {model.d_model}"
