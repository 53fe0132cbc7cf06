"""Which languages a corpus is in, as far as its file names tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["guess_languages"]


def guess_languages(files: Sequence[Path]) -> tuple[str, ...]:
    """The codes that two names such as corpus.en.gz and corpus.de.gz end in, if they do."""
    codes = []
    for file in files:
        suffixes = [s[1:].lower() for s in file.suffixes if s not in (".gz", ".bz2", ".xz", ".zst")]
        code = suffixes[-1] if suffixes else ""
        codes.append(code if 2 <= len(code) <= 3 and code.isalpha() else "")
    distinct = len(codes) == 2 and all(codes) and codes[0] != codes[1]
    return tuple(codes) if distinct and "txt" not in codes else ()
