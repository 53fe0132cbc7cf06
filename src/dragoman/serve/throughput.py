"""How fast the service answers, to know at once what it could not answer in time."""

from __future__ import annotations

import time
from collections import deque
from typing import Final

__all__ = ["Pace"]

WINDOW: Final = 10.0
"""Seconds that are looked back on."""
KNOWN: Final = 32
"""Sentences that must have been answered before anything is said."""


class Pace:
    """Counts what is accepted and what is answered."""

    def __init__(self) -> None:
        self.accepted = 0
        """Sentences that wait for their answer."""
        self._busy_since = 0.0
        self._answered: deque[tuple[float, int]] = deque()

    def accept(self, sentences: int) -> None:
        """So many more wait."""
        if not self.accepted:  # idle until now: what was answered before tells nothing
            self._busy_since = time.monotonic()
            self._answered.clear()
        self.accepted += sentences

    def answer(self, sentences: int) -> None:
        """So many wait no more."""
        self.accepted -= sentences
        self._answered.append((time.monotonic(), sentences))

    def seconds(self, sentences: int) -> float:
        """Until so many more would be answered, after those that wait; 0 while nobody can tell."""
        now = time.monotonic()
        while self._answered and self._answered[0][0] < now - WINDOW:
            self._answered.popleft()
        done = sum(count for _, count in self._answered)
        if done < KNOWN:
            return 0.0
        return (self.accepted + sentences) * min(WINDOW, now - self._busy_since) / done
