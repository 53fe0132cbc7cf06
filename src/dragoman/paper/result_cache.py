"""Results outlive an interruption: each is a file that also holds fingerprints of its inputs.

This is not `workflows.stages`, where a directory of stages is made in order and work with other
settings is refused. Here every result stands alone: if its inputs have changed it is computed again
and replaced, and since models and corpora are known by fingerprints of their content, not by their
paths, results can be carried to another machine without the weights they were computed from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.data.prepare import Prepared
from dragoman.system.atomic_files import atomic_write


def load_or_compute(
    file: Path, inputs: Mapping[str, Any], compute: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return what `file` holds if it was computed from the same inputs; else compute and save it.

    Both inputs and result must be what JSON gives back unchanged.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        table = json.loads(file.read_text(encoding="utf-8"))
        if table["of"] == inputs:
            return dict(table["found"])
    result = compute()
    text = json.dumps({"of": inputs, "found": result}, indent=2, ensure_ascii=False)
    atomic_write(file, text + "\n")
    return result


def fingerprint(*lists: Sequence[str]) -> str:
    """Return a hash that is the same for the same lists of texts, and for no others."""
    content = json.dumps([list(each) for each in lists]).encode("ascii")
    return hashlib.sha256(content).hexdigest()[:32]


def file_fingerprint(file: Path) -> str:
    """Return a hash that is the same for files of the same bytes."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:32]


def corpus_fingerprint(prepared: Prepared) -> str:
    """Return a hash that is the same for corpora a model learns the same from, wherever they are.

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
