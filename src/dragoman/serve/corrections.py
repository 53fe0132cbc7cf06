"""Corrections that people make of translations are kept in a file, as text and nothing else.

The file is JSON lines with source, target, their languages, time and the hash of the API key, if
there was one. `dragoman translate --memory` and `dragoman train` read it as it is. A correction is
appended and brought to the disk before it is acknowledged. One that replaces an earlier one of the
same sentence has the file written anew, whole, so that no file ever holds two.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

from dragoman.errors import ConfigError, DataError
from dragoman.inference.text_layout import TextLayout
from dragoman.serve.errors import ServiceError
from dragoman.serve.limits import CORRECTION_BYTES, MAX_CORRECTIONS, MAX_EXPANSION
from dragoman.system.atomic_files import TEMPORARY_PREFIX, atomic_write, explain_os_errors
from dragoman.workflows.stages import exclusive_lock

_KEY_DIGITS: Final = 12
"""So much of a key's hash is written: enough to tell keys apart, too little to guess one by."""
_OVERRIDES: Final = "\u202d\u202e"
"""These would show a text in another order than it is written in."""


class Key(NamedTuple):
    """Name a sentence in one language that is translated to another."""

    source: str
    source_language: str
    target_language: str


@dataclass(frozen=True, slots=True)
class Correction:
    """Hold a sentence and the translation that a person wants for it."""

    source: str
    target: str
    source_language: str
    target_language: str
    time: str = ""
    """When it was made, in UTC."""
    by: str | None = None
    """The beginning of the hash of the API key it was made with."""

    @property
    def key(self) -> Key:
        """Return what no two corrections of a file share."""
        return Key(self.source, self.source_language, self.target_language)

    def to_line(self) -> bytes:
        """Return the line of the file."""
        record = {
            "source": self.source,
            "target": self.target,
            "source_lang": self.source_language,
            "target_lang": self.target_language,
            "time": self.time,
            "by": self.by,
        }
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Correction:
        """Read a line of the file, or raise ValueError."""
        record = json.loads(line)
        if not isinstance(record, dict):
            raise ValueError("not an object")
        fields = [record.get(name) for name in ("source", "target", "source_lang", "target_lang")]
        texts = [" ".join(field.split()) for field in fields if isinstance(field, str)]
        if len(texts) != 4 or not all(texts):
            raise ValueError("lacks a text or a language")
        by, time = record.get("by"), record.get("time")
        return cls(
            source=texts[0],
            target=texts[1],
            source_language=texts[2],
            target_language=texts[3],
            time=time if isinstance(time, str) else "",
            by=by if isinstance(by, str) else None,
        )


def make_corrections(
    text: str, correction: str, languages: tuple[str, str], key: str = ""
) -> list[Correction]:
    """Return the corrections of a text's sentences, or raise DataError for what cannot be one.

    A text of several sentences is corrected by as many, in their order; a single sentence by any
    text. `key` is the hash of an API key.
    """
    source, target = languages
    _check_characters(text)
    _check_characters(correction)
    sentences = TextLayout(text, source, target).sentences
    said = TextLayout(correction, target, source).sentences if len(sentences) > 1 else [correction]
    if not sentences or not any(map(str.isalnum, text)):
        raise DataError("there is no word in the text that is corrected")
    if len(said) != len(sentences):
        raise DataError(
            f"the text has {len(sentences)} sentences and its correction {len(said)}; send each "
            "sentence with its own"
        )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    by = key[:_KEY_DIGITS] or None
    made = [
        Correction(" ".join(one.split()), " ".join(other.split()), source, target, now, by)
        for one, other in zip(sentences, said, strict=True)
    ]
    for one in made:
        _check_sentence(one)
    return made


def _check_characters(text: str) -> None:
    for character in text:
        if character in "\t\n\r":
            continue
        if unicodedata.category(character) in ("Cc", "Cs") or character in _OVERRIDES:
            raise DataError(
                f"the control character U+{ord(character):04X} cannot be part of a correction; "
                "remove it"
            )


def _check_sentence(one: Correction) -> None:
    if not any(map(str.isalnum, one.target)) and any(map(str.isalnum, one.source)):
        raise DataError("the correction has no words; write how the text is to be translated")
    lengths = len(one.source), len(one.target)
    if max(lengths) > MAX_EXPANSION * min(lengths) + 100:
        raise DataError(
            f"the correction has {lengths[1]} characters and its source {lengths[0]}; this cannot "
            "be its translation"
        )


