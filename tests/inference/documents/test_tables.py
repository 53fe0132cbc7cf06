"""Tables keep their separators, quotes and line ends; only chosen columns are translated."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.inference.documents.options import ALL_COLUMNS

from .filling import copy, fill_with, read, shout, texts

TABLES = [
    "",
    "id,text\n1,hello there\n2,good bye\n",
    'id,text\r\n1,"hello, ""there"""\r\n2,"two\nlines here"\r\n3,\r\n',
    "id;text\n1;hello, there\n2;well, yes\n",
    "\ufeffid|text\n1|hello there",
    "sep=;\nid;text\n1;hello there\n",
    "text\nhello there\ngood bye\n",
    'id,text\n1,"hello there"\n\n2,good bye\n',
    'id,text\n1,he said "hello" there\n',
    'id\ttext\n1\t"hello" there\n2\t"open quote\n',
    "id,text\n1,'hello there'\n2,  padded text  \n",
    "a,b,c\n1,2,3\n",
    "id,text\n1,hello there\n2\n3,more,cells,than names\n",
]


@pytest.mark.parametrize("text", TABLES)
@pytest.mark.parametrize("extension", ["csv", "tsv"])
def test_a_table_filled_with_its_own_texts_is_itself(extension: str, text: str) -> None:
    assert copy(extension, text, columns=(ALL_COLUMNS,)) == text.encode()


@pytest.mark.parametrize(
    ("text", "columns", "filled"),
    [
        ("id,text\n1,hello\n", ("text",), "id,text\n1,HELLO\n"),
        ("id,text\n1,hello\n", ("2",), "id,text\n1,HELLO\n"),
        ("id,Text\n1,hello\n", ("text",), "id,Text\n1,HELLO\n"),
        ("a,b\nx y,u v\n", ("a", "b"), "a,b\nX Y,U V\n"),
        ("1,hello there\n2,bye\n", ("2",), "1,HELLO THERE\n2,BYE\n"),
        ('id;text\n1;"a ""b"""\n', ("text",), 'id;text\n1;"A ""B"""\n'),
        ("id,text\n1,https://a.b/c\n2,see it\n", (), "id,text\n1,https://a.b/c\n2,SEE IT\n"),
    ],
)
def test_chosen_columns_are_translated(text: str, columns: tuple[str, ...], filled: str) -> None:
    assert fill_with(read("csv", text, columns=columns), str.upper) == filled


@pytest.mark.parametrize(
    ("header", "expected"), [(True, ["bye bye"]), (False, ["hello there", "bye bye"])]
)
def test_it_can_be_said_whether_there_is_a_header(header: bool, expected: list[str]) -> None:
    assert texts("csv", "id,hello there\n2,bye bye\n", columns=("2",), header=header) == expected


def test_what_a_translation_says_is_quoted_if_it_must_be() -> None:
    document = read("csv", "id,text\n1,hello\n", columns=("text",))
    filled = fill_with(document, lambda _: 'one, "two"')
    assert list(csv.reader(io.StringIO(filled))) == [["id", "text"], ["1", 'one, "two"']]


def test_a_table_without_quotes_stays_so() -> None:
    document = read("tsv", 'id\ttext\n1\t"hello" there\n', columns=("text",))
    assert fill_with(document, lambda _: 'one\t"two"') == 'id\ttext\n1\tone "two"\n'


@pytest.mark.parametrize(
    ("extension", "text", "columns", "message"),
    [
        ("csv", "de,en\nguten Tag,good day\n", (), "2 columns hold text"),
        ("csv", "de,en\nguten Tag,good day\n", ("fr",), "no column 'fr'; choose from: de, en"),
        ("csv", "de,en\nguten Tag,good day\n", ("3",), "no column '3'"),
        ("csv", 'id,text\n1,"never closed\n2,x\n', ("text",), "line 2: a quote"),
        ("tsv", b"\xff\xfe\x00", (), "not"),
        ("jsonl", '{"a": "one"}\n{"a": ', ("a",), "line 2: not JSON"),
        ("jsonl", '{"a": "one"}\r\n\r\n{"a": ', ("a",), "line 3: not JSON"),
        ("jsonl", '{"a": "one two", "b": "three four"}\n', (), "2 fields hold text"),
        ("jsonl", '{"a": "one"}\n', ("b",), "no field 'b'; choose from: a"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    extension: str, text: str | bytes, columns: tuple[str, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message) as raised:
        read(extension, text, columns=columns)
    assert "\n" not in str(raised.value)


def test_fields_of_json_lines_are_translated_where_they_stand() -> None:
    text = '{"id": "x1", "q": {"text": "gr\\u00fcn & blau"} }\n\n{"q":{"text":"rot"},"n":1}\r\n'
    assert texts("jsonl", text, columns=("q.text",)) == ["grün & blau", "rot"]
    assert texts("jsonl", text.replace("\n", "\r"), columns=("q.text",)) == ["grün & blau", "rot"]
    assert copy("jsonl", text, columns=("q.text",)) == text.encode()
    filled = shout("jsonl", text, columns=("q.text",))
    assert filled == text.replace("gr\\u00fcn & blau", "GR\\u00dcN & BLAU").replace("rot", "ROT")


cells = st.text('ab ,;"\t\r\n', max_size=12)


@given(st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=5))
def test_what_the_csv_module_writes_comes_back(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["id", "text"], *rows])
    text = out.getvalue()
    assert copy("csv", text, columns=("text",)) == text.encode()
    filled = shout("csv", text, columns=("text",))
    found = list(csv.reader(io.StringIO(filled, newline="")))
    assert [row[0] for row in found[1:]] == [row[0] for row in rows]
    assert [row[1].lower() for row in found[1:]] == [row[1].lower() for row in rows]


@given(st.lists(st.text(max_size=20), min_size=1, max_size=4))
def test_any_strings_of_json_lines_come_back(values: list[str]) -> None:
    text = "\n".join(json.dumps({"a": value, "b": 1}) for value in values)
    assert copy("jsonl", text, columns=("a",)) == text.encode()
    for line in shout("jsonl", text, columns=("a",)).split("\n"):
        assert json.loads(line)["b"] == 1
