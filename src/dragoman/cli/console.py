"""All commands read their arguments and talk to the user by what stands here.

Nothing heavy is imported before it is needed, so that help answers at once.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dragoman.errors import ConfigError, DataError
from dragoman.messages import counted, duration
from dragoman.system.atomic_files import explain_os_errors

if TYPE_CHECKING:
    from dragoman.config import Config
    from dragoman.inference import Translator
    from dragoman.inference.model_chains import ModelChain
    from dragoman.inference.parser import Parser
    from dragoman.search import SamplingOptions


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
    """Return a function that prints a message, or nothing if `quiet`."""

    def tell(message: str) -> None:
        if not quiet:
            print_message(message)

    return tell


def load_translator(
    path: Path, *others: Path, device: str, precision: Any = "auto", draft: Path | None = None
) -> Translator:
    """Load a translator, or several models as an ensemble; its warnings go to stderr."""
    from dragoman.inference import load

    _check_precision(precision)
    translator = load(path, *others, device=device, precision=precision, draft=draft)
    translator.warn = print_message
    return translator


def sampling_options(
    translator: Translator, *, max_extra: int | None = None, **options: Any
) -> SamplingOptions:
    """Return how to sample with a translator, whose config says how long an output may be."""
    from dragoman.search import SamplingOptions

    extra = translator.config.search.max_extra if max_extra is None else max_extra
    return SamplingOptions(max_extra=extra, **options)


def load_chain(chain: ModelChain, *, device: str, precision: Any = "auto") -> Translator:
    """Load the translator of installed models; its warnings go to stderr."""
    from dragoman.inference.pivot_translator import load_chain as load

    _check_precision(precision)
    translator = load(chain, device=device, precision=precision)
    translator.warn = print_message
    return translator


def _check_precision(precision: str) -> None:
    if precision not in ("auto", "int8", "float32"):
        raise ConfigError(f"--precision {precision}: choose auto, int8 or float32")


def load_parser(paths: list[Path], device: str, precision: Any = "auto") -> Parser:
    """Load a parser, or several models as an ensemble; its warnings go to stderr."""
    from dragoman.inference import parser

    found = parser.load_parser(*paths, device=device, precision=precision)
    found.warn = print_message
    return found


def load_system(path: Path | None, device: str) -> Translator | list[str] | None:
    """Load the translator in a directory or of a name, or read the translations in a file."""
    if path is None:
        return None
    return load_translator(path, device=device) if is_system(path) else list(read_lines([path]))


def is_system(path: Path) -> bool:
    """Return whether a path names a translator, and not a file of translations."""
    from dragoman.inference.model_chains import find_named_chain
    from dragoman.model_directory import names_a_model

    if path.exists():
        return path.is_dir()
    return names_a_model(str(path)) or find_named_chain(path) is not None


def read_lines(files: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of these files one after another; "-" is stdin."""
    from dragoman.data.readers.parallel import open_text

    for file in files:
        yield from open_text(file)


def read_aligned_lines(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """Return the lines of two files; raise DataError if one has more of them."""
    sources, targets = list(read_lines([source])), list(read_lines([target]))
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {counted(len(sources), 'line')} and {target} has {len(targets):,}; they "
            "must correspond line by line"
        )
    return sources, targets


@contextmanager
def progress_counter(what: str = "pairs") -> Iterator[Any]:
    """Give a progress callback that shows a counter on a terminal, and lines elsewhere."""
    terminal = sys.stderr.isatty()
    begin = last = ended = time.monotonic()
    current, shown = "", False

    def progress(stage: str, done: int, total: int | None) -> None:
        nonlocal begin, last, ended, current, shown
        now = time.monotonic()
        if stage != current:
            current, begin = stage, ended
        ended = now
        if now - last < (0.1 if terminal else 10):
            return
        last, shown = now, True
        of = f" of {total:,}" if total else ""
        text = f"{stage}: {done:,}{of} {what}"
        if total and 0 < done < total:
            text += f", {duration((now - begin) * (total - done) / done)} left"
        print(
            f"\r{text}\x1b[K" if terminal else text, end="" if terminal else "\n", file=sys.stderr
        )

    try:
        yield progress
    finally:
        if shown:
            _clear_line()


