"""XLIFF files get targets beside their sources, with the same inline elements."""

from __future__ import annotations

import re

import pytest
from lxml import etree

from dragoman.errors import DataError
from dragoman.inference.documents.document import Unit

from .filling import fill_with, read, shout, texts


def version_1(body: str) -> str:
    return (
        "<?xml version='1.0' encoding=\"UTF-8\"?>\n<!-- kept -->\n"
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f"<file original='a' source-language=\"en\"><body>\n{body}\n</body></file></xliff>\n"
    )


def version_2(body: str) -> str:
    return (
        '<xliff version="2.0" srcLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0">'
        f'<file id="f"><unit id="1">{body}</unit></file></xliff>'
    )


def unit(source: str, rest: str = "", attributes: str = "") -> str:
    return version_1(f'<trans-unit id="1"{attributes}><source>{source}</source>{rest}</trans-unit>')


def target(filled: str) -> str:
    found = re.search(r"<target[^>]*>(.*)</target>", filled, re.DOTALL)
    assert found is not None
    etree.fromstring(filled.encode())
    return found[1]


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("Hello", "Hello", "hELLO"),
        (" a &lt; b &amp; c ", "a < b & c", " A &lt; B &amp; C "),
        ('a <g id="1">b</g> c', "a b c", 'A <g id="1">B</g> C'),
        ('<g id="1">all</g>', "all", '<g id="1">ALL</g>'),
        ('hi <x id="INTERPOLATION"/>!', "hi {1}!", 'HI <x id="INTERPOLATION"/>!'),
        (
            'one<x id="LINE_BREAK" ctype="lb"/>two',
            "one\ntwo",
            'ONE<x id="LINE_BREAK" ctype="lb"/>TWO',
        ),
        (
            'a <x id="START_TAG_B"/>b<x id="CLOSE_TAG_B"/> c',
            "a b c",
            'A <x id="START_TAG_B"/>B<x id="CLOSE_TAG_B"/> C',
        ),
        (
            'a <bpt id="1">&lt;b&gt;</bpt>b<ept id="1">&lt;/b&gt;</ept>',
            "a b",
            'A <bpt id="1">&lt;b&gt;</bpt>B<ept id="1">&lt;/b&gt;</ept>',
        ),
        ("<![CDATA[a <b>c</b>]]>", "a c", "A &lt;b&gt;C&lt;/b&gt;"),
        ('a <mrk mtype="protected">B c</mrk> d', "a {1} d", 'A <mrk mtype="protected">B c</mrk> D'),
        ('a <ph id="1">{0}</ph> b', "a {1} b", 'A <ph id="1">{0}</ph> B'),
        ("%s files in {dir}", "{1} files in {2}", "%s FILES IN {dir}"),
        ("grün 한국 😀 x", "grün 한국 😀 x", "GRÜN 한국 😀 X"),
    ],
)
def test_targets_have_the_elements_of_their_sources(source: str, text: str, expected: str) -> None:
    content = unit(source)
    assert texts("xliff", content) == [text]
    filled = shout("xliff", content)
    assert target(filled) == expected
    without = re.sub(r"<target.*</target>", "", filled, flags=re.DOTALL)
    assert without == content  # nothing else has changed


@pytest.mark.parametrize(
    ("rest", "attributes", "overwrite", "wanted"),
    [
        ("", "", False, True),
        ("<target/>", "", False, True),
        ("<target></target>", "", False, True),
        ('<target state="new">Hello</target>', "", False, True),
        ("<target>Hallo</target>", "", False, False),
        ("<target>Hallo</target>", "", True, True),
        ('<target state="final">Hallo</target>', "", True, False),
        ("<target>Hallo</target>", ' approved="yes"', True, False),
        ("", ' translate="no"', False, False),
    ],
)
def test_targets_that_are_there_stay(
    rest: str, attributes: str, overwrite: bool, wanted: bool
) -> None:
    content = unit("Hello", rest, attributes)
    assert texts("xliff", content, overwrite=overwrite) == (["Hello"] if wanted else [])
    if not wanted:
        assert shout("xliff", content, overwrite=overwrite) == content


def test_a_group_that_is_not_translated_is_left() -> None:
    body = '<group translate="no"><trans-unit id="1"><source>a b</source></trans-unit></group>'
    assert texts("xliff", version_1(body)) == []


def test_marked_segments_are_translated_by_themselves() -> None:
    segments = '<mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk>'
    content = unit("One. Two.", f"<seg-source>{segments}</seg-source>")
    assert texts("xliff", content) == ["One.", "Two."]
    assert target(shout("xliff", content)) == segments.replace("One", "oNE").replace("Two", "tWO")


def test_version_2_has_paired_codes_and_states() -> None:
    body = (
        '<segment state="initial"><source>a <pc id="1">b</pc> <ph id="2"/> '
        'c <sc id="3"/>d<ec startRef="3"/></source></segment>'
        "<ignorable><source> </source></ignorable>"
    )
    content = version_2(body)
    assert texts("xlf", content) == ["a b {1} c d"]
    filled = shout("xlf", content, target_language="de")
    assert target(filled) == 'A <pc id="1">B</pc> <ph id="2"/> C <sc id="3"/>D<ec startRef="3"/>'
    assert 'state="translated"' in filled
    assert 'trgLang="de"' in filled


def test_the_target_language_is_said() -> None:
    assert 'target-language="de"' in shout("xliff", unit("Hello"), target_language="de")


def test_what_a_translation_says_is_escaped() -> None:
    filled = fill_with(read("xliff", unit("Hello")), lambda _: "<x> & \x01 ]]>")
    assert target(filled) == "&lt;x&gt; &amp;  ]]&gt;"


def test_marks_that_move_stay_well_formed() -> None:
    document = read("xliff", unit('a <g id="1">b <g id="2">c</g></g> <x id="3"/> d'))
    (one,) = document.units
    swapped = Unit(
        "D C B {1} A", tuple(type(m)(m.start // 2, m.end // 2, m.key) for m in one.marks)
    )
    target(document.fill([swapped]).decode())


def test_other_encodings_are_read() -> None:
    content = unit("grün").replace("UTF-8", "ISO-8859-1").encode("latin-1")
    document = read("xliff", content)
    assert document.units[0].text == "grün"
    assert "GRÜN".encode("latin-1") in document.fill([Unit("GRÜN")])
    korean = etree.fromstring(document.fill([Unit("녹색")]))
    assert "녹색" in "".join(korean.itertext())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<xliff",
        "<other/>",
        "<xliff/>",
        '<xliff version="3.0"/>',
        "<!DOCTYPE a [<!ENTITY x 'y'>]><xliff version='1.2'>&x;</xliff>",
        "<a>" * 1000,
        b"\xff\xfe\x00",
        unit("a").replace("UTF-8", "nonsense"),
    ],
)
def test_broken_files_are_refused_in_one_line(text: str | bytes) -> None:
    with pytest.raises(DataError) as raised:
        read("xliff", text)
    assert "\n" not in str(raised.value)


def test_nothing_outside_of_the_file_is_read() -> None:
    head = "<!DOCTYPE xliff SYSTEM 'file:///etc/passwd'>"
    content = unit("a &x; b").replace("<!-- kept -->", head)
    assert texts("xliff", content) == ["a &x; b"]
