"""The commands around translating: lines in, as many lines out, whatever they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dragoman
from dragoman.inference import Translator
from dragoman.text.word_boundaries import contains_phrase

from ..conftest import Result

Command = Callable[..., Result]
LINES = b"the old dog sees\n\nred cat\n"


def good(result: Result) -> str:
    assert (result.status, result.err) == (0, ""), result
    return result.out


def refusal(result: Result) -> str:
    assert result.status == 2, result
    assert result.err.startswith("dragoman: ")
    assert result.err.count("\n") == 1, result.err
    return result.err.removeprefix("dragoman: ").removesuffix("\n")


@pytest.mark.slow
def test_words_are_asked_for_and_ruled_out(trained: Path, command: Command) -> None:
    options = ["--must", "tac", "--must", "x y", "--must-not", "eht", "--must-not", "der der"]
    first, empty, last = good(command("translate", trained, *options, stdin=LINES)).splitlines()
    assert empty == ""
    for line in (first, last):
        assert contains_phrase("tac", line)
        assert contains_phrase("x y", line)
        assert not contains_phrase("eht", line)
    out = good(command("translate", trained, "--must", "tac", "--n-best", 3, stdin=b"dog\n"))
    assert len(out.splitlines()) == 3
    assert all(contains_phrase("tac", line) for line in out.splitlines())


def test_alignments_are_written_as_pharaoh_writes_them(
    trained: Path, command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "alignments"
    out = good(command("translate", trained, "--alignments", path, stdin=LINES)).splitlines()
    found = path.read_text(encoding="utf-8").splitlines()
    assert len(out) == len(found) == 3
    assert found[1] == ""
    for text, line in zip(out, found, strict=True):
        assert re.fullmatch(r"(\d+-\d+( |$))*", line)
        targets = {int(pair.split("-")[1]) for pair in line.split()}
        assert targets == set(range(len(text.split())))
    refused = command("translate", trained, "--alignments", tmp_path / "no/a", stdin=LINES)
    assert "; make it first" in refusal(refused)


@pytest.mark.slow
def test_several_models_translate_and_score_as_one(trained: Path, command: Command) -> None:
    alone = good(command("translate", trained, stdin=LINES))
    assert good(command("translate", trained, "--with", trained, stdin=LINES)) == alone
    assert "no such model" in refusal(command("translate", trained, "--with", "none", stdin=LINES))


def test_diverse_beams_give_different_translations(trained: Path, command: Command) -> None:
    options = ["--diverse", 3, "--n-best", 3, "--diversity", 4]
    out = good(command("translate", trained, *options, stdin=b"the old dog\n")).splitlines()
    assert len({line.split("\t")[2] for line in out}) == 3


@pytest.mark.slow
def test_a_glossary_and_what_is_protected_go_together(
    trained: Path, command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tDackel\nred cat\tRotkatze\n", encoding="utf-8")
    text = b"the <b>old dog</b> sees {0}\nred cat at https://a.b/c?d\n\n"
    out = good(command("translate", trained, "--glossary", path, "--protect", stdin=text))
    first, second, empty = out.splitlines()
    assert [first.count(item) for item in ("<b>", "</b>", "{0}")] == [1, 1, 1]
    assert contains_phrase("Dackel", re.sub("<.*?>", "", first))
    assert contains_phrase("Rotkatze", second)
    assert second.count("https://a.b/c?d") == 1
    assert empty == ""
    path.write_text("dog\tHund\n\ndog\tKöter\n", encoding="utf-8")
    refused = command("translate", trained, "--glossary", path, stdin=text)
    assert refusal(refused) == (
        f"{path}, lines 1 and 3: 'dog' is to be 'Hund' and 'Köter'; keep one"
    )


@pytest.mark.slow
def test_scores_are_a_line_each_and_those_of_the_translator(
    trained: Path, command: Command, tmp_path: Path
) -> None:
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    source.write_bytes(LINES)
    target.write_bytes(b"sees god dlo eht\n\ntac der\n")
    pairs = ["--source", source, "--target", target]
    expected = dragoman.load(trained).score(
        ["the old dog sees", "", "red cat"], ["sees god dlo eht", "", "tac der"]
    )
    plain = good(command("score", trained, *pairs)).splitlines()
    assert plain == [f"{one.log_prob:.4f}" for one in expected]
    rows = [
        json.loads(line) for line in good(command("score", trained, *pairs, "--json")).splitlines()
    ]
    assert [row["score"] for row in rows] == [round(one.score, 6) for one in expected]
    rows = good(command("score", trained, *pairs, "--json", "--tokens")).splitlines()
    assert json.loads(rows[2])["tokens"] == list(expected[2].tokens)
    text = good(command("score", trained, *pairs, "--tokens")).splitlines()
    assert text[2].split("\t")[1].split()[::2] == list(expected[2].tokens)
    target.write_bytes(b"one\n")
    assert refusal(command("score", trained, *pairs)) == (
        f"{source} has 3 lines and {target} has 1; they must correspond line by line"
    )


def test_alternatives_are_listed_with_where_they_lead(trained: Path, command: Command) -> None:
    found = dragoman.load(trained).alternatives("red cat", "tac", 3)
    text = good(command("alternatives", trained, "red cat", "--prefix", "tac", "--count", 3))
    assert [line.split()[0] for line in text.splitlines()] == [
        f"{o.probability:.4f}" for o in found
    ]
    asked = good(command("alternatives", trained, "red cat", "--prefix", "tac", "--json"))
    assert json.loads(asked)[0]["translation"] == found[0].translation


ODD = [
    "\x00",
    "\x1b[2J",
    "\u202e",
    "\ufeff",
    "\u2581",
    "\u2028",
    "\r",
    "\x85",
    "a\u0300" * 40,
    "🦜",
]
bad = st.text(st.characters(), max_size=30) | st.sampled_from(
    [*ODD, "", " ", "<b", "{0}", "%s </x>"]
)
fuzz = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@fuzz
@given(lines=st.lists(bad, max_size=5), protect=st.booleans(), must=st.sampled_from([(), ("tac",)]))
def test_any_text_is_translated_line_by_line(
    lines: list[str], protect: bool, must: tuple[str, ...], reverser: Translator
) -> None:
    found = list(reverser.translate_lines(lines, protect=protect, must=must, window=2))
    assert [one.source for one in found] == lines
    for one in found:
        assert one.text.encode("utf-8").decode() == one.text
        assert len(one.text.splitlines()) <= max(1, len(one.source.splitlines()))


@pytest.mark.parametrize(
    "raw", [b"\xed\xa0\x80", b"\xff", b"ab\xc3"], ids=["lone surrogate", "no UTF-8", "cut off"]
)
def test_bytes_that_are_no_text_are_refused_after_all_lines_before_them(
    raw: bytes, trained: Path, command: Command
) -> None:
    result = command("translate", trained, stdin=b"red cat\ndog\n" + raw + b"\ndog\n")
    assert result.status == 2
    assert result.out.count("\n") == 2
    assert re.match(r"dragoman: -, line 3: byte 0x.. \(column \d\) is not UTF-8", result.err)
    assert result.err.count("\n") == 1


def test_control_characters_are_translated_as_if_they_were_not_there(
    trained: Path, command: Command
) -> None:
    plain = good(command("translate", trained, stdin=b"red cat\n"))
    assert good(command("translate", trained, stdin=b"r\x01ed\x1b \x07cat\x7f\n")) == plain
