"""This queue takes what the batcher cannot do: constraints, alignments, trees, other engines.

One thread does one small job at a time. Jobs that have come meanwhile and that ask for the same of
the same model then become one job.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dragoman.serve.errors import raise_service_errors
from dragoman.serve.limits import RequestContext, current_request

Work = Callable[[list[Any]], list[Any]]
"""A function from texts to results, one for each."""


@dataclass(slots=True)
class _Job:
    context: RequestContext
    key: Hashable
    texts: Sequence[Any]
    work: Work
    max_texts: int
    results: asyncio.Future[list[Any]]


class SerialQueue:
    """Do jobs one after another in a thread; used from one event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "serial_queue")
        self._waiting: deque[_Job] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def run(
        self, key: Hashable, texts: Sequence[Any], work: Work, *, max_texts: int
    ) -> list[Any]:
        """Return what `work` makes of the texts, for the current request.

        It may be given the texts of other jobs with an equal `key` as well, up to `max_texts`.
        """
        loop = asyncio.get_running_loop()
        job = _Job(current_request(), key, texts, work, max_texts, loop.create_future())
        self._waiting.append(job)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        return await job.results

    def close(self) -> None:
        """End the thread with the job it is doing, without waiting for that."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group = self._take_group()
            if not group:
                continue
            try:
                found = await loop.run_in_executor(self._pool, _run_group, group)
            except Exception as error:
                for job in group:
                    if not job.results.done():
                        job.results.set_exception(error)
                continue
            for job, results in zip(group, found, strict=True):
                if not job.results.done():
                    job.results.set_result(results)
        self._worker = None

    def _take_group(self) -> list[_Job]:
        """Remove from the queue the oldest job that is still wanted, and those like it."""
        group: list[_Job] = []
        size = 0
        rest: deque[_Job] = deque()
        for job in self._waiting:
            if not job.context.is_wanted:
                if not job.results.done():
                    job.results.set_exception(job.context.error())
            elif not group or (
                job.key is not None
                and job.key == group[0].key
                and size + len(job.texts) <= job.max_texts
            ):
                group.append(job)
                size += len(job.texts)
            else:
                rest.append(job)
        self._waiting = rest
        return group


def _run_group(group: list[_Job]) -> list[list[Any]]:
    """Return the results of each job; work for several requests has nobody's deadline."""
    context = group[0].context if len(group) == 1 else RequestContext()
    with context.activate(), raise_service_errors():
        found = iter(group[0].work([text for job in group for text in job.texts]))
        return [list(islice(found, len(job.texts))) for job in group]
