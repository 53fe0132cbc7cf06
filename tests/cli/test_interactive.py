"""The prompt of dragoman translate -i."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.cli.interactive import (
    HELP,
    HISTORY_LINES,
    Session,
    history_file,
    persistent_history,
    run_prompt,
)
from dragoman.errors import ConfigError, DataError
from dragoman.inference import Translation, Translator, load

from ..conftest import Result

pty = pytest.importorskip("pty", reason="a terminal is needed, which this system has not")


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return load(trained, device="cpu")


def test_a_line_is_translated(translator: Translator) -> None:
    text = "the red dog"
    assert Session(translator, {}).answer(f" {text} ") == translator.translate(text).text
    assert Session(translator, {}).answer("  ") == ""


def test_n_gives_so_many_translations(translator: Translator) -> None:
    session = Session(translator, {})
    assert session.answer(":n 3") == "3 translations of each line"
    answer = session.answer("the red dog")
    assert answer is not None
    found = translator.translate("the red dog", n_best=3)
    wanted = [f"{one.score:8.4f}  {one.text}" for one in (found, *found.alternatives)]
    assert answer.split("\n") == wanted
    assert session.answer(":n 1") == "1 translation of each line"
    assert session.answer("the red dog") == translator.translate("the red dog").text


def test_a_beam_is_never_narrower_than_what_is_asked_for(translator: Translator) -> None:
    session = Session(translator, {})
    for word in (":beam 2", ":n 5"):
        session.answer(word)
    assert len((session.answer("the red dog") or "").split("\n")) == 5
    session.answer(":beam 2")
    assert len((session.answer("the red dog") or "").split("\n")) == 2


def test_align_shows_where_words_come_from(translator: Translator) -> None:
    session = Session(translator, {})
    assert session.answer(":align") == "alignments are shown"
    text, *pairs = (session.answer("the red dog") or "").split("\n")
    assert [line.split()[0] for line in pairs] == text.split()
    found = translator.translate("the red dog", align=True)
    first = [("the", "red", "dog")[s] for s, t in found.alignment if t == 0]
    assert pairs[0].split()[1:] == first
    assert session.answer(":align") == "alignments are no longer shown"
    assert "\n" not in (session.answer("the red dog") or "\n")


@pytest.mark.parametrize("line", [":n", ":n 0", ":n many", ":n -1", ":n 1000", ":beam ²", ":what"])
def test_what_is_not_understood_is_said(translator: Translator, line: str) -> None:
    with pytest.raises(ConfigError, match=r":help|as in :"):
        Session(translator, {}).answer(line)


def test_help_and_quit(translator: Translator) -> None:
    session = Session(translator, {})
    assert session.answer(":help") == HELP
    assert session.answer(":quit") is None
    for word in (":n", ":align", ":beam", ":help", ":quit"):
        assert word in HELP


def test_without_a_terminal_one_line_says_so(trained: Path, command: Callable[..., Result]) -> None:
    found = command("translate", trained, "-i", "--device", "cpu", stdin=b"the dog\n")
    assert (found.status, found.out) == (2, "")
    assert found.err.count("\n") == 1
    assert "needs a terminal" in found.err


def test_files_are_not_for_a_prompt(trained: Path, command: Callable[..., Result]) -> None:
    found = command("translate", trained, "some.txt", "-i")
    assert found.status == 2
    assert "-i translates at a prompt" in found.err


def test_history_is_kept_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readline = pytest.importorskip("readline", reason="this Python has no readline")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = history_file()
    assert file == tmp_path / "dragoman" / "history"
    readline.clear_history()
    with persistent_history(file):
        for number in range(HISTORY_LINES + 50):
            readline.add_history(f"line {number}")
    kept = file.read_text().split("\n")
    assert len([line for line in kept if line.startswith("line ")]) == HISTORY_LINES
    assert kept[-2] == f"line {HISTORY_LINES + 49}"
    assert file.stat().st_mode & 0o077 == 0
    readline.clear_history()
    with persistent_history(file):
        assert readline.get_current_history_length() == HISTORY_LINES
    readline.clear_history()


def test_what_goes_wrong_ends_a_line_only(
    monkeypatch: pytest.MonkeyPatch, translator: Translator, tmp_path: Path
) -> None:
    coming = iter(["one", KeyboardInterrupt(), "two", "three", "four", EOFError()])
    answers = iter([KeyboardInterrupt(), DataError("it cannot be read"), "drei"])

    def type_(prompt: str) -> str:
        if isinstance(one := next(coming), BaseException):
            raise one
        return one

    def translate(text: str, **options: object) -> Translation:
        if isinstance(one := next(answers, text), BaseException):
            raise one
        return Translation(text, one, 0.0, ())

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("builtins.input", type_)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(translator, "translate", translate)
    written: list[str] = []
    complaints: list[str] = []
    run_prompt(translator, {}, write=written.append, complain=complaints.append)
    assert complaints == ["stopped", "dragoman: it cannot be read"]
    assert written == ["", "drei", "four", ""]  # after Ctrl-C, and after Ctrl-D, a new line


# A process that has a terminal only for input has no Ctrl-C; this makes it the one that controls.
CONTROLLED = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, trained: Path, home: Path) -> None:
        self._terminal, theirs = pty.openpty()
        arguments = ["-m", "dragoman", "translate", str(trained), "-i", "--device", "cpu"]
        more = {"XDG_STATE_HOME": str(home), "OMP_NUM_THREADS": "1", "TERM": "dumb"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CONTROLLED, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | more,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, pattern: str, seconds: float = 30.0) -> str:
        """What it has written until the pattern came."""
        end = time.monotonic() + seconds
        os.set_blocking(self._terminal, False)
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < end, f"{pattern!r} never came: {self.seen!r}"
            try:
                self.seen += os.read(self._terminal, 4096).decode("utf-8", "replace")
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:  # it has left
                break
        assert found, f"{pattern!r} never came: {self.seen!r}"
        before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return before

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


@pytest.fixture
def terminal(trained: Path, tmp_path: Path) -> Iterator[Terminal]:
    one = Terminal(trained, tmp_path)
    yield one
    one.close()


@pytest.mark.slow
def test_in_a_terminal(terminal: Terminal, translator: Translator, tmp_path: Path) -> None:
    terminal.wait_for("> $")
    terminal.type("the red dog\n")
    terminal.wait_for(f"\n{translator.translate('the red dog').text}\r?\n")
    terminal.wait_for("> $")
    terminal.type("not this\x03")  # Ctrl-C clears the line
    terminal.wait_for("> $")
    terminal.type(":nonsense\n")  # an error does not end it
    terminal.wait_for("no such command")
    terminal.wait_for("> $")
    terminal.type(":n 2\n")
    terminal.wait_for("2 translations")
    terminal.wait_for("> $")
    terminal.type("\x04")  # Ctrl-D leaves
    assert terminal.process.wait(30) == 0
    kept = (tmp_path / "dragoman" / "history").read_text().split("\n")
    assert [line for line in kept if line and not line.startswith("_HiStOrY")] == [
        "the red dog",
        ":nonsense",
        ":n 2",
    ]
