"""Inputs cut into parts, and results put together from them."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from dragoman.data.lines import COMPRESSIONS
from dragoman.data.prepare import Progress
from dragoman.data.readers import check_rereadable, open_text
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.files import (
    atomic_directory,
    atomic_write,
    explained,
    sync_directory,
)
from dragoman.stages import difference, facts, listed, window_file

__all__ = ["PARTS", "Job", "Part", "find_inputs"]

PARTS: Final = ".parts"
"""Where the parts are, in the directory of the results."""
_RECORD: Final = ".job.json"  # no result has such a name


class Part(NamedTuple):
    """Some lines of an input, and where their translations go."""

    name: str
    """Of the result."""
    source: Path
    translated: Path


def find_inputs(paths: Sequence[Path], out: Path) -> dict[str, Path]:
    """The files to translate, by the names of their results; those of a directory in order.

    Names that begin with a dot are passed over; a result is not compressed.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            if out.resolve().is_relative_to(path.resolve()):
                raise ConfigError(f"--out {out}: lies in {path}, which is read; choose another")
            inside = sorted(file for file in path.rglob("*") if file.is_file())
            names = [(file.relative_to(path), file) for file in inside]
        else:
            check_rereadable(path)
            names = [(Path(path.name), path)]
        for place, file in names:
            if any(part.startswith(".") for part in place.parts):
                continue
            name = str(place.with_suffix("") if place.suffix.lower() in COMPRESSIONS else place)
            if name in found:
                raise DataError(f"{found[name]} and {file} would both become {out / name}")
            found[name] = file
    if not found:
        raise DataError(f"{' + '.join(map(str, paths))}: no files to translate")
    return found


@dataclass(slots=True)
class Job:
    """Files that become others of the same names in a directory."""

    out: Path
    inputs: dict[str, Path]
    counts: dict[str, tuple[int, int]]
    """Lines and parts of each, once they are cut; those of finished files have no parts."""

    @classmethod
    def begin(cls, out: Path, inputs: dict[str, Path], settings: dict[str, Any]) -> Job:
        """Note how the results are made; what was made in another way is refused."""
        place = out / PARTS
        record = place / _RECORD
        wanted = {name: [*facts(path), path.stat().st_mtime_ns] for name, path in inputs.items()}
        settings = json.loads(json.dumps(settings, default=_pickled))
        with explained(out):
            made = _read(record) if record.exists() else {"settings": settings, "files": {}}
            if name := difference(made["settings"], settings):
                raise ConfigError(
                    f"{out}: made with another {name}; choose another --out, or remove {place} and "
                    "the results"
                )
            for name, fact in wanted.items():
                known = made["files"].get(name)
                if known is None and (out / name).exists():
                    raise ConfigError(f"{out / name}: not made here; choose another --out")
                if known is not None and known != fact:
                    stale = [str(p) for p in (out / name, place / name) if p.exists()]
                    if stale:
                        raise ConfigError(
                            f"{inputs[name]}: has changed; remove {listed(stale)} to translate it "
                            "again"
                        )
            files = {**made["files"], **wanted}
            atomic_write(record, json.dumps({"settings": settings, "files": files}, indent=1))
        return cls(out, inputs, {})

    def cut(self, size: int, progress: Progress) -> None:
        """Cut every input that has no result into parts of `size` lines."""
        for name, path in self.inputs.items():
            place = self._place(name)
            if (self.out / name).exists():
                shutil.rmtree(place, ignore_errors=True)  # killed before it could be removed
                self.counts[name] = (_count(self.out / name), 0)
                continue
            if not (place / "source").exists():
                _cut(path, place / "source", size)
            counts = json.loads((place / "source" / "counts.json").read_text(encoding="utf-8"))
            self.counts[name] = (counts["lines"], counts["parts"])
            progress("cutting", self.parts, None)

    @property
    def results(self) -> list[Path]:
        """Where the translations are in the end."""
        return [self.out / name for name in self.inputs]

    @property
    def lines(self) -> int:
        """Of all inputs."""
        return sum(lines for lines, _ in self.counts.values())

    @property
    def parts(self) -> int:
        """Of all inputs that have no result yet."""
        return sum(parts for _, parts in self.counts.values())

    def missing(self) -> list[Part]:
        """What has to be translated yet."""
        every = (
            self._part(name, n) for name, (_, parts) in self.counts.items() for n in range(parts)
        )
        return [part for part in every if not part.translated.exists()]

    def join(self, name: str) -> None:
        """Put a result in its place, if it is not there; all its parts must be."""
        _, parts = self.counts[name]
        whole, result = self._place(name) / "whole", self.out / name
        if result.exists():
            return
        with explained(result):
            with whole.open("wb") as file:
                for number in range(parts):
                    part = self._part(name, number)
                    text = part.translated.read_bytes()
                    if text.count(b"\n") != part.source.read_bytes().count(b"\n"):
                        raise DragomanError(
                            f"{part.translated}: has not as many lines as {part.source}; remove "
                            "it and run again"
                        )
                    file.write(text)
                file.flush()
                os.fsync(file.fileno())
            result.parent.mkdir(parents=True, exist_ok=True)
            whole.rename(result)
            sync_directory(result.parent)
        shutil.rmtree(self._place(name), ignore_errors=True)
        with suppress(OSError):  # the last of its directory
            for above in Path(name).parents[:-1]:
                (self.out / PARTS / above).rmdir()

    def _place(self, name: str) -> Path:
        return self.out / PARTS / name

    def _part(self, name: str, number: int) -> Part:
        place = self._place(name)
        source, translated = (
            window_file(place / stage, number) for stage in ("source", "translated")
        )
        return Part(name, source, translated)


def _pickled(value: object) -> str:
    """What an option is known by that JSON cannot hold, such as a glossary."""
    return hashlib.blake2b(pickle.dumps(value), digest_size=8).hexdigest()


def _read(record: Path) -> dict[str, dict[str, Any]]:
    try:
        made = json.loads(record.read_text(encoding="utf-8"))
        return {"settings": dict(made["settings"]), "files": dict(made["files"])}
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{record}: cannot be read; choose another --out") from None


def _cut(path: Path, place: Path, size: int) -> None:
    with atomic_directory(place) as directory:
        lines = parts = 0
        reading = open_text(path)
        while window := list(islice(reading, size)):
            text = "".join(f"{line}\n" for line in window)
            window_file(directory, parts).write_text(text, encoding="utf-8", newline="\n")
            lines += len(window)
            parts += 1
        counts = json.dumps({"lines": lines, "parts": parts})
        (directory / "counts.json").write_text(counts, encoding="utf-8")


def _count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
