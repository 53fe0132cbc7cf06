"""Sets scored at every validation beside the validation set: by name, and never chosen by.

They are copied into the run, so that a resumed run has them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.config import DataConfig
from dragoman.data.corpora import open_corpus
from dragoman.errors import DataError
from dragoman.files import atomic_write

__all__ = ["HeldOut", "keep", "read"]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A set of pairs by its name."""

    name: str
    source: list[str]
    target: list[str]


def keep(run: Path, sets: Sequence[Sequence[Path]], config: DataConfig) -> None:
    """Copy sets, each of the files that make a corpus, into a run."""
    names: set[str] = set()
    for files in sets:
        name = files[0].name.split(".")[0]
        if name in names:
            raise DataError(f"{files[0]}: another --test is called {name}; rename one")
        names.add(name)
        read = open_corpus(files, config)
        pairs = [(pair.source, pair.target) for pair in read]
        if read.malformed:
            raise DataError(read.malformed[0])  # a set that is scored must be whole
        if not pairs:
            raise DataError(f"{files[0]}: no pairs; leave out this --test")
        lines = (json.dumps({"source": s, "target": t}, ensure_ascii=False) for s, t in pairs)
        atomic_write(_folder(run) / f"{name}.jsonl", "\n".join(lines) + "\n")


def read(run: Path) -> list[HeldOut]:
    """What `keep` copied, in the order of names."""
    found = []
    for file in sorted(_folder(run).glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            pairs = [json.loads(line) for line in lines]
        found.append(HeldOut(file.stem, [p["source"] for p in pairs], [p["target"] for p in pairs]))
    return found


def _folder(run: Path) -> Path:
    return run / "tests"
