"""Where the search keeps its sentences on the device: slots that they move into and out of.

A slot has the keys and values of a sentence's source and, for each position and beam, a cell with a
piece, its keys and its values. What is in a cell stays there: when beams change places only their
tables do, which say for each position which beam's cell a hypothesis goes through. What a step
reads and writes is here, in memory that never moves, so that a step can be recorded and replayed.

A step looks at lanes, each of which names a slot. One slot more than can be used is always done;
lanes that have nothing to do name that one.
"""

# S slots and the one for nothing, A lanes, K beams, N best finished, T positions, P source
# positions, L layers, W = heads times their width, M marks

from __future__ import annotations

from functools import partial
from typing import Final

import torch
from torch import Tensor

from dragoman.inference.gpu.weights import Weights
from dragoman.search.ranking import penalty_table

__all__ = [
    "CEILING",
    "DONE",
    "ENDED",
    "LEAST",
    "LENGTH",
    "MARKS",
    "SOURCE",
    "WORDS",
    "Report",
    "Slots",
    "slot_bytes",
]

DONE: Final = 0
LENGTH: Final = 1
"""Pieces of each hypothesis. A slot without any is fresh: nothing else of it is read."""
ENDED: Final = 2
"""Hypotheses that have finished."""
CEILING: Final = 3
SOURCE: Final = 4
"""Source positions, EOS among them."""
WORDS: Final = 5
"""That a tree is to be made over, if it is to be one."""
MARKS: Final = 6
"""In slots for trees, what announces each word follows."""
LEAST: Final = 8
"""Slots are made for so many sentences or more; with no more, the host can be told everything."""


class Report:
    """What the host asks for of some slots: their marks, and the best that have finished.

    It lies in one piece, so that one copy has it all.
    """

    def __init__(self, raw: Tensor, count: int, best: int, places: int, marks: int) -> None:
        """Views of `raw`, bytes."""
        self.raw = raw
        figures, ids, flags = raw.split(self._sizes(count, best, places, marks))
        figures, ids = figures[: count * best * 32], ids[: count * best * places * 4]
        self.pool_SN4 = figures.view(torch.float64).view(count, best, 4)
        """Of each of the best: score, sum, length, and how many had finished before it."""
        self.pool_SNT = ids.view(torch.int32).view(count, best, places)
        self.marks = flags[: marks * count * 4].view(torch.int32).view(marks, count)

    @staticmethod
    def _sizes(count: int, best: int, places: int, marks: int) -> list[int]:
        sizes = (count * best * 32, count * best * places * 4, marks * count * 4)
        return [-(-size // 256) * 256 for size in sizes]  # kernels like what begins at such places

    @classmethod
    def empty(cls, device: torch.device, *shape: int, pinned: bool = False) -> Report:
        """With room for as much."""
        size = sum(cls._sizes(*shape))
        raw = torch.zeros(size, dtype=torch.uint8, device=device, pin_memory=pinned)
        return cls(raw, *shape)


class Slots:
    """Memory for `count` sentences of at most `target` pieces, from `source` positions.

    For trees of at most `words` words, if that is more than 0.
    """

    def __init__(
        self,
        weights: Weights,
        count: int,
        beams: int,
        best: int,
        target: int,
        source: int,
        words: int = 0,
    ) -> None:
        self.count, self.beams, self.best = count, beams, best
        self.target, self.source, self.words = target, source, words
        self.few = count <= LEAST
        S, device = count + 1, weights.device
        self.places = target + 2  # BOS, the pieces, and one that a step may write past the last
        self.lanes = torch.full((count,), count, dtype=torch.int32, device=device)
        self.shape = (S, best, self.places, MARKS + words)
        self.report = Report.empty(device, *self.shape)
        self.marks, self.pool_SNT = self.report.marks, self.report.pool_SNT
        self.pool_SN4 = self.report.pool_SN4
        self.marks[DONE] = 1
        T, K, L, W = self.places, beams, weights.layers, weights.wide
        ints = partial(torch.zeros, dtype=torch.int32, device=device)
        cells = partial(torch.zeros, dtype=weights.dtype, device=device)
        doubles = partial(torch.zeros, dtype=torch.float64, device=device)
        self.sums_SK = torch.zeros(S, K, device=device)
        self.pieces_STK = ints(S, T, K)
        # Two of each: a step reads the one of its length, even or odd, and writes the other.
        self.tables_2SKT = ints(2, S, K, T if K > 1 else 1)
        self.own_LCW = cells(L, S * T * K, 2 * W)
        self.source_LPW = cells(L, S * source, 2 * W)
        self.penalties_T = doubles(T) + 1
        self._alpha = 0.0
        self.positions_TM = weights.positions(max(T, source))

    def penalise(self, alpha: float) -> None:
        """Which length penalty is meant."""
        if alpha != self._alpha:
            table = penalty_table(self.places - 1, alpha, torch.device("cpu"))
            self.penalties_T.copy_(table)
            self._alpha = alpha

    def fits(
        self, count: int, beams: int, best: int, target: int, source: int, words: int = 0
    ) -> bool:
        """Whether a search of this size has room."""
        same = (self.beams, self.best, self.words > 0) == (beams, best, words > 0)
        same = same and self.few == (count <= LEAST)
        sizes = (count, target, source, words)
        rooms = (self.count, self.target, self.source, self.words)
        return same and all(size <= room for size, room in zip(sizes, rooms, strict=True))


def slot_bytes(weights: Weights, beams: int, target: int, source: int) -> int:
    """About what one slot takes."""
    cells = (target + 2) * beams + source
    return cells * weights.layers * 2 * weights.wide * weights.dtype.itemsize
