"""What a request is refused with: a status and one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.system.memory import is_out_of_memory

__all__ = [
    "Refusal",
    "answer",
    "answerable",
    "log",
    "on_failure",
    "on_http",
    "on_invalid",
    "on_refusal",
    "refused",
]


log = logging.getLogger("dragoman.serve")


class Refusal(DragomanError):  # noqa: N818  # an answer, and often no one's error
    """An answer that is no result; each dialect writes it in its own JSON."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


def answerable(error: Exception) -> Refusal | None:
    """An error as a refusal: the asker's mistakes 400, want of memory 503; None: it is neither."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, DragomanError):
        return Refusal(400 if isinstance(error, ConfigError | DataError) else 500, str(error))
    if is_out_of_memory(error):
        message = "out of memory; ask for less at once, or again later"
        return Refusal(503, message, retry_after=1)
    return None


@contextmanager
def refused() -> Iterator[None]:
    """What goes wrong inside, as a refusal; what is nobody's mistake is logged."""
    try:
        yield
    except Exception as error:
        refusal = answerable(error)
        if refusal is None:
            log.error("a model failed", exc_info=error)
            refusal = Refusal(500, "the model failed; see the service's log")
        raise refusal from None


# PART serve.dialects: Refusals as each API writes them: LibreTranslate's and ours as error,
# DeepL's as message.


def answer(refusal: Refusal, path: str) -> JSONResponse:
    """A refusal in the dialect of a path."""
    name = "message" if path.startswith("/v2/") else "error"
    after = refusal.retry_after
    headers = None if after is None else {"retry-after": str(after)}
    message = refusal.message.encode("utf-8", "replace").decode()  # it may repeat what was sent
    return JSONResponse({name: message}, refusal.status, headers)


async def on_refusal(request: Request, error: Exception) -> JSONResponse:
    """What we refuse."""
    assert isinstance(error, Refusal)
    return answer(error, request.url.path)


async def on_http(request: Request, error: Exception) -> JSONResponse:
    """What the framework refuses: no such path or method, a body that is no JSON."""
    assert isinstance(error, HTTPException)
    found = answer(Refusal(error.status_code, str(error.detail)), request.url.path)
    found.headers.update(error.headers or {})
    return found


async def on_invalid(request: Request, error: Exception) -> JSONResponse:
    """A body that is not as the description says; the first thing that is wrong."""
    assert isinstance(error, RequestValidationError)
    return answer(Refusal(400, f"Invalid request: {_first(error)}"), request.url.path)


async def on_failure(request: Request, error: Exception) -> JSONResponse:
    """What went wrong elsewhere; if it is nobody's mistake, the server logs it."""
    found = answerable(error) or Refusal(500, "the service failed; see its log")
    return answer(found, request.url.path)


def _first(error: RequestValidationError) -> str:
    one: dict[str, Any] = next(iter(error.errors()), {})
    place = [str(part) for part in one.get("loc", ())][1:]
    if one.get("type") == "json_invalid":
        return "the body is no JSON"
    if one.get("type") == "missing":
        return f"missing {place[-1]} parameter" if place else "missing body"
    return f"{'.'.join(place) or 'body'}: {one.get('msg', 'wrong')}"
