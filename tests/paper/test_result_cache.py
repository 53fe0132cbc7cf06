"""Results that are kept: found once, found again if what they are of has changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from dragoman.data.prepare import Prepared
from dragoman.paper.result_cache import (
    corpus_fingerprint,
    file_fingerprint,
    fingerprint,
    load_or_compute,
)


class Search:
    """Finds another thing each time."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> dict[str, Any]:
        self.times += 1
        return {"bleu": 30.0 + self.times}


def test_what_is_kept_is_not_sought_again(tmp_path: Path) -> None:
    find, file = Search(), tmp_path / "new/one.json"
    assert load_or_compute(file, {"beam": 4, "language": None}, find) == {"bleu": 31.0}
    assert load_or_compute(file, {"language": None, "beam": 4}, find) == {"bleu": 31.0}
    assert load_or_compute(file, {"beam": 5, "language": None}, find) == {"bleu": 32.0}
    assert json.loads(file.read_text())["of"]["beam"] == 5


def test_a_file_that_holds_no_result_is_replaced(tmp_path: Path) -> None:
    find, file = Search(), tmp_path / "one.json"
    for damaged in ("", "{", "[]", '{"of": {}}', '{"of": {}, "found": 3}'):
        file.write_text(damaged)
        assert load_or_compute(file, {}, find) == {"bleu": 30.0 + find.times}
        assert load_or_compute(file, {}, find) == {"bleu": 30.0 + find.times}
    assert find.times == 5


def test_a_fingerprint_tells_texts_apart(tmp_path: Path) -> None:
    same = fingerprint(["a b", "c"], ["d"])
    assert same == fingerprint(("a b", "c"), ("d",))
    others = [(["a b"], ["c", "d"]), (["a b", "c"], []), (["a", "b", "c"], ["d"]), (["a b\nc"],)]
    assert same not in {fingerprint(*lists) for lists in others}
    files = [tmp_path / name for name in "abc"]
    for file, text in zip(files, ("x", "x", "y"), strict=True):
        file.write_text(text)
    first, second, third = map(file_fingerprint, files)
    assert first == second != third


def test_a_corpus_is_the_same_wherever_it_is(prepared: Prepared, tmp_path: Path) -> None:
    here = corpus_fingerprint(prepared)
    there = Path(shutil.copytree(prepared.path, tmp_path / "copy"))
    assert corpus_fingerprint(Prepared.open(there)) == here
    for name in ("train/source.ids", "train/target.ids", "valid/source.txt", "valid/target.txt"):
        before = (there / name).read_bytes()
        (there / name).write_bytes(before[1::-1] + before[2:])
        assert corpus_fingerprint(Prepared.open(there)) != here, name
        (there / name).write_bytes(before)
    assert corpus_fingerprint(Prepared.open(there)) == here
