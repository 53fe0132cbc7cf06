"""Results that outlive an interruption: each in a file, with what it was found of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.data.prepare import Prepared
from dragoman.system.atomic_files import atomic_write

__all__ = ["corpus_fingerprint", "file_fingerprint", "fingerprint", "kept"]


def kept(file: Path, of: Mapping[str, Any], find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `file` holds, if it was found of the same; else what is found now, which it then holds.

    Both `of` and what is found are as JSON gives them back.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        table = json.loads(file.read_text(encoding="utf-8"))
        if table["of"] == of:
            return dict(table["found"])
    found = find()
    text = json.dumps({"of": of, "found": found}, indent=2, ensure_ascii=False)
    atomic_write(file, text + "\n")
    return found


def fingerprint(*lists: Sequence[str]) -> str:
    """The same for the same lists of texts, and for no others."""
    return _short(json.dumps([list(each) for each in lists]).encode("ascii"))


def file_fingerprint(file: Path) -> str:
    """The same for files of the same bytes."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:32]


def corpus_fingerprint(prepared: Prepared) -> str:
    """The same for prepared corpora, wherever they are, that a model learns the same from.

    Their pieces, pairs and validation sets are the same; all files are read, a second a gigabyte.
    """
    names = (f"{side}.{kind}" for side in ("source", "target") for kind in ("ids", "offsets"))
    settings = prepared.config.data
    return fingerprint(
        [prepared.tokenizer.fingerprint, str(settings.max_length), *settings.languages],
        [file_fingerprint(prepared.train.path / name) for name in names],
        prepared.valid_source,
        prepared.valid_target,
    )


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
