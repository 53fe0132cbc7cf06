"""Books keep every part but the texts of their pages, contents and titles."""

from __future__ import annotations

import io
import zipfile

import pytest
from lxml import etree

from dragoman.errors import DataError
from dragoman.inference.documents.epub import EpubDocument

from .fake_translators import reverse, rotate, shout
from .sample_documents import PAGE, make_epub, unzip


def open_book(content: bytes, language: str | None = None) -> EpubDocument:
    return EpubDocument(content, max_bytes=10_000_000, target_language=language)


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_the_texts_of_a_book_are_units_in_reading_order(version: str) -> None:
    content = make_epub(version=version)
    document = open_book(content)
    assert [unit.text for unit in document.units] == [
        "A storm & more", "A dark book.", "One", "The first chapter",
        "It was a dark and stormy\xa0night.\nRain fell.", "A storm", "A storm",
        "The first chapter", "The first chapter",
    ]  # fmt: skip
    filled = document.fill(document.units)
    assert unzip(filled) == unzip(content)
    assert list(unzip(filled)) == list(unzip(content))
    with zipfile.ZipFile(io.BytesIO(filled)) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)


def test_a_translated_book_is_well_formed_and_the_rest_is_as_it_was() -> None:
    content = make_epub()
    document = open_book(content, "de")
    before, after = unzip(content), unzip(document.fill(reverse(document.units)))
    for name in ("mimetype", "META-INF/container.xml", "OEBPS/a.css", "OEBPS/a.png"):
        assert before[name] == after[name]
    for name, part in after.items():
        if name.endswith(("xhtml", "opf", "ncx", "xml")):
            etree.fromstring(part)
    page = after["OEBPS/text/one a.xhtml"].decode()
    assert 'xml:lang="de"' in page
    assert "<em>DARK</em>" in page
    assert '<a href="n#1"><sup>1</sup></a>' in page
    assert '<script src="a.js"/>' in page
    assert 'alt="STORM A"' in page
    package = after["OEBPS/book.opf"].decode()
    assert "<dc:title>MORE &amp; STORM A</dc:title>" in package
    assert "<dc:creator>Ann Author</dc:creator>" in package
    assert "<dc:language>de</dc:language>" in package
    assert "&lt;p&gt;BOOK &lt;b&gt;DARK&lt;/b&gt; A.&lt;/p&gt;" in package
    contents = after["OEBPS/toc.ncx"].decode()
    assert "<text>Ann Author</text>" in contents
    assert "<text>CHAPTER FIRST THE</text>" in contents
    assert "CHAPTER FIRST THE</a>" in after["OEBPS/nav.xhtml"].decode()


def test_what_is_translated_back_is_the_book_again() -> None:
    content = make_epub(page=PAGE.replace("&#160;", " "))
    document = open_book(content)
    away = open_book(document.fill(rotate(document.units)))
    assert unzip(away.fill(rotate(away.units))) == unzip(content)


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_a_page_keeps_its_encoding(encoding: str) -> None:
    page = PAGE.replace("utf-8", encoding).replace("storm", "störm").encode(encoding)
    document = open_book(make_epub(extra={"OEBPS/text/one a.xhtml": page}))
    assert "A störm" in [unit.text for unit in document.units]
    after = unzip(document.fill(shout(document.units)))["OEBPS/text/one a.xhtml"]
    assert "A STÖRM" in after.decode(encoding)


def encryption(algorithm: str) -> dict[str, str]:
    return {
        "META-INF/encryption.xml": '<encryption xmlns="urn:x" xmlns:e="http://www.w3.org/2001/04/'
        f'xmlenc#"><e:EncryptedData><e:EncryptionMethod Algorithm="{algorithm}"/>'
        "</e:EncryptedData></encryption>"
    }


def test_an_encrypted_book_is_refused_and_one_with_hidden_fonts_is_not() -> None:
    with pytest.raises(DataError, match="the book is encrypted"):
        open_book(make_epub(extra=encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc")))
    assert open_book(make_epub(extra=encryption("http://www.idpf.org/2008/embedding"))).units


def test_a_page_that_is_not_well_formed_is_read_all_the_same() -> None:
    document = open_book(make_epub(page="<html><p>One <b>two<p>three</html>"))
    assert {"One two", "three"} <= {unit.text for unit in document.units}
