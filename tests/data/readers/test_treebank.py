"""Treebanks as parallel text."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.config import Config, DataConfig
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.readers import group_files, open_corpus
from dragoman.data.readers.parallel import ConcatenatedCorpus, Pair, ParallelFiles
from dragoman.data.readers.treebank import Treebank, open_treebank
from dragoman.errors import DataError
from dragoman.phrasebook import generate

PARSING = DataConfig(task="parsing")
DOG = "(S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .))"
CAT = "(S (NP (DT A) (NN cat)) (VP (VBZ sleeps)) (. .))"
TRACES = "(S (NP (-NONE- *)) (VP (-NONE- *T*-1)))"


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write lines to a file of this name, and give its path."""

    def write(name: str, *lines: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


# --- reading ---


def test_a_pair_is_the_words_of_a_tree_and_the_tree(put: Callable[..., Path]) -> None:
    pairs = list(open_treebank([put("a.txt", DOG, CAT)]))
    assert pairs == [Pair("The dog barks .", DOG, 1), Pair("A cat sleeps .", CAT, 2)]


def test_trees_are_cleaned_and_may_go_over_several_lines(put: Callable[..., Path]) -> None:
    path = put(
        "wsj.mrg",
        "",
        "( (S (NP-SBJ-1 (-NONE- *)",
        "       )",
        "    (VP (VB Go) (PRT (RP away) -LRB-)))",
        "( (S (NP-SBJ (PRP It))",
        "    (VP (VBZ is) (-LRB- -LRB-) (SBAR=2 (-NONE- 0)) (RB so) (-RRB- -RRB-))) )",
    )
    bank = open_treebank([path])
    assert list(bank) == [
        Pair(
            "It is ( so )",
            "(S (NP (PRP It)) (VP (VBZ is) (-LRB- -LRB-) (RB so) (-RRB- -RRB-)))",
            1,
        )
    ]
    assert len(bank.malformed) == 1


def test_a_tree_of_traces_alone_is_passed_over_and_still_counted(put: Callable[..., Path]) -> None:
    path = put("a.txt", DOG, TRACES, CAT)
    bank = open_treebank([path])
    assert [pair.number for pair in bank] == [1, 3]
    assert bank.locate(3) == f"{path}, tree 3"
    assert bank.malformed == ()


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_a_compressed_file_reads_the_same(
    suffix: str, compress: Callable[[bytes], bytes], put: Callable[..., Path], tmp_path: Path
) -> None:
    plain = put("a.txt", DOG, CAT)
    packed = tmp_path / f"a.txt{suffix}"
    packed.write_bytes(compress(plain.read_bytes()))
    assert list(open_treebank([packed])) == list(open_treebank([plain]))


def test_it_can_be_read_again_and_again(put: Callable[..., Path]) -> None:
    bank = open_treebank([put("a.txt", DOG, "(S (NP", CAT)])
    assert list(bank) == list(bank)
    assert len(bank.malformed) == 1, "of the last time, not of all"


def test_files_come_one_after_another_numbered_through(put: Callable[..., Path]) -> None:
    one, other = put("b.txt", DOG, CAT), put("a.txt", CAT)
    bank = open_treebank([one, other])
    assert [(pair.source, pair.number) for pair in bank] == [
        ("The dog barks .", 1),
        ("A cat sleeps .", 2),
        ("A cat sleeps .", 3),
    ]
    assert bank.locate(3) == f"{other}, tree 1"


def test_a_directory_is_all_its_files_in_the_order_of_their_names(
    put: Callable[..., Path], tmp_path: Path
) -> None:
    put("bank/wsj/01.mrg", CAT)
    put("bank/wsj/00.mrg", DOG)
    put("bank/.hidden", "no tree")
    put("bank/.cache/00.mrg", DOG)
    bank = open_treebank([tmp_path / "bank"])
    assert [pair.source for pair in bank] == ["The dog barks .", "A cat sleeps ."]
    assert bank.malformed == ()


# --- what is wrong ---


def test_a_tree_that_cannot_be_read_is_remembered_by_its_place(put: Callable[..., Path]) -> None:
    path = put("a.txt", DOG, "(S (NP (NN lost) dog))", CAT, "(S ())", DOG)
    bank = open_treebank([path])
    assert [pair.source[0] for pair in bank] == ["T", "A", "T"]
    assert [problem.split(": ")[0] for problem in bank.malformed] == [
        f"{path}, line 2, column 18",
        f"{path}, line 4, column 5",
    ]


def test_who_asks_to_hear_of_problems_hears_of_them(put: Callable[..., Path]) -> None:
    heard: list[DataError] = []
    bank = Treebank(put("a.txt", "(S (NP (NN lost) dog))", CAT))
    assert len(list(bank.read(heard.append))) == 1
    assert len(heard) == 1
    assert "line 1, column 18" in str(heard[0])


def test_problems_of_all_files_are_remembered(put: Callable[..., Path]) -> None:
    paths = [put("a.txt", DOG, "(S"), put("b.txt", CAT), put("c.txt", CAT, "nothing")]
    bank = open_treebank(paths)
    assert len(list(bank)) == 3
    assert [problem.split(",")[0] for problem in bank.malformed] == [str(paths[0]), str(paths[2])]


def test_what_is_no_file_of_trees_is_refused(put: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    put("hidden/.trees", DOG)
    nothing = "this directory has no files; give a file of trees"
    cases = {
        tmp_path / "no": f"{tmp_path / 'no'}: no such file",
        tmp_path / "empty": f"{tmp_path / 'empty'}: {nothing}",
        tmp_path / "hidden": f"{tmp_path / 'hidden'}: {nothing}",
        Path("-"): "a corpus is read more than once; save standard input to a file first",
    }
    for path, message in cases.items():
        with pytest.raises(DataError) as refused:
            open_treebank([path])
        assert str(refused.value) == message
    with pytest.raises(DataError, match=r"^give a file of trees$"):
        open_treebank([])


def test_bytes_that_are_no_text_are_refused_with_their_line(put: Callable[..., Path]) -> None:
    path = put("a.txt", DOG, CAT)
    path.write_bytes(path.read_bytes() + "(S (NN Käse))".encode("latin1"))
    with pytest.raises(DataError, match=r"a\.txt, line 3: byte 0xE4 \(column 9\) is not UTF-8"):
        list(open_treebank([path]))


# --- by task ---


def test_the_task_tells_what_files_are(put: Callable[..., Path]) -> None:
    one, other = put("a.en", DOG), put("a.de", CAT)
    assert isinstance(open_corpus([one, other], DataConfig()), ParallelFiles)
    assert isinstance(open_corpus([one], PARSING), Treebank)
    both = open_corpus([one], PARSING, [other])
    assert isinstance(both, ConcatenatedCorpus)
    assert [pair.target for pair in both] == [DOG, CAT]
    assert group_files(["a", "b", "c.tsv", "d", "e"], DataConfig()) == [
        [Path("a"), Path("b")],
        [Path("c.tsv")],
        [Path("d"), Path("e")],
    ]
    assert group_files(["a", "b.tsv"], PARSING) == [[Path("a")], [Path("b.tsv")]]


# --- preparing ---

CONFIG = Config().overridden(
    [
        "data.task=parsing",
        "data.max_length=80",
        "data.max_ratio=0",
        "tokenizer.vocabulary=400",
    ]
)
TREES = [example.source_tree for example in generate("de", "train", 120)]


def prepared_from(directory: Path, lines: list[str]) -> Prepared:
    path = directory / "trees.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return prepare(open_corpus([path], CONFIG.data), directory / "data", CONFIG, workers=0)


@pytest.mark.slow
def test_a_prepared_treebank_holds_the_trees(tmp_path: Path) -> None:
    prepared = prepared_from(tmp_path, TREES)
    tokenizer, store = prepared.tokenizer, prepared.train
    there = {
        tokenizer.decode_target(store.target(i).tolist(), tokenizer.decode(store.source(i)))
        for i in range(len(store))
    }
    assert there | set(prepared.valid_target) == set(TREES)
    assert len(there) == 119
    assert prepared.config.tokenizer.symbols == (), "actions are not the user's symbols"


@pytest.mark.slow
def test_malformed_trees_are_counted_and_placed_in_the_report(tmp_path: Path) -> None:
    lines = [*TREES[:50], "(S (NP (NN lost) dog))", *TREES[50:], "(S ())", TRACES]
    prepared = prepared_from(tmp_path, lines)
    report = prepared.report
    assert report.read == 122, "one of traces alone is no pair"
    assert report.kept == 120
    assert report.dropped == {"malformed": 2}
    first, second = report.examples["malformed"]
    path = tmp_path / "trees.txt"
    assert first.startswith(f"{path}, line 51, column 18: the word 'dog' stands beside")
    assert second.startswith(f"{path}, line 122, column 5: an empty bracket")
    line = prepared.lines()[1]
    assert line.split()[:2] == ["malformed", "2"]
    assert "line 51" in line
    assert Prepared.open(tmp_path / "data").report == report


def test_a_file_without_a_tree_is_refused_in_one_line(tmp_path: Path) -> None:
    for lines in (["(S ())", "(NP", "no tree"], [TRACES], []):
        with pytest.raises(DataError, match="there are no trees") as refused:
            prepared_from(tmp_path, lines)
        assert "\n" not in str(refused.value)
        assert not (tmp_path / "data").exists()
