"""What the commands share: they read their arguments and talk to the user here.

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
        codes = [code.strip() for code in languages.split(",")]
        return config.updated({"data": {"languages": codes}}, where="--languages")
    return dataclasses.replace(config, data=fill_in_languages(config.data, files))


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
        raise ConfigError(f"--precision {precision}: there are auto, int8 and float32")
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
