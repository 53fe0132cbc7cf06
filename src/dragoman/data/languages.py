"""What a language code tells: from file names to the words of a score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["guess_languages", "primary_code", "tokenizer_for"]

TOKENIZERS: Final = {
    "zh": "zh",
    **dict.fromkeys(("ja", "ko", "th", "lo", "km", "my", "bo", "dz"), "char"),
}
"""Languages for which BLEU's usual words are no words; the others have 13a.

Never one that must be installed or fetched first: the same text has the same score everywhere.
"""


def guess_languages(files: Sequence[Path]) -> tuple[str, ...]:
    """The codes that two names such as corpus.en.gz and corpus.de.gz end in, if they do."""
    codes = []
    for file in files:
        suffixes = [s[1:].lower() for s in file.suffixes if s not in (".gz", ".bz2", ".xz", ".zst")]
        code = suffixes[-1] if suffixes else ""
        codes.append(code if 2 <= len(code) <= 3 and code.isalpha() else "")
    distinct = len(codes) == 2 and all(codes) and codes[0] != codes[1]
    return tuple(codes) if distinct and "txt" not in codes else ()


def primary_code(language: str | None) -> str:
    """The language of a code with or without a region: zh for zh-TW."""
    return (language or "").replace("_", "-").split("-")[0].lower()


def tokenizer_for(language: str | None) -> str:
    """SacreBLEU's tokeniser for a target language: characters where words are not spaced."""
    return TOKENIZERS.get(primary_code(language), "13a")
