"""Our tokeniser as a SentencePiece model that needs no Dragoman around it.

Dragoman normalises in Python and gives SentencePiece text that it leaves alone. Others only have
SentencePiece, so the same rules are written into the model they get.
"""

from __future__ import annotations

import tempfile
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import permutations
from pathlib import Path

import sentencepiece

from dragoman.errors import ModelError
from dragoman.text.normalization import Form, normalize
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK
from dragoman.text.tokenizer import Tokenizer

__all__ = ["SPECIAL", "models", "normalizing_model", "spelling"]

SPECIAL = {"pad_token": PAD, "bos_token": BOS, "eos_token": EOS, "unk_token": UNK}
"""The marks, by the names that others have for them."""

_LAST = 0x30000  # no character above has another form


def spelling(tokenizer: Tokenizer) -> list[str]:
    """How SentencePiece spells every piece, by id."""
    return tokenizer.pieces(range(len(tokenizer)))


def models(tokenizer: Tokenizer) -> tuple[bytes, bytes]:
    """The SentencePiece models of source and target: the same, unless both were imported."""
    target: bytes | None = getattr(tokenizer, "target_model", None)
    if target is not None:
        return tokenizer.model, target
    both = normalizing_model(tokenizer)
    return both, both


def normalizing_model(tokenizer: Tokenizer) -> bytes:
    """The SentencePiece model with our normalisation inside.

    The same ids for any text but this: combining marks of different places, such as a dot below and
    a diaeresis, in an order that Unicode calls not canonical, stay in it if no one character has
    them all; and NUL ends a rule of SentencePiece, so that none can remove it.
    """
    if hasattr(tokenizer, "target_model"):
        raise ModelError(
            "an imported model, whose SentencePiece models do not number the pieces: it can be "
            "exported to huggingface alone, and converted from there"
        )
    # Protocol buffers written one after the other are one message, of which the last word counts.
    return tokenizer.model + _rules(tokenizer.normalization)


@lru_cache(maxsize=4)
def _rules(form: Form) -> bytes:
    """A SentencePiece model of nothing but its normaliser."""
    if hasattr(sentencepiece, "set_min_log_level"):
        sentencepiece.set_min_log_level(2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.tsv")
        path.write_text("".join(_lines(form)), encoding="ascii")
        normalizer = sentencepiece.SentencePieceNormalizer(
            rule_tsv=str(path),
            add_dummy_prefix=True,
            escape_whitespaces=True,
            remove_extra_whitespaces=True,
        )
        rules: bytes = normalizer.serialized_model_proto()
    return rules


def _lines(form: Form) -> Iterator[str]:
    """Rules as SentencePiece reads them: code points in hexadecimal, a tab, code points."""
    for text in dict.fromkeys(_texts(form)):
        # Alone a space would be stripped, and SentencePiece has its own rule for spaces.
        target = normalize(f"x{text}x", form)[1:-1]
        if target != text:
            yield f"{_hexadecimal(text)}\t{_hexadecimal(target)}\n"


def _hexadecimal(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)


def _texts(form: Form) -> Iterator[str]:
    """All that normalisation may change: every character, and all ways to write the composed."""
    characters = [chr(code) for code in range(1, _LAST) if not 0xD800 <= code < 0xE000]
    yield from characters
    if form == "none":
        return
    for character in characters:
        parts = unicodedata.normalize("NFD", character)
        if len(parts) > 1:
            yield from _ways_to_write(parts)


def _ways_to_write(parts: str) -> Iterator[str]:
    """A base and its marks, in all orders that mean the same, with some of them composed."""
    base, marks = parts[0], parts[1:]
    whole = unicodedata.normalize("NFC", parts)
    for order in permutations(marks):
        text = base + "".join(order)
        if unicodedata.normalize("NFC", text) == whole:
            for end in range(1, len(text) + 1):
                yield unicodedata.normalize("NFC", text[:end]) + text[end:]
