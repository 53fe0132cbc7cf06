"""A service is started with these settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from dragoman.errors import ConfigError
from dragoman.serve.limits import Limits


class NamedModel(NamedTuple):
    """Hold a model directory, and the name its model is served by."""

    name: str
    path: Path

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a path, or NAME=PATH; a path that exists is a path, whatever is in its name."""
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            return cls(_default_name(Path(text)), Path(text))
        if not name.strip() or not path:
            raise ConfigError(f"{text}: write a name and a model directory, as in news=runs/mine")
        return cls(name.strip(), Path(path))


def _default_name(path: Path) -> str:
    """Return the name of a model's directory, or of its run's; a link goes by its own name."""
    path = Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow the link
    return path.parent.name if path.name in ("model", "best") and path.parent.name else path.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Hold what is served, where, to whom and within which limits."""

    models: tuple[NamedModel, ...]
    """Translators and parsers; of two translators of one pair the first is the pair's default."""
    pairs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The languages of models whose config does not name them, by the model's name."""
    host: str = "127.0.0.1"
    port: int = 5000
    keys: frozenset[str] = frozenset()
    """Hashes of the API keys that are accepted; without any, everyone is."""
    origins: tuple[str, ...] = ()
    """Web sites whose pages may call the service (CORS)."""
    limits: Limits = field(default_factory=Limits)
    threads: int | None = None
    """How many workers to run; None means one for each core."""
    device: str = "auto"
    precision: str = "auto"
    shortlist: bool = False
    """Whether translators use their shortlists."""
    memories: tuple[Path, ...] = ()
    """Translation memories, each used by the translators of its languages; they are only read."""
    corrections: Path | None = None
    """The file that corrections are kept in; without one, none are taken."""
    linger: float = 1.0
    """Seconds to go on listening after readiness has ended, for a load balancer to notice."""

    def __post_init__(self) -> None:
        if not self.models:
            raise ConfigError("there is nothing to serve; give a model directory")
        if self.linger < 0:
            raise ConfigError(f"linger = {self.linger} is too small; the minimum is 0")
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"threads = {self.threads} is too small; the minimum is 1")
        if not 0 <= self.port < 65536:
            raise ConfigError(f"port = {self.port} is not a port; choose one from 0 to 65535")
