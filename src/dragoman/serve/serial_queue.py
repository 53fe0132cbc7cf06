"""What the batches do not do (constraints, alignments, trees, other models), in a second lane.

One thread does one small piece of work at a time. While it works, others wait; those that ask for
the same of the same model then become one piece of work.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dragoman.serve.errors import refused
from dragoman.serve.request_context import Ticket, held

__all__ = ["Lane"]

Work = Callable[[list[Any]], list[Any]]
"""Texts to results, one for each."""


@dataclass(slots=True)
class _Errand:
    ticket: Ticket
    key: Hashable
    texts: Sequence[Any]
    work: Work
    together: int
    answer: asyncio.Future[list[Any]]


class Lane:
    """Used from one event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "lane")
        self._waiting: deque[_Errand] = deque()
        self._busy: asyncio.Task[None] | None = None

    async def run(
        self, ticket: Ticket, key: Hashable, texts: Sequence[Any], work: Work, *, together: int
    ) -> list[Any]:
        """What `work` makes of the texts.

        With an equal `key` it may be given others' as well, if `together` are not exceeded.
        """
        loop = asyncio.get_running_loop()
        errand = _Errand(ticket, key, texts, work, together, loop.create_future())
        self._waiting.append(errand)
        if self._busy is None:
            self._busy = loop.create_task(self._drive())
        return await errand.answer

    def close(self) -> None:
        """The thread ends with the work it does; nobody waits for that."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _drive(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group = self._next()
            if not group:
                continue
            try:
                found = await loop.run_in_executor(self._pool, _do, group)
            except Exception as error:
                for one in group:
                    if not one.answer.done():
                        one.answer.set_exception(error)
                continue
            for one, theirs in zip(group, found, strict=True):
                if not one.answer.done():
                    one.answer.set_result(theirs)
        self._busy = None

    def _next(self) -> list[_Errand]:
        """The oldest errand that is still wanted, and those that can be done with it."""
        group: list[_Errand] = []
        size = 0
        rest: deque[_Errand] = deque()
        for one in self._waiting:
            if not one.ticket.wanted:
                if not one.answer.done():
                    one.answer.set_exception(one.ticket.refusal())
            elif not group or (
                one.key is not None
                and one.key == group[0].key
                and size + len(one.texts) <= one.together
            ):
                group.append(one)
                size += len(one.texts)
            else:
                rest.append(one)
        self._waiting = rest
        return group


def _do(group: list[_Errand]) -> list[list[Any]]:
    """The results of each errand."""
    with held(group[0].ticket if len(group) == 1 else Ticket()), refused():
        found = iter(group[0].work([text for one in group for text in one.texts]))
        return [list(islice(found, len(one.texts))) for one in group]
