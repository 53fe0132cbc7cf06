"""The tokeniser of OPUS-MT's models has two SentencePiece models that share one vocabulary.

The models normalise by themselves and have no bytes: what they do not know becomes UNK. Dragoman
trains none of this kind; `dragoman import` brings them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import sentencepiece

from dragoman.errors import ModelError
from dragoman.text.normalization import SPACE_MARK, Form, collapse_spaces
from dragoman.text.special_tokens import FIRST_PIECE, UNK
from dragoman.text.tokenizer import Kind, Tokenizer


class PairTokenizer(Tokenizer):
    """Encode sources with one SentencePiece model and targets with another, to the same ids."""

    settings_key: ClassVar[str | None] = "pair"

    def __init__(
        self, model: bytes, *, kind: Kind, normalization: Form, pair: dict[str, Any]
    ) -> None:
        self.kind, self.normalization, self.model = kind, normalization, model
        self._words = {}
        try:
            self.target_model = base64.b64decode(pair["target"], validate=True)
            self._spelling: list[str] = [str(piece) for piece in pair["vocabulary"]]
            self._source, self._target = map(_processor, (model, self.target_model))
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise ModelError("its two SentencePiece models cannot be read; import again") from None
        self._ids = {piece: number for number, piece in enumerate(self._spelling)}

    @classmethod
    def from_models(cls, source: bytes, target: bytes, vocabulary: Sequence[str]) -> PairTokenizer:
        """Make one from two models and all pieces by id, with PAD, BOS, EOS and UNK first."""
        pair = {"target": base64.b64encode(target).decode(), "vocabulary": list(vocabulary)}
        return cls(source, kind="unigram", normalization="none", pair=pair)

    @property
    def _additional_settings(self) -> dict[str, Any]:
        target = base64.b64encode(self.target_model).decode()
        return {"target": target, "vocabulary": self._spelling}

    def __len__(self) -> int:
        return len(self._spelling)

    def normalize(self, text: str) -> str:
        """See Tokenizer; this changes only white space, for the models do the rest."""
        return collapse_spaces(text.encode("utf-8", "replace").decode())

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, as `Tokenizer.encode` says."""
        return self._encode_directly([self.normalize(text)])[0]

    def encode_normalized(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of a normalised text, as `Tokenizer.encode_normalized` says."""
        return self._encode_directly(list(texts))

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of targets, as `Tokenizer.encode_targets` says."""
        return [self._lookup(row) for row in self._target.Encode(list(texts), out_type=str)]

    def _encode_directly(self, texts: list[str]) -> list[list[int]]:
        found = []
        for text in texts:
            code, rest = self._language_code(text)
            found.append([*code, *self._lookup(self._source.Encode(rest, out_type=str))])
        return found

    def _language_code(self, text: str) -> tuple[list[int], str]:
        """Split off the language that a source may begin with, to be translated to: >>deu<<."""
        code, mark, rest = text.partition("<<")
        if mark and code.startswith(">>") and code + mark in self._ids:
            return [self._ids[code + mark]], rest
        return [], text

    def _lookup(self, pieces: Iterable[str]) -> list[int]:
        return [self._ids.get(piece, UNK) for piece in pieces]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces of ids, as `Tokenizer.pieces` says."""
        size = len(self)
        return [self._spelling[int(i) if 0 <= i < size else UNK] for i in ids]

    @cached_property
    def byte_ids(self) -> frozenset[int]:
        """See Tokenizer; there are none."""
        return frozenset()

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Return the vocabulary, as `Tokenizer.vocabulary` says."""
        return {piece: i for i, piece in enumerate(self._spelling) if i >= FIRST_PIECE}

    @cached_property
    def symbols(self) -> list[str]:
        """See Tokenizer; there are none."""
        return []

    @cached_property
    def tags(self) -> dict[str, int]:
        """See Tokenizer; there are none."""
        return {}

    @cached_property
    def _surfaces(self) -> dict[int, bytes]:
        marks = [b""] * UNK + [" \u2047 ".encode()]
        pieces = [p.replace(SPACE_MARK, " ").encode() for p in self._spelling[FIRST_PIECE:]]
        return dict(enumerate(marks + pieces))


def _processor(model: bytes) -> Any:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return processor
