"""A tokeniser that knows some characters, and models that do what a good one would not."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Sequence
from functools import cache
from typing import cast

from dragoman.inference.protection import ProtectedTranslator
from dragoman.inference.translation_types import Request, TranslateFunction, Translation
from dragoman.text.normalization import normalize
from dragoman.text.tokenizer import Tokenizer

KNOWN = frozenset(string.printable + "äöüÄÖÜßéèê“”„–…가나다는을를")
BYTES = frozenset(range(4, 260))


class FakeTokenizer:
    """Know the characters in KNOWN, and write all others in bytes."""

    byte_ids = BYTES
    vocabulary: dict[str, int] = {"▁Zorro": 300, "▁dog": 301}  # noqa: RUF012

    def encode(self, text: str) -> list[int]:
        return [300 if character in KNOWN else 5 for character in self.normalize(text)]

    def normalize(self, text: str) -> str:
        return normalize(text, "nfc")


def fake_tokenizer() -> Tokenizer:
    return cast(Tokenizer, FakeTokenizer())


def each(change: Callable[[str], str]) -> TranslateFunction:
    """Return a model that does so with every text."""

    def run(requests: Sequence[Request]) -> list[Translation]:
        return [Translation(r.text, change(normalize(r.text)), -1.0, ()) for r in requests]

    return run


def protect(
    text: str, run: TranslateFunction, pair: tuple[str, str] = ("en", "de"), **options: object
) -> Translation:
    """Return what becomes of a text with a model."""
    [found] = _translator(pair).translate([Request(text, **options)], run)  # type: ignore[arg-type]
    return found


@cache
def _translator(pair: tuple[str, str]) -> ProtectedTranslator:
    return ProtectedTranslator(fake_tokenizer(), *pair, probe=each(str.strip))


def _drop_items(text: str) -> str:
    return " ".join(word for word in text.split() if word.isalpha())


def _random_words(text: str) -> str:
    draw = random.Random(text)
    return " ".join(draw.choice(["Hund", "der", "{", "42", "ist,", "http", "."]) for _ in range(7))


MODELS = {
    "empty": each(lambda text: ""),
    "echo": each(lambda text: text),
    "drops": each(_drop_items),
    "random": each(_random_words),
    "loops": each(lambda text: f"{text} " * 20),
    "one word": each(lambda text: "Hund"),
    "a stop": each(lambda text: "."),
    "reverses": each(lambda text: " ".join(reversed(text.split()))),
    "capitals": each(str.upper),
    "broken": each(lambda text: f"\ufffd {text[: len(text) // 2]}΅\ufffd\ufffd"),
    "letters": each(lambda text: "".join(reversed(text))),
}
"""None of these is any good."""
