"""A parser that is installed parses without being named."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import dragoman
from dragoman.cli.parse import split_parser
from dragoman.cli.serve import _find_models
from dragoman.errors import ModelError
from dragoman.model_directory import is_parser, open_model, replace_card, write_int8_model
from dragoman.trees.bracketing import parse_tree
from dragoman.trees.tree import leaves
from dragoman.workflows.model_packages import build_wheel, describe_wheel

from ..conftest import Result
from ..kernel import needs_kernel
from ..serve.service_fixtures import parser, translator

pytestmark = needs_kernel

Command = Callable[..., Result]

CARD = {"language": "en", "license": "CC BY 4.0", "scores": {"GUM dev F1": 80.123}}
PARAGRAPH = "Mr. Smith left. Did he?  Nobody knows!\n\nThe dog barks.\n"
SENTENCES = [
    ["Mr.", "Smith", "left", "."],
    ["Did", "he", "?"],
    ["Nobody", "knows", "!"],
    [],
    ["The", "dog", "barks", "."],
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a parser of int8 weights alone, as one is given away, and a translator."""
    home = tmp_path_factory.mktemp("installed")
    write_int8_model(open_model(parser(home / "whole")), home / "parse-en")
    shutil.rmtree(home / "whole")
    made = open_model(home / "parse-en")
    replace_card(made, made.card | CARD, "A parser.\n")
    translator(home / "en-de", "en-de", 1)
    return home


