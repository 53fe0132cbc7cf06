"""String files of Java, Apple and Android keep keys, comments and escapes."""

from __future__ import annotations

import pytest

from dragoman.errors import DataError
from dragoman.inference.documents.document import Unit

from .filling import copy, fill_with, read, shout, swap_case, texts

PROPERTIES = """# a comment = no
! another
title = Hello world
long : A long \\
    text with {0} and ''quotes''\\n
\tumlaut=Gr\\u00fcn
empty=
path=/a/b/c
key\\ with\\ space=One value
"""
STRINGS = (
    '/* a = "x"; */\n"a" = "Hello \\"you\\" %@";\n// b\nfoo = "Two\\nlines here";\n"e" = "";\n'
)
ANDROID = """<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <!-- kept -->
    <string name="a">Hello <b>world</b>, it\\'s?\\nYes %1$s</string>
    <string name="n" translatable="false">Not</string>
    <plurals name="p">
        <item quantity="one">%d file</item> <item quantity="other">%d files</item>
    </plurals>
    <string-array name="x"><item>One two</item></string-array>
    <string name="g">Hello <xliff:g id="x" example="y">%s</xliff:g> &amp; so</string>
    <string name="c"><![CDATA[<a href="x">A link</a>]]></string>
    <string name="r">@string/other</string>
</resources>
"""


@pytest.mark.parametrize(
    ("extension", "text"),
    [
        ("properties", PROPERTIES),
        ("properties", PROPERTIES.replace("\n", "\r\n")),
        ("properties", ""),
        ("properties", "a\nb c\n"),
        ("strings", STRINGS),
        ("strings", "\ufeff" + STRINGS),
        ("xml", ANDROID),
        ("xml", "<resources/>"),
    ],
)
def test_a_file_filled_with_its_own_texts_is_itself(extension: str, text: str) -> None:
    assert copy(extension, text) == text.encode()


def test_properties_are_found_and_escaped() -> None:
    found = ["Hello world", "A long text with {1} and 'quotes'", "Grün", "One value"]
    assert texts("properties", PROPERTIES) == found
    shouted = shout("properties", PROPERTIES)
    assert "long : a LONG TEXT WITH {0} AND ''QUOTES''\\n" in shouted
    assert "umlaut=gR\\u00dcN" in shouted
    assert "key\\ with\\ space=oNE VALUE" in shouted


def test_java_needs_two_apostrophes_beside_a_value() -> None:
    document = read("properties", "a=Hello {0} there\nb=Hello there\n")
    filled = fill_with(document, lambda text: text.replace("there", "it's"))
    assert filled == "a=Hello {0} it''s\nb=Hello it's\n"


def test_properties_in_latin_1_stay_so() -> None:
    document = read("properties", "a=grün ist\n".encode("latin-1"))
    assert document.fill([Unit("grün war 한")]) == b"a=gr\\u00fcn war \\ud55c\n"


def test_apple_strings_are_found_and_escaped() -> None:
    assert texts("strings", STRINGS) == ['Hello "you" {1}', "Two", "lines here"]
    assert '"hELLO \\"YOU\\" %@"' in shout("strings", STRINGS)
    assert 'foo = "tWO\\nLINES HERE";' in shout("strings", STRINGS)
    utf16 = b"\xff\xfe" + STRINGS.encode("utf-16-le")
    assert copy("strings", utf16) == utf16


def test_android_strings_are_found_and_escaped() -> None:
    found = ["Hello world, it's?\nYes {1}", "{1} file", "{1} files", "One two", "Hello {1} & so"]
    assert texts("xml", ANDROID) == [*found, "A link"]
    shouted = shout("xml", ANDROID)
    assert "hELLO <b>WORLD</b>, IT\\'S?\\nyES %1$s" in shouted
    assert 'hELLO <xliff:g id="x" example="y">%s</xliff:g> &amp; SO' in shouted
    assert ">Not<" in shouted
    filled = fill_with(read("xml", ANDROID), lambda text: f"?{text}?")
    assert ">\\?One two?<" in filled
    assert "@string/other" in shouted


@pytest.mark.parametrize(
    ("value", "unit", "shouted"),
    [
        ('"  a day "', "a day", '"  A DAY "'),
        ('say "it" now', "say it now", 'SAY "IT" NOW'),
        (r"one\n\ntwo", "one\ntwo", r"ONE\n\nTWO"),
        (r"a\\b \u0041\"c\"", 'a\\b A"c"', r"A\\B a\"C\""),
    ],
)
def test_quotes_and_line_breaks_of_android_stay(value: str, unit: str, shouted: str) -> None:
    text = f'<resources><string name="a">{value}</string></resources>'
    document = read("xml", text)
    assert document.units[0].text == unit
    assert fill_with(document, swap_case) == text.replace(value, shouted)


@pytest.mark.parametrize(
    ("extension", "text"),
    [
        ("properties", b"a=\0"),
        ("strings", '"a" = "never closed;'),
        ("strings", '"a" "b"'),
        ("strings", b"\xff\xff"),
        ("xml", "<html/>"),
        ("xml", "<resources>"),
        ("xml", ""),
    ],
)
def test_broken_files_are_refused_in_one_line(extension: str, text: str | bytes) -> None:
    with pytest.raises(DataError) as raised:
        read(extension, text)
    assert "\n" not in str(raised.value)
