"""What the commands share: reading their arguments, and talking to the user.

Nothing heavy is imported before it is needed, so that help answers at once.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.data.readers import Corpus
    from dragoman.translate import Translator

__all__ = [
    "counter",
    "holds_both",
    "load_system",
    "load_translator",
    "plain",
    "read_config",
    "read_corpus",
    "read_lines",
    "say",
    "sets_of",
    "show",
]


def read_config(
    preset: str, assignments: Sequence[str] | None, languages: str | None, files: Sequence[Path]
) -> Config:
    """The preset with what the options change; languages as told, or as the names tell."""
    from dragoman.config import load_preset
    from dragoman.data.languages import guess_languages

    config = load_preset(preset).overridden(assignments or ())
    if languages is not None:
        codes = languages.split(",")
        return config.updated({"data": {"languages": codes}}, where="--languages")
    if not config.data.languages and (guessed := guess_languages(files)):
        return config.updated({"data": {"languages": guessed}})
    return config


def read_corpus(files: Sequence[Path], more: Sequence[Path] | None, config: Config) -> Corpus:
    """The corpus in these files, with `more` corpora after it."""
    from dragoman.data.readers import Concatenated, corpus

    codes = config.data.languages
    languages = (codes[0], codes[1]) if codes else None
    first = corpus(files, languages=languages)
    if not more:
        return first
    return Concatenated([first, *(corpus(s, languages=languages) for s in sets_of(more))])


def sets_of(files: Sequence[Path]) -> list[list[Path]]:
    """The files of several corpora, one after another, as one list a corpus."""
    sets, rest = [], list(files)
    while rest:
        size = 1 if holds_both(rest[0]) else 2
        sets.append(rest[:size])
        del rest[:size]
    return sets


def holds_both(path: Path) -> bool:
    """Whether a file has both sides of its pairs, by its name."""
    return any(suffix in (".tsv", ".jsonl", ".tmx") for suffix in path.suffixes)


def load_translator(path: Path, device: str) -> Translator:
    """The translator at `path`; what it warns of goes to stderr."""
    from dragoman.translate import load

    translator = load(path, device=device)
    translator.warn = say
    return translator


def load_system(path: Path | None, device: str) -> Translator | list[str] | None:
    """A translator if `path` is a directory, translations if it is a file."""
    if path is None:
        return None
    return load_translator(path, device) if path.is_dir() else list(read_lines([path]))


def read_lines(files: Sequence[Path]) -> Iterator[str]:
    """The lines of these files one after another; "-" is stdin."""
    from dragoman.data.readers import open_text

    for file in files:
        yield from open_text(file)


@contextmanager
def counter() -> Iterator[Any]:
    """A progress callback: a counter on a terminal, a line now and then elsewhere."""
    terminal = sys.stderr.isatty()
    last = time.monotonic()
    shown = False

    def progress(stage: str, done: int, total: int | None) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - last < (0.1 if terminal else 10):
            return
        last, shown = now, True
        of = f" of {total:,}" if total else ""
        text = f"{stage}: {done:,}{of} pairs"
        print(
            f"\r{text}\x1b[K" if terminal else text, end="" if terminal else "\n", file=sys.stderr
        )

    yield progress
    if terminal and shown:
        print("\r\x1b[K", end="", file=sys.stderr)


def show(what: object) -> None:
    """Write a result: text as it is, anything else as JSON."""
    text = what if isinstance(what, str) else json.dumps(what, ensure_ascii=False, indent=2)
    print(text, flush=sys.stdout.isatty())


def plain(value: object) -> str:
    """A value for people."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(item)}" for key, item in value.items())
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def say(message: str) -> None:
    """Tell the user something that is no result."""
    print(f"dragoman: {message}", file=sys.stderr)
