"""The models of a service: which there are, and which one a pair of languages means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.inference import Translator
from dragoman.inference.cpu import CpuEngine
from dragoman.inference.device import choose_device
from dragoman.inference.loading import attach_shortlist, load_for_inference
from dragoman.inference.parser import Parser
from dragoman.serve.batcher import BatchedEngine, Batcher
from dragoman.serve.errors import Refusal
from dragoman.serve.settings import Settings
from dragoman.text.languages import same_language

__all__ = ["MAX_EXTRA", "Fleet", "Served"]

MAX_EXTRA: Final = 400
"""Pieces beyond the source's that a request may allow."""
PART: Final = 8
"""Texts that one request has done in the second lane before the next request's turn."""
GPU_PART: Final = 128
"""The same, on a GPU."""
QUICK: Final = frozenset({"beam", "n_best", "length_penalty", "max_extra"})
"""Options of searches that the batches do."""


class Served:
    """A model under its name."""

    def __init__(
        self, name: str, model: Translator | Parser, languages: tuple[str, ...], part: int
    ) -> None:
        self.name, self._model = name, model
        self.part = part
        """Texts of one request that are done at a time, where no batch does them."""
        self.source, self.target = languages or ("", "")
        self.batched = isinstance(model._engine, BatchedEngine)

    @property
    def parses(self) -> bool:
        """Whether it is a parser."""
        return isinstance(self._model, Parser)

    @property
    def config(self) -> Config:
        """The model's."""
        return self._model.config

    @property
    def translator(self) -> Translator:
        """The translator; a parser is refused."""
        if isinstance(self._model, Parser):
            raise Refusal(400, f"{self.name} is a parser; ask /v1/parse")
        return self._model

    @property
    def parser(self) -> Parser:
        """The parser; a translator is refused."""
        if not isinstance(self._model, Parser):
            raise Refusal(400, f"{self.name} is a translator; ask /v1/translate")
        return self._model

    def batches(self, options: dict[str, Any]) -> bool:
        """Whether such a search joins the running batch."""
        return self.batched and options.keys() <= QUICK


class Fleet:
    """All models, in the order they were named."""

    def __init__(self, settings: Settings, batcher: Batcher) -> None:
        self.models: list[Served] = []
        names: dict[str, Path] = {}
        for path in settings.models:
            name = _name(path)
            if name in names:
                raise ConfigError(f"{path} and {names[name]} have the same name; rename one")
            names[name] = path
            self.models.append(_open(name, path, settings, batcher))
        for unknown in set(settings.pairs) - set(names):
            raise ConfigError(f"--pair {unknown}=…: there are the models {', '.join(names)}")

    @property
    def translators(self) -> list[Served]:
        """Those that translate."""
        return [one for one in self.models if not one.parses]

    @property
    def sources(self) -> list[str]:
        """The languages that can be translated from."""
        return list(dict.fromkeys(one.source for one in self.translators))

    @property
    def targets(self) -> list[str]:
        """The languages that can be translated to."""
        return list(dict.fromkeys(one.target for one in self.translators))

    def pair(self, source: str, target: str) -> Served:
        """The first translator between two languages."""
        for one in self.translators:
            if same_language(one.source, source) and same_language(one.target, target):
                return one
        for code, known in ((source, self.sources), (target, self.targets)):
            if not any(same_language(code, other) for other in known):
                raise Refusal(400, f"{code} is not supported")
        raise Refusal(400, f"{source} to {target} is not supported")

    def sources_of(self, target: str) -> list[str]:
        """The languages that can be translated to `target`."""
        found = [one.source for one in self.translators if same_language(one.target, target)]
        if not found:
            raise Refusal(400, f"{target} is not supported")
        return list(dict.fromkeys(found))

    def named(self, name: str) -> Served:
        """The model of a name."""
        for one in self.models:
            if one.name == name:
                return one
        raise Refusal(404, f"there is no model {name!r}; see /v1/models")


def _name(path: Path) -> str:
    """A model's directory; of a run, the run's. A link's name is its own."""
    path = Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow the link
    return path.parent.name if path.name in ("model", "best") and path.parent.name else path.name


def _open(name: str, path: Path, settings: Settings, batcher: Batcher) -> Served:
    precision: Any = settings.precision
    loaded, engine = load_for_inference([path], settings.device, precision)
    config = loaded[0].config
    part = PART if choose_device(settings.device) == "cpu" else GPU_PART
    if config.data.task == "parsing":
        return Served(name, Parser(*loaded, engine=engine), (), part)
    if settings.shortlist:
        attach_shortlist(loaded[0], engine)
    if isinstance(engine, CpuEngine):
        longest = config.data.max_length + max(MAX_EXTRA, config.search.max_extra)
        engine = BatchedEngine(engine, batcher, name, longest)
    languages = settings.pairs.get(name) or config.data.languages
    if not languages:
        raise ConfigError(f"{path}: does not say its languages; add --pair {name}=en-de")
    return Served(name, Translator(*loaded, engine=engine), tuple(languages), part)
