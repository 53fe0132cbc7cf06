"""A search takes options, returns hypotheses, and follows rules on scores and lengths.

All searches share these, those of the engines too; so there is no PyTorch here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dragoman.config import SearchConfig
from dragoman.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from dragoman.trees.grammar import SentencesToParse


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Hold one finished sequence."""

    ids: list[int]
    """These are its pieces, those of a forced prefix included, without BOS and EOS."""
    score: float
    """This is `log_prob` / `length_penalty`; hypotheses are ranked by it."""
    log_prob: float
    """This sums the log-probabilities of every piece and of EOS: the model's own, but for what a
    repetition penalty adds."""
    log_probs: list[float] = field(default_factory=list)
    """These are the log-probabilities of every piece and of EOS, which sum to `log_prob`; there are
    none where no hypothesis was possible."""

    @classmethod
    def from_running_sums(
        cls, ids: list[int], score: float, log_prob: float, sums: Sequence[float]
    ) -> Hypothesis:
        """Return a hypothesis, given what the sum of log-probabilities was after each piece.

        Searches keep these sums beside the pieces, and the differences are the log-probabilities.
        """
        return cls(ids, score, log_prob, [b - a for a, b in pairwise((0.0, *sums, log_prob))])


def length_penalty(pieces: int, alpha: float) -> float:
    """Return GNMT's ((5 + |Y|) / 6)^α, where |Y| counts EOS: 1 for the empty sequence."""
    return float(((5 + pieces + 1) / 6) ** alpha)


def longest_output(source_length: int, limits: Limits, least: int = 0) -> int:
    """Return how many pieces an output may have, given how many its source has, EOS not counted.

    That is `max_extra` more than the source, and at most `max_length`; but never fewer than
    `min_length`, nor than the `least` that a prefix or a constraint needs.
    """
    longest = source_length + limits.max_extra
    if limits.max_length is not None:
        longest = min(longest, limits.max_length)
    return max(longest, limits.min_length, least)


def output_limits(
    sentences: Sequence[Sequence[int]],
    options: Limits,
    to_parse: SentencesToParse | None = None,
) -> list[int]:
    """Return how many pieces the output of each sentence may have, at least enough for a tree."""
    return [
        longest_output(len(ids), options, 0 if to_parse is None else to_parse.shortest_target(i))
        for i, ids in enumerate(sentences)
    ]


def fallback_hypothesis(prefix: list[int]) -> Hypothesis:
    """Return what stands for a sentence of which no hypothesis is possible."""
    return Hypothesis(list(prefix), -math.inf, -math.inf)


