"""`dragoman translate` without a model: it is chosen by the languages."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import translate as translate_command
from dragoman.cli.translate import split_model
from dragoman.errors import DragomanError
from dragoman.inference import Translator
from dragoman.inference.model_chains import ModelChain
from dragoman.inference.pivot_translator import PivotTranslator

from ..conftest import Result
from ..fake_engines import make_translator

Command = Callable[..., Result]

ENGLISH = "The cat sleeps all day long on the old sofa."
GERMAN = "Die Katze schläft den ganzen Tag auf dem alten Sofa."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three installed models that copy; the working directory is empty."""
    models = tmp_path / "models"
    for name in ("de-en", "en-de", "en-ko"):
        (models / name).mkdir(parents=True)
        (models / name / "card.json").write_text("{}")
        (models / name / "int8.safetensors").write_text("")
        (models / name / "config.toml").write_text(f"[data]\nlanguages = {name.split('-')}\n")
    monkeypatch.setenv("DRAGOMAN_MODELS", str(models))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return models


@pytest.fixture
def chosen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was loaded: a model's path, or the names of a chain."""
    loaded: list[str] = []

    def load(path: Path, *others: Path, **options: Any) -> Translator:
        loaded.append(str(path))
        return make_translator("identity")

    def load_chain(chain: ModelChain, **options: Any) -> Translator:
        loaded.append(" ".join(one.name for one in chain.models))
        found = [make_translator("identity", (one.source, one.target)) for one in chain.models]
        return PivotTranslator(*found) if len(found) == 2 else found[0]

    monkeypatch.setattr(translate_command, "load_translator", load)
    monkeypatch.setattr(translate_command, "load_chain", load_chain)
    monkeypatch.setattr("dragoman.workflows.translate_files.identify_model", str)
    return loaded


def good(result: Result) -> str:
    assert result.status == 0, result.err
    return result.out


def bad(result: Result) -> str:
    assert result.status == 2
    assert result.out == ""
    [line] = result.err.splitlines()
    return line.removeprefix("dragoman: ")


def test_the_language_of_a_text_and_to_choose_the_model(
    chosen: list[str], command: Command
) -> None:
    assert good(command("translate", GERMAN, "--to", "en")) == f"{GERMAN}\n"
    assert good(command("translate", "Guten Morgen", "--to", "en")) == "Guten Morgen\n"
    assert good(command("translate", "--to", "de", stdin=ENGLISH.encode())) == f"{ENGLISH}\n"
    good(command("translate", "Hello", "--from", "en", "--to", "ko"))
    assert chosen == ["de-en", "de-en", "en-de", "en-ko"]


def test_to_is_left_out_where_there_is_one_target(chosen: list[str], command: Command) -> None:
    good(command("translate", GERMAN))
    good(command("translate", stdin=GERMAN.encode()))
    good(command("translate", "Hallo", "--from", "de"))
    assert chosen == ["de-en"] * 3
    assert bad(command("translate", ENGLISH)) == (
        "several languages can be translated to from en; add --to de, --to ko"
    )


def test_two_models_are_chained_and_the_result_says_so(chosen: list[str], command: Command) -> None:
    found = json.loads(good(command("translate", GERMAN, "--to", "ko", "--json")))
    assert (found["text"], found["through"]) == (GERMAN, "en")
    assert chosen == ["de-en en-ko"]
    assert "through" not in json.loads(good(command("translate", GERMAN, "--to", "en", "--json")))


def test_documents_files_and_directories_tell_their_language(
    chosen: list[str], command: Command
) -> None:
    Path("letter.html").write_text(f"<p>{GERMAN}</p>")
    assert good(command("translate", "letter.html", "--to", "en")) == "letter.en.html\n"
    Path("notes.txt").write_text(f"\n\n1.\n{GERMAN}\n")
    assert GERMAN in good(command("translate", "notes.txt", "--to", "en"))
    Path("docs").mkdir()
    Path("docs/1.json").write_text("{broken")
    Path("docs/2.md").write_text(f"# {GERMAN}\n")
    found = command("translate", "docs", "--to", "ko", "-o", "out")
    assert found.out == "out/2.md\n", "the broken one is said to be broken, and the rest is done"
    assert "docs/1.json: not JSON" in found.err
    Path("table.csv").write_text(f'n,text\n1,"{ENGLISH}"\n')
    good(command("translate", "table.csv", "--to", "de", "--column", "text"))
    assert chosen == ["de-en", "de-en", "de-en en-ko", "en-de"]


def test_nothing_of_standard_input_is_lost(chosen: list[str], command: Command) -> None:
    text = "".join(f"{GERMAN} {number}\n\n" for number in range(500))
    assert good(command("translate", "--to", "en", stdin=text.encode())) == text


