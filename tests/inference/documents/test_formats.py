"""Every format is opened by its extension; broken files are refused, whatever is broken."""

from __future__ import annotations

import io
import random
import zipfile

import pytest

from dragoman.errors import DataError
from dragoman.inference.documents import formats
from dragoman.inference.documents.document import Document, Mark, Unit
from dragoman.inference.documents.formats import (
    EXTENSIONS,
    MEDIA_TYPES,
    DocumentTooLargeError,
    open_document,
)
from dragoman.inference.documents.options import ALL_COLUMNS, DocumentOptions

SAMPLES = {
    "txt": "One line.\r\n\r\n- two\n",
    "md": "---\ntitle: x y\n---\n# One *two*\n\n| a | b |\n|---|---|\n| c d | `e` |\n\n<p>f</p>\n",
    "mdx": 'import A from "b"\n\nHello {name} [x](y)\n',
    "srt": "1\n00:00:01,000 --> 00:00:02,000\n<i>One,</i>\n\n"
    "2\n00:00:02,000 --> 00:00:03,000\ntwo.\n",
    "vtt": "WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000\n<v A>one &amp; <c>two</c>\n",
    "po": 'msgid ""\nmsgstr "Language: \\n"\n\n#, fuzzy\nmsgid "_One %s"\nmsgstr ""\n',
    "xliff": '<xliff version="1.2"><file><body><trans-unit id="1"><source>a <g id="1">b</g>'
    "</source></trans-unit></body></file></xliff>",
    "json": '{"a": "one {n, plural, one {# x} other {# y}}", "b": ["two \\u00e4"]}',
    "jsonl": '{"a": "one two"}\n{"a": "three"}\n',
    "csv": 'id,text\n1,"one, two"\n2,three four\n',
    "tsv": "1\tone two\n2\tthree\n",
    "properties": "# c\na = one \\\n  two {0}\nb=dr\\u00ebi\n",
    "strings": '/* c */\n"a" = "one \\"two\\"";\n',
    "xml": '<resources><string name="a">one <b>two</b> %s</string></resources>',
    "eml": "Subject: one\nContent-Type: text/plain\n\nTwo three.\n",
    "html": "<p>one <b>two</b></p>",
}


@pytest.mark.parametrize("extension", SAMPLES)
def test_a_file_filled_with_its_own_texts_is_itself(extension: str) -> None:
    content = SAMPLES[extension].encode()
    document = open_document(extension, content, max_bytes=10_000)
    assert document.units
    filled = document.fill(document.units)
    if extension not in ("po", "xliff"):  # these get translations beside their texts
        assert filled == content


@pytest.mark.parametrize("extension", SAMPLES)
def test_no_unit_is_without_a_letter_or_has_marks_outside(extension: str) -> None:
    for unit in open_document(extension, SAMPLES[extension].encode(), max_bytes=10_000).units:
        assert any(map(str.isalpha, unit.text))
        assert all(0 <= mark.start <= mark.end <= len(unit.text) for mark in unit.marks)
        assert len({mark.key for mark in unit.marks}) == len(unit.marks)


@pytest.mark.parametrize("extension", SAMPLES)
def test_broken_bytes_are_refused_or_read(extension: str) -> None:
    """Whatever is flipped, cut out or doubled, a file is read or refused, never a surprise."""
    rng = random.Random(extension)
    original = SAMPLES[extension].encode()
    options = DocumentOptions(columns=(ALL_COLUMNS,), target_language="de")
    messages: list[str] = []
    for _ in range(150):
        content = bytearray(original)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(content)) if content else 0
            kind = rng.randrange(4)
            if kind == 0:
                content[at : at + 1] = bytes([rng.randrange(256)])
            elif kind == 1:
                del content[at : at + rng.randint(1, 20)]
            elif kind == 2:
                content[at:at] = rng.choice(
                    [b"<", b'"', b"{", b"\n", b"\\", b"&", b"\xe4", b"`", b"]"]
                )
            else:
                del content[at:]
        try:
            document = open_document(extension, bytes(content), max_bytes=10_000, options=options)
            document.fill(document.units)
            document.fill([Unit(f"{unit.text}x", unit.marks) for unit in document.units])
        except DataError as error:
            messages.append(str(error))
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize("said", ["", "x", " ", "\n", "{1} {1} {9}", "<&\"'`*_|\\{", "lang " * 300])
@pytest.mark.parametrize("extension", SAMPLES)
def test_whatever_a_model_says_the_file_stays_one_of_its_format(extension: str, said: str) -> None:
    options = DocumentOptions(columns=(ALL_COLUMNS,), overwrite=True)

    def reopen(content: bytes) -> Document:
        return open_document(extension, content, max_bytes=100_000, options=options)

    document = reopen(SAMPLES[extension].encode())
    marks = [
        tuple(Mark(min(one.start, len(said)), min(one.end, len(said)), one.key) for one in u.marks)
        for u in document.units
    ]
    reopen(document.fill([Unit(said, some) for some in marks]))


@pytest.mark.parametrize("extension", SAMPLES)
def test_too_large_files_are_refused(extension: str) -> None:
    with pytest.raises(DocumentTooLargeError):
        open_document(extension, SAMPLES[extension].encode(), max_bytes=5)


@pytest.mark.parametrize("name", ["a.exe", "exe", "", "noend", "a.", "x.doc"])
def test_other_formats_are_refused_with_a_list(name: str) -> None:
    with pytest.raises(DataError, match=r"\.txt, .*\.docx"):
        open_document(name, b"a", max_bytes=100)


def test_a_name_or_an_extension_in_any_case_tells_the_format() -> None:
    for name in ("txt", "TXT", "a.txt", "a.b.Txt", ".txt", "/x/y.d/z.txt"):
        (unit,) = open_document(name, b"one", max_bytes=100).units
        assert unit == Unit("one")


def test_every_format_has_a_reader_and_a_media_type() -> None:
    assert tuple(MEDIA_TYPES) == EXTENSIONS
    for extension, one in formats._FORMATS.items():
        module = __import__(f"dragoman.inference.documents.{one.module}", fromlist=[one.reader])
        assert callable(getattr(module, one.reader)), extension


def test_a_compressed_file_may_not_become_too_large() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b" " * 2000)
    with pytest.raises(DocumentTooLargeError):
        open_document("docx", out.getvalue(), max_bytes=1000)
