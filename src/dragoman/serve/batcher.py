"""The sentences of all requests are searched together, by continuous batching.

Each worker, one thread a core, goes on with its sentences step by step. A sentence joins at the
next step and leaves when it is done, or when nobody waits for it any more. Requests take turns, so
that one with a thousand sentences does not keep out one with a single sentence.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence
from itertools import count
from threading import TIMEOUT_MAX, Condition, Event, Lock, Thread
from typing import Final, NamedTuple

from dragoman.inference.cpu import CpuEngine
from dragoman.inference.cpu.continuous_batching import ContinuousBatch, ContinuousBatchingEngine
from dragoman.search import Hypothesis, SearchOptions
from dragoman.search.options import output_limits
from dragoman.serve.errors import ServiceError, as_service_error, log, shutting_down
from dragoman.serve.limits import current_request
from dragoman.serve.prometheus_metrics import Metrics
from dragoman.trees.grammar import SentencesToParse

MAX_BATCHES: Final = 12
"""How many kinds of search a worker keeps memory for at a time."""

Kind = tuple["BatchedEngine", SearchOptions]
"""A kind of search: the same model, searched with the same options, can be searched together."""


class BatchedEngine(ContinuousBatchingEngine):
    """Search together with other requests, as an engine does; many threads may use it."""

    def __init__(self, engine: CpuEngine, batcher: Batcher, name: str, longest: int) -> None:
        super().__init__(engine, longest)
        self.name, self._batcher = name, batcher

    def search(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        to_parse: SentencesToParse | None = None,
    ) -> list[list[Hypothesis]]:
        """Search as Engine does, for the current request; trees are not supported."""
        if not sentences:
            return []
        assert to_parse is None
        limits = output_limits(sentences, options)
        assert max(*map(len, sentences), *limits) <= self.longest
        return self._batcher.search((self, options), sentences)


class _Search:
    """Hold the sentences that one request wants searched, and what is found of them."""

    def __init__(self, kind: Kind, sentences: Sequence[Sequence[int]]) -> None:
        self.kind, self.context = kind, current_request()
        self.since = time.monotonic()
        self.waiting = deque(enumerate(sentences))
        self.results: list[list[Hypothesis]] = [[] for _ in sentences]
        self.error: Exception | None = None
        self.done = Event()
        self._left, self._lock = len(sentences), Lock()

    @property
    def is_wanted(self) -> bool:
        """Say whether there is any use in going on with it."""
        return self.error is None and self.context.is_wanted

    def finish(self, place: int, hypotheses: list[Hypothesis]) -> None:
        """Note what was found of one sentence."""
        with self._lock:
            self.results[place] = hypotheses
            self._left -= 1
            if not self._left:
                self.done.set()

    def fail(self, error: Exception) -> None:
        """End the whole search with an error, unless it has one already."""
        self.error = self.error or error
        self.done.set()


class _Sentence(NamedTuple):
    """Hold a sentence: the search it belongs to, its place there, and its ids."""

    search: _Search
    place: int
    ids: Sequence[int]


class _Batch:
    """Hold a batch of the engine, and whose sentences are in it."""

    def __init__(self, kind: Kind) -> None:
        engine, options = kind
        self.name = engine.name
        self.engine_batch: ContinuousBatch = engine.start_batch(options)
        self.running: dict[int, _Sentence] = {}
        """The sentences in the batch, by the numbers they have there."""
        self._shares: Counter[_Search] = Counter()

    def has_room(self, search: _Search, joining: Sequence[_Sentence]) -> bool:
        """Say whether one more sentence of a search may join, after those joining now."""
        if len(joining) >= self.engine_batch.free_slots:
            return False
        share = self._shares[search] + sum(one.search is search for one in joining)
        return share < self.engine_batch.slots_per_client

    def join(self, sentences: Sequence[_Sentence], numbers: Iterable[int]) -> None:
        """Add sentences to the batch."""
        numbered = list(zip(sentences, numbers, strict=False))
        self.engine_batch.admit([(number, sentence.ids) for sentence, number in numbered])
        for sentence, number in numbered:
            self.running[number] = sentence
            self._shares[sentence.search] += 1

    def remove(self, number: int) -> _Sentence:
        """Forget a sentence that has left the batch, and return it."""
        sentence = self.running.pop(number)
        self._shares[sentence.search] -= 1
        if not self._shares[sentence.search]:
            del self._shares[sentence.search]
        return sentence


class Batcher:
    """Run the workers, and the queue of searches they take sentences from."""

    def __init__(self, workers: int, metrics: Metrics) -> None:
        self.workers, self._metrics = workers, metrics
        self._searches: deque[_Search] = deque()
        self._waiting = 0
        self._changed = Condition()
        self._numbers = count()
        self._closed = False
        self._threads = [
            Thread(target=self._run_worker, name=f"worker {n}", daemon=True) for n in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def search(self, kind: Kind, sentences: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """Search sentences for the current request, and wait until all are done.

        Raise the request's error if it is not wanted any more, and the worker's if that failed.
        """
        search = _Search(kind, sentences)
        with self._changed:
            if self._closed:
                raise shutting_down()
            self._searches.append(search)
            self._count_waiting(len(sentences))
            self._changed.notify_all()
        if not search.done.wait(min(search.context.seconds_left, TIMEOUT_MAX)):
            search.fail(search.context.error())
        if search.error is not None:
            raise search.error
        return search.results

    def close(self) -> None:
        """End the workers; what they have not finished is answered with 503."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        for search in self._searches:
            search.fail(shutting_down())

    # --- a worker ---

    def _run_worker(self) -> None:
        """Work until closed; an error ends what was worked on, never the worker."""
        while not self._closed:
            batches: OrderedDict[Kind, _Batch] = OrderedDict()
            try:
                self._work(batches)
                error: Exception = shutting_down()
            except Exception as failure:
                error = failure
            for batch in batches.values():
                self._fail_batch(batch, error)

    def _work(self, batches: OrderedDict[Kind, _Batch]) -> None:
        while True:
            with self._changed:
                while not (
                    self._searches or self._closed or any(b.running for b in batches.values())
                ):
                    self._changed.wait()
                if self._closed:
                    return
                joining = self._take_sentences(batches)
            for kind, batch in list(batches.items()):
                try:
                    self._step(batch, joining.get(kind, []))
                except Exception as error:  # of this batch only; its memory may be half-written
                    del batches[kind]
                    self._fail_batch(batch, error, joining.get(kind, []))

    def _take_sentences(self, batches: OrderedDict[Kind, _Batch]) -> dict[Kind, list[_Sentence]]:
        """Take this worker's share of what waits, one sentence of each search in turn."""
        share, passed_over = -(-self._waiting // self.workers), 0
        taken: dict[Kind, list[_Sentence]] = {}
        while share and passed_over < len(self._searches):
            search = self._searches.popleft()
            try:
                batch = self._find_batch(batches, search, taken) if search.is_wanted else None
            except Exception as error:  # no memory for one more kind of search
                self._fail_searches({search}, error)
            if not search.is_wanted:
                self._count_waiting(-len(search.waiting))
                self._metrics.abandoned.inc(len(search.waiting))
                search.fail(search.context.error())
                continue
            joining = taken.setdefault(search.kind, [])
            if batch is None or not batch.has_room(search, joining):
                self._searches.append(search)
                passed_over += 1
                continue
            joining.append(_Sentence(search, *search.waiting.popleft()))
            self._count_waiting(-1)
            share, passed_over = share - 1, 0
            if search.waiting:
                self._searches.append(search)
        return taken

    def _find_batch(
        self,
        batches: OrderedDict[Kind, _Batch],
        search: _Search,
        taken: dict[Kind, list[_Sentence]],
    ) -> _Batch | None:
        """Return the batch a search belongs to, or None while there are too many kinds."""
        if search.kind not in batches:
            if len(batches) >= MAX_BATCHES:
                idle = [k for k, batch in batches.items() if not (batch.running or taken.get(k))]
                if not idle:
                    return None
                del batches[idle[0]]
            batches[search.kind] = _Batch(search.kind)
        batches.move_to_end(search.kind)
        return batches[search.kind]

    def _step(self, batch: _Batch, joining: Sequence[_Sentence]) -> None:
        """Go one step on with a batch, without what nobody waits for and with what joins."""
        metrics, running = self._metrics, self._metrics.running.labels(batch.name)
        for number in [n for n, one in batch.running.items() if not one.search.is_wanted]:
            search = batch.remove(number).search
            batch.engine_batch.cancel(number)
            search.fail(search.context.error())
            running.dec()
            metrics.abandoned.inc()
        if joining:
            batch.join(joining, self._numbers)
            running.inc(len(joining))
            now = time.monotonic()
            for sentence in joining:
                metrics.wait.observe(now - sentence.search.since)
        if not batch.running:
            return
        metrics.fill.labels(batch.name).observe(len(batch.running) / batch.engine_batch.slots)
        for number, hypotheses in batch.engine_batch.step():
            search, place, _ = batch.remove(number)
            if search.context.on_tokens is not None:
                search.context.on_tokens(place, hypotheses[0].ids)
            search.finish(place, hypotheses)
            running.dec()
        for number, (search, place, _) in batch.running.items():
            if search.context.on_tokens is not None:
                search.context.on_tokens(place, batch.engine_batch.agreed_prefix(number))

    def _fail_batch(
        self, batch: _Batch, error: Exception, joining: Sequence[_Sentence] = ()
    ) -> None:
        """End every search that is in a batch, or was about to join it, with an error."""
        self._metrics.running.labels(batch.name).dec(len(batch.running))
        searches = {one.search for one in (*batch.running.values(), *joining)}
        self._fail_searches(searches, error)

    def _fail_searches(self, searches: set[_Search], error: Exception) -> None:
        if searches and not self._closed:
            self._metrics.failures.inc()
            log.error("a worker failed", exc_info=error)
        for search in searches:
            search.fail(
                as_service_error(error)
                or ServiceError(500, "the worker failed and has been restarted; try again")
            )

    def _count_waiting(self, change: int) -> None:
        self._waiting += change
        self._metrics.waiting.set(self._waiting)
