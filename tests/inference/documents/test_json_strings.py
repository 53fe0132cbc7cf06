"""Strings of JSON are translated where they stand; keys, layout and what is no text stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.inference.documents.json_strings import is_code
from dragoman.inference.documents.unit_translation import translate_units
from dragoman.inference.translation_types import Translation

from .fake_translators import shout_texts
from .filling import copy, fill_with, read, shout, texts

FILES = [
    "{}",
    '"just a string"',
    '{\n  "a": "one",\n  "b": {"c": ["two", 3, null, "four"]}\n}\n',
    '{"a":"one","a":"two"}',
    '\ufeff{\t"a" : "gr\\u00fcn \\ud83d\\ude00" }\r\n',
    '{"a": "a \\"b\\" \\\\ \\/ \\n c", "url": "https:\\/\\/x.y"}',
    '{"n": "{count, plural, =0 {none} one {# file} other {# files}}"}',
    '{"a": "<b>bold</b> and \\u003ci\\u003e"}',
    '{"a": "", "b": " ", "c": "…", "d": 1e5, "e": true}',
    '[["x y"], {"k": "Hello {{name}}, you have %d %s of ${x}"}]',
    '{"@@locale": "en", "a": "hi there", "@a": {"description": "not shown"}}',
    '{"half": "\\ud800 text"}',
]


@pytest.mark.parametrize("text", FILES)
def test_a_file_filled_with_its_own_texts_is_itself(text: str) -> None:
    assert copy("json", text) == text.encode()


@pytest.mark.parametrize("text", FILES)
def test_only_the_case_of_letters_changes(text: str) -> None:
    shouted = shout("json", text)
    assert len(json.loads(shouted.lstrip("\ufeff"))) == len(json.loads(text.lstrip("\ufeff")))
    assert (
        json.dumps(json.loads(shouted.lstrip("\ufeff"))).lower().split("\\u")[0]
        == (json.dumps(json.loads(text.lstrip("\ufeff"))).lower().split("\\u")[0])
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Hello world", ["Hello world"]),
        ("Hello {name}!", ["Hello {1}!"]),
        ("%d of %s", ["{1} of {2}"]),
        ("100%% sure, 50% too", ["100% sure, 50% too"]),
        ("a\\n\\nb c", ["a", "b c"]),
        ("see https://x.y now", ["see {1} now"]),
        ("copy <source> to <target>", ["copy {1} to {2}"]),
        ("{n, plural, one {# cat} other {# cats}} here", ["{1} here", "{1} cat", "{1} cats"]),
        (
            "{g, select, male {He} female {She} other {They}} left",
            ["{1} left", "He", "She", "They"],
        ),
        ("{n, plural, one {# cat", ["{n, plural, one {# cat"]),
        ("cancel", ["cancel"]),
        ("and/or", ["and/or"]),
    ],
)
def test_texts_are_found(value: str, expected: list[str]) -> None:
    assert texts("json", f'{{"a": "{value}"}}') == expected


@pytest.mark.parametrize(
    "value",
    [
        *("https://a.b/c", "a@b.de", "#ff00aa", "#fff", "rgba(0, 0, 0, 0.5)", "12px", "en-US"),
        *("some_key", "camelCase", "GitHub", "a.b.c", "index.html", "/usr/bin", "../x/y.png"),
        *("$ref", "@types/x", "--flag", "dd.MM.yyyy", "HH:mm:ss", "123", "", "…"),
        *("0b9c2c4e-8c2e-4f5e-9f54-6f7f0e2a7d11", "d41d8cd98f00b204e9800998ecf8427e"),
    ],
)
def test_what_is_no_text_is_left(value: str) -> None:
    assert is_code(value)


@pytest.mark.parametrize(
    "value",
    ["Save", "cancel", "Ja/Nein", "e-mail", "3D-Ansicht", "Hammer", "Mama", "Don't", "10 km"],
)
def test_what_is_text_is_not(value: str) -> None:
    assert not is_code(value)


def test_some_keys_hold_code_and_others_can_be_left() -> None:
    text = (
        '{"class": "btn btn-primary", "type": "Type", "a": {"skip": {"b": "one two"}}, "c": "x y"}'
    )
    assert texts("json", text) == ["Type", "one two", "x y"]
    assert texts("json", text, leave_keys=("skip",)) == ["Type", "x y"]


def test_escapes_are_written_as_the_file_has_them() -> None:
    document = read("json", '{"a": "gr\\u00fcn", "b": "x\\/y z", "c": "\\u003cp\\u003e so"}')
    filled = fill_with(document, lambda text: text.replace("z", "ö/<").replace("so", "<"))
    assert filled == '{"a": "gr\\u00fcn", "b": "x\\/y \\u00f6\\/<", "c": "\\u003cp\\u003e \\u003c"}'


def test_what_names_packages_and_runs_commands_is_left() -> None:
    package = {
        "name": "reader",
        "version": "1.0.0-beta",
        "description": "A small tool",
        "license": "(MIT OR Apache-2.0)",
        "main": "lib/index",
        "type": "module",
        "scripts": {"build": "tsc -p . && cp README.md dist"},
        "devDependencies": {"x": "^18.2.0-rc.1", "y": "latest"},
        "contributes": [{"name": "my-app", "license": "MIT", "method": "GET"}],
    }
    assert texts("json", json.dumps(package)) == ["A small tool"]
    labels = {key: key.title() for key in ("name", "version", "license", "main", "type")}
    labels |= {"fruit": {"name": "apple"}, "scripts": {"title": "Run a script"}}
    found = ["Name", "Version", "License", "Main", "Type", "apple", "Run a script"]
    assert texts("json", json.dumps(labels)) == found


def test_a_tab_divides_a_text_and_stays_a_tab() -> None:
    document = read("json", '["Name:\\tValue"]')
    units = translate_units(document.units, shout_texts)
    assert document.fill(units) == b'["NAME:\\tVALUE"]'


def test_placeholders_that_are_lost_are_added() -> None:
    document = read("json", '{"a": "Hello {name}, %d new"}')
    units = translate_units(
        document.units, lambda texts, _: [Translation(texts[0], "Hallo", 0.0, (), ((0, 0),))]
    )
    assert document.fill(units) == b'{"a": "Hallo {name} %d"}'


def test_branches_of_a_plural_are_translated() -> None:
    text = '{"n": "{count, plural, one {# file in {dir}} other {# files}}"}'
    expected = '{"n": "{count, plural, one {# FILE IN {dir}} other {# FILES}}"}'
    assert fill_with(read("json", text), str.upper) == expected


def test_an_arb_file_says_its_language() -> None:
    text = '{"@@locale": "en", "a": "hi there", "@a": {"description": "not shown"}}'
    assert texts("arb", text) == ["hi there"]
    filled = shout("arb", text, target_language="de")
    assert filled == text.replace('"en"', '"de"').replace("hi there", "HI THERE")


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": 1,}', "{'a': 1}", "[1, 2", '"\x01"', "[" * 100_000, b"\xff", b"{\0}"]
)
def test_what_is_not_json_is_refused_in_one_line(text: str | bytes) -> None:
    with pytest.raises(DataError) as raised:
        read("json", text)
    assert "\n" not in str(raised.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_any_json_comes_back(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    try:
        content = text.encode()
    except UnicodeEncodeError:
        return
    assert copy("json", content) == content
    filled = json.loads(shout("json", content))
    assert type(filled) is type(value)
