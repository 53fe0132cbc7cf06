"""Whatever is wrong with a file, its reader says so in one line, or reads it."""

from __future__ import annotations

import io
import random
import re
import struct
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, DocumentTooLargeError
from dragoman.inference.documents.epub import EpubDocument
from dragoman.inference.documents.html import HtmlDocument
from dragoman.inference.documents.opendocument import OpenDocumentText
from dragoman.inference.documents.powerpoint import PowerPointDocument
from dragoman.inference.documents.word import WordDocument

from .fake_translators import shout
from .sample_documents import (
    OPENDOCUMENT_BODIES,
    OPENDOCUMENT_STYLES,
    PAGE,
    WORD_BODIES,
    make_epub,
    make_opendocument,
    make_word,
    make_zip,
    paragraph,
    unzip,
)
from .test_powerpoint import make_presentation

WORD = make_word("".join(body for body, _ in WORD_BODIES.values()))
OPENDOCUMENT = make_opendocument(
    "".join(body for body, _ in OPENDOCUMENT_BODIES.values()),
    styles=OPENDOCUMENT_STYLES, title="A title", header="<text:p>A header</text:p>",
)  # fmt: skip
EPUB = make_epub()
READERS: dict[str, tuple[Callable[..., Document], Callable[[], bytes]]] = {
    "docx": (WordDocument, lambda: WORD),
    "pptx": (PowerPointDocument, make_presentation),
    "odt": (OpenDocumentText, lambda: OPENDOCUMENT),
    "epub": (EpubDocument, lambda: EPUB),
    "html": (HtmlDocument, lambda: PAGE.encode()),
}
ARCHIVES = [name for name in READERS if name != "html"]


def read_and_fill(kind: str, content: bytes) -> str:
    """Return what is wrong with a file; nothing if it can be read, filled and read again."""
    reader = READERS[kind][0]
    try:
        document = reader(content, max_bytes=5_000_000)
        filled = document.fill(shout(document.units))
    except DataError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message
    if message:
        return message
    assert len(reader(filled, max_bytes=20_000_000).units) == len(document.units)
    return ""


def mutate(content: bytes, draw: random.Random) -> bytes:
    """Return other bytes: some changed, cut out, doubled, or the end cut off."""
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 3, 20])):
        if not changed:
            break
        at, kind = draw.randrange(len(changed)), draw.randrange(5)
        end = at + draw.randrange(1, 30)
        if kind == 0:
            changed[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            changed[at] = draw.choice(b"<>/&\"'\x00\xff ")
        elif kind == 2:
            del changed[at:end]
        elif kind == 3:
            changed[at:at] = changed[at:end]
        elif draw.random() < 0.2:
            del changed[at:]
    return bytes(changed)


@pytest.mark.parametrize("kind", READERS)
def test_changed_bytes_are_refused_or_read(kind: str) -> None:
    draw = random.Random(f"bytes of {kind}")
    content = READERS[kind][1]()
    for _ in range(10 if kind == "pptx" else 60):
        read_and_fill(kind, mutate(content, draw))


@pytest.mark.parametrize("kind", ARCHIVES)
def test_changed_parts_are_refused_or_read(kind: str) -> None:
    draw = random.Random(f"parts of {kind}")
    parts = unzip(READERS[kind][1]())
    names = [name for name in parts if name.endswith(("xml", "rels", "opf", "ncx", "xhtml"))]
    read = 0
    for _ in range(15 if kind == "pptx" else 80):
        name = draw.choice(names)
        changed = dict(parts)
        if draw.random() < 0.1:
            del changed[name]
        elif draw.random() < 0.3:
            # Names that mean something in a place where they do not.
            old, new = draw.choice(names), draw.choice(names)
            changed[old] = parts[new]
        else:
            changed[name] = mutate(parts[name], draw)
        read += not read_and_fill(kind, make_zip(changed))
    assert read


OLD_WORD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512) + "WordDocument".encode("utf-16-le")
LOCKED = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512) + "EncryptedPackage".encode("utf-16-le")


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"%PDF-1.7\n%\xe2\xe3", "the file is a PDF, not"),
        (b"<!DOCTYPE html><p>404 not found", "the file is a web page, not"),
        (b"{\\rtf1 hello}", "the file is an RTF file, not"),
        (b"just some text", "the file is not a document"),
        (OLD_WORD, "; save it as .docx"),
        (LOCKED, "the file is protected by a password"),
        (WORD[:-100], "the file is broken or cut off"),
        (WORD[: len(WORD) // 2], "the file is broken or cut off"),
        (make_zip({"a.txt": "hello"}), "the file is a zip archive of another kind, not"),
    ],
)
def test_a_file_of_another_kind_gets_one_line(kind: str, content: bytes, message: str) -> None:
    assert message in read_and_fill(kind, content)


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("other", ARCHIVES)
def test_a_document_with_the_name_of_another_kind_is_named(kind: str, other: str) -> None:
    found = read_and_fill(kind, READERS[other][1]())
    assert bool(found) == (kind != other)
    if kind in ("docx", "pptx") and kind != other:
        names = {"docx": "Word", "pptx": "PowerPoint", "odt": "OpenDocument", "epub": "EPUB"}
        assert names[other] in found


