"""Our tokeniser is written as a SentencePiece model that works without Dragoman.

Dragoman normalises in Python and gives SentencePiece text that it leaves unchanged. Other runtimes
have only SentencePiece, so the same rules are written into the model they get.
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
from dragoman.text.pair_tokenizer import PairTokenizer
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK
from dragoman.text.tokenizer import Tokenizer

SPECIAL_TOKENS = {"pad_token": PAD, "bos_token": BOS, "eos_token": EOS, "unk_token": UNK}
"""The special tokens, by the names that other runtimes have for them."""

_CHARACTERS_END = 0x30000  # no character above has another form


def all_pieces(tokenizer: Tokenizer) -> list[str]:
    """Return every piece as SentencePiece writes it, by id."""
    return tokenizer.pieces(range(len(tokenizer)))


def source_and_target_models(tokenizer: Tokenizer) -> tuple[bytes, bytes]:
    """Return the SentencePiece models of source and target, which differ only if imported."""
    if isinstance(tokenizer, PairTokenizer):
        return tokenizer.model, tokenizer.target_model
    both = normalizing_model(tokenizer)
    return both, both


def normalizing_model(tokenizer: Tokenizer) -> bytes:
    """Return the SentencePiece model with our normalisation inside.

    It gives the same ids for any text, with two exceptions. Combining marks of different places,
    such as a dot below and a diaeresis, in an order that is not canonical in Unicode, stay in it if
    no single character has them all. And NUL, which ends a rule of SentencePiece, is not removed.
    """
    if isinstance(tokenizer, PairTokenizer):
        raise ModelError(
            "the SentencePiece models of an imported model do not number its pieces; "
            "export it to huggingface, and convert it from there"
        )
    # Protocol buffers one after the other are one message; the last value of a field counts.
    return tokenizer.model + _normalizer(tokenizer.normalization)


@lru_cache(maxsize=4)
def _normalizer(form: Form) -> bytes:
    """Return a SentencePiece model that has only a normaliser."""
    if hasattr(sentencepiece, "set_min_log_level"):
        sentencepiece.set_min_log_level(2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.tsv")
        path.write_text("".join(_rule_lines(form)), encoding="ascii")
        normalizer = sentencepiece.SentencePieceNormalizer(
            rule_tsv=str(path),
            add_dummy_prefix=True,
            escape_whitespaces=True,
            remove_extra_whitespaces=True,
        )
        rules: bytes = normalizer.serialized_model_proto()
    return rules


def _rule_lines(form: Form) -> Iterator[str]:
    """Yield rules as SentencePiece reads them: code points in hexadecimal, a tab, code points."""
    for text in dict.fromkeys(_changeable_texts(form)):
        # Alone a space would be stripped, and SentencePiece has its own rule for spaces.
        target = normalize(f"x{text}x", form)[1:-1]
        if target != text:
            yield f"{_hexadecimal(text)}\t{_hexadecimal(target)}\n"


def _hexadecimal(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)


def _changeable_texts(form: Form) -> Iterator[str]:
    """Yield all that normalisation may change: every character, and all ways to compose one."""
    characters = [chr(code) for code in range(1, _CHARACTERS_END) if not 0xD800 <= code < 0xE000]
    yield from characters
    if form == "none":
        return
    for character in characters:
        parts = unicodedata.normalize("NFD", character)
        if len(parts) > 1:
            yield from _ways_to_write(parts)


def _ways_to_write(parts: str) -> Iterator[str]:
    """Yield a base and its marks in all equivalent orders, with some of them composed."""
    base, marks = parts[0], parts[1:]
    whole = unicodedata.normalize("NFC", parts)
    for order in permutations(marks):
        text = base + "".join(order)
        if unicodedata.normalize("NFC", text) == whole:
            for end in range(1, len(text) + 1):
                yield unicodedata.normalize("NFC", text[:end]) + text[end:]
