"""The models that are served are loaded, and found by their names or their languages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from dragoman.config import Config
from dragoman.errors import ConfigError, DataError
from dragoman.inference import Translator
from dragoman.inference.cpu import CpuEngine
from dragoman.inference.loading import attach_shortlist, choose_device, load_for_inference
from dragoman.inference.model_chains import join_pairs
from dragoman.inference.parser import Parser
from dragoman.inference.pivot_translator import PivotTranslator
from dragoman.inference.translation_memory import TranslationMemory
from dragoman.serve.batcher import BatchedEngine, Batcher
from dragoman.serve.corrections import Correction
from dragoman.serve.errors import ServiceError
from dragoman.serve.limits import MAX_EXTRA
from dragoman.serve.settings import Settings
from dragoman.text.languages import same_language

CPU_CHUNK: Final = 8
"""Texts of one request that the serial queue does before the next request's turn."""
GPU_CHUNK: Final = 128
"""The same on a GPU."""
BATCHED_OPTIONS: Final = frozenset(
    {
        "align",
        "beam",
        "candidates",
        "formality",
        "length_penalty",
        "lines",
        "max_extra",
        "mbr",
        "n_best",
        "protect",
        "raw",
    }
)
"""Options of searches that the batcher can do."""


class ServedModel:
    """Hold a translator or parser under the name it is served by."""

    def __init__(
        self, name: str, model: Translator | Parser, languages: tuple[str, ...], chunk: int
    ) -> None:
        self.name, self._model = name, model
        self.chunk = chunk
        """How many texts of one request are done at a time in the serial queue."""
        self.source, self.target = languages or ("", "")
        self.through = "" if isinstance(model, Parser) else model.through
        """The language in between, where two of the other models translate for this one."""
        engines = [model._engine]
        if isinstance(model, PivotTranslator):
            engines = [model.first._engine, model.second._engine]
        self.batched = all(isinstance(engine, BatchedEngine) for engine in engines)
        self.memory: TranslationMemory | None = None
        """Sentences whose translations are known."""

    @property
    def is_parser(self) -> bool:
        """Say whether it parses; otherwise it translates."""
        return isinstance(self._model, Parser)

    @property
    def config(self) -> Config:
        """Return the model's config."""
        return self._model.config

    @property
    def translator(self) -> Translator:
        """Return the translator, or raise 400 if this is a parser."""
        if isinstance(self._model, Parser):
            raise ServiceError(400, f"{self.name} is a parser; use /v1/parse")
        return self._model

    @property
    def parser(self) -> Parser:
        """Return the parser, or raise 400 if this is a translator."""
        if not isinstance(self._model, Parser):
            raise ServiceError(400, f"{self.name} is a translator; use /v1/translate")
        return self._model

    def can_batch(self, options: dict[str, Any]) -> bool:
        """Say whether a search with these options can join the running batch."""
        return self.batched and options.keys() <= BATCHED_OPTIONS


