"""Documents give their texts and take translations in their place."""

from __future__ import annotations

import io
import zipfile

import pytest

from dragoman.errors import DataError
from dragoman.inference.documents.formats import DocumentTooLargeError, open_document


@pytest.mark.parametrize(
    ("extension", "content", "texts", "filled"),
    [
        ("txt", "one\r\n\r\n7\ntwo", ["one", "two"], "ONE\r\n\r\n7\nTWO"),
        ("tsv", "7\tone\ttwo\n8\t\n", ["one", "two"], "7\tONE\tTWO\n8\t\n"),
        ("srt", "1\n00:01 --> 00:02\n<i>one</i>\n", ["one"], "1\n00:01 --> 00:02\n<i>ONE</i>\n"),
        ("html", "one", ["one"], "ONE"),
        ("html", " ", [], " "),
    ],
)
def test_what_is_no_text_stays(extension: str, content: str, texts: list[str], filled: str) -> None:
    document = open_document(extension, content.encode(), 100)
    assert document.texts == texts
    assert document.fill([text.upper() for text in texts]).decode() == filled


@pytest.mark.parametrize(("extension", "content"), [("exe", b"MZ"), ("", b"a"), ("txt", b"\xff")])
def test_other_files_are_refused(extension: str, content: bytes) -> None:
    with pytest.raises(DataError):
        open_document(extension, content, 100)


def test_a_compressed_file_may_not_become_too_large() -> None:
    pytest.importorskip("docx", reason="reading docx needs python-docx")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b" " * 2000)
    with pytest.raises(DocumentTooLargeError):
        open_document("docx", out.getvalue(), 1000)
