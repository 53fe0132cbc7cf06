"""A shortlist of ours as CTranslate2 wants it, so that both look at the same pieces."""

from __future__ import annotations

import json
from pathlib import Path

from dragoman.inference.cpu.shortlist import Shortlist
from dragoman.system.atomic_files import atomic_write
from dragoman.text.special_tokens import FIRST

__all__ = ["write_vocabulary_map"]


def write_vocabulary_map(directory: Path, shortlist: Shortlist) -> None:
    """Put `vmap.txt` into an exported model: what all may use first, then piece by piece."""
    sources, targets = (_pieces(directory, side) for side in ("source", "target"))
    lines = ["\t" + " ".join(targets[i] for i in shortlist.common)]
    for source, (begin, end) in enumerate(
        zip(shortlist.starts[:-1], shortlist.starts[1:], strict=True)
    ):
        own = [source] if FIRST <= source < shortlist.outputs else []
        may = " ".join(targets[i] for i in (*shortlist.targets[begin:end], *own))
        lines.append(f"{sources[source]}\t{may}")
    atomic_write(directory / "vmap.txt", "\n".join(lines) + "\n")


def _pieces(directory: Path, side: str) -> list[str]:
    """The vocabulary of one side; their ids are ours."""
    file = directory / "shared_vocabulary.json"
    if not file.exists():
        file = directory / f"{side}_vocabulary.json"
    found: list[str] = json.loads(file.read_text(encoding="utf-8"))
    return found