class TranslationProgress:
    """Show on a terminal how much of a text is translated, how fast, and how long the rest takes.

    Whoever stops the program is told how far it came.
    """

    def __init__(
        self, files: Sequence[Path], out: Path | None = None, *, shown: bool = True
    ) -> None:
        """Count the lines of files that can be counted quickly, to know how many there are."""
        self.lines = 0
        """So many lines are translated."""
        self._out, self._shown = out, shown and sys.stderr.isatty()
        self._total = _count_lines(files) if files else None
        self._begin, self._shown_at = time.monotonic(), 0.0

    def __enter__(self) -> TranslationProgress:
        if self._shown:
            self._show(self._begin)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._shown:
            _clear_line()
        if kind is KeyboardInterrupt:
            place = "" if self._out is None else f", in {self._out}"
            print_message(f"stopped after {self._describe()}{place}")

    def add(self, source: str) -> None:
        """Note that a text is translated, which may have several lines."""
        self.lines += max(1, source.count("\n"))
        now = time.monotonic()
        if self._shown and now - self._shown_at >= 0.2:
            self._shown_at = now
            self._show(now)

    def _show(self, now: float) -> None:
        text = self._describe()
        if self.lines:
            speed = self.lines / max(now - self._begin, 1e-3)
            text += f", {speed:,.0f} lines/s" if speed >= 10 else f", {speed:.1f} lines/s"
            if self._total:
                text += f", {duration((self._total - self.lines) / speed)} left"
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def _describe(self) -> str:
        """Return how far it came, in words."""
        if self._total is None:
            return counted(self.lines, "line")
        return f"{self.lines:,} of {counted(self._total, 'line')}"


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


@contextmanager
def open_output(path: Path | None, inputs: Sequence[Path] = ()) -> Iterator[TextIO]:
    """Open a file to write, or give standard output; what was there stays if nothing is written.

    The file is written under another name first, so that a failure leaves what there was; what was
    done before the failure is kept under that name. When the user stops the program, it is kept.
    """
    if path is None:
        yield sys.stdout
        return
    if any(_same_file(path, one) for one in inputs):
        raise ConfigError(f"{path}: would be overwritten by its translation; choose another --out")
    if not path.parent.exists():
        raise ConfigError(f"{path}: there is no directory {path.parent}; make it first")
    if path.exists() and not path.is_file():  # a device or a pipe
        with explain_os_errors(path), path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    unfinished = path.with_name(f"{path.name}.unfinished")
    with explain_os_errors(path):
        try:
            with unfinished.open("w", encoding="utf-8", newline="") as file:
                yield file
        except KeyboardInterrupt:
            unfinished.replace(path)
            raise
        except BaseException:
            with suppress(OSError):
                if unfinished.stat().st_size:
                    print_message(f"{unfinished}: holds what was translated before the error")
                else:
                    unfinished.unlink()
            raise
        unfinished.replace(path)


def _same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def print_result(what: object) -> None:
    """Write a result: text as it is, anything else as JSON."""
    text = what if isinstance(what, str) else json.dumps(what, ensure_ascii=False, indent=2)
    if sys.stdout.isatty():
        _clear_line()
    print(text, flush=sys.stdout.isatty())


def format_value(value: object) -> str:
    """Return a value as people read it."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {format_value(item)}" for key, item in value.items())
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def print_message(message: str) -> None:
    """Print a message to the user on stderr, in place of a progress line that may stand there."""
    _clear_line()
    print(f"dragoman: {message}", file=sys.stderr)


def _clear_line() -> None:
    """Clear the line on which progress is shown, on a terminal."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
