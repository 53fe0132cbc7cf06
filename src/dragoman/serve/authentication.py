"""API keys are checked, and the characters that each has had translated are counted."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from fastapi import Request

from dragoman.errors import ConfigError
from dragoman.serve.errors import ServiceError
from dragoman.serve.limits import RateLimiter
from dragoman.serve.settings import Settings

KEYS = "DRAGOMAN_KEYS"
"""The environment variable for keys, separated by commas or white space."""


class Authenticator:
    """Let requests in by their API keys, and no faster than the rate allows."""

    def __init__(self, settings: Settings) -> None:
        self._keys = settings.keys
        self._rates = RateLimiter(settings.limits.rate)
        self._characters: dict[str, int] = {}

    def authenticate(self, request: Request, key: str | None, *, missing: int = 400) -> str:
        """Return the hash of a request's key, or "" if the service needs none.

        Raise 403 for a wrong key, 429 for too many requests, and `missing` for no key at all.
        """
        self._rates.check(f"address {request.client.host if request.client else ''}")
        if not self._keys:
            return ""
        if not key:
            raise ServiceError(
                missing, "an API key is needed; ask whoever runs this server for one"
            )
        hashed = hash_key(key)
        if hashed not in self._keys:
            raise ServiceError(403, "Invalid API key")
        self._rates.check(f"key {hashed}")
        return hashed

    def add_usage(self, key: str, characters: int) -> None:
        """Count characters that were translated for a key, given by its hash."""
        self._characters[key] = self._characters.get(key, 0) + characters

    def usage(self, key: str) -> int:
        """Return the characters translated for a key since the service began."""
        return self._characters.get(key, 0)


def hash_key(key: str) -> str:
    """Return a key as it is kept and looked up, so that neither memory nor timing reveals it."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(file: Path | None) -> frozenset[str]:
    """Return the hashes of the keys in a file, one a line, and of those in the environment."""
    keys = os.environ.get(KEYS, "").replace(",", " ").split()
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot be read ({error})") from None
        found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        if not found:
            raise ConfigError(f"{file}: holds no keys; write one a line, or leave out --keys")
        keys += found
    return frozenset(map(hash_key, keys))
