"""Dragoman in a worker: as `dragoman translate` has it on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dragoman.inference import Translator
from dragoman.inference import load as load_translator

Precision = Literal["int8", "float32"]

__all__ = ["Ours", "load", "prepare"]


def prepare(threads: int) -> None:
    """Nothing: PyTorch has its threads from the environment, the engine takes the cores it may."""


class Ours:
    """A translator; there is nothing to set."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator

    def use(self, settings: Mapping[str, Any]) -> None:
        """Batches are the config's."""

    def translate(self, texts: Sequence[str], beam: int) -> list[str]:
        """As `dragoman translate` does."""
        found = self._translator.translate_lines(texts, beam=beam)
        return [translation.text for translation in found]


def load(*, path: str, precision: Precision, shortlist: bool, **options: Any) -> Ours:
    """The model directory at `path`, computed in int8 or float32."""
    return Ours(load_translator(path, device="cpu", precision=precision, shortlist=shortlist))
