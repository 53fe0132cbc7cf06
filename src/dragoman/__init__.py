"""Dragoman is the system of "Attention Is All You Need" as software.

import dragoman

outcome = dragoman.train("small", "corpus.en", "corpus.de")
translator = dragoman.load(outcome.model)
print(translator.translate("Hello, world!").text)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.config import Config, load_preset
    from dragoman.errors import DragomanError
    from dragoman.evaluation.evaluate import Evaluation, evaluate
    from dragoman.inference import Glossary, Translation, Translator, load
    from dragoman.inference.parser import Parse, Parser, load_parser
    from dragoman.workflows.train import Outcome, resume, train

__all__ = [
    "Config",
    "DragomanError",
    "Evaluation",
    "Glossary",
    "Outcome",
    "Parse",
    "Parser",
    "Translation",
    "Translator",
    "evaluate",
    "load",
    "load_parser",
    "load_preset",
    "resume",
    "train",
]

__version__ = "0.1.0"

_HOMES = {
    "Config": "config",
    "DragomanError": "errors",
    "Evaluation": "evaluation.evaluate",
    "Glossary": "inference",
    "Outcome": "workflows.train",
    "Parse": "inference.parser",
    "Parser": "inference.parser",
    "Translation": "inference",
    "Translator": "inference",
    "evaluate": "evaluation.evaluate",
    "load": "inference",
    "load_parser": "inference.parser",
    "load_preset": "config",
    "resume": "workflows.train",
    "train": "workflows.train",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `import dragoman` stays instant."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    try:
        module = importlib.import_module(f"dragoman.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        from dragoman.errors import ConfigError
        from dragoman.system.packages import describe_missing

        message = describe_missing(error, f"dragoman.{name}")
        if message is None:
            raise
        raise ConfigError(message) from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
