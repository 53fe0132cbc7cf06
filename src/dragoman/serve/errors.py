"""Each error of the service has an HTTP status, and each API words it in its own way.

Whatever goes wrong becomes a `ServiceError`, a status and one line. LibreTranslate's API and our
own write that line as `error`, DeepL's as `message`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.inference.documents.formats import DocumentTooLargeError
from dragoman.system.out_of_memory import is_out_of_memory
from dragoman.system.packages import describe_missing

log = logging.getLogger("dragoman.serve")


class ServiceError(HTTPException):
    """Raised to answer something else than a result: a status and one line a client can act on.

    As one of the framework's own exceptions it passes through the reading of a body unchanged.
    """

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        headers = None if retry_after is None else {"retry-after": str(retry_after)}
        super().__init__(status, message, headers)


def shutting_down() -> ServiceError:
    """Return the error for whatever is asked of a service that is about to end."""
    return ServiceError(503, "the service is shutting down", retry_after=5)


def as_service_error(error: Exception) -> ServiceError | None:
    """Return the error a client is told, or None if it is a fault of the program.

    What the client can mend is 400 or 413, what needs a package that is not there 501, and memory
    that ran out is 503.
    """
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, DocumentTooLargeError):
        return ServiceError(413, str(error))
    if isinstance(error, ModuleNotFoundError) and (missing := describe_missing(error, "this")):
        return ServiceError(501, f"{missing} where the service runs")
    if isinstance(error, DragomanError):
        return ServiceError(400 if isinstance(error, ConfigError | DataError) else 500, str(error))
    if is_out_of_memory(error):
        return ServiceError(
            503, "out of memory; send less text at once, or try again later", retry_after=1
        )
    return None


@contextmanager
def raise_service_errors() -> Iterator[None]:
    """Turn whatever the block raises into a service error, and log faults of the program."""
    try:
        yield
    except Exception as error:
        known = as_service_error(error)
        if known is None:
            log.error("a model failed", exc_info=error)
            known = ServiceError(500, "the model failed; see the service's log")
        raise known from None


# --- answers ---


def to_response(error: HTTPException, path: str) -> JSONResponse:
    """Write an error as the API of this path words it."""
    field = "message" if path.startswith("/v2/") else "error"
    message = str(error.detail).encode("utf-8", "replace").decode()  # it may quote what was sent
    return JSONResponse({field: message}, error.status_code, error.headers)


async def handle_http_error(request: Request, error: Exception) -> JSONResponse:
    """Answer an error of ours or of the framework: an unknown path or method, a broken body."""
    assert isinstance(error, HTTPException)
    return to_response(error, request.url.path)


async def handle_invalid_request(request: Request, error: Exception) -> JSONResponse:
    """Answer a body that does not match its schema with the first thing that is wrong in it."""
    assert isinstance(error, RequestValidationError)
    message = f"Invalid request: {_describe_first(error)}"
    return to_response(ServiceError(400, message), request.url.path)


async def handle_failure(request: Request, error: Exception) -> JSONResponse:
    """Answer any other exception; the server logs those that are faults of the program."""
    known = as_service_error(error) or ServiceError(500, "the service failed; see its log")
    return to_response(known, request.url.path)


def _describe_first(error: RequestValidationError) -> str:
    first: dict[str, Any] = next(iter(error.errors()), {})
    field = [str(part) for part in first.get("loc", ())][1:]
    if first.get("type") == "json_invalid":
        return "the body is not JSON"
    if first.get("type") == "missing":
        return f"missing {field[-1]} parameter" if field else "missing body"
    return f"{'.'.join(field) or 'body'}: {first.get('msg', 'not valid')}"


# --- their description in /openapi.json ---


class ErrorResponse(BaseModel):
    """Says why there is no result."""

    error: str = Field(examples=["Invalid request: missing q parameter"])


class DeepLErrorResponse(BaseModel):
    """Says why there is no result, as DeepL does."""

    message: str = Field(examples=["Value for 'target_lang' not supported."])


_DESCRIPTIONS: Final = {
    400: "A parameter is missing or wrong.",
    401: "An API key is needed.",
    403: "The API key is wrong.",
    404: "What is asked for does not exist.",
    405: "The path does not support this method.",
    408: "The body did not arrive in time.",
    413: "The request is too large.",
    415: "The body is neither JSON nor a form.",
    429: "Too many requests; see Retry-After.",
    500: "A worker failed.",
    503: "The service is full or shutting down; see Retry-After.",
    504: "The deadline has passed.",
}


def _responses(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": model, "description": text} for code, text in _DESCRIPTIONS.items()}


ERROR_RESPONSES: Final = _responses(ErrorResponse)
"""Describe the errors of every route for OpenAPI."""
DEEPL_ERROR_RESPONSES: Final = _responses(DeepLErrorResponse)
"""Describe the errors of DeepL's routes for OpenAPI."""
