"""The desk: takes requests for the models, within its bounds, and hands back answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from dragoman.errors import DragomanError
from dragoman.inference import Translation
from dragoman.inference.parser import Parse
from dragoman.serve.batcher import Batcher
from dragoman.serve.errors import Refusal, refused
from dragoman.serve.metrics import Meters
from dragoman.serve.models import Fleet, Served
from dragoman.serve.request_context import Ticket, held
from dragoman.serve.serial_queue import Lane
from dragoman.serve.settings import Settings
from dragoman.serve.throughput import Pace
from dragoman.system.cores import available_cores
from dragoman.text.languages import detect_languages

__all__ = ["Desk"]

FRESH: Final = 5.0
"""Seconds for which a model that has answered counts as answering."""
T = TypeVar("T")


class Desk:
    """The models at work, and the count of what they were asked and have not answered yet."""

    def __init__(self, settings: Settings) -> None:
        """Reads the models, which may take a while."""
        self.settings, self.meters = settings, Meters()
        self._batcher = Batcher(settings.threads or available_cores(), self.meters)
        self.fleet = Fleet(settings, self._batcher)
        with suppress(DragomanError):
            detect_languages(
                "to read its tables now, and not while a request waits", self.fleet.sources
            )
        self._lane = Lane()
        # A thread for each request that waits, and some for questions about health.
        self._pool = ThreadPoolExecutor(settings.queue + 8, "request")
        self._pace = Pace()
        self._answered: dict[str, float] = {}
        self._tickets: set[Ticket] = set()
        self.draining = False
        self.meters.ready.set(1)

    # --- what is accepted ---

    @contextmanager
    def accepted(self, sentences: int, hear: Any = None) -> Iterator[Ticket]:
        """A place for so many sentences, until the block ends; 503 at once where there is none."""
        bound = self.settings.queue
        if self.draining:
            raise Refusal(503, "the service is shutting down", retry_after=5)
        if sentences > bound:
            raise Refusal(413, f"{sentences} lines in a request; {bound} is the most")
        if self._pace.accepted + sentences > bound:
            raise Refusal(503, "too many requests at once; try again", retry_after=1)
        # Half of the deadline, for the requests take turns and the longer ones end last.
        if self._pace.seconds(sentences) > self.settings.deadline / 2:
            raise Refusal(503, "the answer would come too late; try again", retry_after=1)
        ticket = Ticket(time.monotonic() + self.settings.deadline, hear)
        self._pace.accept(sentences)
        self.meters.accepted.set(self._pace.accepted)
        self._tickets.add(ticket)
        try:
            yield ticket
        finally:
            ticket.cancel()  # whatever ended the block, nobody waits any more
            self._tickets.discard(ticket)
            self._pace.answer(sentences)
            self.meters.accepted.set(self._pace.accepted)

    def drain(self) -> None:
        """Take nothing more; what was accepted has as long as it is patient."""
        self.draining = True
        self.meters.ready.set(0)
        latest = time.monotonic() + self.settings.patience
        for ticket in self._tickets:
            ticket.deadline = min(ticket.deadline, latest)

    def close(self) -> None:
        """The threads end as soon as they can."""
        self.drain()
        self._batcher.close()
        self._lane.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # --- what is asked ---

    async def translate(
        self, served: Served, texts: Sequence[str], ticket: Ticket, **options: Any
    ) -> list[Translation]:
        """Each text, a line, translated as `Translator.translate` does it."""
        translator = served.translator
        if not texts:
            return []
        options = {key: value for key, value in options.items() if _says(value)}

        def work(some: list[str]) -> list[Translation]:
            return translator.translate(some, **options)

        if served.batches(options):
            found = await self._in_thread(served, ticket, lambda: work(list(texts)))
        else:
            plain = all(isinstance(value, int | float) for value in options.values())
            key = (served.name, *sorted(options.items())) if plain else None
            found = await self._in_lane(served, ticket, key, texts, work)
        self.meters.sentences.labels(served.name).inc(len(found))
        self.meters.tokens.labels(served.name).inc(sum(len(one.tokens) for one in found))
        return found

    async def parse(
        self, served: Served, sentences: Sequence[list[str]], ticket: Ticket, **options: Any
    ) -> list[Parse | None]:
        """The trees of sentences that are split into words."""
        parser = served.parser
        key = (served.name, *sorted(options.items()))
        found: list[Parse | None] = await self._in_lane(
            *(served, ticket, key, sentences), lambda some: parser.parse(some, **options)
        )
        self.meters.sentences.labels(served.name).inc(len(found))
        return found

    async def aside(self, served: Served, ticket: Ticket, work: Callable[[], T]) -> T:
        """Anything else that one model is asked for."""
        found: list[T] = await self._in_lane(served, ticket, None, [None], lambda _: [work()])
        return found[0]

    async def _in_lane(
        self,
        served: Served,
        ticket: Ticket,
        key: Hashable,
        texts: Sequence[Any],
        work: Callable[[list[Any]], list[Any]],
    ) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(texts), served.part):
            some = texts[start : start + served.part]
            found += await _until(
                ticket, self._lane.run(ticket, key, some, work, together=4 * served.part)
            )
        self._answered[served.name] = time.monotonic()
        return found

    async def _in_thread(self, served: Served, ticket: Ticket, work: Callable[[], T]) -> T:
        def run() -> T:
            with held(ticket), refused():
                return work()

        loop = asyncio.get_running_loop()
        found = await _until(ticket, loop.run_in_executor(self._pool, run))
        self._answered[served.name] = time.monotonic()
        return found

    # --- health ---

    async def answers(self, served: Served) -> bool:
        """Whether a model has answered just now, or answers a word."""
        if time.monotonic() - self._answered.get(served.name, -FRESH) < FRESH:
            return True
        ticket = Ticket(time.monotonic() + FRESH)
        try:
            if served.parses:
                await self.parse(served, [["a"]], ticket)
            else:
                await self.translate(served, ["a"], ticket, beam=1)
        except Exception:
            return False
        finally:
            ticket.cancel()
        return True


def _says(option: Any) -> bool:
    """Whether an option asks for anything."""
    return option is not None and option is not False and option not in ("", [])


async def _until(ticket: Ticket, doing: Awaitable[T]) -> T:
    """What is awaited, or 504 when the deadline comes first."""
    task = asyncio.ensure_future(doing)
    try:
        while not task.done() and ticket.wanted:  # the deadline comes nearer when draining begins
            await asyncio.wait({task}, timeout=min(ticket.seconds, 1.0))
        if not task.done():
            raise ticket.refusal()
        return task.result()
    finally:
        task.cancel()
