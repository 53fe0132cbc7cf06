"""Continuous batching: the sentences of all requests, searched together.

Each worker, a thread a core, goes on with its sentences step by step. A sentence joins at the next
step and leaves when it is done, or when nobody waits for it any more; the requests take turns, so
that one with a thousand sentences does not keep out one with a single.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence
from itertools import count
from threading import TIMEOUT_MAX, Condition, Event, Lock, Thread
from typing import Final

from dragoman.inference.cpu import Engine
from dragoman.inference.cpu.continuous_batching import OpenEngine, Stream
from dragoman.search import Hypothesis, SearchOptions
from dragoman.serve.errors import Refusal, answerable, log
from dragoman.serve.metrics import Meters
from dragoman.serve.request_context import Ticket, current
from dragoman.trees.grammar import Yields

__all__ = ["BatchedEngine", "Batcher"]

STREAMS: Final = 12
"""Kinds of search a worker keeps room for at a time."""

Key = tuple["BatchedEngine", SearchOptions]
"""What searches together: the same model, in the same way."""


class BatchedEngine(OpenEngine):
    """An engine whose searches join those of other requests; it may be used by many threads."""

    def __init__(self, engine: Engine, batcher: Batcher, name: str, reach: int) -> None:
        super().__init__(engine, reach)
        self.name, self._batcher = name, batcher

    def search(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        yields: Yields | None = None,
    ) -> list[list[Hypothesis]]:
        """See Engine; of trees it knows nothing."""
        if not sentences:
            return []
        assert yields is None
        assert max(map(len, sentences)) + options.max_extra <= self.reach
        return self._batcher.search((self, options), sentences, current())


class _Order:
    """The sentences of one search, and what is found of them."""

    def __init__(self, key: Key, sentences: Sequence[Sequence[int]], ticket: Ticket) -> None:
        self.key, self.ticket = key, ticket
        self.since = time.monotonic()
        self.waiting = deque(enumerate(sentences))
        self.found: list[list[Hypothesis]] = [[] for _ in sentences]
        self.failure: Exception | None = None
        self.done = Event()
        self._left, self._lock = len(sentences), Lock()

    @property
    def wanted(self) -> bool:
        """Whether there is any use in going on with it."""
        return self.failure is None and self.ticket.wanted

    def deliver(self, place: int, found: list[Hypothesis]) -> None:
        """One sentence is done."""
        with self._lock:
            self.found[place] = found
            self._left -= 1
            if not self._left:
                self.done.set()

    def fail(self, error: Exception) -> None:
        """The whole will not be."""
        self.failure = self.failure or error
        self.done.set()


Member = tuple[_Order, int, Sequence[int]]
"""A sentence: its order, its place there, its ids."""


class _Batch:
    """A stream, and whose sentences are in it."""

    def __init__(self, key: Key) -> None:
        engine, options = key
        self.name = engine.name
        self.stream: Stream = engine.stream(options)
        self.owners: dict[int, tuple[_Order, int]] = {}
        self._shares: Counter[_Order] = Counter()

    def has_room(self, order: _Order, coming: Sequence[Member]) -> bool:
        """Whether one more sentence of this order may join, after those coming."""
        if len(coming) >= self.stream.room:
            return False
        theirs = self._shares[order] + sum(one is order for one, _, _ in coming)
        return theirs < self.stream.share

    def join(self, members: Sequence[Member], numbers: Iterable[int]) -> None:
        """Sentences come in."""
        named = list(zip(members, numbers, strict=False))
        self.stream.admit([(number, ids) for (_, _, ids), number in named])
        for (order, place, _), number in named:
            self.owners[number] = order, place
            self._shares[order] += 1

    def gone(self, number: int) -> tuple[_Order, int]:
        """A sentence has left; whose it was."""
        order, place = self.owners.pop(number)
        self._shares[order] -= 1
        if not self._shares[order]:
            del self._shares[order]
        return order, place


class Batcher:
    """The workers, and the orders they take sentences from."""

    def __init__(self, workers: int, meters: Meters) -> None:
        self.workers, self._meters = workers, meters
        self._orders: deque[_Order] = deque()
        self._waiting = 0
        self._changed = Condition()
        self._numbers = count()
        self._closed = False
        self._threads = [
            Thread(target=self._live, name=f"worker {n}", daemon=True) for n in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def search(
        self, key: Key, sentences: Sequence[Sequence[int]], ticket: Ticket
    ) -> list[list[Hypothesis]]:
        """What is found of each sentence; waits until all are done, or nobody wants them."""
        order = _Order(key, sentences, ticket)
        with self._changed:
            if self._closed:
                raise _closing()
            self._orders.append(order)
            self._count_waiting(len(sentences))
            self._changed.notify_all()
        if not order.done.wait(min(ticket.seconds, TIMEOUT_MAX)):
            order.fail(ticket.refusal())
        if order.failure is not None:
            raise order.failure
        return order.found

    def close(self) -> None:
        """The workers end; what they have not finished is refused."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        for order in self._orders:
            order.fail(_closing())

    # --- a worker ---

    def _live(self) -> None:
        """Work until closed; an error ends what was worked on, never the worker."""
        while not self._closed:
            batches: OrderedDict[Key, _Batch] = OrderedDict()
            try:
                self._work(batches)
                failure: Exception = _closing()
            except Exception as error:
                failure = error
            for batch in batches.values():
                self._abandon(batch, failure)

    def _work(self, batches: OrderedDict[Key, _Batch]) -> None:
        while True:
            with self._changed:
                while not (self._orders or self._closed or any(b.owners for b in batches.values())):
                    self._changed.wait()
                if self._closed:
                    return
                taken = self._take(batches)
            for key, batch in list(batches.items()):
                try:
                    self._advance(batch, taken.get(key, []))
                except Exception as error:  # of this batch alone; its memory may be half-written
                    del batches[key]
                    self._abandon(batch, error, taken.get(key, []))

    def _take(self, batches: OrderedDict[Key, _Batch]) -> dict[Key, list[Member]]:
        """This worker's share of what waits, one sentence of each order in turn."""
        share, refused_in_turn = -(-self._waiting // self.workers), 0
        taken: dict[Key, list[Member]] = {}
        while share and refused_in_turn < len(self._orders):
            order = self._orders.popleft()
            try:
                batch = self._batch(batches, order, taken) if order.wanted else None
            except Exception as error:  # no memory for one more kind of search
                self._fail({order}, error)
            if not order.wanted:
                self._count_waiting(-len(order.waiting))
                self._meters.abandoned.inc(len(order.waiting))
                order.fail(order.ticket.refusal())
                continue
            coming = taken.setdefault(order.key, [])
            if batch is None or not batch.has_room(order, coming):
                self._orders.append(order)
                refused_in_turn += 1
                continue
            place, ids = order.waiting.popleft()
            coming.append((order, place, ids))
            self._count_waiting(-1)
            share, refused_in_turn = share - 1, 0
            if order.waiting:
                self._orders.append(order)
        return taken

    def _batch(
        self, batches: OrderedDict[Key, _Batch], order: _Order, taken: dict[Key, list[Member]]
    ) -> _Batch | None:
        """The batch an order belongs to; None while there are too many kinds of search."""
        if order.key not in batches:
            if len(batches) >= STREAMS:
                idle = [k for k, batch in batches.items() if not (batch.owners or taken.get(k))]
                if not idle:
                    return None
                del batches[idle[0]]
            batches[order.key] = _Batch(order.key)
        batches.move_to_end(order.key)
        return batches[order.key]

    def _advance(self, batch: _Batch, coming: Sequence[Member]) -> None:
        """One step of a batch, without those nobody waits for, and with those that come."""
        meters, running = self._meters, self._meters.running.labels(batch.name)
        for number in [n for n, (order, _) in batch.owners.items() if not order.wanted]:
            order, _ = batch.gone(number)
            batch.stream.leave(number)
            order.fail(order.ticket.refusal())
            running.dec()
            meters.abandoned.inc()
        if coming:
            batch.join(coming, self._numbers)
            running.inc(len(coming))
            now = time.monotonic()
            for order, _, _ in coming:
                meters.wait.observe(now - order.since)
        if not batch.owners:
            return
        meters.fill.labels(batch.name).observe(len(batch.owners) / batch.stream.places)
        for number, found in batch.stream.step():
            order, place = batch.gone(number)
            if order.ticket.hear is not None:
                order.ticket.hear(place, found[0].ids)
            order.deliver(place, found)
            running.dec()
        for number, (order, place) in batch.owners.items():
            if order.ticket.hear is not None:
                order.ticket.hear(place, batch.stream.agreed(number))

    def _abandon(self, batch: _Batch, error: Exception, coming: Sequence[Member] = ()) -> None:
        """A batch that cannot go on: everyone in it, or about to join it, is told."""
        self._meters.running.labels(batch.name).dec(len(batch.owners))
        there = {order for order, _ in batch.owners.values()}
        self._fail(there | {order for order, _, _ in coming}, error)

    def _fail(self, orders: set[_Order], error: Exception) -> None:
        if orders and not self._closed:
            self._meters.failures.inc()
            log.error("a worker failed", exc_info=error)
        for order in orders:
            order.fail(
                answerable(error) or Refusal(500, "the worker failed; it has been started again")
            )

    def _count_waiting(self, change: int) -> None:
        self._waiting += change
        self._meters.waiting.set(self._waiting)


def _closing() -> Refusal:
    return Refusal(503, "the service is shutting down", retry_after=5)
