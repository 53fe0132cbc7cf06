"""A model of the other direction says how well a candidate explains its source.

A translation that leaves something out, or says something else, may be probable, and still its
source is not, given it. Candidates are therefore ranked by both models together, as a noisy channel
does (Yee et al., 2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dragoman.errors import ConfigError
from dragoman.inference.scoring import score_pairs
from dragoman.inference.translation_types import Candidate
from dragoman.text.languages import same_language

if TYPE_CHECKING:
    from dragoman.inference.translator import Translator

DEFAULT_WEIGHT: Final = 0.25
"""The reverse model's score counts so much where nothing else is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyChannel:
    """Order candidates by score + weight · reverse score + length reward · pieces.

    The reverse score is log p(source | candidate) / length penalty, as `Translator.score` has it.
    """

    reverse: Translator
    weight: float = DEFAULT_WEIGHT
    length_reward: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.weight < math.inf:
            raise ConfigError(
                f"rerank_weight = {self.weight} must be a number from 0 on; "
                f"{DEFAULT_WEIGHT} is usual"
            )
        if not math.isfinite(self.length_reward):
            raise ConfigError(f"length_reward = {self.length_reward} must be a number")
        self.reverse.require_one_model("reranking")

    def check_languages(self, source: str, target: str) -> None:
        """Raise ConfigError if the model's languages are known not to be the reverse of these."""
        reads, writes = self.reverse.config.data.languages or ("", "")
        if not (_may_be_same(reads, target) and _may_be_same(writes, source)):
            raise ConfigError(
                f"{self.reverse.path}: translates from {reads} to {writes}; to rerank translations "
                f"from {source} to {target}, name a model from {target} to {source}"
            )

    def rank(
        self, sources: Sequence[str], candidates: Sequence[Sequence[Candidate]]
    ) -> list[list[int]]:
        """Return the numbers of each source's candidates, best first; equal texts count as one."""
        pairs = list(
            dict.fromkeys(
                (one.text, source)
                for source, each in zip(sources, candidates, strict=True)
                for one in each
            )
        )
        search = self.reverse.config.search
        scored = score_pairs(
            self.reverse.tokenizer,
            [text for text, _ in pairs],
            [source for _, source in pairs],
            self.reverse.log_probabilities,
            alpha=search.length_penalty,
            longest=search.batch_tokens,
            cut=True,
        )
        # What is too long to be scored has 0, and no other pair has.
        backward = {
            pair: one.score if one.log_prob < 0 else -math.inf
            for pair, one in zip(pairs, scored, strict=True)
        }
        return [
            self._rank_candidates([backward[one.text, source] for one in each], each)
            for source, each in zip(sources, candidates, strict=True)
        ]

    def _rank_candidates(
        self, backward: Sequence[float], candidates: Sequence[Candidate]
    ) -> list[int]:
        best: dict[str, tuple[float, int]] = {}
        for number, (reverse, one) in enumerate(zip(backward, candidates, strict=True)):
            channel = self.weight * reverse if self.weight else 0.0
            total = one.score + channel + self.length_reward * one.pieces
            if one.text not in best or total > best[one.text][0]:
                best[one.text] = total, number
        return [number for _, number in sorted(best.values(), key=lambda pair: -pair[0])]


def _may_be_same(code: str, other: str) -> bool:
    return not code or not other or same_language(code, other)
