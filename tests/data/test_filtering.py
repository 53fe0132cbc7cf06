"""Test that `dragoman filter` keeps translations and drops what only looks like them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.data.filtering import (
    LikenessScorer,
    RepetitionCounter,
    Selection,
    filter_corpus,
    reason_to_filter,
)
from dragoman.data.readers.parallel import ParallelFiles
from dragoman.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Open the file.", "Öffnen Sie die Datei.", None),
        ("", "Nichts", "empty"),
        ("Linux", "linux", "copy"),
        ("The naïve one", "Der naÃ¯ve", "broken text"),
        ("caf\ufffd", "Café", "broken text"),
        (
            "Yes.",
            "Ja, das hätte ich mir an deiner Stelle auch gedacht, mein Lieber.",
            "length ratio",
        ),
        ("== ++ -- a", "== ++ -- b", "few letters"),
        ("Click <b>OK</b> now", "Klicken Sie jetzt auf OK", "markup"),
        ("Deleted %d files", "%d Dateien gelöscht", None),
        ("Deleted %d files", "Dateien gelöscht", "markup"),
        ("It was founded in 1989.", "Es wurde 1998 gegründet.", None),  # the same digits
        ("It was founded in 1989.", "Es wurde 1987 gegründet.", "numbers"),
        ("3 children live here", "Drei Kinder wohnen hier", None),
        ("It costs 1,499.50 euros", "Es kostet 1.499,50 Euro", None),
        ("about 5 million people", "약 500만 명", None),
        ("On 11/16/2024 we met.", "Am 16.11.2024 trafen wir uns.", None),
        ("He came. She left.", "Er kam, und sie ging.", "sentences"),
        ("On the 3rd of May we met.", "Am 3. Mai trafen wir uns.", None),
        ("He came. She left.", "그가 왔다. 그녀는 떠났다.", None),
    ],
)
def test_reason_to_filter(source: str, target: str, reason: str | None) -> None:
    assert reason_to_filter(source, target) == reason


def test_repetitions_are_counted() -> None:
    repetitions = RepetitionCounter()
    assert repetitions.reason_to_filter("Good day.", "Guten Tag.") is None
    assert repetitions.reason_to_filter("Good day!", "guten Tag") == "duplicate"
    found = [repetitions.reason_to_filter("Run", f"Lauf {word}") for word in "abcdef"]
    assert found == [None] * 4 + ["repeated text"] * 2
    found = [repetitions.reason_to_filter(f"Page {n} of it", f"Davon Seite {n}") for n in range(6)]
    assert found == [None] * 4 + ["template"] * 2


def test_likeness_prefers_the_sample() -> None:
    scorer = LikenessScorer(["the river flows past the castle"], ["the buffer pointer is null"])
    assert scorer.score("a river and a castle") > 0 > scorer.score("null pointer")
    assert scorer.score("1234") == 0
    with pytest.raises(DataError, match="no words"):
        LikenessScorer(["12"], ["word"])


def _write_corpus(directory: Path) -> ParallelFiles:
    pairs = [
        ("The river is wide.", "Der Fluss ist breit."),
        ("Null pointer", "Nullzeiger"),
        ("The buffer is full.", "Der Puffer ist voll."),
        ("copy", "copy"),
    ]
    corpus = ParallelFiles(directory / "a.en", directory / "a.de")
    corpus.source.write_text("".join(f"{source}\n" for source, _ in pairs))
    corpus.target.write_text("".join(f"{target}\n" for _, target in pairs))
    return corpus


def test_filter_writes_what_it_keeps(tmp_path: Path) -> None:
    report = filter_corpus(_write_corpus(tmp_path), tmp_path / "out", ("c.en", "c.de"))
    assert (tmp_path / "out/c.de").read_text().split("\n")[:3] == [
        "Der Fluss ist breit.",
        "Nullzeiger",
        "Der Puffer ist voll.",
    ]
    assert (report.read, report.kept, report.dropped) == (4, 3, {"copy": 1})
    assert json.loads((tmp_path / "out/report.json").read_text()) == report.to_json()


def test_filter_repeats_and_leaves_out_by_likeness(tmp_path: Path) -> None:
    sample = tmp_path / "sample.de"
    sample.write_text("Der Fluss ist breit, und der Wald ist grün.\n")
    selection = Selection(sample, repeat=0.34, leave_out=0.34)
    corpus = _write_corpus(tmp_path)
    report = filter_corpus(corpus, tmp_path / "out", ("c.en", "c.de"), selection=selection)
    assert (tmp_path / "out/c.en").read_text() == (
        "The river is wide.\nThe river is wide.\nThe buffer is full.\n"
    )
    assert report.dropped == {"copy": 1, "unlike the sample": 1}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "c.de",
        "c.en",
        "report.json",
    ]


def test_nothing_is_left_behind_if_nothing_is_kept(tmp_path: Path) -> None:
    corpus = ParallelFiles(tmp_path / "a", tmp_path / "b")
    corpus.source.write_text("same\n")
    corpus.target.write_text("same\n")
    with pytest.raises(DataError, match="no pair is worth keeping"):
        filter_corpus(corpus, tmp_path / "out", ("a", "b"))
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="between 0 and 1"):
        Selection(tmp_path / "a", repeat=2)
