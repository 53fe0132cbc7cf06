"""How a service is set up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.errors import ConfigError

__all__ = ["Settings", "digest", "read_keys"]

KEYS = "DRAGOMAN_KEYS"
"""The environment's name for keys, with commas or white space between them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What is served, to whom, and how much of it at a time."""

    models: tuple[Path, ...]
    """Model directories: translators and parsers."""
    pairs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Languages of models whose config does not tell, by the model's name."""
    host: str = "127.0.0.1"
    port: int = 5000
    keys: frozenset[str] = frozenset()
    """Digests of the keys that are let in; none: everyone is."""
    origins: tuple[str, ...] = ()
    """Web sites whose pages may call the service (CORS)."""
    max_characters: int = 20_000
    """In a request, all its texts together."""
    max_items: int = 128
    """Texts in a request."""
    max_body: int = 2 << 20
    """Bytes of a request's body."""
    queue: int = 512
    """Sentences accepted and not yet answered; what comes above is refused with 503."""
    deadline: float = 30.0
    """Seconds until a request is answered with 504."""
    rate: int = 0
    """Requests a minute for each key and each address; 0: as many as they like."""
    threads: int | None = None
    """Workers; None: one for each core."""
    device: str = "auto"
    precision: str = "auto"
    shortlist: bool = False
    """Whether translators use their shortlists."""
    linger: float = 1.0
    """Seconds between not being ready and not listening any more, for a balancer to notice."""
    patience: float = 26.0
    """Seconds that accepted requests have after SIGTERM."""

    def __post_init__(self) -> None:
        if not self.models:
            raise ConfigError("there is nothing to serve; name a model directory")
        for name in ("max_characters", "max_items", "max_body", "queue", "deadline"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} = {getattr(self, name)} lets nothing in; raise it")
        for name in ("rate", "linger", "patience"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} = {getattr(self, name)} is too small; the least is 0")
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"threads = {self.threads} is too small; the least is 1")
        if not 0 <= self.port < 65536:
            raise ConfigError(f"port {self.port}: there are 0 to 65535")


def digest(key: str) -> str:
    """A key as it is kept and looked up, so that neither memory nor timing tells it."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(file: Path | None) -> frozenset[str]:
    """The digests of the keys in a file, one a line, and of those in the environment."""
    keys = os.environ.get(KEYS, "").replace(",", " ").split()
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot be read ({error})") from None
        found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        if not found:
            raise ConfigError(f"{file}: no keys; write one a line, or leave out --keys")
        keys += found
    return frozenset(map(digest, keys))
