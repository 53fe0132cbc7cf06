"""Where the search keeps its sentences on the device: slots that they move into and out of.

A slot has the keys and values of a sentence's source and, for each position and beam, a cell with a
piece, its keys and its values. What is in a cell stays there: when beams change places only their
tables do, which say for each position which beam's cell a hypothesis goes through. What a step
reads and writes is here, in memory that never moves, so that a step can be recorded and replayed.

A step looks at lanes, each of which names a slot. One slot more than can be used is always done;
lanes that have nothing to do name that one.
"""

# S slots and the one for nothing, A lanes, K beams, N best finished, T positions, P source
# positions, L layers, W = heads times their width

from __future__ import annotations

from functools import partial
from typing import Final

import torch

from dragoman.search.ranking import penalty_table
from dragoman.translate.gpu.weights import Weights

__all__ = ["CEILING", "DONE", "ENDED", "LENGTH", "MARKS", "SOURCE", "Slots", "slot_bytes"]

DONE: Final = 0
LENGTH: Final = 1
"""Pieces of each hypothesis. A slot without any is fresh: nothing else of it is read."""
ENDED: Final = 2
"""Hypotheses that have finished."""
CEILING: Final = 3
SOURCE: Final = 4
"""Source positions, EOS among them."""
MARKS: Final = 5


class Slots:
    """Memory for `count` sentences of at most `target` pieces, from `source` positions."""

    def __init__(
        self, weights: Weights, count: int, beams: int, best: int, target: int, source: int
    ) -> None:
        self.count, self.beams, self.best = count, beams, best
        self.target, self.source = target, source
        S, device = count + 1, weights.device
        self.places = target + 2  # BOS, the pieces, and one that a step may write past the last
        self.lanes = torch.full((count,), count, dtype=torch.int32, device=device)
        self.marks = torch.zeros(MARKS, S, dtype=torch.int32, device=device)
        self.marks[DONE] = 1
        T, K, N, L, W = self.places, beams, best, weights.layers, weights.wide
        ints = partial(torch.zeros, dtype=torch.int32, device=device)
        cells = partial(torch.zeros, dtype=weights.dtype, device=device)
        doubles = partial(torch.zeros, dtype=torch.float64, device=device)
        self.sums_SK = torch.zeros(S, K, device=device)
        self.pieces_STK = ints(S, T, K)
        # Two of each: a step reads the one of its length, even or odd, and writes the other.
        self.tables_2SKT = ints(2, S, K, T if K > 1 else 1)
        self.own_LCW = cells(L, S * T * K, 2 * W)
        self.source_LPW = cells(L, S * source, 2 * W)
        # Of each of the best: score, sum, length, and how many had finished before it.
        self.pool_SN4 = doubles(S, N, 4)
        self.pool_SNT = ints(S, N, T)
        self.penalties_T = doubles(T) + 1
        self._alpha = 0.0
        self.positions_TM = weights.positions(max(T, source))

    def penalise(self, alpha: float) -> None:
        """Which length penalty is meant."""
        if alpha != self._alpha:
            table = penalty_table(self.places - 1, alpha, torch.device("cpu"))
            self.penalties_T.copy_(table)
            self._alpha = alpha

    def fits(self, count: int, beams: int, best: int, target: int, source: int) -> bool:
        """Whether a search of this size has room."""
        same = (self.beams, self.best) == (beams, best)
        return same and count <= self.count and target <= self.target and source <= self.source


def slot_bytes(weights: Weights, beams: int, target: int, source: int) -> int:
    """About what one slot takes."""
    cells = (target + 2) * beams + source
    return cells * weights.layers * 2 * weights.wide * weights.dtype.itemsize