def test_a_pipe_is_read_no_further_than_what_is_there(
    chosen: list[str], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(io.RawIOBase):
        """Give one line at a time, as a program does that waits for the answer."""

        reads = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            type(self).reads += 1
            line = f"{GERMAN}\n".encode() if self.reads < 3 else b""
            buffer[: len(line)] = line
            return len(line)

    from dragoman.cli.translation_modes import sample_text

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Slow())))
    assert sample_text([], []) == f"{GERMAN}\n"
    assert Slow.reads == 1


# --- what the first argument is ---


def test_a_name_or_a_directory_is_the_model_as_always(
    chosen: list[str], command: Command, folder: Path
) -> None:
    good(command("translate", "en-de", "Hello", "world"))
    good(command("translate", "de-ko", "Hallo Welt"))
    good(command("translate", folder / "en-de", stdin=b"Hello\n"))
    good(command("translate", "runs/nowhere", stdin=b"Hello\n"))  # what loads it refuses it
    assert chosen == ["en-de", "de-ko", str(folder / "en-de"), "runs/nowhere"]


def test_a_file_that_has_the_name_of_a_model(chosen: list[str], command: Command) -> None:
    Path("en-de").write_text(f"{GERMAN}\n")
    good(command("translate", "en-de", "Hello"))  # a file can be no model
    good(command("translate", "en-de", "--to", "en"))  # where no model is named it is the file
    assert chosen == ["en-de", "de-en"]


def test_a_directory_comes_before_a_name(chosen: list[str], command: Command) -> None:
    Path("de-en").mkdir()
    Path("de-en/letter.md").write_text(GERMAN)
    good(command("translate", "de-en", "Hello"))  # what loads it says that it is no model
    assert chosen == ["de-en"]
    good(command("translate", "de-en", "--to", "en", "-o", "out"))
    assert Path("out/letter.md").exists()


def test_a_text_that_is_the_name_of_a_model(chosen: list[str], command: Command) -> None:
    reason = bad(command("translate", "en-de", "--to", "ko"))
    assert reason.startswith("en-de: names a model, and --to and --from choose one; leave out eith")
    assert bad(command("translate", "en-de", "Hello", "--to", "ko")) == reason
    assert bad(command("translate", "de-ko", "--from", "en")).startswith("de-ko: names a model")
    assert good(command("translate", "--from", "en", "--to", "de", stdin=b"en-de\n")) == "en-de\n"
    assert good(command("translate", "en-de", "en-de")) == "en-de\n"
    assert good(command("translate", "see en-de", "--from", "en", "--to", "de")) == "see en-de\n"


def test_a_single_word_is_taken_for_a_model(chosen: list[str], command: Command) -> None:
    assert bad(command("translate", "Hello")) == (
        "Hello: no such model; installed: de-en, en-de, en-ko; to translate this word, add --to"
    )
    good(command("translate", "Hello", "--to", "de"))
    assert chosen == ["en-de"]


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (["two words"], None),
        ([""], None),
        (["-"], None),
        (["word", "word"], "word"),
        (["en-de", "-"], "en-de"),
    ],
)
def test_arguments_are_split(words: list[str], model: str | None, folder: Path) -> None:
    found, rest = split_model(words, chosen_by_language=False)
    assert found == model
    assert rest == (words if model is None else words[1:])


# --- what is refused ---


def test_what_would_help_is_said(chosen: list[str], command: Command) -> None:
    assert bad(command("translate", ENGLISH, "--to", "fr")) == (
        "nothing installed translates to French; try: dragoman get en-fr; there are de-en, en-de, "
        "en-ko, de-ko"
    )
    assert bad(command("translate", ENGLISH, "--to", "German")) == (
        "--to German: write a language's code, as in --to de"
    )
    assert bad(command("translate", "-i", "--to", "de")) == "-i needs a model, or --from and --to"
    assert bad(command("translate", ENGLISH, "--to", "de", "--with", "en-de")).startswith(
        "--with, --draft and --engine need one model"
    )
    assert bad(command("translate", "no.txt", "--to", "de")) == "no.txt: no such file"


def test_without_models_it_is_said_how_to_get_one(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOMAN_MODELS", "")
    assert bad(command("translate", ENGLISH, "--to", "ko")) == (
        "no translator is installed; get one, as in: dragoman get en-ko, or give a model directory"
    )


def test_without_any_argument_a_terminal_is_told_what_to_give(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    with pytest.raises(DragomanError, match="give a model, or a text and --to"):
        split_model([], chosen_by_language=False)
