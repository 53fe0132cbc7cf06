"""Translated documents are kept in memory until they are fetched, for a while and within a size."""

from __future__ import annotations

import time
from typing import Generic, TypeVar

from dragoman.serve.errors import ServiceError
from dragoman.serve.limits import DOCUMENT_BYTES, DOCUMENT_SECONDS

T = TypeVar("T")


def no_such_document() -> ServiceError:
    """Return the error for a document that nobody may fetch, whether it ever was there or not."""
    return ServiceError(404, "there is no such document, or it has expired")


class DocumentStore(Generic[T]):
    """Keep documents by name; the oldest go where there is no room, and all after some time."""

    def __init__(self, max_bytes: int = DOCUMENT_BYTES, seconds: float = DOCUMENT_SECONDS) -> None:
        self._max_bytes, self._seconds = max_bytes, seconds
        self._kept: dict[str, tuple[float, int, T]] = {}
        """When each was put here, the oldest first, its bytes, and what it is."""

    def put(self, name: str, document: T, size: int) -> None:
        """Keep a document of so many bytes."""
        self._kept[name] = time.monotonic(), size, document
        total = 0
        for other, (then, each, _) in reversed(list(self._kept.items())):
            total += each
            if self._is_old(then) or (total > self._max_bytes and other != name):
                del self._kept[other]

    def get(self, name: str) -> T:
        """Return a document, or raise 404."""
        then, _, document = self._kept.get(name, (0.0, 0, None))
        if document is None or self._is_old(then):
            raise no_such_document()
        return document

    def drop(self, name: str) -> None:
        """Forget a document, if it is still here."""
        self._kept.pop(name, None)

    def _is_old(self, then: float) -> bool:
        return time.monotonic() - then > self._seconds
