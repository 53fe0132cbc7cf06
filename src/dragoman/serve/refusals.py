"""What a request is refused with: a status and one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.errors import ConfigError, DataError, DragomanError

__all__ = ["Refusal", "answerable", "log", "refused"]

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
    # PyTorch's is a RuntimeError, of the GPU and of the CPU.
    words = ("out of memory", "can't allocate memory")
    if isinstance(error, MemoryError) or any(word in str(error) for word in words):
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
