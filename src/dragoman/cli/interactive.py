"""At a prompt, lines are translated, and commands begin with a colon."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.errors import ConfigError, DragomanError
from dragoman.messages import counted

if TYPE_CHECKING:
    from dragoman.inference import Translation, Translator

HISTORY_LINES: Final = 1000
HELP: Final = """\
a line       is translated
:n 5         show 5 translations of each line
:align       show which word comes from which, or stop showing it
:beam 4      let the search keep 4 hypotheses
:help        show this
:quit        leave, like Ctrl-D; Ctrl-C clears the line or stops a translation"""


class Session:
    """Remember what was set at the prompt, and answer each line."""

    def __init__(self, translator: Translator, options: dict[str, Any]) -> None:
        """`options` are those of `Translator.translate` that hold for every line."""
        self._translator, self._options = translator, dict(options)

    def answer(self, line: str) -> str | None:
        """Return what to print for a line, "" for nothing, or None if the user leaves."""
        line = line.strip()
        if not line:
            return ""
        if line.startswith(":"):
            return self._command(line)
        return self._written(line, self._translator.translate(line, **self._options))

    def _command(self, line: str) -> str | None:
        name, _, value = line[1:].partition(" ")
        match name:
            case "q" | "quit" | "exit":
                return None
            case "h" | "help":
                return HELP
            case "n":
                return f"{counted(self._set('n_best', ':n', value), 'translation')} of each line"
            case "beam":
                count = self._set("beam", ":beam", value)
                return f"{counted(count, 'hypothesis', 'hypotheses')} kept by the search"
            case "align":
                return self._align()
        raise ConfigError(f":{name}: no such command; :help lists them")

    def _set(self, option: str, word: str, value: str) -> int:
        if not (value.strip().isascii() and value.strip().isdigit() and 1 <= int(value) <= 100):
            raise ConfigError(f"{word} takes a number from 1 to 100, as in {word} 4")
        self._options[option] = int(value)
        beam, n_best = self._options.get("beam"), self._options.get("n_best") or 1
        if beam is not None and beam < n_best:
            self._options["n_best" if option == "beam" else "beam"] = int(value)
        return int(value)

    def _align(self) -> str:
        if not self._translator.aligns:
            raise ConfigError(
                "this model has no attention to its source, so it cannot show alignments"
            )
        self._options["align"] = on = not self._options.get("align")
        return "alignments are shown" if on else "alignments are no longer shown"

    def _written(self, source: str, best: Translation) -> str:
        if not best.alternatives:
            return "\n".join([best.text, *self._alignment(source, best)])
        lines = []
        for one in (best, *best.alternatives):
            lines += [f"{one.score:8.4f}  {one.text}", *self._alignment(source, one)]
        return "\n".join(lines)

    def _alignment(self, source: str, one: Translation) -> list[str]:
        """Return a line for each word of the translation, with the words it comes from."""
        if not self._options.get("align"):
            return []
        read, said = source.split(), one.text.split()
        width = max(map(len, said), default=0)
        pairs = [
            (word, [read[s] for s, t in one.alignment if t == place and s < len(read)])
            for place, word in enumerate(said)
        ]
        return [f"    {word:{width}}  {' '.join(origin)}".rstrip() for word, origin in pairs]


def run_prompt(
    translator: Translator,
    options: dict[str, Any],
    *,
    write: Callable[[str], None] = print,
    complain: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
) -> None:
    """Ask for lines and answer them until the user leaves; an error ends a line only."""
    if not sys.stdin.isatty():
        raise ConfigError("-i needs a terminal; leave it out to translate the lines of stdin")
    session = Session(translator, options)
    with persistent_history(history_file()):
        while True:
            try:
                line = input(_prompt(translator))
            except KeyboardInterrupt:
                write("")  # the line is forgotten
                continue
            except EOFError:
                write("")
                return
            except UnicodeDecodeError:
                complain("dragoman: that was not UTF-8; type it again")
                continue
            try:
                answer = session.answer(line)
            except KeyboardInterrupt:
                complain("stopped")
                continue
            except DragomanError as error:
                complain(f"dragoman: {error}")
                continue
            if answer is None:
                return
            if answer:
                write(answer)


def _prompt(translator: Translator) -> str:
    languages = translator.config.data.languages
    return f"{'-'.join(languages)}> " if languages else "> "


def history_file() -> Path:
    """Return the file in which typed lines are kept, below the user's state directory."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "dragoman" / "history"


@contextmanager
def persistent_history(file: Path) -> Iterator[None]:
    """Let lines be edited and recalled, those of earlier sessions too where a file can be kept."""
    try:
        import readline
    except ImportError:  # some Pythons are built without it
        yield
        return
    with suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(HISTORY_LINES)
    try:
        yield
    finally:
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)
            file.chmod(0o600)  # what was typed is nobody else's
