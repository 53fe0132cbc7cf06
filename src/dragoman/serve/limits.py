"""Every limit of the service stands here, with how it is checked.

`Limits` holds what the operator sets, the constants what is fixed. A request meets them in this
order: its rate (`RateLimiter`), its body (`LimitedBody`), its texts (`Limits.check_texts`), the
queue (`AdmissionControl`) and its deadline (`RequestContext`).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from starlette.types import Message, Receive

from dragoman.errors import ConfigError
from dragoman.serve.errors import ServiceError, shutting_down
from dragoman.serve.prometheus_metrics import Metrics

MAX_BEAM: Final = 32
"""The widest beam, and the longest n-best list, that a request may ask for."""
MAX_EXTRA: Final = 400
"""How many pieces more than its source a request may allow a translation."""
MAX_ALTERNATIVES: Final = 16
"""How many other translations of a text LibreTranslate's API gives."""
MAX_ALTERNATIVE_WORDS: Final = 50
"""How many words to go on with /v1/alternatives gives."""
MAX_PHRASES: Final = 32
"""How many phrases a translation may be made to contain, or to avoid."""
MAX_GLOSSARY: Final = 1000
"""How many terms a request's glossary may have."""
MAX_HEADS: Final = 1000
"""How many attention heads a request may switch off."""
MAX_FORM_FIELDS: Final = 1000
BODY_SECONDS: Final = 30.0
"""How long to wait for the next part of a body."""
DOCUMENT_SECONDS: Final = 600.0
"""How long a translated document can be fetched."""
DOCUMENT_BYTES: Final = 64 << 20
"""How large all translated documents that wait to be fetched may be together."""
DOCUMENT_CHARACTERS: Final = 1_000_000
"""How many characters a document may have that is translated in the background."""
MAX_DOCUMENT_JOBS: Final = 16
"""How many documents are translated in the background at a time."""
DOCUMENT_EXPANSION: Final = 8
"""How many times larger than `max_body` a compressed document may become."""
MAX_CORRECTIONS: Final = 50_000
"""How many corrections a file keeps; more are refused."""
CORRECTION_BYTES: Final = 16 << 20
"""How large the file of corrections may become."""
MAX_EXPANSION: Final = 8
"""How many times longer than its source a correction may be, or shorter, beyond 100 characters."""
MAX_CLIENTS: Final = 10_000
"""Of how many keys and addresses the rate is known; the one seen longest ago is forgotten."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Say how much the service takes of a request, and of all requests at a time."""

    max_characters: int = 20_000
    """The most characters of a request, all its texts together."""
    max_items: int = 128
    """The most texts of a request."""
    max_body: int = 2 << 20
    """The most bytes of a request's body."""
    queue: int = 512
    """The most sentences that are accepted and not yet answered; more are refused with 503."""
    deadline: float = 30.0
    """Seconds after which a request is answered with 504."""
    rate: int = 0
    """Requests a minute that each key and each address may make; 0 means any number."""
    drain_seconds: float = 26.0
    """Seconds that accepted requests have after SIGTERM."""

    def __post_init__(self) -> None:
        for name in ("max_characters", "max_items", "max_body", "queue", "deadline"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} = {getattr(self, name)} admits no request; raise it")
        for name in ("rate", "drain_seconds"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} = {getattr(self, name)} is too small; the minimum is 0")

    def check_texts(self, texts: Sequence[str]) -> None:
        """Raise 413 if there are too many texts, or too many characters in them."""
        if len(texts) > self.max_items:
            raise ServiceError(
                413, f"{len(texts)} texts in a request; at most {self.max_items} are allowed"
            )
        characters, most = sum(map(len, texts)), self.max_characters
        if characters > most:  # as LibreTranslate words it
            raise ServiceError(
                413, f"Invalid request: request ({characters}) exceeds text limit ({most})"
            )

    def check_sentences(self, sentences: int) -> None:
        """Raise 413 if a request has more sentences than the queue could ever hold."""
        if sentences > self.queue:
            raise ServiceError(
                413, f"{sentences} lines in a request; at most {self.queue} are allowed"
            )


# --- rates ---


class RateLimiter:
    """Limit the requests that each client makes in a minute, by a token bucket for each."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str) -> None:
        """Count one request of a client, and raise 429 if it has used up its minute."""
        if not self._rate:
            return
        now = time.monotonic()
        left, then = self._buckets.pop(client, (float(self._rate), now))
        left = min(float(self._rate), left + (now - then) * self._rate / 60)
        self._buckets[client] = (max(0.0, left - 1), now) if left >= 1 else (left, now)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = math.ceil((1 - left) * 60 / self._rate)
            raise ServiceError(429, f"Slowdown: {self._rate} per minute", retry_after=wait)


# --- bodies ---


class LimitedBody:
    """Read a request's body up to a number of bytes, and notice when the client disconnects."""

    def __init__(self, receive: Receive, max_bytes: int) -> None:
        self._receive, self._max_bytes, self._bytes = receive, max_bytes, 0
        self._complete, self._disconnected = asyncio.Event(), asyncio.Event()

    def check(self, size: int) -> None:
        """Raise 413 if a body of this size is too long."""
        if size > self._max_bytes:
            raise ServiceError(
                413, f"the body is too long; at most {self._max_bytes} bytes are allowed"
            )

    async def receive(self) -> Message:
        """Return the next ASGI message for the application."""
        if self._complete.is_set():
            await self._disconnected.wait()
            return {"type": "http.disconnect"}
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await self._receive()
        except TimeoutError:
            raise ServiceError(408, "the body did not arrive in time") from None
        if message["type"] == "http.disconnect":
            self._complete.set()
            self._disconnected.set()
        else:
            self._bytes += len(message.get("body", b""))
            self.check(self._bytes)
            if not message.get("more_body", False):
                self._complete.set()
        return message

    async def wait_for_disconnect(self) -> None:
        """Return when the client has disconnected."""
        await self._complete.wait()
        while not self._disconnected.is_set():
            if (await self._receive())["type"] == "http.disconnect":
                self._disconnected.set()


