"""The edge of the service: what is done for every request before and after its own function.

A body that is too long is refused before it is read, a request whose client has gone is cancelled,
headers are added that a browser keeps to, and one line is logged, without text, key or address.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve.errors import Refusal, answer, log
from dragoman.serve.metrics import Meters

__all__ = ["Edge", "JsonLines"]

PATIENCE: Final = 30.0
"""Seconds until the next part of a body must have come."""
HEADERS: Final = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
}
"""Unless the answer has its own."""


class Edge:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, meters: Meters, max_body: int, is_draining: Any) -> None:
        self._app, self._meters, self._max_body = app, meters, max_body
        self._is_draining = is_draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        facts: dict[str, Any] = {}
        scope.setdefault("state", {})["facts"] = facts
        status = 499  # as nginx logs a client that has gone

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name.lower() for name, _ in message["headers"]}
                new = {k: v for k, v in HEADERS.items() if k not in there}
                if status == 413 or self._is_draining():
                    new[b"connection"] = b"close"
                message["headers"] = [*message["headers"], *new.items()]
            await send(message)

        try:
            await self._watched(scope, receive, sending)
        finally:
            self._count(scope, status, time.perf_counter() - began, facts)

    async def _watched(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application, until it has answered or the client has gone."""
        body = _Body(receive, self._max_body)
        if _content_length(scope) > self._max_body:
            await answer(body.refusal, scope["path"])(scope, receive, send)
            return
        task = asyncio.ensure_future(self._app(scope, body.receive, send))
        watcher = asyncio.ensure_future(body.watch())
        try:
            await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watcher.cancel()
            if not task.done():
                task.cancel()
            await asyncio.gather(task, watcher, return_exceptions=True)
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    def _count(self, scope: Scope, status: int, seconds: float, facts: dict[str, Any]) -> None:
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._meters.requests.labels(method, route, str(status)).inc()
        self._meters.seconds.labels(route).observe(seconds)
        if status >= 400:
            self._meters.refusals.labels(str(status)).inc()
        line = {"method": method, "route": route, "status": status, "ms": round(seconds * 1e3, 1)}
        log.info("request", extra={"facts": line | facts})


_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class _Body:
    """The body as it comes, counted; and after its end, the client's going."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most, self._seen = receive, most, 0
        self._whole, self._gone = asyncio.Event(), asyncio.Event()
        self.refusal = Refusal(413, f"the body is too long; {most} bytes is the most")

    async def receive(self) -> Message:
        """What the application is told."""
        if self._whole.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        try:
            async with asyncio.timeout(PATIENCE):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, "the body did not come") from None
        if message["type"] == "http.disconnect":
            self._whole.set()
            self._gone.set()
        else:
            self._seen += len(message.get("body", b""))
            if self._seen > self._most:  # as an error that the framework hands on
                raise HTTPException(413, self.refusal.message)
            if not message.get("more_body", False):
                self._whole.set()
        return message

    async def watch(self) -> None:
        """Ends when the client has gone."""
        await self._whole.wait()
        while not self._gone.is_set():
            if (await self._receive())["type"] == "http.disconnect":
                self._gone.set()


def _content_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


class JsonLines(logging.Formatter):
    """A log entry as a line of JSON.

    Of an error it has the kind and the place, not the message, which may quote what was sent.
    """

    def format(self, record: logging.LogRecord) -> str:
        """See logging."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["trace"] = [f"{one.filename}:{one.lineno} {one.name}" for one in frames]
        return json.dumps(line, ensure_ascii=False)
