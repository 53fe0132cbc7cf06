"""Every request passes through this around its own route, and is logged.

A body that is too long is refused before it is read, a request whose client has disconnected is
cancelled, security headers are added, and one line is logged, without text, key or address.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Callable
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve.errors import ServiceError, log, to_response
from dragoman.serve.limits import LimitedBody
from dragoman.serve.prometheus_metrics import Metrics

HEADERS: Final = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
}
"""Headers that every answer has unless it brings its own."""
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that are logged and counted by name; a client may send any."""
CLIENT_DISCONNECTED: Final = 499
"""The status logged for a client that left before its answer, as nginx does."""


class RequestMiddleware:
    """Wrap an ASGI application in what every request needs."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, max_body: int, is_draining: Callable[[], bool]
    ) -> None:
        self._app, self._metrics, self._max_body = app, metrics, max_body
        self._is_draining = is_draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, as ASGI defines it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        log_fields: dict[str, Any] = {}
        scope.setdefault("state", {})["log_fields"] = log_fields
        status = CLIENT_DISCONNECTED

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                added = {name: value for name, value in HEADERS.items() if name not in present}
                if status == 413 or self._is_draining():
                    added[b"connection"] = b"close"
                message["headers"] = [*message["headers"], *added.items()]
            await send(message)

        try:
            await self._run_until_disconnect(scope, receive, send_with_headers)
        finally:
            self._record(scope, status, time.perf_counter() - began, log_fields)

    async def _run_until_disconnect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application until it has answered or the client has disconnected."""
        body = LimitedBody(receive, self._max_body)
        try:
            body.check(_content_length(scope))
        except ServiceError as error:
            await to_response(error, scope["path"])(scope, receive, send)
            return
        task = asyncio.ensure_future(self._app(scope, body.receive, send))
        disconnect = asyncio.ensure_future(body.wait_for_disconnect())
        try:
            await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnect.cancel()
            if not task.done():
                task.cancel()
            await asyncio.gather(task, disconnect, return_exceptions=True)
        if not task.cancelled() and (failure := task.exception()) is not None:
            raise failure

    def _record(
        self, scope: Scope, status: int, seconds: float, log_fields: dict[str, Any]
    ) -> None:
        """Count a request in the metrics and log it."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        if status >= 400:
            self._metrics.refusals.labels(str(status)).inc()
        line = {"method": method, "route": route, "status": status, "ms": round(seconds * 1e3, 1)}
        log.info("request", extra={"fields": line | log_fields})


def _content_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


class JsonFormatter(logging.Formatter):
    """Write a log entry as one line of JSON.

    Of an error it writes the kind and the place, not the message, which may quote what was sent.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for a record, with the fields it brings."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["trace"] = [f"{one.filename}:{one.lineno} {one.name}" for one in frames]
        return json.dumps(line, ensure_ascii=False)
