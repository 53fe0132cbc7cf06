"""Models as a user names them: where they are, on which device, in which numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from dragoman.config import Config
from dragoman.errors import ConfigError, ModelError
from dragoman.inference.cpu import Engine, open_engine, why_no_engine
from dragoman.inference.cpu.shortlist import open_shortlist
from dragoman.inference.device import pick
from dragoman.inference.engine import Searcher
from dragoman.model_directory import LoadedModel, load_model, open_model
from dragoman.system.memory import keep_freed_memory
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.models import Model

__all__ = [
    "Loaded",
    "Precision",
    "add_draft",
    "add_shortlist",
    "open_models",
]


Precision = Literal["auto", "int8", "float32"]
"""In which numbers to compute; int8 is a CPU's."""


def open_models(
    paths: Sequence[Path | str], device: str, precision: Precision
) -> tuple[list[LoadedModel], Searcher | None]:
    """A model or an ensemble, and the engine of the model where one computes it.

    `auto` is the engine wherever there is one for the model: in int8 on a CPU, in bf16 on a GPU.
    """
    if precision not in get_args(Precision):
        raise ConfigError(f"precision {precision}: there are auto, int8 and float32")
    device = pick(device)
    if device != "cpu":
        return _open_on_gpu(paths, device, precision)
    first = open_model(paths[0])
    ensemble = len(paths) > 1
    obstacle = (
        "an ensemble is computed by PyTorch" if ensemble else why_no_engine(first.config.model)
    )
    if precision == "int8" and obstacle:
        raise ConfigError(f"{first.path}: no int8 ({obstacle}); say precision float32")
    if obstacle or precision == "float32":
        keep_freed_memory()
        return [load_model(one) for one in paths], None
    return [first], open_engine(first)


def _open_on_gpu(
    paths: Sequence[Path | str], device: str, precision: Precision
) -> tuple[list[LoadedModel], Searcher | None]:
    if precision == "int8":
        raise ConfigError("int8 is for the CPU; leave out the precision, or say device cpu")
    if precision == "auto" and len(paths) == 1:
        from dragoman.inference.gpu import open_gpu_engine, why_no_gpu_engine

        loaded = open_model(paths[0], device)
        if not why_no_gpu_engine(loaded.config.model, device):
            return [loaded], open_gpu_engine(loaded, device)
    return [load_model(one, device) for one in paths], None


def add_draft(loaded: LoadedModel, engine: Searcher | None, path: Path | str) -> None:
    """Let the model at `path` guess ahead of a model in the engine; the result stays the same."""
    draft = open_model(path)
    if not isinstance(engine, Engine):
        raise ConfigError(
            f"{loaded.path}: takes no draft, which is for int8 on a CPU; leave out {draft.path}"
        )
    if draft.tokenizer != loaded.tokenizer:
        raise ModelError(
            f"{draft.path}: has other pieces than {loaded.path}; a draft is trained with the same "
            "tokeniser, as dragoman distill does"
        )
    if obstacle := why_no_engine(draft.config.model):
        raise ConfigError(f"{draft.path}: no int8 ({obstacle}), and so no draft")
    engine.draft = open_engine(draft)


def add_shortlist(loaded: LoadedModel, engine: Searcher | None) -> None:
    """Let the engine look only at the pieces that the model's shortlist has for a sentence."""
    if not isinstance(engine, Engine):
        raise ConfigError(
            f"{loaded.path}: takes no shortlist, which is for int8 on a CPU; leave it out"
        )
    engine.take(open_shortlist(loaded))


# PART translate.loaded: What a translator and a parser have in common: a model, or several as
# one, and an engine.


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