# --- deadlines ---


class RequestContext:
    """Hold until when a request's answer is wanted, for the threads that compute it.

    The service activates a request's context while it handles the request, and the engine, which
    knows nothing of requests, asks for it by `current_request`.
    """

    def __init__(
        self, deadline: float = math.inf, on_tokens: Callable[[int, list[int]], None] | None = None
    ) -> None:
        self.deadline = deadline
        """When to give up, by the monotonic clock."""
        self.on_tokens = on_tokens
        """Called with the number of a sentence and its pieces that are certain, as they come."""
        self.cancelled = False

    @property
    def is_wanted(self) -> bool:
        """Say whether anyone would still read the answer."""
        return not self.cancelled and time.monotonic() < self.deadline

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def cancel(self) -> None:
        """Note that nobody waits for the answer any more."""
        self.cancelled = True

    def error(self) -> ServiceError:
        """Return the error of a request that is not wanted any more."""
        if self.cancelled:
            return ServiceError(499, "the client has disconnected")
        return ServiceError(504, "the deadline has passed; send less at once, or try again later")

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Make this the context of the request that the block works for."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)


_CURRENT: Final[ContextVar[RequestContext]] = ContextVar("request context")


def current_request() -> RequestContext:
    """Return the context of the request being worked for, or one without a deadline."""
    return _CURRENT.get(None) or RequestContext()


# --- the queue ---


class Throughput:
    """Estimate from the last seconds how long the sentences that wait will take."""

    WINDOW: Final = 10.0
    """Seconds that are looked back on."""
    ENOUGH: Final = 32
    """Sentences that must have been answered before anything is estimated."""

    def __init__(self) -> None:
        self.waiting = 0
        """Sentences that are accepted and not yet answered."""
        self._busy_since = 0.0
        self._answered: deque[tuple[float, int]] = deque()

    def accept(self, sentences: int) -> None:
        """Count so many more that wait."""
        if not self.waiting:  # idle until now: what was answered before says nothing
            self._busy_since = time.monotonic()
            self._answered.clear()
        self.waiting += sentences

    def answer(self, sentences: int) -> None:
        """Count so many that wait no more."""
        self.waiting -= sentences
        self._answered.append((time.monotonic(), sentences))

    def estimate_seconds(self, sentences: int) -> float:
        """Return how long so many more would take, after those that wait; 0 while unknown."""
        now = time.monotonic()
        while self._answered and self._answered[0][0] < now - self.WINDOW:
            self._answered.popleft()
        done = sum(count for _, count in self._answered)
        if done < self.ENOUGH:
            return 0.0
        return (self.waiting + sentences) * min(self.WINDOW, now - self._busy_since) / done


class AdmissionControl:
    """Admit requests while the queue has room for their sentences, and refuse others at once."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._throughput = Throughput()
        self._admitted: set[RequestContext] = set()
        self.draining = False
        """Whether no more requests are admitted, because the service is shutting down."""

    @property
    def waiting(self) -> int:
        """Return how many sentences are accepted and not yet answered."""
        return self._throughput.waiting

    @contextmanager
    def admit(
        self, sentences: int, on_tokens: Callable[[int, list[int]], None] | None = None
    ) -> Iterator[RequestContext]:
        """Hold a place for so many sentences while the block runs, or raise 413 or 503.

        In the block, `current_request` returns the request's context.
        """
        if self.draining:
            raise shutting_down()
        self._limits.check_sentences(sentences)
        if self.waiting + sentences > self._limits.queue:
            raise ServiceError(503, "too many requests at once; try again later", retry_after=1)
        # Half of the deadline, for the requests take turns and the longer ones end last.
        if self._throughput.estimate_seconds(sentences) > self._limits.deadline / 2:
            raise ServiceError(
                503, "the request could not be answered in time; try again later", retry_after=1
            )
        context = RequestContext(time.monotonic() + self._limits.deadline, on_tokens)
        self._throughput.accept(sentences)
        self._metrics.accepted.set(self.waiting)
        self._admitted.add(context)
        try:
            with context.activate():
                yield context
        finally:
            context.cancel()  # whatever ended the block, nobody waits any more
            self._admitted.discard(context)
            self._throughput.answer(sentences)
            self._metrics.accepted.set(self.waiting)

    def drain(self) -> None:
        """Admit nothing more, and give what was admitted at most `drain_seconds`."""
        self.draining = True
        self._metrics.ready.set(0)
        latest = time.monotonic() + self._limits.drain_seconds
        for context in self._admitted:
            context.deadline = min(context.deadline, latest)
