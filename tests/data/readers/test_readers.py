"""Parallel text as it lies on disk."""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import subprocess
import sys
import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import DataConfig
from dragoman.data.readers import fill_in_languages
from dragoman.data.readers.parallel import (
    ConcatenatedCorpus,
    JsonLines,
    Tmx,
    open_parallel_corpus,
    open_text,
)
from dragoman.errors import ConfigError, DataError

COMPRESS = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
compressed = pytest.mark.parametrize("suffix", COMPRESS)


def put(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
    return path


def texts(pairs):
    return [(pair.source, pair.target) for pair in pairs]


def message(run):
    with pytest.raises(DataError) as caught:
        list(run())
    assert "\n" not in str(caught.value)
    return str(caught.value)


@compressed
def test_lines_are_the_same_however_compressed(tmp_path, suffix):
    data = "ein\nzwei ü\n\nvier".encode()
    path = put(tmp_path / f"text.de{suffix}", COMPRESS[suffix](data))
    assert list(open_text(path)) == ["ein", "zwei ü", "", "vier"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_parts_one_after_another_are_one_file(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", COMPRESS[suffix](b"one\nt") + COMPRESS[suffix](b"wo\n"))
    assert list(open_text(path)) == ["one", "two"]


line = st.text(alphabet=st.characters(exclude_characters="\n\x00", exclude_categories=["Cs"]))


@pytest.mark.slow
@given(st.lists(line, min_size=1))
def test_only_line_feeds_end_a_line(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "text"
    put(path, "".join(f"{line}\n" for line in lines))
    expected = [line.removesuffix("\r") for line in lines]
    expected[0] = expected[0].removeprefix("\ufeff")
    assert list(open_text(path)) == expected


def test_a_byte_order_mark_and_windows_line_ends_are_dropped(tmp_path):
    path = put(tmp_path / "text", "\ufeffone\r\ntwo\r\n\r\nlast")
    assert list(open_text(path)) == ["one", "two", "", "last"]


def test_bytes_that_are_not_utf8_are_refused_with_their_place(tmp_path):
    path = put(tmp_path / "text.de", b"gut\nsch\xf6n\n")
    text = message(lambda: open_text(path))
    assert text.startswith(f"{path}, line 2: byte 0xF6 (column 4) is not UTF-8")
    assert "iconv -f latin1" in text


def test_utf16_is_recognised(tmp_path):
    path = put(tmp_path / "text", "text\n", "utf-16")
    assert "iconv -f utf-16" in message(lambda: open_text(path))


def test_a_nul_byte_is_refused_with_its_place(tmp_path):
    path = put(tmp_path / "text", b"fine\nnot \0 fine\n")
    assert message(lambda: open_text(path)).startswith(f"{path}, line 2: a NUL byte (column 5)")


def test_a_complaint_instead_of_an_error_lets_reading_go_on(tmp_path):
    path = put(tmp_path / "text", b"a\xff\nb\n\0c\n")
    complaints = []
    assert list(open_text(path, complaints.append)) == ["a\ufffd", "b", "\ufffdc"]
    assert [str(error).partition(": ")[0] for error in complaints] == [
        f"{path}, line 1",
        f"{path}, line 3",
    ]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_truncated_compressed_file_is_refused(tmp_path, suffix):
    data = COMPRESS[suffix](os.urandom(5000).hex().encode() + b"\n")
    path = put(tmp_path / f"text{suffix}", data[: len(data) // 2])
    assert str(path) in message(lambda: open_text(path))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_file_that_is_not_what_its_suffix_says_is_refused(tmp_path, suffix):
    path = put(tmp_path / f"text{suffix}", b"plain text\n" * 100)
    assert str(path) in message(lambda: open_text(path))


def test_zst_without_its_package_names_the_extra(tmp_path, monkeypatch):
    path = put(tmp_path / "text.zst", zstandard.compress(b"text\n"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert "pip install 'dragoman[zstd]'" in message(lambda: open_text(path))


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    assert "no such file" in message(lambda: open_text(tmp_path / "none"))
    assert "is a directory" in message(lambda: open_text(tmp_path))
    (tmp_path / "dir.gz").mkdir()
    assert "is a directory" in message(lambda: open_text(tmp_path / "dir.gz"))


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.data.readers.parallel.LONGEST_LINE", 1000)
    path = put(tmp_path / "text", b"short\n" + b"x" * 1001)
    assert "line 2 has more than" in message(lambda: open_text(path))


def test_standard_input_is_read_for_a_dash(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("grüß\n".encode())))
    assert list(open_text("-")) == ["grüß"]


@compressed
def test_two_files_are_read_side_by_side_as_often_as_wanted(tmp_path, suffix):
    compress = COMPRESS[suffix]
    paths = [
        put(tmp_path / f"a.en{suffix}", compress(b"one\ntwo\n")),
        put(tmp_path / f"a.de{suffix}", compress(b"eins\nzwei\n")),
    ]
    pairs = open_parallel_corpus(paths)
    assert [tuple(pair) for pair in pairs] == [("one", "eins", 1), ("two", "zwei", 2)]
    assert list(pairs) == list(pickle.loads(pickle.dumps(pairs)))
    assert pairs.locate(2) == f"{paths[0]}, line 2"


@pytest.mark.parametrize(("source", "target"), [(5, 3), (3, 5), (0, 1)])
def test_files_of_different_lengths_are_refused_with_both_counts(tmp_path, source, target):
    paths = [put(tmp_path / "a.en", "x\n" * source), put(tmp_path / "a.de", "y\n" * target)]
    text = message(lambda: open_parallel_corpus(paths))
    assert f"a.en has {source} lines" in text
    assert f"a.de has {target}" in text


def test_tsv(tmp_path):
    path = put(tmp_path / "a.tsv.gz", gzip.compress(b"one\teins\n\tleer\n"))
    assert texts(open_parallel_corpus([path])) == [("one", "eins"), ("", "leer")]


@pytest.mark.parametrize("bad", ["only one", "one\ttwo\tthree"])
def test_tsv_with_other_columns_is_refused_with_its_line(tmp_path, bad):
    path = put(tmp_path / "a.tsv", f"one\teins\n{bad}\nthree\tdrei\n")
    assert f"{path}, line 2: {bad.count(chr(9)) + 1} column" in message(
        lambda: open_parallel_corpus([path])
    )
    complaints = []
    assert len(list(open_parallel_corpus([path]).read(complaints.append))) == 2
    assert len(complaints) == 1


@pytest.mark.parametrize(
    ("header", "languages", "columns"),
    [
        ("en\tde", None, (0, 1)),
        ("en\tde", ("de", "en"), (1, 0)),
        ("German\tEnglish", ("en", "de"), (1, 0)),
        ("id\ten-GB\tde_AT\tscore", None, (1, 2)),
        ("id\ten\tde\tfr", ("fr", "en"), (3, 1)),
        ("source\ttarget", ("en", "de"), (0, 1)),
        ("Tgt\tSrc", None, (1, 0)),
    ],
)
def test_the_first_line_of_a_table_may_name_its_columns(tmp_path, header, languages, columns):
    cells = [f"cell {number}" for number in range(header.count("\t") + 1)]
    path = put(tmp_path / "a.tsv", f"{header}\n" + "\t".join(cells) + "\n")
    expected = tuple(cells[column] for column in columns)
    pairs = list(open_parallel_corpus([path], languages=languages))
    assert texts(pairs) == [expected]
    assert pairs[0].number == 2


@pytest.mark.parametrize("first", ["no\tnein", "en\tund so weiter", "Who is it?\tde", "it\tit"])
def test_a_first_line_that_names_no_columns_is_a_pair(tmp_path, first):
    path = put(tmp_path / "a.tsv", f"{first}\none\teins\n")
    assert len(list(open_parallel_corpus([path]))) == 2


def test_a_table_of_other_languages_is_refused(tmp_path):
    path = put(tmp_path / "a.tsv", "fr\tes\nun\tuno\n")
    text = message(lambda: open_parallel_corpus([path], languages=("en", "de")))
    assert text.startswith(f"{path}, line 1: the columns are fr, es, and the languages en and de;")
    short = put(tmp_path / "b.tsv", "id\ten\tde\none\teins\n")
    assert "line 2: 2 columns, and the first line names 3" in message(
        lambda: open_parallel_corpus([short])
    )


UNIT = '<tu><tuv xml:lang="{}"><seg>a</seg></tuv><tuv xml:lang="{}"><seg>b</seg></tuv></tu>'


@pytest.mark.parametrize(
    ("name", "content", "languages"),
    [
        ("a.tsv", "de\ten\neins\tone\n", ("de", "en")),
        ("a.tsv", "id\tKorean\tEnglish\n", ("ko", "en")),
        ("a.tsv", "eins\tone\n", ()),
        ("a.en-de.tsv", "one\teins\n", ("en", "de")),
        ("a.en-de.tsv", "de\ten\neins\tone\n", ("en", "de")),
        ("a.en-de.tsv", "fr\tes\nun\tuno\n", ("fr", "es")),
        ("a.tsv", b"\xff\xfe", ()),
        ("a.tsv", "", ()),
        ("a.jsonl", '{"ko": "하나", "en": "one"}', ("ko", "en")),
        ("a.jsonl", '{"id": "7", "en": "one", "de": "eins", "score": 0.5}', ("en", "de")),
        ("a.jsonl", '{"id": "satu", "en": "one"}', ("id", "en")),
        ("a.jsonl", '{"translation": {"en": "one", "de": "eins"}}', ("en", "de")),
        ("a.jsonl", '{"source": "a", "target": "b"}', ()),
        (
            "a.jsonl",
            '{"source": "a", "target": "b", "source_lang": "en-US", "target_lang": "de"}',
            ("en", "de"),
        ),
        ("a.jsonl", "[1]", ()),
        ("a.jsonl", "{", ()),
        ("a.tmx", f"<tmx><body>{UNIT.format('en-GB', 'DE_at')}</body></tmx>", ("en", "de")),
        (
            "a.tmx",
            f'<tmx><header srclang="de-DE"/><body>{UNIT.format("en", "de")}</body></tmx>',
            ("de", "en"),
        ),
        ("a.tmx", f"<tmx>{UNIT.format('en', 'de')}{UNIT.format('en', 'fr')}</tmx>", ()),
        ("a.tmx", f"<tmx>{UNIT.format('en-US', 'en-GB')}</tmx>", ("en-us", "en-gb")),
        (
            "en-de.tmx",
            f"<tmx>{UNIT.format('de', 'en')}{UNIT.format('en', 'fr')}</tmx>",
            ("en", "de"),
        ),
        ("a.tmx", "<tmx><body>", ()),
        ("none.tsv", None, ()),
    ],
)
def test_the_languages_of_a_file_are_those_it_names(tmp_path, name, content, languages):
    path = tmp_path / name
    if content is not None:
        put(path, content)
    assert fill_in_languages(DataConfig(), [path]).languages == languages
    given = DataConfig(languages=("xx", "yy"))
    assert fill_in_languages(given, [path]) == given


@pytest.mark.parametrize(
    ("record", "languages"),
    [
        ({"source": "one", "target": "eins"}, None),
        ({"source": "one", "target": "eins"}, ("en", "de")),
        ({"de": "eins", "en": "one", "score": 0.5}, ("en", "de")),
        ({"translation": {"de": "eins", "en": "one"}}, ("en", "de")),
        ({"German": "eins", "en-US": "one"}, ("en", "de")),
        ({"quz": "eins", "en": "one"}, ("en", "quz")),
        ({"translation": {"source": "one", "target": "eins"}, "id": 3}, None),
    ],
)
def test_json_lines_with_any_of_the_usual_keys(tmp_path, record, languages):
    path = put(tmp_path / "a.jsonl", json.dumps(record) + "\n")
    assert texts(open_parallel_corpus([path], languages=languages)) == [("one", "eins")]


def test_json_text_of_several_lines_becomes_one(tmp_path):
    path = put(tmp_path / "a.jsonl", json.dumps({"source": "a\nb\ud800", "target": "c\td"}) + "\n")
    assert texts(open_parallel_corpus([path])) == [("a b\ufffd", "c d")]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ('{"en": "one", "de": "eins"}', "the keys are: en, de"),
        ('{"source": 1, "target": "eins"}', "no text under 'source'"),
        ("[" * 100_000, "not a JSON object"),
    ],
)
def test_json_that_is_no_pair_is_refused_with_its_line(tmp_path, bad, reason):
    path = put(tmp_path / "a.jsonl", '{"source": "a", "target": "b"}\n' + bad + "\n")
    text = message(lambda: open_parallel_corpus([path]))
    assert text.startswith(f"{path}, line 2: ")
    assert reason in text


BOTH_WAYS = (
    '{"source": "one", "target": "eins", "source_lang": "en", "target_lang": "de"}\n'
    '{"source": "zwei", "target": "two", "source_lang": "de", "target_lang": "en-GB"}\n'
    '{"source": "three", "target": "셋", "source_lang": "en", "target_lang": "ko"}\n'
    '{"source": "iskay", "target": "two", "source_lang": "quz", "target_lang": "en"}\n'
)


def test_json_lines_that_name_their_languages_are_read_by_them(tmp_path):
    path = put(tmp_path / "a.jsonl", BOTH_WAYS)
    corpus = open_parallel_corpus([path], languages=("en", "de"))
    assert texts(corpus) == [("one", "eins"), ("two", "zwei")]
    assert texts(JsonLines(path, ("en", "de"), both_ways=False)) == [("one", "eins")]
    assert texts(JsonLines(path, ("en", "quz"))) == [("two", "iskay")]
    assert [pair.number for pair in JsonLines(path, ("en", "ko"))] == [3]
    text = message(lambda: JsonLines(path, ("fr", "en")))
    assert text.startswith(f"{path}: none of its 4 lines goes from fr to en; they go from en to de")


@pytest.mark.parametrize("end", ['{"source": "to', '{"source": "셋'.encode()[:-1], b"\0\0\0"])
def test_a_last_line_that_was_never_finished_is_malformed(tmp_path, end):
    whole = b'{"source": "a", "target": "b"}\n'
    path = tmp_path / "a.jsonl"
    path.write_bytes(whole + (end.encode() if isinstance(end, str) else end))
    corpus = open_parallel_corpus([path])
    assert texts(corpus) == [("a", "b")]
    assert corpus.malformed == (f"{path}, line 2: the line has no end",)
    path.write_bytes(path.read_bytes() + b"\n")
    assert message(lambda: open_parallel_corpus([path])).startswith(f"{path}, line 2")


TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-GB"><seg>The <bpt i="1">&lt;b&gt;</bpt>red<ept i="1">&lt;/b&gt;</ept>
  <hi>house</hi></seg></tuv><tuv xml:lang="DE_at"><seg>Das rote Häuschen</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>only English</seg></tuv></tu>
<tu><tuv lang="de"><seg>zwei</seg></tuv><tuv lang="eng"><seg>no</seg></tuv>
    <tuv lang="en"><seg>two</seg></tuv></tu>
</body></tmx>"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_tmx(tmp_path, encoding):
    data = TMX.format(encoding=encoding).encode(encoding)
    path = put(tmp_path / "memory.tmx.xz", lzma.compress(data))
    pairs = open_parallel_corpus([path], languages=("en", "de"))
    assert [tuple(pair) for pair in pairs] == [
        ("The red house", "Das rote Häuschen", 1),
        ("two", "zwei", 3),
    ]
    assert texts(open_parallel_corpus([path], languages=("de", "en")))[1] == ("zwei", "two")
    assert pairs.locate(3) == f"{path}, unit 3"


def test_tmx_that_breaks_off_is_refused_with_its_line(tmp_path):
    path = put(tmp_path / "memory.tmx", TMX.format(encoding="utf-8")[:-20])
    assert f"{path}, line 8: not XML" in message(
        lambda: open_parallel_corpus([path], languages=("en", "de"))
    )


def test_tmx_needs_its_languages_named(tmp_path):
    path = put(tmp_path / "memory.tmx", "<tmx/>")
    with pytest.raises(ConfigError, match="--languages en,de"):
        open_parallel_corpus([path])


def test_tmx_without_the_languages_is_refused_with_those_it_has(tmp_path):
    path = put(tmp_path / "memory.tmx", TMX.format(encoding="utf-8"))
    text = message(lambda: open_parallel_corpus([path], languages=("en", "fr")))
    assert text == (
        f"{path}: none of its 3 units has both en and fr; its languages are: en-gb, de-at, "
        "en, de, eng"
    )


@pytest.mark.slow
def test_memory_does_not_grow_with_a_translation_memory(tmp_path):
    unit = '<tu><tuv lang="en"><seg>a b c</seg></tuv><tuv lang="de"><seg>d e f</seg></tuv></tu>\n'
    path = put(tmp_path / "memory.tmx", f"<tmx><body>{unit * 20_000}</body></tmx>")
    tracemalloc.start()
    try:
        assert sum(1 for _ in Tmx(path, ("en", "de"))) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_corpora_one_after_another_keep_their_places(tmp_path):
    first = [put(tmp_path / "a.en", "a\nb\n"), put(tmp_path / "a.de", "c\nd\n")]
    second = put(tmp_path / "b.tsv", "e\tf\n")
    both = ConcatenatedCorpus([open_parallel_corpus(first), open_parallel_corpus([second])])
    for _ in range(2):
        assert [tuple(pair) for pair in both] == [("a", "c", 1), ("b", "d", 2), ("e", "f", 3)]
        assert both.locate(2) == f"{first[0]}, line 2"
        assert both.locate(3) == f"{second}, line 1"


def test_what_is_no_corpus_is_refused_at_once(tmp_path):
    text, table = put(tmp_path / "a.en", "a\n"), put(tmp_path / "a.tsv", "a\tb\n")
    for paths, reason in [
        ([text], "give the file of its translations as well"),
        ([], "two aligned files or one"),
        ([text, text, text], "not 3 files"),
        ([text, table], "contains both languages"),
        ([text, tmp_path / "none"], "none: no such file"),
        ([text, tmp_path], "is a directory"),
        ([text, "-"], "read more than once"),
    ]:
        with pytest.raises(DataError, match=reason):
            open_parallel_corpus(paths)


def test_a_pipe_cannot_be_a_corpus():
    code = "import sys; from dragoman.data.readers import parallel; "
    code += "parallel.open_parallel_corpus(sys.argv[1:])"
    command = f"{sys.executable} -c '{code}' <(echo a) <(echo b)"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "save it to a file first" in done.stderr
