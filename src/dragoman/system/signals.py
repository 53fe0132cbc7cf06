"""Ctrl-C and SIGTERM wait until a training step is finished, but end a validation at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Interrupted(BaseException):
    """Raised to leave a block that can be done again."""


class SignalCatcher:
    """Collect signals instead of dying of them; a second one of a kind is obeyed at once."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self._interruptible = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other may handle signals
            self._before = {number: signal.signal(number, self._catch) for number in SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        if number in self.caught:
            raise KeyboardInterrupt
        self.caught.append(number)
        if self._interruptible:
            self._interruptible = False
            raise _Interrupted

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal leave this block at once, for long work that can be done again."""
        try:
            try:
                self._interruptible = True
                yield
            finally:
                self._interruptible = False
        except _Interrupted:
            pass
