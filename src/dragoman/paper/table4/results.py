"""A row of Table 4 holds how the trees of a parser are scored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from dragoman.data.readers.parallel import open_text
from dragoman.errors import DataError
from dragoman.evaluation.bleu_by_length import LengthBucket, group_by_length
from dragoman.evaluation.bracket_f1 import clean_trees
from dragoman.evaluation.significance import bootstrap_samples
from dragoman.paper.paper_values import TABLE_4, ParserScore
from dragoman.paper.table4.treebanks import GoldTrees
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.cleaning import clean_tree
from dragoman.trees.evalb import PREDICTED_TAGS, BracketFigures, SentenceBrackets, score_trees
from dragoman.trees.tree import Tree

# N sentences


BUCKET_LIMITS: Final = (10, 20, 30, 40)
"""The longest sentence of each bucket but the last, which has no end."""
MIN_BUCKET_SENTENCES: Final = 30
"""The least sentences of a bucket; F1 of fewer says little."""
_NO_TREE: Final = re.compile(r"[()\s]*")
"""How parsers write that they found no tree."""


@dataclass(frozen=True, slots=True)
class Bucket(LengthBucket):
    """Hold F1 of the sentences of some lengths in words, punctuation among them."""

    f1: float
    low: float
    """Is the lower end of the interval that 95 of 100 draws of these sentences score in."""
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """Hold the scores of trees beside gold ones, in percent."""

    f1: float
    low: float
    """Is the lower end of the interval that 95 of 100 draws of the sentences score in."""
    high: float
    precision: float
    recall: float
    complete_match: float
    tagging_accuracy: float
    short_f1: float
    """Is F1 of the sentences of up to 40 words."""
    left_out: int
    """Counts sentences without a tree of their words; they count in no figure but the next."""
    f1_all_lines: float
    by_length: tuple[Bucket, ...]
    signature: str
    seconds: float | None = None
    """Counts the time of parsing; None if the trees were given."""
    device: str = ""

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """Return the object of which JSON holds the fields."""
        return cls(**{**table, "by_length": tuple(Bucket(**one) for one in table["by_length"])})


def compute_scores(gold: GoldTrees, trees: Sequence[Tree | None], **more: Any) -> Scores:
    """Compare trees with gold ones by their brackets; `more` are fields of the scores."""
    found = score_trees(gold.trees, trees, PREDICTED_TAGS)
    figures = found.all
    low, high = _confidence_interval(found.sentences)
    return Scores(
        f1=figures.f1,
        low=low,
        high=high,
        precision=figures.precision,
        recall=figures.recall,
        complete_match=figures.complete_match,
        tagging_accuracy=figures.tagging_accuracy,
        short_f1=found.short.f1,
        left_out=len(found.left_out),
        f1_all_lines=found.f1_all_lines,
        by_length=_scores_by_length(found.sentences),
        signature=PREDICTED_TAGS.signature,
        **more,
    )


def _scores_by_length(sentences: Sequence[SentenceBrackets]) -> tuple[Bucket, ...]:
    lengths = [one.length for one in sentences]
    groups = [
        [sentences[i] for i in members]
        for members in group_by_length(lengths, BUCKET_LIMITS, MIN_BUCKET_SENTENCES)
    ]
    return tuple(
        Bucket(
            min(one.length for one in group),
            max(one.length for one in group),
            len(group),
            BracketFigures.from_sentences(group).f1,
            *_confidence_interval(group),
        )
        for group in groups
    )


def _confidence_interval(sentences: Sequence[SentenceBrackets]) -> tuple[float, float]:
    """Return the ends of F1's 95% bootstrap interval."""
    matched_N = np.array([2 * one.matched for one in sentences])
    both_N = np.array([one.gold + one.predicted for one in sentences])
    drawn = [
        100 * float(times_N @ matched_N) / max(1.0, float(times_N @ both_N))
        for times_N in bootstrap_samples(len(sentences), 1000, 12345)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def read_predicted_trees(file: Path, gold: GoldTrees) -> list[Tree | None]:
    """Read the trees of another parser; with one line a sentence, a line may be empty."""
    lines = list(open_text(file))
    guesses: list[Tree | None] = []
    if len(lines) == len(gold.trees):
        for number, line in enumerate(lines, 1):
            try:
                guesses.append(None if _NO_TREE.fullmatch(line) else clean_tree(parse_tree(line)))
            except DataError as error:
                raise DataError(f"{file}, line {number}: {error}") from None
    else:
        guesses += clean_trees(lines, str(file))
    if len(guesses) != len(gold.trees):
        raise DataError(
            f"{file}: {len(guesses)} trees, and the test set has {len(gold.trees)}; line n of each "
            "must be of one sentence"
        )
    return guesses


PAPER_TRANSFORMER: Final = next(row for row in TABLE_4 if row.parser.startswith("Transformer"))
"""The paper's row that the preset `parsing` corresponds to."""


@dataclass(frozen=True, slots=True)
class TriedSetting:
    """Hold the score of a setting that was tried on the development trees."""

    setting: str
    f1: float | None
    """Is None if it failed."""
    chosen: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Hold what was measured of one parser; if it failed there are no scores."""

    parser: str
    training: str = ""
    """Says what the parser learned from, if that is known."""
    size: str = ""
    """Describes layers and width, as in `4+4 × 1024`."""
    parameters: int = 0
    """Is 0 if it is not known."""
    steps: int = 0
    minutes: float = 0.0
    """Counts training time by the run's clock."""
    dropout: float | None = None
    learning_rate: float | None = None
    """Is what the config has: a factor of the paper's schedule, or a peak."""
    beam: int | None = None
    """Is None if the trees were given."""
    length_penalty: float | None = None
    scores: Scores | None = None
    """Holds the scores with its beam."""
    greedy: Scores | None = None
    tried: tuple[TriedSetting, ...] = ()
    failure: str | None = None

    @property
    def paper(self) -> ParserScore | None:
        """Return the paper's row of the same model."""
        return PAPER_TRANSFORMER if self.parser == "parsing" else None

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """Return the object of which JSON holds the fields."""
        scores = {
            name: None if table[name] is None else Scores.from_json(table[name])
            for name in ("scores", "greedy")
        }
        tried = tuple(TriedSetting(**one) for one in table["tried"])
        return cls(**{**table, **scores, "tried": tried})


@dataclass(frozen=True, kw_only=True, slots=True)
class Table4:
    """Hold all rows, and what they have in common."""

    name: str
    wsj: bool
    """Says whether the trees are those that the paper's figures are of."""
    held_out: bool
    """Says whether the test trees differ from those that settings were chosen on."""
    sentences: int
    """Counts the sentences of the test set."""
    words: int
    rows: tuple[Row, ...]
    command: str
    """Is the command that makes the table again."""

    @property
    def scored(self) -> list[tuple[Row, Scores]]:
        """Return the rows that have scores, with these."""
        return [(row, row.scores) for row in self.rows if row.scores is not None]

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return {**asdict(self), "paper": [asdict(row) for row in TABLE_4]}

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """Return the table that `to_json` was called on."""
        own = {key: value for key, value in table.items() if key != "paper"}
        return cls(**{**own, "rows": tuple(map(Row.from_json, table["rows"]))})
