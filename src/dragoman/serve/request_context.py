"""What every request carries: until when its answer is wanted, and whether it still is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

from dragoman.serve.errors import Refusal

__all__ = ["Ticket", "current", "held"]

Hearer = Callable[[int, list[int]], None]
"""Told which pieces of a sentence, by its number, are certain."""


class Ticket:
    """Made by the event loop, asked by the threads that work for it."""

    def __init__(self, deadline: float = inf, hear: Hearer | None = None) -> None:
        """`deadline` is by the monotonic clock."""
        self.deadline, self.hear = deadline, hear
        self.cancelled = False

    @property
    def wanted(self) -> bool:
        """Whether anyone would still read the answer."""
        return not self.cancelled and time.monotonic() < self.deadline

    @property
    def seconds(self) -> float:
        """Until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def cancel(self) -> None:
        """Nobody waits any more."""
        self.cancelled = True

    def refusal(self) -> Refusal:
        """What is answered to a request that is not wanted any more."""
        if self.cancelled:
            return Refusal(499, "the client has gone")
        return Refusal(504, "the deadline has passed; ask for less at once, or again later")


_CURRENT: ContextVar[Ticket] = ContextVar("ticket")


def current() -> Ticket:
    """The ticket of the request this thread works for."""
    return _CURRENT.get(None) or Ticket()


@contextmanager
def held(ticket: Ticket) -> Iterator[None]:
    """This thread works for the ticket's request."""
    token = _CURRENT.set(ticket)
    try:
        yield
    finally:
        _CURRENT.reset(token)
