"""Ctrl-C and SIGTERM while training: a step is finished, a validation is not."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

__all__ = ["SIGNALS", "Signals"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _BrokenOff(BaseException):
    """Leaves a block that can be done again."""


class Signals:
    """Collects signals instead of dying of them; a second one of a kind is obeyed at once."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self._breaks_off = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other may handle signals
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number in self.caught:
            raise KeyboardInterrupt
        self.caught.append(number)
        if self._breaks_off:
            self._breaks_off = False
            raise _BrokenOff

    @contextmanager
    def breaking_off(self) -> Iterator[None]:
        """A block that a signal leaves at once, for long work that can be done again."""
        try:
            try:
                self._breaks_off = True
                yield
            finally:
                self._breaks_off = False
        except _BrokenOff:
            pass
