"""A sentence and its translation are shown as pieces that a person can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.config import Config
from dragoman.errors import ConfigError, DataError
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.models import Model, Rows

BEGIN: Final = "<BOS>"
END: Final = "<EOS>"
MAX_PIECES: Final = 128
"""A sentence of more pieces fits no picture."""


class _HasText(Protocol):
    @property
    def text(self) -> str: ...


class Inspectable(Protocol):
    """Describe what inspection needs of a translator; `dragoman.Translator` has all of it."""

    tokenizer: Tokenizer
    config: Config

    @property
    def model(self) -> Model:
        """Return the PyTorch model, even where an engine translates."""

    def translate(self, text: str, /, *, raw: bool = ...) -> _HasText:
        """Return the best translation of a text."""


@dataclass(frozen=True, slots=True)
class SentencePair:
    """Hold a sentence and its translation as the model sees them while it predicts every piece."""

    text: str
    translation: str
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    source: tuple[str, ...]
    """The pieces that the encoder reads; the last is END."""
    decoder_input: tuple[str, ...]
    """The pieces that the decoder reads; the first is BEGIN."""
    predicted: tuple[str, ...]
    """The pieces that it predicts from them; the last is END."""

    def rows(self, translator: Inspectable) -> tuple[Rows, Rows]:
        """Return source and target as the model takes them."""
        from dragoman.search.batching import source_rows, target_rows

        device = next(translator.model.parameters()).device
        return source_rows([self.source_ids], device), target_rows([self.target_ids], device)


def read_pair(translator: Inspectable, text: str, translation: str | None = None) -> SentencePair:
    """Encode a sentence with its translation, the model's own if none is given."""
    tokenizer = translator.tokenizer
    source = encode_source(translator, text)
    if translation is None:
        translation = translator.translate(text, raw=True).text
    target = tokenizer.encode_targets([tokenizer.normalize_target(translation)])[0]
    _check_length(target, "the translation")
    predicted = piece_labels(tokenizer, target)
    return SentencePair(
        text,
        translation,
        tuple(source),
        tuple(target),
        (*piece_labels(tokenizer, source), END),
        (BEGIN, *predicted),
        (*predicted, END),
    )


def encode_source(translator: Inspectable, text: str) -> list[int]:
    """Return the ids of a sentence, or raise an error if it is empty or too long to be shown."""
    ids = translator.tokenizer.encode(text)
    if not ids:
        raise DataError("the sentence is empty; give one with words in it")
    _check_length(ids, "the sentence")
    return ids


def _check_length(ids: Sequence[int], what: str) -> None:
    if len(ids) > MAX_PIECES:
        raise ConfigError(
            f"{what} has {len(ids)} pieces; at most {MAX_PIECES} can be shown; shorten it"
        )


def piece_labels(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Write pieces for people: · where letters continue a word, ␣ for a space by itself."""
    found = []
    for place, piece in enumerate(tokenizer.pieces(ids)):
        text = piece.lstrip("▁").replace("▁", " ")
        continues = place > 0 and text == piece and text[:1].isalnum()
        found.append(f"·{text}" if continues else text or "␣")
    return found
