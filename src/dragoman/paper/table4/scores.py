"""A parser of Table 4 on gold trees; what was scored is not scored again."""

# N sentences

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from dragoman.config import Config
from dragoman.data.readers.text_files import open_text
from dragoman.errors import DataError, ModelError
from dragoman.evaluation.bracket_f1 import clean_trees
from dragoman.evaluation.significance import draws
from dragoman.inference.parser import Parser, load_parser
from dragoman.paper.result_cache import file_fingerprint, fingerprint, kept
from dragoman.paper.table4.treebanks import Gold
from dragoman.training.distributed.ranks import describe_device
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.cleaning import clean
from dragoman.trees.evalb import PREDICTED_TAGS, BracketFigures, SentenceBrackets, score_trees
from dragoman.trees.tree import Tree

__all__ = ["Bucket", "Scores", "Subject", "read_guesses", "score"]

EDGES: Final = (10, 20, 30, 40)
"""The longest sentence of each bucket but the last, which has no end."""
LEAST: Final = 30
"""F1 of fewer sentences says little."""
_NO_TREE: Final = re.compile(r"[()\s]*")
"""How parsers write that they found none."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """F1 of the sentences of some lengths."""

    shortest: int
    """Of the sentences that are there, in words, punctuation among them."""
    longest: int
    sentences: int
    f1: float
    low: float
    """95 of 100 draws of these sentences score between `low` and `high`."""
    high: float

    @property
    def lengths(self) -> str:
        """As a table's head has it: 11–20."""
        one = self.shortest == self.longest
        return str(self.longest) if one else f"{self.shortest}–{self.longest}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """Trees beside gold ones, in percent."""

    f1: float
    low: float
    """95 of 100 draws of the sentences score between `low` and `high`."""
    high: float
    precision: float
    recall: float
    complete_match: float
    tagging_accuracy: float
    short_f1: float
    """Of the sentences of up to 40 words."""
    left_out: int
    """Sentences without a tree of their words; they count in no figure but the next."""
    f1_all_lines: float
    by_length: tuple[Bucket, ...]
    signature: str
    seconds: float | None = None
    """Of parsing; None: the trees were there."""
    device: str = ""

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> Self:
        """What `asdict` and JSON made of it."""
        return cls(**{**table, "by_length": tuple(Bucket(**one) for one in table["by_length"])})


def score(gold: Gold, trees: Sequence[Tree | None], **more: Any) -> Scores:
    """Count brackets; `more` are fields of the scores."""
    found = score_trees(gold.trees, trees, PREDICTED_TAGS)
    figures = found.all
    low, high = _interval(found.sentences)
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
        by_length=_by_length(found.sentences),
        signature=PREDICTED_TAGS.signature,
        **more,
    )


def _by_length(sentences: Sequence[SentenceBrackets]) -> tuple[Bucket, ...]:
    """Few sentences are joined to the next longer ones, the last to those before."""
    groups: list[list[SentenceBrackets]] = [[]]
    for shortest, longest in zip((0, *EDGES), (*EDGES, float("inf")), strict=True):
        if len(groups[-1]) >= LEAST:
            groups.append([])
        groups[-1] += [one for one in sentences if shortest < one.length <= longest]
    if len(groups) > 1 and len(groups[-1]) < LEAST:
        last = groups.pop()
        groups[-1] += last
    return tuple(
        Bucket(
            min(one.length for one in group),
            max(one.length for one in group),
            len(group),
            BracketFigures.of(group).f1,
            *_interval(group),
        )
        for group in groups
    )


def _interval(sentences: Sequence[SentenceBrackets]) -> tuple[float, float]:
    """Between which F1 is if the sentences are drawn anew."""
    matched_N = np.array([2 * one.matched for one in sentences])
    both_N = np.array([one.gold + one.predicted for one in sentences])
    drawn = [
        100 * float(times_N @ matched_N) / max(1.0, float(times_N @ both_N))
        for times_N in draws(len(sentences), 1000, 12345)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def read_guesses(file: Path, gold: Gold) -> list[Tree | None]:
    """The trees of another parser; one line a sentence may be empty where it found none."""
    lines = list(open_text(file))
    guesses: list[Tree | None] = []
    if len(lines) == len(gold.trees):
        for number, line in enumerate(lines, 1):
            try:
                guesses.append(None if _NO_TREE.fullmatch(line) else clean(parse_tree(line)))
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


class Subject:
    """A parser on the disk, loaded when there is something to parse."""

    def __init__(self, path: Path, scores: Path, say: Callable[[str], None]) -> None:
        """`scores` is how the files begin that its scores are kept in."""
        places = (path, path / "model", path / "best")
        found = next((place for place in places if (place / "card.json").is_file()), None)
        if found is None:
            raise ModelError(f"{path}: no parser here; give a directory that dragoman train made")
        self.path, self.scores, self.say = found, scores, say
        self.config = Config.load(found / "config.toml")
        if self.config.data.task != "parsing":
            raise ModelError(f"{path}: a translator; Table 4 is of parsers")

    @cached_property
    def card(self) -> dict[str, Any]:
        """What the model says of itself."""
        return dict(json.loads((self.path / "card.json").read_text(encoding="utf-8")))

    @cached_property
    def _parser(self) -> Parser:
        parser = load_parser(self.path)
        parser.warn = self.say
        return parser

    def let_go(self) -> None:
        """Keep no weights in memory; they are loaded again if there is more to parse."""
        self.__dict__.pop("_parser", None)

    def score(self, gold: Gold, part: str, beam: int) -> Scores:
        """Parse and score, unless the scores of the same are kept.

        The same are sentences, trees, search and model; the model is known by its card, so that
        scores may stay where weights have gone.
        """

        def find() -> dict[str, Any]:
            how = "greedy" if beam == 1 else f"beam {beam}"
            self.say(f"parsing {len(gold.words):,} {part} sentences, {how}")
            return asdict(self._parsed(gold, beam))

        of = {
            "model": file_fingerprint(self.path / "card.json"),
            "trees": fingerprint(gold.texts),
            "beam": beam,
            "length_penalty": self.config.search.length_penalty,
            "signature": PREDICTED_TAGS.signature,
        }
        file = self.scores.with_name(f"{self.scores.name}.{part}-beam-{beam}.json")
        return Scores.from_json(kept(file, of, find))

    def _parsed(self, gold: Gold, beam: int) -> Scores:
        parser = self._parser
        parser.parse(gold.words[:8], beam=beam)  # the first is slower
        begun = time.perf_counter()
        trees = [found.tree if found else None for found in parser.parse(gold.words, beam=beam)]
        seconds = time.perf_counter() - begun
        device = describe_device(next(parser.model.parameters()).device)
        return score(gold, trees, seconds=seconds, device=device)