@pytest.mark.parametrize("kind", ARCHIVES)
def test_what_unpacks_to_too_much_is_refused(kind: str) -> None:
    parts = unzip(READERS[kind][1]())
    bomb = make_zip({**parts, "bomb.bin": bytes(6_000_000)})
    assert len(bomb) < 1_000_000
    with pytest.raises(DocumentTooLargeError):
        READERS[kind][0](bomb, max_bytes=5_000_000)


def test_texts_that_unpack_to_much_more_than_the_file_are_refused() -> None:
    content = make_word(paragraph() * 1_000_000)
    assert len(content) < 50_000
    with pytest.raises(DocumentTooLargeError, match="more than 100 times its size"):
        WordDocument(content, max_bytes=1 << 30)


def test_a_part_with_more_in_it_than_it_says_is_not_unpacked() -> None:
    content = make_word(paragraph() * 2_000_000)
    (size,) = [
        one.file_size
        for one in zipfile.ZipFile(io.BytesIO(content)).infolist()
        if one.filename == "word/document.xml"
    ]
    lying = content.replace(struct.pack("<L", size), struct.pack("<L", 100))
    tracemalloc.start()
    assert (
        read_and_fill("docx", lying)
        == "word/document.xml in the file cannot be read: it is damaged"
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size / 4


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_with_a_password_is_refused(kind: str) -> None:
    content = bytearray(READERS[kind][1]())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        directory = archive.start_dir
    content[directory + 8] |= 1  # says that the first part is encrypted
    assert "password" in read_and_fill(kind, bytes(content))


def test_encrypted_opendocument_files_are_refused() -> None:
    parts = unzip(OPENDOCUMENT)
    parts["META-INF/manifest.xml"] = parts["META-INF/manifest.xml"].replace(
        b'm:media-type="application/vnd.oasis.opendocument.text"/>',
        b'm:media-type=""><m:encryption-data/></m:file-entry>',
    )
    assert "password" in read_and_fill("odt", make_zip(parts))


@pytest.mark.parametrize(
    ("kind", "part"),
    [("docx", "word/document.xml"), ("odt", "content.xml"), ("epub", "OEBPS/book.opf")],
)
def test_entities_are_never_expanded(kind: str, part: str) -> None:
    parts = unzip(READERS[kind][1]())
    text = "A storm" if kind == "epub" else "One two."
    for declared in (
        '<!ENTITY x SYSTEM "file:///etc/hostname">',
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY x "&a;&a;&a;&a;&a;&a;&a;&a;">',
    ):
        xml = re.sub(r"^<\?xml.*?\?>", "", parts[part].decode()).replace(text, "&x;")
        assert "&x;" in xml
        changed = {**parts, part: f"<!DOCTYPE x [{declared}]>{xml}"}
        assert "entit" in read_and_fill(kind, make_zip(changed))


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("word/document.xml", b"<w:document>", "word/document.xml in the file is not well-formed"),
        ("word/document.xml", b"", "word/document.xml in the file is not well-formed XML"),
        ("[Content_Types].xml", b"<Types/>", "the file is a zip archive of another kind"),
    ],
)
def test_a_broken_part_is_named(part: str, content: bytes, message: str) -> None:
    assert message in read_and_fill("docx", make_zip({**unzip(WORD), part: content}))
