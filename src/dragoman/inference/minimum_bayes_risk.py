"""Minimum Bayes risk decoding takes the candidate that all the others agree with most.

The likeliest translation may be an odd one. If translations that the model finds probable are taken
for references in its place, the best is the one with the highest expected score against them
(Kumar and Byrne, 2004; Eikema and Aziz, 2020). That score is the utility.
"""

# N distinct candidates

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError
from dragoman.inference.translation_types import Candidate
from dragoman.system.packages import require_package
from dragoman.text.chrf import pairwise_chrf

UTILITIES: Final = ("chrf", "bleu")
"""Candidates can be compared by these."""
FLATTENING: Final = 3.0
"""Of candidates that were searched for, log-probabilities are divided by this to weigh them: the
likeliest alone would outvote the others, and docs/log.md has what other numbers gave."""
DIGITS: Final = 9
"""Expected utilities that differ less are equal, and the candidate that was found first wins."""


@dataclass(frozen=True, slots=True)
class MinimumBayesRisk:
    """Order candidates by their expected utility."""

    utility: str = "chrf"
    language: str = ""
    """BLEU splits words as in this language."""
    drawn: bool = False
    """Candidates were drawn at random, so that their number says how probable they are."""

    def __post_init__(self) -> None:
        if self.utility not in UTILITIES:
            raise ConfigError(
                f"there is no utility '{self.utility}' for mbr; choose from: {', '.join(UTILITIES)}"
            )
        if self.utility == "bleu":
            require_package("sacrebleu", "mbr with BLEU")

    def rank(
        self, sources: Sequence[str], candidates: Sequence[Sequence[Candidate]]
    ) -> list[list[int]]:
        """Return the numbers of each source's candidates, best first; equal texts count as one."""
        return [self.rank_candidates(each) for each in candidates]

    def rank_candidates(self, candidates: Sequence[Candidate]) -> list[int]:
        """Return the numbers of the candidates of one source, best first, each text once."""
        texts: dict[str, list[int]] = {}
        for number, one in enumerate(candidates):
            texts.setdefault(one.text, []).append(number)
        firsts = [numbers[0] for numbers in texts.values()]
        if len(texts) < 2:
            return firsts
        weights = self._weigh(candidates)
        weights_N = np.array([weights[numbers].sum() for numbers in texts.values()])
        expected_N = np.round(self._compare(list(texts)) @ weights_N, DIGITS)
        order: list[int] = np.argsort(-expected_N, kind="stable").tolist()
        return [firsts[place] for place in order]

    def _weigh(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """Return how much each candidate counts as a reference, from its probability if known."""
        if self.drawn:
            return np.full(len(candidates), 1 / len(candidates))
        log_probs = np.array([one.log_prob for one in candidates])
        weights = np.exp((log_probs - log_probs.max()) / FLATTENING)
        return np.asarray(weights / weights.sum())

    def _compare(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the utility of each text if each is the reference, N N."""
        if self.utility == "chrf":
            return pairwise_chrf(texts)
        from dragoman.text.bleu import pairwise_bleu

        return pairwise_bleu(texts, self.language or None)
