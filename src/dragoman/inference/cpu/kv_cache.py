"""The cache of the decoder's keys and values has pages that sentences take and give back.

A hypothesis finds the keys and values of its pieces through a table of cache positions. When beams
change places only the tables do; keys and values stay where they were written.
"""

# L layers, N cache positions, W numbers of a position

from __future__ import annotations

import mmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

PAGE_POSITIONS: Final = 16
"""A page holds so many positions of all beams of a sentence."""
SPARE_PAGES: Final = 8
"""So many free pages stay in memory for the next sentences, and a quarter of those in use."""

_PRIVATE: Final[dict[str, int]] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
)
"""Private memory is mapped, so that the system can have it back."""


class KVCache:
    """Hold the keys and values of a number of sentences, each of several hypotheses.

    Memory is the system's until it is written to, and again when many pages have been freed.
    """

    def __init__(self, layers: int, width: int, beams: int, positions: int) -> None:
        """Map room for `positions` of every beam, of all sentences together."""
        self.beams = beams
        pages = -(-positions // PAGE_POSITIONS)
        self.positions = pages * PAGE_POSITIONS * beams
        self._mapped = mmap.mmap(-1, layers * self.positions * width * 2, **_PRIVATE)
        self.memory_LNW: NDArray[Any] = np.frombuffer(self._mapped, np.uint16).reshape(
            layers, self.positions, width
        )
        self._untouched = list(range(pages - 1, -1, -1))
        self._spare: list[int] = []  # written to before; the last ones freed at the end
        self._used = 0

    @property
    def free_positions(self) -> int:
        """Return how many positions can still be taken, of each beam."""
        return PAGE_POSITIONS * (len(self._untouched) + len(self._spare))

    def take_page(self) -> int:
        """Take a page, and return the first of its PAGE_POSITIONS × beams cache positions."""
        page = (self._spare or self._untouched).pop()
        self._used += 1
        return page * PAGE_POSITIONS * self.beams

    def free_pages(self, firsts: list[int]) -> None:
        """Give pages back by their first cache positions."""
        self._used -= len(firsts)
        self._spare += [first // (PAGE_POSITIONS * self.beams) for first in firsts]
        too_many = len(self._spare) - SPARE_PAGES - self._used // 4
        if too_many > 0 and hasattr(mmap, "MADV_DONTNEED"):
            for page in self._spare[:too_many]:
                self._release_memory(page)
            self._untouched += self._spare[:too_many]
            del self._spare[:too_many]

    def _release_memory(self, page: int) -> None:
        """Let the system have the memory of a page, as far as it is whole pages of its own."""
        layers, _, width = self.memory_LNW.shape
        size = PAGE_POSITIONS * self.beams * width * 2
        for layer in range(layers):
            begin = layer * self.positions * width * 2 + page * size
            first, last = -(-begin // mmap.PAGESIZE), (begin + size) // mmap.PAGESIZE
            if last > first:
                self._mapped.madvise(
                    mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE
                )
