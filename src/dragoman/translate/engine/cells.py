"""Where hypotheses keep their keys and values: pages that sentences borrow and give back.

A hypothesis finds those of its pieces through a table of cells. When beams change places only the
tables do; keys and values stay where they were written.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cells"]

PAGE: Final = 16
"""Positions of all beams of a sentence that are borrowed together."""


class Cells:
    """Room for the keys and values of a number of sentences, each of several hypotheses."""

    def __init__(self, layers: int, width: int, beams: int, positions: int) -> None:
        """`positions` in all, of every beam. Memory is the system's until it is written to."""
        self.beams = beams
        pages = -(-positions // PAGE)
        self.count = pages * PAGE * beams
        self.memory: NDArray[Any] = np.empty((layers, self.count, width), np.uint16)
        self._free = list(range(pages - 1, -1, -1))

    @property
    def room(self) -> int:
        """Positions that can still be borrowed."""
        return PAGE * len(self._free)

    def borrow(self) -> int:
        """One more page: the first of its PAGE × beams cells, position by position."""
        return self._free.pop() * PAGE * self.beams

    def give_back(self, firsts: list[int]) -> None:
        """Pages that are not needed any more."""
        self._free += [first // (PAGE * self.beams) for first in firsts]