def refuse_nan(results: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
    """Return the results, or raise ModelError if a score is not a number."""
    if any(math.isnan(hypothesis.score) for row in results for hypothesis in row):
        raise ModelError(
            "the model's probabilities are not numbers (NaN): its training has failed; "
            "use an earlier checkpoint"
        )
    return results


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Say which sequences may be returned, and how they are scored."""

    length_penalty: float = 0.6
    """This is α of GNMT's length penalty; 0 ranks by log-probability alone."""
    min_length: int = 0
    """An output has at least this many pieces; EOS is forbidden before."""
    max_extra: int = 50
    """An output has at most this many pieces more than its source; see `longest_output`."""
    max_length: int | None = None
    """An output has at most this many pieces, whatever the source."""
    no_repeat_ngram: int = 0
    """No sequence of this many pieces occurs twice in an output; 0 allows all."""
    repetition_penalty: float = 1.0
    """The log-probability of a piece that is in the output already is multiplied by this; 1 changes
    nothing, and more makes repetition rarer (Keskar et al., 2019)."""

    @property
    def limits_repetition(self) -> bool:
        """Return whether what a hypothesis holds has a say in what may follow."""
        return self.no_repeat_ngram > 0 or self.repetition_penalty != 1.0

    def __post_init__(self) -> None:
        for name in ("length_penalty", "min_length", "max_extra", "no_repeat_ngram"):
            value = getattr(self, name)
            _require(value >= 0, f"search.{name} = {value} is too small; the minimum is 0")
        _require(
            1 <= self.repetition_penalty < math.inf,
            f"search.repetition_penalty = {self.repetition_penalty} must be a number from 1 on; "
            "1 changes nothing, and 1.2 is usual",
        )
        _require(
            self.max_length is None or self.max_length >= self.min_length,
            f"search.max_length = {self.max_length} is below search.min_length = "
            f"{self.min_length}; raise it",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchOptions(Limits):
    """Say how beam and greedy search work; the defaults are the paper's (§6.1)."""

    beam: int = 4
    """So many hypotheses are kept at each step."""
    n_best: int = 1
    """So many hypotheses are returned for a sentence, at most `beam`."""
    stop_early: bool = True
    """Stop where nothing better can come; off, the result is the same and takes longer."""
    groups: int = 1
    """The beam is divided into so many groups, each avoiding what those before it say."""
    diversity: float = 2.0
    """A piece costs this for each hypothesis of an earlier group that has it at that position."""

    def __post_init__(self) -> None:
        Limits.__post_init__(self)
        _require(self.beam >= 1, f"search.beam = {self.beam} is too small; the minimum is 1")
        _require(self.n_best >= 1, f"search.n_best = {self.n_best} is too small; the minimum is 1")
        _require(
            self.n_best <= self.beam,
            f"search.n_best = {self.n_best} is more than search.beam = {self.beam} can find; "
            f"try search.beam = {self.n_best}",
        )
        _require(
            1 <= self.groups <= self.beam,
            f"search.groups = {self.groups} do not fit in search.beam = {self.beam}; "
            "each needs a hypothesis",
        )
        _require(
            self.diversity >= 0,
            f"search.diversity = {self.diversity} is too small; the minimum is 0",
        )

    @classmethod
    def from_config(cls, config: SearchConfig, **changes: Any) -> SearchOptions:
        """Return the options a model's config asks for, with changes by name; None changes none."""
        settings: dict[str, Any] = {
            name: getattr(config, name)
            for name in ("beam", "length_penalty", "min_length", "max_extra")
        }
        return cls(**settings | {k: v for k, v in changes.items() if v is not None})


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingOptions(Limits):
    """Say how to sample: of the `top_k` likeliest, of these the `top_p`, none below `epsilon`."""

    samples: int = 1
    """So many samples of each sentence are drawn, independently."""
    temperature: float = 1.0
    """Log-probabilities are divided by this; towards 0, sampling becomes greedy search."""
    top_k: int = 0
    """Draw only from this many likeliest pieces (0: all)."""
    top_p: float = 1.0
    """Draw only from the fewest likeliest pieces that have this probability together."""
    epsilon: float = 0.0
    """Draw only from pieces of at least this probability, before the temperature; and from the
    likeliest in any case (Hewitt et al., 2022)."""
    seed: int = 1
    """The same seed and source give the same samples, whatever else is in the batch."""

    def __post_init__(self) -> None:
        Limits.__post_init__(self)
        _require(
            self.samples >= 1, f"search.samples = {self.samples} is too small; the minimum is 1"
        )
        _require(
            self.temperature > 0,
            f"search.temperature = {self.temperature} must be above 0; for none, use a beam of 1",
        )
        _require(self.top_k >= 0, f"search.top_k = {self.top_k} is too small; 0 means all pieces")
        _require(0 < self.top_p <= 1, f"search.top_p = {self.top_p} must be above 0, and at most 1")
        _require(
            0 <= self.epsilon < 1,
            f"search.epsilon = {self.epsilon} must be at least 0, and below 1; 0.02 is usual",
        )
        _require(self.seed >= 0, f"search.seed = {self.seed} is too small; the minimum is 0")

    @property
    def most_pieces(self) -> int | None:
        """Return how many of the likeliest pieces can be drawn at most; None means all can."""
        bounds = [self.top_k] if self.top_k > 0 else []
        if self.epsilon > 0:
            bounds.append(int(1 / self.epsilon))
        return min(bounds, default=None)