class CorrectionFile:
    """Keep corrections in a file, one of each sentence; any number of threads may add some.

    Several processes may, too: each looks for what others have added before it adds its own.
    """

    def __init__(self, path: Path) -> None:
        """Read a file, or make one; what a crash has left unfinished at its end is removed."""
        if path.suffix.lower() != ".jsonl":
            raise ConfigError(f"{path}: corrections are kept in a .jsonl file")
        self.name = path.name
        self.path = Path(os.path.realpath(path))
        self._known: dict[Key, Correction] = {}
        self._lines: dict[Key, bytes] = {}
        self._bytes = 0
        self._seen: tuple[int, ...] = ()
        """What the file was like when it was last read or written here."""
        self._lock = Lock()
        with self._alone():
            with explain_os_errors(self.path), self.path.open("ab"):
                pass
            for leftover in self.path.parent.glob(f"{TEMPORARY_PREFIX}{escape(self.path.name)}-*"):
                with suppress(OSError):  # of a process that was killed, for the lock is held
                    leftover.unlink()
            self._read()

    def __iter__(self) -> Iterator[Correction]:
        """Yield the corrections that are known."""
        return iter(tuple(self._known.values()))

    def __len__(self) -> int:
        return len(self._known)

    def add(
        self, corrections: Iterable[Correction], learn: Callable[[list[Correction]], None]
    ) -> None:
        """Keep all corrections, and then call `learn` with those that are new to this process.

        They are on the disk by then, and calls come in the order of the file. Raise ServiceError if
        the file is full.
        """
        with self._alone():
            learned = self._read() if self._signature() != self._seen else []
            wanted = {one.key: one for one in corrections}
            new = [
                one
                for one in wanted.values()
                if (known := self._known.get(one.key)) is None or known.target != one.target
            ]
            if new:
                self._write(new)
            learn([*learned, *new])

    def _write(self, new: Sequence[Correction]) -> None:
        lines = {one.key: one.to_line() for one in new}
        replaced = [self._lines[key] for key in lines if key in self._lines]
        count = len(self._lines) + len(lines) - len(replaced)
        size = self._bytes + sum(map(len, lines.values())) - sum(map(len, replaced))
        if count > MAX_CORRECTIONS or size > CORRECTION_BYTES:
            raise ServiceError(503, "no more corrections are kept; the file for them is full")
        if replaced:
            atomic_write(self.path, b"".join((self._lines | lines).values()))
        else:
            with explain_os_errors(self.path):
                _append(self.path, b"".join(lines.values()))
        self._known.update((one.key, one) for one in new)
        self._lines.update(lines)
        self._bytes, self._seen = size, self._signature()

    def _read(self) -> list[Correction]:
        """Take what the file holds, mend it, and return what was not known."""
        with explain_os_errors(self.path):
            data = self.path.read_bytes() if self.path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        found: dict[Key, Correction] = {}
        for number, line in enumerate(whole.split(b"\n"), 1):
            if line.strip():
                try:
                    one = Correction.from_line(line)
                except (ValueError, RecursionError):
                    raise DataError(
                        f"{self.path}, line {number}: not a correction; mend or remove this line"
                    ) from None
                found[one.key] = one
        if rest := data[len(whole) :]:  # a whole correction, or the beginning of one
            with suppress(ValueError, RecursionError):
                one = Correction.from_line(rest)
                found[one.key] = one
        lines = {key: one.to_line() for key, one in found.items()}
        if rest or len(found) < sum(1 for line in whole.split(b"\n") if line.strip()):
            data = b"".join(lines.values())
            atomic_write(self.path, data)
        news = [one for key, one in found.items() if self._target(key) != one.target]
        self._known, self._lines = found, lines
        self._bytes, self._seen = len(data), self._signature()
        return news

    def _target(self, key: Key) -> str | None:
        return known.target if (known := self._known.get(key)) else None

    def _signature(self) -> tuple[int, ...]:
        """Return what changes when another writes the file."""
        try:
            status = self.path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_size, status.st_mtime_ns

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other thread or process write during the block."""
        lock = self.path.with_name(f".{self.path.name}.lock")
        with self._lock, exclusive_lock(lock, wait=True):
            yield


def _append(path: Path, data: bytes) -> None:
    """Append to a file and bring it to the disk; take back what was only written in part."""
    flags: Any = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o666)
    try:
        end = os.fstat(handle).st_size
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, end)
            raise
    finally:
        os.close(handle)
