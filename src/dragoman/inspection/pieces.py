"""A sentence and its translation as pieces that a person can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dragoman.errors import ConfigError, DataError
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.inference import Translator
    from dragoman.models import Rows

__all__ = ["BEGIN", "END", "LONGEST", "Pair", "labels", "read", "source_ids"]

BEGIN: Final = "<BOS>"
END: Final = "<EOS>"
LONGEST: Final = 128
"""Pieces of a sentence; a longer one fits no picture."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation as the model sees them while it predicts every piece."""

    text: str
    translation: str
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    source: tuple[str, ...]
    """What the encoder reads; the last is END."""
    read: tuple[str, ...]
    """What the decoder reads; the first is BEGIN."""
    said: tuple[str, ...]
    """What it predicts having read them; the last is END."""

    def rows(self, translator: Translator) -> tuple[Rows, Rows]:
        """As the model takes them."""
        from dragoman.search.batching import source_rows, target_rows

        device = next(translator.model.parameters()).device
        return source_rows([self.source_ids], device), target_rows([self.target_ids], device)


def labels(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Pieces for people: · where letters go on with a word, ␣ for a space by itself."""
    found = []
    for place, piece in enumerate(tokenizer.pieces(ids)):
        text = piece.lstrip("▁").replace("▁", " ")
        joined = place > 0 and text == piece and text[:1].isalnum()
        found.append(f"·{text}" if joined else text or "␣")
    return found


def source_ids(translator: Translator, text: str) -> list[int]:
    """The pieces of a sentence that can be looked at."""
    ids = translator.tokenizer.encode(text)
    if not ids:
        raise DataError("the sentence is empty; give one with words in it")
    _check(ids, "the sentence")
    return ids


def read(translator: Translator, text: str, translation: str | None = None) -> Pair:
    """A sentence with its translation, the model's own if none is given."""
    tokenizer = translator.tokenizer
    source = source_ids(translator, text)
    if translation is None:
        translation = translator.translate(text).text
    target = tokenizer.encode_targets([tokenizer.normalize_target(translation)])[0]
    _check(target, "the translation")
    said = labels(tokenizer, target)
    return Pair(
        text,
        translation,
        tuple(source),
        tuple(target),
        (*labels(tokenizer, source), END),
        (BEGIN, *said),
        (*said, END),
    )


def _check(ids: Sequence[int], what: str) -> None:
    if len(ids) > LONGEST:
        raise ConfigError(f"{what} has {len(ids)} pieces; {LONGEST} is the most one can look at")
