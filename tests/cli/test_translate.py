"""Texts, files and directories on the command line, with a model that copies."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import translate as translate_command
from dragoman.cli.console import TranslationProgress
from dragoman.cli.translation_modes import _join_blocks
from dragoman.inference import Translation, Translator
from dragoman.inference.translation_types import Issue
from dragoman.workflows.translate_files import RECORD, result_name

from ..awkward_texts import CASES
from ..conftest import Result
from ..fake_engines import make_translator

Command = Callable[..., Result]

PAGE = '<!DOCTYPE html>\n<p>The <b>old</b> house.</p><pre>x()</pre><img alt="A cat">\n'
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nHello, my friend.\n\n"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A model that copies, and from time to time says something else."""
    monkeypatch.setattr(
        translate_command, "load_translator", lambda *paths, **options: make_translator("identity")
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dragoman.workflows.translate_files.identify_model", lambda path: str(path))
    return tmp_path / "model"


def good(result: Result) -> str:
    assert result.status == 0, result.err
    return result.out


# --- texts ---


def test_words_that_name_no_file_are_a_text(model: Path, command: Command) -> None:
    assert good(command("translate", model, "Hello world.")) == "Hello world.\n"
    assert good(command("translate", model, "Hello", "my", "world")) == "Hello my world\n"
    assert good(command("translate", model, "Two")) == "Two\n"


@pytest.mark.parametrize("name", ["letter.docx", "no/such", "./x", "a.txt"])
def test_what_looks_like_a_file_must_be_one(name: str, model: Path, command: Command) -> None:
    found = command("translate", model, name)
    assert (found.status, found.err) == (2, f"dragoman: {name}: no such file\n")


def test_a_file_and_a_text_are_not_mixed(model: Path, command: Command) -> None:
    Path("a.txt").write_text("Hello.\n")
    found = command("translate", model, "a.txt", "good morning")
    assert found.status == 2
    assert "'good morning' is not a file" in found.err


@pytest.mark.parametrize("option", ["--out", "-o"])
def test_the_translation_goes_where_it_is_wanted(
    option: str, model: Path, command: Command
) -> None:
    text = b"One.\r\n\r\n  Two. Three.\r\n"
    assert good(command("translate", model, option, "out.de", stdin=text)) == ""
    assert Path("out.de").read_bytes() == text
    good(command("translate", model, "--json", option, "out.jsonl", stdin=b"One.\nTwo.\n"))
    lines = [json.loads(line)["text"] for line in Path("out.jsonl").read_text().splitlines()]
    assert lines == ["One.", "Two."]
    found = command("translate", model, option, "no/such/place", stdin=text)
    assert found.status == 2
    assert found.err == "dragoman: no/such/place: there is no directory no/such; make it first\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_of_the_file(model: Path, command: Command) -> None:
    found = command("translate", model, "-o", "/dev/full", stdin=b"One.\n")
    assert found.status == 2
    assert found.err.startswith("dragoman: /dev/full: no space left on device; ")


def test_awkward_texts_come_back_from_standard_input(model: Path, command: Command) -> None:
    cases = [case for case in CASES if case.kind in ("item", "title", "sentences", "single word")]
    text = "\n\n".join(case.text for case in cases) + "\n"
    found = good(command("translate", model, stdin=text.encode()))
    blocks = found.removesuffix("\n").split("\n\n")
    assert len(blocks) == len(cases)
    for case, block in zip(cases, blocks, strict=True):
        assert all(item in block for item in case.kept), block


def test_a_text_in_another_language_is_said_once(model: Path, command: Command) -> None:
    korean = "안녕하세요. 저는 학생입니다. 오늘은 날씨가 좋습니다.\n" * 3
    found = command("translate", model, stdin=korean.encode())
    assert found.status == 0
    assert found.err == (
        "dragoman: this seems to be Korean, but the model translates from English\n"
    )
    assert command("translate", model, stdin=b"This is as it should be, and so on.\n").err == ""
    assert command("translate", model, "--raw", stdin=korean.encode()).err == ""


def test_a_report_counts_what_was_found(
    model: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        translate_command, "load_translator", lambda *paths, **options: make_translator("silent")
    )
    good(command("translate", model, "--report", "r.json", stdin=b"Good day.\n\nThe end.\n"))
    found = json.loads(Path("r.json").read_text())
    assert found["lines"] == 2
    assert found["issues"] == {"empty": {"found": 2, "repaired": 0}}
    assert found["details"][1] == {
        "where": "line 3",
        "kind": "empty",
        "detail": "nothing was said",
        "repaired": False,
    }


def test_what_was_translated_when_it_is_stopped_is_kept(
    model: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(self: Translator, texts: Any, **options: Any) -> Iterator[Translation]:
        for number, text in enumerate(texts):
            if number == 2:
                raise KeyboardInterrupt
            yield Translation(text, text.upper(), 0.0, ())

    monkeypatch.setattr(Translator, "translate_lines", stopped)
    Path("long.txt").write_text("one\n\n" * 40)
    found = command("translate", model, "long.txt", "-o", "out.txt")
    assert found.status == 130
    assert found.err == "dragoman: stopped after 52 of 80 lines, in out.txt\n"
    assert Path("out.txt").read_text() == "ONE\n\n" * 26
    Path("a.txt").write_text("one\n\ntwo\n\nthree\n\n")
    found = command("translate", model, "a.txt", "--json", "-o", "out.jsonl")
    assert (found.status, found.err) == (
        130,
        "dragoman: stopped after 2 of 6 lines, in out.jsonl\n",
    )
    assert [json.loads(line)["text"] for line in Path("out.jsonl").read_text().splitlines()] == [
        "ONE",
        "",
    ]


def test_a_sentence_with_little_confidence_is_named_by_its_line(
    model: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsure(self: Translator, texts: Any, **options: Any) -> Iterator[Translation]:
        for text in texts:
            parts = [part.strip() for part in text.split(".") if part.strip()]
            sentences = tuple(
                Translation(
                    part,
                    part.upper(),
                    0.0,
                    (),
                    confidence=0.3 if "bad" in part else 0.9,
                    issues=(Issue("item", "7"),) if "7" in part else (),
                )
                for part in parts
            )
            yield Translation(text, text, 0.0, (), confidence=0.8, sentences=sentences)

    monkeypatch.setattr(Translator, "translate_lines", unsure)
    text = b"It is good. It is bad\nbeyond words. It is good.\nIt is bad. It is 7.\n"
    found = command("translate", model, "--flag-below", "0.6", "--report", "r.json", stdin=text)
    assert found.err.splitlines()[:2] == [
        "dragoman: line 1: confidence 0.30: IT IS BAD BEYOND WORDS",
        "dragoman: line 3: confidence 0.30: IT IS BAD",
    ]
    report = json.loads(Path("r.json").read_text())
    assert report["flagged"] == 2
    assert [one["where"] for one in report["details"]] == ["line 3"]


def test_long_blocks_of_lines_are_cut_after_a_sentence() -> None:
    lines = ["Not yet\n"] * 60 + ["The end.\n"] + ["Not yet\n"] * 300
    assert [block.count("\n") for block in _join_blocks(lines, 1)] == [61, 200, 100]
    assert [block.count("\n") for block in _join_blocks(["One.\n"] * 80, 1)] == [50, 30]
    paragraphs = ["One.\n", "Two.\n", "\n"] * 5
    assert [block.count("\n") for block in _join_blocks(paragraphs, 1)] == [3] * 5
    assert [block.count("\n") for block in _join_blocks(paragraphs, 5)] == [6, 6, 3]


def test_progress_is_shown_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    (tmp_path / "a.txt").write_text("x\n" * 40)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with TranslationProgress([tmp_path / "a.txt"]) as progress:
        progress.add("x\n" * 10)
    assert "10 of 40 lines" in terminal.getvalue()
    assert " left" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    monkeypatch.setattr(sys, "stderr", plain := io.StringIO())
    with TranslationProgress([]) as progress:
        progress.add("x\n")
    assert plain.getvalue() == ""


# --- documents ---


def test_documents_are_written_beside_the_originals(model: Path, command: Command) -> None:
    files = {
        "page.html": PAGE,
        "film.srt": SUBTITLES,
        "README.md": "# Title\n\nSome `code` here.\n",
        "strings.json": '{"a": "Hello, {name}!"}\n',
        "table.csv": "id,text\n1,Good morning\n",
        "mail.txt": "Dear Tom,\n\nthank you.\n",
    }
    for name, content in files.items():
        Path(name).write_text(content)
    found = good(command("translate", model, *files, "--column", "text"))
    results = [result_name(Path(name), "de") for name in files]
    assert found.split() == results
    for name, result in zip(files, results, strict=True):
        expected = files[name].replace('lang="en"', 'lang="de"')
        assert Path(result).read_text() == expected, name


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("letter.docx", "letter.de.docx"),
        ("app.en.json", "app.de.json"),
        ("v1.2.md", "v1.2.de.md"),
        ("x.tar.md", "x.de.md"),
    ],
)
def test_a_result_is_named_by_its_language(name: str, result: str) -> None:
    assert result_name(Path(name), "de") == result


def test_a_result_that_exists_is_overwritten_only_if_wanted(model: Path, command: Command) -> None:
    Path("page.html").write_text(PAGE)
    Path("page.de.html").write_text("by hand")
    found = command("translate", model, "page.html")
    assert found.status == 2
    assert "page.de.html: already exists; add --force" in found.err
    assert Path("page.de.html").read_text() == "by hand"
    good(command("translate", model, "page.html", "--force"))
    assert Path("page.de.html").read_text() == PAGE
    good(command("translate", model, "page.html", "-o", "other.html"))
    assert Path("other.html").read_text() == PAGE


def test_a_broken_document_is_one_line_and_the_others_are_done(
    model: Path, command: Command
) -> None:
    Path("bad.docx").write_bytes(b"no document")
    Path("page.html").write_text(PAGE)
    found = command("translate", model, "bad.docx", "page.html")
    assert found.status == 2
    assert found.out == "page.de.html\n"
    assert found.err.startswith("dragoman: bad.docx: ")
    assert found.err.count("\n") == 1
    assert not Path("bad.de.docx").exists()


@pytest.mark.parametrize("more", [[], ["--memory", "known.tmx"]], ids=str)
def test_a_directory_keeps_its_structure_and_is_done_once(
    more: list[str], model: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("docs/deep/er").mkdir(parents=True)
    Path("docs/a.md").write_text("# Title\n")
    Path("docs/deep/er/page.html").write_text(PAGE)
    Path("docs/deep/picture.png").write_bytes(b"\x89PNG")
    good(command("translate", model, "docs", "--out", "docs.de", *more))
    assert Path("docs.de/a.md").read_text() == "# Title\n"
    assert Path("docs.de/deep/er/page.html").read_text() == PAGE
    assert Path("docs.de/deep/picture.png").read_bytes() == b"\x89PNG"
    assert Path("docs.de", RECORD).exists()

    def refuse(self: Translator, *texts: Any, **options: Any) -> Any:
        raise AssertionError("translated again")

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate", refuse)
        good(command("translate", model, "docs", "--out", "docs.de", *more))
    Path("docs/a.md").write_text("# Other\n")
    good(command("translate", model, "docs", "--out", "docs.de", *more))
    assert Path("docs.de/a.md").read_text() == "# Other\n"


def test_a_failure_leaves_what_there_was_and_keeps_what_is_done(
    model: Path, command: Command
) -> None:
    Path("good.txt").write_text("Tom sleeps.\n\n")
    Path("bad.txt").write_bytes(b"Mary sleeps.\n\xff\xfe\xfd\n")
    Path("out.txt").write_text("old")
    found = command("translate", model, "good.txt", "bad.txt", "--out", "out.txt")
    assert found.status == 2
    assert Path("out.txt").read_text() == "old"
    assert "out.txt.unfinished: holds what was translated before the error" in found.err
    assert Path("out.txt.unfinished").read_text().startswith("Tom sleeps.\n\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["docs"], "name it with --out"),
        (["docs", "--out", "docs"], "would be overwritten"),
        (["docs", "--out", "docs/a.md"], "is a file"),
        (["docs/a.md", "--json"], "documents are translated to documents"),
        (["docs/a.md", "docs/x.png"], "cannot be translated; use one of"),
        (["empty", "--out", "out"], "empty: contains no document that can be translated"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], message: str, model: Path, command: Command
) -> None:
    Path("docs").mkdir()
    Path("empty/deep").mkdir(parents=True)
    Path("docs/a.md").write_text("# Title\n")
    Path("docs/x.png").write_bytes(b"x")
    found = command("translate", model, *arguments)
    assert found.status == 2
    assert message in found.err
    assert sorted(path.name for path in Path("docs").iterdir()) == ["a.md", "x.png"]


def test_a_memory_knows_sentences_and_learns_new_ones(model: Path, command: Command) -> None:
    assert (
        "2 new translations added to known.tmx"
        in command("translate", model, "--memory", "known.tmx", stdin=b"Good day. The end.\n").err
    )
    known = Path("known.tmx").read_text()
    Path("known.tmx").write_text(known.replace("<seg>Good day.</seg></tuv>", "<seg>X</seg></tuv>"))
    changed = Path("known.tmx").read_text().replace("<seg>X</seg>", "<seg>Good day.</seg>", 1)
    Path("known.tmx").write_text(changed)
    found = command("translate", model, "--memory", "known.tmx", stdin=b"Good day. The end.\n")
    assert found.out == "X The end.\n"


# --- nothing is lost ---


def test_the_input_is_never_the_output(model: Path, command: Command) -> None:
    Path("in.txt").write_text("Good morning.\n")
    found = command("translate", model, "in.txt", "-o", "./in.txt")
    assert found.status == 2
    assert "would be overwritten by its translation" in found.err
    assert Path("in.txt").read_text() == "Good morning.\n"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.pdf", b"%PDF-1.7\n", "a PDF"),
        ("a.png", b"\x89PNG\r\n", "an image"),
        ("a.xlsx", b"PK\x03\x04x", "a zip archive"),
        ("a.out", b"\x7fELF\x02\x01\x00\xff\xfe", "a binary file"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1x", "an old office file"),
    ],
)
def test_what_is_no_text_is_named(
    name: str, content: bytes, kind: str, model: Path, command: Command
) -> None:
    Path(name).write_bytes(content)
    found = command("translate", model, name)
    assert found.status == 2
    assert found.err.startswith(f"dragoman: {name}: {kind}, not text; ")
    assert found.err.count("\n") == 1


def test_an_empty_text_is_one(model: Path, command: Command) -> None:
    assert good(command("translate", model, "")) == "\n"


def test_the_first_lines_of_a_long_file_come_soon(model: Path, command: Command) -> None:
    translator = make_translator("identity")
    windows = [len(some) for some in translator._windows(["x\n" * 200] * 20, None)]
    assert windows[:2] == [1, 1]
    assert [len(some) for some in translator._windows(["x"] * 200, None)] == [64, 100, 36]
