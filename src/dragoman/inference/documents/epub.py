"""An EPUB book is an archive of XHTML pages, with a package file and tables of contents.

Pages are read as HTML is, so that all but the texts stays as it is. EbookLib is not used: its
licence is the AGPL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import dirname, join, normpath
from typing import Final, Protocol
from urllib.parse import unquote

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.file_text import has_letters, replace_spans
from dragoman.inference.documents.html import HtmlText, decode_page
from dragoman.inference.documents.xml_positions import (
    Element,
    parse_xml,
    read_text,
    write_text,
)
from dragoman.inference.documents.zip_package import ZipPackage

_CONTAINER: Final = "META-INF/container.xml"
_FONT_ALGORITHMS: Final = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""These make fonts unreadable to others, and nothing else."""
_PAGES: Final = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document"})
_CONTENTS: Final = "application/x-dtbncx+xml"


class _Part(Protocol):
    """Be a part of a book with texts."""

    units: list[Unit]

    def fill(self, translations: Sequence[Unit]) -> bytes: ...


class EpubDocument(Document):
    """Hold an EPUB book, version 2 or 3."""

    def __init__(
        self, content: bytes, *, max_bytes: int, target_language: str | None = None
    ) -> None:
        package = self._package = ZipPackage(content, "an EPUB book", max_bytes=max_bytes)
        if _CONTAINER not in package.names:
            raise DataError("the file is a zip archive of another kind, not an EPUB book")
        _refuse_encrypted(package)
        self._parts: dict[str, _Part] = {}
        for path in _find_package_files(package):
            metadata = _Metadata(package.read(path), path, target_language)
            self._parts.setdefault(path, metadata)
            for name, kind in metadata.find_items():
                if name in package.names and name not in self._parts:
                    if kind in _PAGES:
                        self._parts[name] = _Page(package.read(name), name, target_language)
                    elif kind == _CONTENTS:
                        self._parts[name] = _Contents(package.read(name), name, target_language)
        self.units = [unit for part in self._parts.values() for unit in part.units]

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the book with a translation in place of each unit; other parts are copied."""
        if len(translations) != len(self.units):
            raise ValueError(f"{len(translations)} translations for {len(self.units)} units")
        changed: dict[str, bytes] = {}
        done = 0
        for name, part in self._parts.items():
            changed[name] = part.fill(translations[done : done + len(part.units)])
            done += len(part.units)
        return self._package.write(changed)


def _refuse_encrypted(package: ZipPackage) -> None:
    name = "META-INF/encryption.xml"
    if name not in package.names:
        return
    for element in package.read_xml(name).iter():
        method = isinstance(element.tag, str) and element.tag.endswith("}EncryptionMethod")
        if method and element.get("Algorithm") not in _FONT_ALGORITHMS:
            raise DataError("the book is encrypted (DRM), so that its text cannot be read")


def _find_package_files(package: ZipPackage) -> list[str]:
    paths = [
        unquote(element.get("full-path") or "")
        for element in package.read_xml(_CONTAINER).iter()
        if isinstance(element.tag, str) and element.tag.endswith("rootfile")
    ]
    found = [path for path in paths if path in package.names]
    if not found:
        raise DataError(f"the file is not an EPUB book: {_CONTAINER} names no package file")
    return found


class _Page:
    """Hold a page of a book."""

    def __init__(self, content: bytes, name: str, language: str | None) -> None:
        try:
            self._page = decode_page(content)
        except DataError as error:
            raise DataError(f"{name} in the file: {error}") from None
        self._text = HtmlText(self._page.text, xml=True, language=language)
        self.units = self._text.units

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the page with translations."""
        return self._page.encode(self._text.fill(translations))


class _Metadata:
    """Hold the texts of some elements of an XML file."""

    names: frozenset[str] = frozenset({"title", "description"})
    """In elements of these names there is text to translate."""

    def __init__(self, content: bytes, path: str, language: str | None) -> None:
        try:
            self._page = decode_page(content)
            self._root = parse_xml(self._page.text)
        except DataError as error:
            raise DataError(f"{path} in the file: {error}") from None
        self._path, self._language = path, language
        self._places: list[tuple[Element, HtmlText | None]] = []
        self.units: list[Unit] = []
        for parent in self._root.walk():
            for element in parent.children:
                named = element.name in self.names and parent.name != "docAuthor"
                if named and not element.children:
                    self._add(element)

    def _add(self, element: Element) -> None:
        text = self._read(element)
        if not has_letters(text):
            return
        # Some programs write the description as HTML, with its tags escaped.
        html = HtmlText(text) if re.search(r"</?[a-zA-Z][^<>]*>", text) else None
        self._places.append((element, html))
        self.units += [Unit(text)] if html is None else html.units

    def _read(self, element: Element) -> str:
        return read_text(self._page.text[element.inside : element.inside_end])

    def find_items(self) -> list[tuple[str, str]]:
        """Return the name and the media type of each part of the book, in reading order."""
        items = {
            one.attributes.get("id", ""): (
                normpath(join(dirname(self._path), unquote(one.attributes.get("href", "")))),
                one.attributes.get("media-type", ""),
            )
            for one in self._root.walk()
            if one.name == "item"
        }
        spine = [
            one.attributes.get("idref", "") for one in self._root.walk() if one.name == "itemref"
        ]
        ordered = [one for one in dict.fromkeys([*spine, *items]) if one in items]
        return [items[one] for one in ordered]

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with translations, and with the language of the book."""
        edits: list[tuple[int, int, str]] = []
        done = 0
        for element, html in self._places:
            count = 1 if html is None else len(html.units)
            coming = translations[done : done + count]
            if list(coming) != self.units[done : done + count]:
                text = coming[0].text if html is None else html.fill(coming)
                edits.append((element.inside, element.inside_end, write_text(text)))
            done += count
        if self._language:
            said = [one for one in self._root.walk() if one.name == "language" and not one.is_empty]
            edits += [(one.inside, one.inside_end, write_text(self._language)) for one in said[:1]]
        return self._page.encode(replace_spans(self._page.text, sorted(edits)))


class _Contents(_Metadata):
    """Hold a table of contents of EPUB 2."""

    names = frozenset({"text"})
