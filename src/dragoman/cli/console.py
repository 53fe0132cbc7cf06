"""All commands read their arguments and talk to the user by what stands here.

Nothing heavy is imported before it is needed, so that help answers at once.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.inference import Translator
    from dragoman.inference.parser import Parser


def read_config(
    preset: str | None,
    assignments: Sequence[str] | None,
    languages: str | None,
    files: Sequence[Path],
    task: str | None = None,
) -> Config:
    """Return the preset, or the task's own, with what the options change.

    The languages are those given, or those that the files tell.
    """
    from dragoman.config import load_preset
    from dragoman.data.readers import fill_in_languages

    config = load_preset(preset or ("parsing" if task == "parsing" else "base"))
    if task is not None:
        config = config.updated({"data": {"task": task}}, where="--task")
    config = config.overridden(assignments or ())
    if languages is not None:
        table = {"languages": parse_languages(languages)}
        return config.updated({"data": table}, where="--languages")
    return dataclasses.replace(config, data=fill_in_languages(config.data, files))


def parse_languages(text: str) -> list[str]:
    """Return the codes that --languages gives."""
    return [code.strip() for code in text.split(",")]


def message_printer(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints a message over a counter line, or nothing if `quiet`."""

    def tell(message: str) -> None:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)
        if not quiet:
            print_message(message)

    return tell


def load_translator(
    path: Path, *others: Path, device: str, precision: Any = "auto", draft: Path | None = None
) -> Translator:
    """Load a translator, or several models as an ensemble; its warnings go to stderr."""
    from dragoman.inference import load

    if precision not in ("auto", "int8", "float32"):
        raise ConfigError(f"--precision {precision}: choose auto, int8 or float32")
    translator = load(path, *others, device=device, precision=precision, draft=draft)
    translator.warn = print_message
    return translator


def load_parser(paths: list[Path], device: str, precision: Any = "auto") -> Parser:
    """Load a parser, or several models as an ensemble; its warnings go to stderr."""
    from dragoman.inference import parser

    found = parser.load_parser(*paths, device=device, precision=precision)
    found.warn = print_message
    return found


def load_system(path: Path | None, device: str) -> Translator | list[str] | None:
    """Load the translator in a directory, or read the translations in a file."""
    if path is None:
        return None
    return load_translator(path, device=device) if path.is_dir() else list(read_lines([path]))


def read_lines(files: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of these files one after another; "-" is stdin."""
    from dragoman.data.readers.parallel import open_text

    for file in files:
        yield from open_text(file)


@contextmanager
def progress_counter(what: str = "pairs") -> Iterator[Any]:
    """Give a progress callback that shows a counter on a terminal, and lines elsewhere."""
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
        text = f"{stage}: {done:,}{of} {what}"
        print(
            f"\r{text}\x1b[K" if terminal else text, end="" if terminal else "\n", file=sys.stderr
        )

    yield progress
    if terminal and shown:
        print("\r\x1b[K", end="", file=sys.stderr)


class TranslationProgress:
    """Show on a terminal how much of a text is translated, how fast, and how long the rest takes.

    Nothing is shown where the translation itself appears on the terminal.
    """

    def __init__(self, files: Sequence[Path], *, shown: bool = True) -> None:
        """Count the lines of files that can be counted quickly, to know how many there are."""
        self.lines = 0
        """So many lines are translated."""
        self._shown = shown and sys.stderr.isatty()
        self._total = _count_lines(files) if files else None
        self._begin = time.monotonic()
        self._last = 0.0

    def __enter__(self) -> TranslationProgress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown and self._last:
            print("\r\x1b[K", end="", file=sys.stderr)

    def add(self, source: str) -> None:
        """Note that a text is translated, which may have several lines."""
        self.lines += max(1, source.count("\n"))
        now = time.monotonic()
        if self._shown and now - self._last >= 0.2:
            self._last = now
            print(f"\r{self._line(now - self._begin)}\x1b[K", end="", file=sys.stderr, flush=True)

    def describe(self) -> str:
        """Return how far it came, in words."""
        of = f" of {self._total:,}" if self._total else ""
        return f"{self.lines:,}{of} line{'s' if (self._total or self.lines) != 1 else ''}"

    def _line(self, seconds: float) -> str:
        speed = self.lines / max(seconds, 1e-3)
        left = ""
        if self._total and speed:
            minutes, rest = divmod(int((self._total - self.lines) / speed), 60)
            left = f", {minutes}:{rest:02} left"
        return f"{self.describe()}, {speed:,.0f} a second{left}"


def _count_lines(files: Sequence[Path]) -> int | None:
    """Return how many lines plain files have together; None if one is not plain, or is large."""
    total = 0
    for file in files:
        if not file.is_file() or file.suffix in (".gz", ".bz2", ".xz", ".zst"):
            return None
        if file.stat().st_size > 1 << 28:
            return None
        with file.open("rb") as opened:
            total += sum(chunk.count(b"\n") for chunk in iter(lambda: opened.read(1 << 20), b""))
    return total


def print_result(what: object) -> None:
    """Write a result: text as it is, anything else as JSON."""
    text = what if isinstance(what, str) else json.dumps(what, ensure_ascii=False, indent=2)
    print(text, flush=sys.stdout.isatty())


def format_value(value: object) -> str:
    """Return a value as people read it."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {format_value(item)}" for key, item in value.items())
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def print_message(message: str) -> None:
    """Print a message to the user on stderr, where results do not go."""
    print(f"dragoman: {message}", file=sys.stderr)
