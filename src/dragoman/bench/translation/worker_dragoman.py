"""Run Dragoman in a worker, as `dragoman translate` does on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dragoman.inference import Translator
from dragoman.inference import load as load_translator

Precision = Literal["int8", "float32"]


def prepare(threads: int) -> None:
    """Do nothing: PyTorch's threads are in the environment, and the engine takes all cores."""


class DragomanSystem:
    """Translate with a Translator, which has no settings."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        """Ignore settings: batches are the config's."""

    def translate(self, texts: Sequence[str], beam: int) -> list[str]:
        """Translate as `dragoman translate --raw` does."""
        found = self._translator.translate_lines(texts, beam=beam, raw=True)
        return [translation.text for translation in found]


def load(*, path: str, precision: Precision, shortlist: bool, **options: Any) -> DragomanSystem:
    """Load the model directory at `path`, to be computed in int8 or float32."""
    return DragomanSystem(
        load_translator(path, device="cpu", precision=precision, shortlist=shortlist)
    )
