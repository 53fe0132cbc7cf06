"""The output of a sentence may have to begin so, and to contain some phrases and not others."""

# V vocabulary

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.search.constraints.phrases import PhraseRequirements
from dragoman.search.options import Limits, longest_output


@dataclass(frozen=True, slots=True, eq=False)
class OutputRequirements:
    """Say what the output of one sentence must be."""

    prefix: Sequence[int] = ()
    """It begins with these pieces, at what the model says they cost."""
    phrases: PhraseRequirements | None = None
    """It contains these phrases and not those."""
    after_prefix: NDArray[np.bool_] | None = None
    """Right after the prefix only these pieces may come, V."""

    @property
    def shortest(self) -> int:
        """Return the fewest pieces that it may have; its limit is no lower."""
        return max(len(self.prefix), self.phrases.shortest if self.phrases is not None else 0)

    @property
    def limits_choice(self) -> bool:
        """Return whether not every piece may follow the prefix."""
        return self.phrases is not None or self.after_prefix is not None


def required_limits(
    sentences: Sequence[Sequence[int]],
    options: Limits,
    requirements: Sequence[OutputRequirements],
) -> list[int]:
    """Return how many pieces the output of each sentence may have, at least what is required."""
    return [
        longest_output(len(ids), options, one.shortest)
        for ids, one in zip(sentences, requirements, strict=True)
    ]
