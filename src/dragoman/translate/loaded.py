"""What a translator and a parser have in common: a model, or several as one, and an engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.config import Config
from dragoman.model_directory import LoadedModel
from dragoman.text.tokenizer import Tokenizer
from dragoman.translate.searcher import Searcher

if TYPE_CHECKING:
    from dragoman.models import Model

__all__ = ["Loaded"]


class Loaded:
    """Loaded models with the same pieces; the first speaks for all."""

    def __init__(
        self, loaded: LoadedModel, *others: LoadedModel, engine: Searcher | None = None
    ) -> None:
        """An `engine` of the same weights does what it can do; the rest is done by the model."""
        self._loaded = (loaded, *others)
        self._engine = engine
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.config: Config = loaded.config
        self.card: dict[str, Any] = loaded.card
        self.path: Path = loaded.path
        self.warn: Callable[[str], None] = lambda message: None
        """Told of a sentence that is longer than any the model has seen, or had to be cut."""

    @cached_property
    def model(self) -> Model:
        """The model, or the ensemble; read now, if the engine was enough until now."""
        first, *others = (one.model for one in self._loaded)
        if not others:
            return first
        from dragoman.models.ensemble import Ensemble

        return Ensemble([first, *others])