class ModelRegistry:
    """Hold all models that are served, in the order they were given, and the pairs they join."""

    def __init__(self, settings: Settings, batcher: Batcher) -> None:
        self.models: list[ServedModel] = []
        paths: dict[str, Path] = {}
        for name, path in settings.models:
            if name in paths:
                raise ConfigError(
                    f"{paths[name]} and {path} are both named {name}; give one another name, as in "
                    f"other={path}"
                )
            paths[name] = path
            self.models.append(_load(name, path, settings, batcher))
        self.pivots = self._join_models()
        """Two models each, that together translate what none of them does; they are not copied."""
        for path in settings.memories:
            self._use_memory(path)
        for unknown in set(settings.pairs) - set(paths):
            raise ConfigError(
                f"--pair {unknown}=…: no such model is served; the models are {', '.join(paths)}"
            )

    def _join_models(self) -> list[ServedModel]:
        """Return what two models together translate that none does alone."""
        direct = [one for one in self.models if not one.is_parser]
        pivots = []
        for pair, numbers in join_pairs([(one.source, one.target) for one in direct]).items():
            if len(numbers) == 2:
                first, second = (direct[number] for number in numbers)
                name = "-".join(pair)
                if any(one.name == name for one in self.models):
                    name = f"{first.name}+{second.name}"
                joined = PivotTranslator(first.translator, second.translator)
                pivots.append(ServedModel(name, joined, pair, min(first.chunk, second.chunk)))
        return pivots

    def _use_memory(self, path: Path) -> None:
        """Let the translators of a memory's languages use it; refuse one that none can use."""
        used = False
        for one in self.translators:
            try:
                memory = TranslationMemory.read(path, one.source, one.target)
            except DataError as error:
                reason = str(error)
                continue
            if len(memory):
                memory.learns, one.memory, used = False, memory, True
        if not used:
            raise ConfigError(reason if self.translators else f"{path}: no translator is served")

    def learn(self, corrections: Iterable[Correction]) -> None:
        """Let all translators of its languages use each correction, from the next sentence on."""
        for correction in corrections:
            for one in self.translators:
                if same_language(one.source, correction.source_language) and same_language(
                    one.target, correction.target_language
                ):
                    if one.memory is None:
                        one.memory = TranslationMemory(one.source, one.target)
                        one.memory.learns = False
                    one.memory.add([(correction.source, correction.target)])

    @property
    def translators(self) -> list[ServedModel]:
        """Return the models that translate, and after them those that do so in twos."""
        return [*(one for one in self.models if not one.is_parser), *self.pivots]

    @property
    def parsers(self) -> list[ServedModel]:
        """Return the models that parse."""
        return [one for one in self.models if one.is_parser]

    @property
    def sources(self) -> list[str]:
        """Return the languages that can be translated from."""
        return list(dict.fromkeys(one.source for one in self.translators))

    @property
    def targets(self) -> list[str]:
        """Return the languages that can be translated to."""
        return list(dict.fromkeys(one.target for one in self.translators))

    def find_pair(self, source: str, target: str) -> ServedModel:
        """Return the first translator between two languages, the pair's default, or raise 400."""
        for one in self.translators:
            if same_language(one.source, source) and same_language(one.target, target):
                return one
        for code, known in ((source, self.sources), (target, self.targets)):
            if not any(same_language(code, other) for other in known):
                raise ServiceError(400, f"{code} is not supported")
        raise ServiceError(400, f"{source} to {target} is not supported")

    def is_default(self, model: ServedModel) -> bool:
        """Say whether requests that name a model's languages, or only its task, are done by it."""
        if model.is_parser:
            return model is self.parsers[0]
        return model is self.find_pair(model.source, model.target)

    def find_sources(self, target: str) -> list[str]:
        """Return the languages that can be translated to `target`, or raise 400 without any."""
        found = [one.source for one in self.translators if same_language(one.target, target)]
        if not found:
            raise ServiceError(400, f"{target} is not supported")
        return list(dict.fromkeys(found))

    def find_name(self, name: str) -> ServedModel:
        """Return the model of a name, or raise 404."""
        for one in (*self.models, *self.pivots):
            if one.name == name:
                return one
        raise ServiceError(404, f"there is no model {name!r}; see /v1/models")


def _load(name: str, path: Path, settings: Settings, batcher: Batcher) -> ServedModel:
    precision: Any = settings.precision
    loaded, engine = load_for_inference([path], settings.device, precision)
    config = loaded[0].config
    chunk = CPU_CHUNK if choose_device(settings.device) == "cpu" else GPU_CHUNK
    if config.data.task == "parsing":
        return ServedModel(name, Parser(*loaded, engine=engine), (), chunk)
    if settings.shortlist:
        attach_shortlist(loaded[0], engine)
    if isinstance(engine, CpuEngine):
        longest = config.data.max_length + max(MAX_EXTRA, config.search.max_extra)
        engine = BatchedEngine(engine, batcher, name, longest)
    languages = settings.pairs.get(name) or config.data.languages
    if not languages:
        raise ConfigError(f"{path}: does not name its languages; add --pair {name}=en-de")
    loaded[0].config = config.updated({"data": {"languages": list(languages)}})
    return ServedModel(name, Translator(*loaded, engine=engine), tuple(languages), chunk)
