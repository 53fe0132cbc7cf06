"""Translations that are sent while they are made, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.inference import Translation
from dragoman.inference.documents.lines import Lines
from dragoman.serve.errors import Refusal
from dragoman.serve.models import Served
from dragoman.serve.service import Desk

__all__ = ["TokenStream"]

Events = asyncio.Queue[tuple[int, list[int]] | None]
"""A segment and its pieces so far; None: the line is done."""


class TokenStream(Response):
    """The tokens of a text's lines, one line after another, then the whole.

    A token is sent once every hypothesis has it, and is never taken back.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        desk: Desk,
        served: Served,
        lines: Lines,
        options: dict[str, Any],
        written: Callable[[Translation], dict[str, Any]],
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._desk, self._served, self._lines = desk, served, lines
        self._options, self._written = options, written

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI. What is refused before the first event is refused as anywhere."""
        loop = asyncio.get_running_loop()
        events: Events = asyncio.Queue()

        def hear(segment: int, ids: list[int]) -> None:
            loop.call_soon_threadsafe(events.put_nowait, (segment, ids))

        async def say(event: str, data: dict[str, Any]) -> None:
            text = f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
            body = text.encode()
            await send({"type": "http.response.body", "body": body, "more_body": True})

        with self._desk.accepted(len(self._lines), hear) as ticket:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            found: list[Translation] = []
            try:
                for number, line in enumerate(self._lines.wanted):
                    work = asyncio.ensure_future(
                        self._desk.translate(self._served, [line], ticket, **self._options)
                    )
                    try:
                        await self._tell(number, work, events, say)
                    finally:
                        work.cancel()
                    found += work.result()
                whole = self._lines.joined(found)[0]
                await say("translation", self._written(whole))
            except Refusal as refusal:
                await say("error", {"status": refusal.status, "error": refusal.message})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, line: int, work: asyncio.Future[Any], events: Events, say: Any) -> None:
        """The tokens of one line, until it is done."""
        tokenizer = self._served.translator.tokenizer
        told: dict[int, int] = {}
        work.add_done_callback(lambda _: events.put_nowait(None))
        while (event := await events.get()) is not None:
            segment, ids = event
            for end in range(told.get(segment, 0) + 1, len(ids) + 1):
                token = tokenizer.pieces(ids[end - 1 : end])[0]
                text = tokenizer.decode(ids[:end])
                facts = {"line": line, "segment": segment, "token": token, "text": text}
                await say("token", facts)
            told[segment] = max(told.get(segment, 0), len(ids))
