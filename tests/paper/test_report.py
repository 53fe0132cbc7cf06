"""The report, and the commands that fill it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dragoman.paper.table2 import VALIDATION, draw

from ..conftest import Result
from .table2.test_measurement import row, table

Command = Callable[..., Result]
VOID = {"meta", "img", "br"}


class Reader(HTMLParser):
    """What a page says, and whether its elements close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.sources: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.anchors.add(f"#{values['id']}")
        if tag == "a":
            self.links.add(values["href"] or "")
        if tag == "img":
            assert values["alt"]
            self.sources.append(values["src"] or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    assert not reader.open
    return reader


@pytest.mark.slow
def test_an_empty_report_says_how_to_fill_it(command: Command, tmp_path: Path) -> None:
    found = command("paper", "report", "--out", tmp_path)
    assert found.status == 0
    page = read(Path(found.out.strip()))
    assert page.links == page.anchors
    for name in ("table1", "table2", "table3 --data DIR", "figures MODEL"):
        assert f"dragoman paper {name}" in page.text
    assert page.text.count("Not measured yet") == 6


@pytest.mark.slow
def test_a_report_holds_what_was_measured_and_needs_nothing_beside_it(
    command: Command, tmp_path: Path
) -> None:
    table = command("paper", "table1", "--longest", 64, "--widest", 64, "--out", tmp_path)
    assert table.status == 0
    assert "Maximum path length" in table.out
    assert command("paper", "figures", "--out", tmp_path).status == 0
    assert command("paper", "report", "--out", tmp_path).status == 0
    page = read(tmp_path / "report.html")
    assert page.links == page.anchors
    assert "Maximum path length" in page.text
    assert "Why attention divides by √d_k" in page.text
    assert "2,000 random queries, 32 keys each" in page.text
    assert len(page.sources) == 4
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"(?!data:|#)", text)


@pytest.mark.slow
def test_a_table_has_the_command_that_makes_it_again(command: Command, tmp_path: Path) -> None:
    found = table(row("Transformer"), row("LSTM + dot attention"))
    for name, test in (("phrasebook", "a b"), ("news", "a b"), ("mail", VALIDATION)):
        text = json.dumps(replace(found, test=test).to_json())
        (tmp_path / f"table2-{name}.json").write_text(text, encoding="utf-8")
        draw(found, tmp_path / f"table2-{name}.png")
    assert command("paper", "report", "--out", tmp_path).status == 0
    page = read(tmp_path / "report.html")
    rest = "--model Transformer --model 'LSTM + dot attention' --parameters 1000000 --steps 400"
    for options in ("", " --data corpus --test a b", " --data corpus"):
        assert f"dragoman paper table2{options} {rest}" in page.text


def test_what_is_not_a_result_is_refused_in_one_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "table1.json").write_text("{}", encoding="utf-8")
    found = command("paper", "report", "--out", tmp_path)
    assert found.status == 2
    assert "table1.json: not what dragoman paper wrote" in found.err
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_parameters_of_table_3_need_no_data(command: Command) -> None:
    assert "d_model 1024                      163.82    168" in command("paper", "table3").out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table2", "--model", "Elman"], "--model Elman: no such row; choose from: feed-forward, "),
        (["table2", "--data", "nowhere"], "nowhere"),
        (["table3", "--data", "nowhere"], "nowhere"),
        (
            ["table3", "--data", "nowhere", "--row", "F"],
            "row F: not one of Table 3's; choose from: b",
        ),
        (["figures", "nowhere"], "nowhere"),
        (["figures", "--word", "its"], "give --sentence, too"),
    ],
)
def test_wrong_arguments_get_one_line(
    arguments: list[str], message: str, command: Command, tmp_path: Path
) -> None:
    found = command("paper", *arguments, "--out", tmp_path)
    assert found.status == 2
    assert message in found.err
    assert found.err.count("\n") == 1
