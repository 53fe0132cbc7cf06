"""Who may ask, and how often."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import Final

from fastapi import Request

from dragoman.serve.errors import Refusal
from dragoman.serve.settings import Settings, digest

__all__ = ["Guard"]

REMEMBERED: Final = 10_000
"""Keys and addresses whose last minute is known; beyond, the one seen longest ago is forgotten."""


class Guard:
    """Keys and rates of one service."""

    def __init__(self, settings: Settings) -> None:
        self._keys, self._rate = settings.keys, settings.rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._used: dict[str, int] = {}

    def admit(self, request: Request, key: str | None, *, missing: int = 400) -> str:
        """The digest of a key that is let in; `missing` is the status without one."""
        self.slow(f"address {request.client.host if request.client else ''}")
        if not self._keys:
            return ""
        if not key:
            raise Refusal(missing, "an API key is needed; ask whoever runs this server for one")
        known = digest(key)
        if known not in self._keys:
            raise Refusal(403, "Invalid API key")
        self.slow(f"key {known}")
        return known

    def slow(self, name: str) -> None:
        """One request more of a key or an address; 429 if it has used up its minute."""
        if not self._rate:
            return
        now = time.monotonic()
        left, then = self._buckets.pop(name, (float(self._rate), now))
        left = min(float(self._rate), left + (now - then) * self._rate / 60)
        self._buckets[name] = (max(0.0, left - 1), now) if left >= 1 else (left, now)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = math.ceil((1 - left) * 60 / self._rate)
            raise Refusal(429, f"Slowdown: {self._rate} per minute", retry_after=wait)

    def bill(self, key: str, characters: int) -> None:
        """A key has had so many characters translated."""
        self._used[key] = self._used.get(key, 0) + characters

    def used(self, key: str) -> int:
        """Characters since the service began."""
        return self._used.get(key, 0)