@pytest.fixture(autouse=True)
def here(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory, where the models are known by name."""
    monkeypatch.setenv("DRAGOMAN_MODELS", str(models))
    monkeypatch.chdir(tmp_path)


def good(result: Result) -> str:
    assert (result.status, result.err) == (0, ""), result
    return result.out


def bad(result: Result) -> str:
    assert (result.status, result.out) == (2, ""), result
    assert result.err.count("\n") == 1, result.err
    return result.err.removeprefix("dragoman: ").removesuffix("\n")


def words_of(text: str) -> list[list[str]]:
    trees = text.split("\n")[:-1]
    return [[leaf.word for leaf in leaves(parse_tree(tree))] if tree else [] for tree in trees]


# --- which parser ---


def test_the_installed_parser_is_used_where_none_is_named(models: Path, command: Command) -> None:
    text = "The dog barks."
    expected = good(command("parse", models / "parse-en", text))
    assert words_of(expected) == [["The", "dog", "barks", "."]]
    assert good(command("parse", text)) == expected
    assert good(command("parse", "parse-en", text)) == expected
    assert good(command("parse", "parse-en", "The", "dog", "barks.")) == expected
    assert good(command("parse", stdin=text.encode())) == expected
    assert good(command("parse", "parse-en", stdin=text.encode())) == expected
    Path("text.txt").write_text(text)
    assert good(command("parse", "text.txt")) == expected
    assert good(command("parse", "parse-en", "text.txt")) == expected


def test_python_needs_no_name_either(models: Path) -> None:
    assert dragoman.load_parser().path == models / "parse-en"
    assert dragoman.load_parser("parse-en").path == models / "parse-en"


def test_without_a_parser_it_is_said_how_to_get_one(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_MODELS", "")
    assert bad(command("parse", "The dog barks.")) == (
        "no parser is installed; get one, as in: dragoman get parse-en, or give a model directory"
    )


def test_of_several_parsers_one_has_to_be_named(
    models: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(models / "parse-en", "more/parse-news")
    monkeypatch.setenv("DRAGOMAN_MODELS", f"{models}{os.pathsep}more")
    assert bad(command("parse", "The dog barks.")) == (
        "several parsers are installed; name one of parse-en, parse-news"
    )
    assert words_of(good(command("parse", "parse-news", "Go!"))) == [["Go", "!"]]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], None),
        (["two words"], None),
        ([""], None),
        (["-"], None),
        (["a.txt"], None),
        (["parse-en"], "parse-en"),
        (["parse-en", "word"], "parse-en"),
        (["runs/none", "word"], "runs/none"),
        (["folder"], "folder"),
    ],
)
def test_arguments_are_split(words: list[str], named: str | None) -> None:
    Path("a.txt").write_text("Go!\n")
    Path("folder").mkdir()
    found, rest = split_parser(words)
    assert found == named
    assert rest == (words if named is None else words[1:])


def test_a_word_alone_is_taken_for_a_parser() -> None:
    with pytest.raises(ModelError, match="Hello: no such model; installed: en-de, parse-en; to p"):
        split_parser(["Hello"])
    for word in ("Hello!", "😀"):
        with pytest.raises(ModelError, match=f"to parse this word, .*echo '{word}' [|]"):
            split_parser([word])


def test_what_cannot_parse_is_refused(command: Command, models: Path) -> None:
    assert bad(command("parse", "pars-en", "Go!")) == (
        "pars-en: no such model; did you mean parse-en?"
    )
    assert bad(command("parse", "en-de", "Go!")) == (
        f"{models / 'en-de'}: a translator; use it with dragoman translate"
    )
    assert bad(command("parse", "parse-en", "none.txt")) == "none.txt: no such file"


def test_only_settings_that_can_be_read_make_a_parser(models: Path, tmp_path: Path) -> None:
    assert is_parser(models / "parse-en")
    assert not is_parser(models / "en-de")
    assert not is_parser(tmp_path)
    (tmp_path / "config.toml").write_text('data = "parsing"\n')
    assert not is_parser(tmp_path)


# --- which sentences ---


def test_each_sentence_of_a_paragraph_gets_a_tree(command: Command) -> None:
    assert words_of(good(command("parse", stdin=PARAGRAPH.encode()))) == SENTENCES
    assert words_of(good(command("parse", PARAGRAPH))) == SENTENCES
    lines = good(command("parse", "--json", stdin=PARAGRAPH.encode())).splitlines()
    assert [(json.loads(line) or {"words": []})["words"] for line in lines] == SENTENCES


def test_sentences_stay_on_their_line_if_asked(command: Command) -> None:
    text = good(command("parse", "--lines", stdin=PARAGRAPH.encode()))
    assert words_of(text) == [[*SENTENCES[0], *SENTENCES[1], *SENTENCES[2]], *SENTENCES[3:]]
    text = good(command("parse", "--tokenized", stdin=b"One . Two .\n"))
    assert words_of(text) == [["One", ".", "Two", "."]]


def test_a_text_in_another_language_is_parsed_with_a_warning(
    command: Command, models: Path
) -> None:
    korean = "저는 어제 도서관에서 책을 두 권 빌렸습니다. 오늘은 집에서 읽고 있습니다.\n"
    found = command("parse", stdin=(korean * 100).encode())
    assert (found.status, len(words_of(found.out))) == (0, 200)
    assert found.err == ("dragoman: this seems to be Korean, but the parser learned from English\n")
    shutil.copytree(models / "parse-en", "unknown")
    made = open_model(Path("unknown"))
    replace_card(made, {key: made.card[key] for key in made.card if key != "language"}, "")
    good(command("parse", "unknown", stdin=korean.encode()))


# --- lists and packages ---


def test_a_parser_is_listed_with_its_kind_and_scores(command: Command) -> None:
    lines = good(command("models")).splitlines()
    assert [line.split()[0] for line in lines] == ["en-de", "parse-en"]
    assert lines[1].split()[1] == "parsing"
    assert lines[1].endswith("MB  CC BY 4.0; GUM dev F1 80.1")


def test_a_parser_is_packed_as_a_translator_is(models: Path, tmp_path: Path) -> None:
    wheel = build_wheel(models / "parse-en", "parse-en", "1.0", tmp_path)
    assert wheel.name == "dragoman_parse_en-1.0-py3-none-any.whl"
    found = describe_wheel(wheel)
    assert (found.name, found.task, found.scores) == ("parse-en", "parsing", CARD["scores"])


def test_a_parser_is_served_where_no_model_is_named(models: Path) -> None:
    served = {one.name: one.path for one in _find_models(())}
    assert served["parse-en"] == models / "parse-en"
