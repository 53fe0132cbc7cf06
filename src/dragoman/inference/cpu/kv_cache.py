"""Where hypotheses keep their keys and values: pages that sentences borrow and give back.

A hypothesis finds those of its pieces through a table of cells. When beams change places only the
tables do; keys and values stay where they were written.
"""

# L layers, N cells, W numbers of a cell

from __future__ import annotations

import mmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cells"]

PAGE: Final = 16
"""Positions of all beams of a sentence that are borrowed together."""
SPARE: Final = 8
"""Pages that stay in memory for the next sentences, at least; and a quarter of those in use."""

_PRIVATE: Final[dict[str, int]] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
)
"""Memory that nobody shares, which the system can have back."""


class Cells:
    """Room for the keys and values of a number of sentences, each of several hypotheses.

    Memory is the system's until it is written to, and again when many pages have been given back.
    """

    def __init__(self, layers: int, width: int, beams: int, positions: int) -> None:
        """`positions` in all, of every beam."""
        self.beams = beams
        pages = -(-positions // PAGE)
        self.count = pages * PAGE * beams
        self._mapped = mmap.mmap(-1, layers * self.count * width * 2, **_PRIVATE)
        self.memory_LNW: NDArray[Any] = np.frombuffer(self._mapped, np.uint16).reshape(
            layers, self.count, width
        )
        self._fresh = list(range(pages - 1, -1, -1))
        self._spare: list[int] = []  # written to before; the last ones given back at the end
        self._used = 0

    @property
    def room(self) -> int:
        """Positions that can still be borrowed."""
        return PAGE * (len(self._fresh) + len(self._spare))

    def borrow(self) -> int:
        """One more page: the first of its PAGE × beams cells, position by position."""
        page = (self._spare or self._fresh).pop()
        self._used += 1
        return page * PAGE * self.beams

    def give_back(self, firsts: list[int]) -> None:
        """Pages that are not needed any more."""
        self._used -= len(firsts)
        self._spare += [first // (PAGE * self.beams) for first in firsts]
        too_many = len(self._spare) - SPARE - self._used // 4
        if too_many > 0 and hasattr(mmap, "MADV_DONTNEED"):
            for page in self._spare[:too_many]:
                self._forget(page)
            self._fresh += self._spare[:too_many]
            del self._spare[:too_many]

    def _forget(self, page: int) -> None:
        """The system may have the memory of a page, as far as it is whole pages of its own."""
        layers, _, width = self.memory_LNW.shape
        size = PAGE * self.beams * width * 2
        for layer in range(layers):
            begin = layer * self.count * width * 2 + page * size
            first, last = -(-begin // mmap.PAGESIZE), (begin + size) // mmap.PAGESIZE
            if last > first:
                self._mapped.madvise(
                    mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE
                )
