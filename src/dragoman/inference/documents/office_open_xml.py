"""Word's and PowerPoint's files have parts in common, and paragraphs made of runs.

A run is text with its formatting. Runs that differ only in what cannot be seen (the language that
spelling is checked in, revision numbers) are one; otherwise words would be cut in two. python-docx
and python-pptx write all parts anew and drop those they do not know, so the parts are edited here.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Hashable, Sequence
from posixpath import dirname, join, normpath
from typing import Any, Final

from dragoman.errors import DataError
from dragoman.inference.documents.file_text import has_letters
from dragoman.inference.documents.inline_tree import (
    LINE_BREAK,
    TAB,
    WORD,
    Node,
    Object,
    Text,
)
from dragoman.inference.documents.xml_archive import (
    AttributeSlot,
    ParagraphSlot,
    Slot,
    find_text_slots,
    split_tag,
)
from dragoman.inference.documents.xml_positions import remove_invalid
from dragoman.inference.documents.zip_package import Element, ZipPackage

_DRAWING: Final = frozenset(
    {
        "http://schemas.openxmlformats.org/drawingml/2006/main",
        "http://purl.oclc.org/ooxml/drawingml/main",
    }
)
_KINDS: Final = (
    ("wordprocessingml", "a Word document"),
    ("ms-word", "a Word document"),
    ("presentationml", "a PowerPoint presentation"),
    ("ms-powerpoint", "a PowerPoint presentation"),
    ("spreadsheetml", "an Excel workbook"),
    ("ms-excel", "an Excel workbook"),
)
_TITLES: Final = frozenset({"title", "subject"})


# --- packages ---


class OfficePackage(ZipPackage):
    """Hold an Office Open XML file, whose parts have content types."""

    def __init__(self, content: bytes, kind: str, *, max_bytes: int) -> None:
        super().__init__(content, kind, max_bytes=max_bytes)
        if "[Content_Types].xml" not in self.names:
            raise DataError(f"the file is {self._describe()}, not {kind}")
        names = {name.lower(): name for name in self.names}
        self._types: dict[str, str] = {}
        defaults: dict[str, str] = {}
        for element in self.read_xml("[Content_Types].xml"):
            name, content_type = split_tag(element)[1], element.get("ContentType") or ""
            if name == "Default":
                defaults[(element.get("Extension") or "").lower()] = content_type
            elif name == "Override":
                part = names.get((element.get("PartName") or "").lstrip("/").lower())
                if part is not None:
                    self._types[part] = content_type
        for part in self.names:
            self._types.setdefault(part, defaults.get(part.rpartition(".")[2].lower(), ""))
        mains = self.find_parts(r"\.main\+xml$")
        kinds = {
            described for part in mains for word, described in _KINDS if word in self._types[part]
        }
        if kind not in kinds:
            found = next(iter(kinds), "a zip archive of another kind")
            raise DataError(f"the file is {found}, not {kind}")
        self.main = mains[0]
        """This part has the document itself."""

    def _describe(self) -> str:
        if "mimetype" in self.names:
            kind = self.read("mimetype")[:80].decode("ascii", "replace").strip()
            if "epub" in kind:
                return "an EPUB book"
            if "opendocument" in kind:
                return "an OpenDocument file"
        return "a zip archive of another kind"

    def find_parts(self, content_type: str) -> list[str]:
        """Return the parts whose content type a pattern is found in, slide 2 before slide 10."""
        return sorted(
            (part for part, kind in self._types.items() if re.search(content_type, kind)),
            key=lambda part: [
                int(one) if one.isdigit() else one for one in re.split(r"([0-9]+)", part)
            ],
        )

    def read_relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Return the kind and the name of each part that a part refers to, by the relation's id."""
        relations = join(dirname(part), "_rels", part.rpartition("/")[2] + ".rels")
        if relations not in self.names:
            return {}
        found = {}
        for element in self.read_xml(relations):
            path = normpath(join("/", dirname(part), element.get("Target") or "")).lstrip("/")
            if path in self.names:
                found[element.get("Id") or ""] = element.get("Type") or "", path
        return found

    def find_related(self, part: str, relation: str) -> list[str]:
        """Return the parts that a part refers to by relations of a kind, as in "/chart"."""
        return [
            path for kind, path in self.read_relations(part).values() if kind.endswith(relation)
        ]


def read_titles(root: Element) -> list[Slot]:
    """Return what a document's properties say it is called and about."""
    return find_text_slots(root, _TITLES)


def find_descriptions(element: Element) -> list[Slot]:
    """Return the alternative texts of a picture, a shape or a table, and the tips of links."""
    _, name = split_tag(element)
    attributes: tuple[str, ...] = ()
    if name in ("docPr", "cNvPr"):
        attributes = "descr", "title"
    elif name in ("hlinkClick", "hlinkHover"):
        attributes = ("tooltip",)
    elif name in ("tblCaption", "tblDescription"):
        attributes = (_own(element, "val"),)
    elif name == "hyperlink":
        attributes = (_own(element, "tooltip"),)
    elif name == "shape":
        attributes = ("alt",)
    return [AttributeSlot(element, one) for one in attributes if has_letters(element.get(one))]


def _own(element: Element, name: str) -> str:
    """Return the name of an attribute in the element's own namespace."""
    return f"{{{split_tag(element)[0]}}}{name}"


# --- paragraphs ---


def format_key(properties: Element | None, ignored: frozenset[str]) -> Hashable:
    """Return what tells one formatting from another; some elements and attributes do not count."""
    if properties is None:
        return ()
    return _describe(properties, ignored)[1:] or ()


def _describe(element: Element, ignored: frozenset[str]) -> tuple[Any, ...]:
    attributes = tuple(
        sorted(
            (name, value)
            for name, value in element.attrib.items()
            if name.rpartition("}")[2] not in ignored
        )
    )
    children = tuple(
        _describe(child, ignored)
        for child in element
        if split_tag(child)[1] and split_tag(child)[1] not in ignored
    )
    if not attributes and not children:
        return (element.tag,)
    return element.tag, attributes, children


class Formats:
    """Remember the run properties that each formatting stands for."""

    def __init__(self, ignored: frozenset[str]) -> None:
        self._ignored = ignored
        self._properties: dict[Hashable, Element] = {}

    def add(self, properties: Element | None) -> Hashable:
        """Return the key of a formatting."""
        key = format_key(properties, self._ignored)
        if properties is not None:
            self._properties.setdefault(key, properties)
        return key

    def copy(self, key: Hashable) -> Element | None:
        """Return properties for another run; None if there are none."""
        properties = self._properties.get(key)
        return None if properties is None else copy.deepcopy(properties)


# --- DrawingML: shapes, tables and charts ---

_INVISIBLE: Final = frozenset(
    {"lang", "altLang", "dirty", "err", "smtClean", "smtId", "noProof", "bmk", "kern", "spc"}
)


def is_drawing_paragraph(element: Element) -> bool:
    """Return whether an element is a paragraph of DrawingML."""
    namespace, name = split_tag(element)
    return name == "p" and namespace in _DRAWING


def read_drawing(root: Element) -> list[Slot]:
    """Return the paragraphs and descriptions of a slide, a chart or a diagram."""
    slots: list[Slot] = []
    for element in root.iter():
        if is_drawing_paragraph(element):
            slots += DrawingParagraph(element).find_slots()
        else:
            slots += find_descriptions(element)
    return slots


class DrawingParagraph:
    """Read and write a paragraph of DrawingML."""

    def __init__(self, element: Element) -> None:
        self._element = element
        self._namespace = split_tag(element)[0]
        self._formats = Formats(_INVISIBLE)

    def find_slots(self) -> list[Slot]:
        """Return the paragraph, if there are letters in it."""
        nodes: list[Node] = []
        for child in self._element:
            nodes += self._read(child)
        slot = ParagraphSlot(nodes, self._write)
        return [slot] if slot.is_translatable else []

    def _read(self, child: Element) -> list[Node]:
        _, name = split_tag(child)
        if name in ("pPr", "endParaRPr"):
            return []
        if name == "br":
            return [Object(child, LINE_BREAK)]
        if name == "r":
            key = self._formats.add(child.find(self._tag("rPr")))
            text = re.sub(r"[\r\n]", " ", child.findtext(self._tag("t")) or "")
            nodes: list[Node] = []
            for i, part in enumerate(text.split(TAB)):
                if i:
                    nodes.append(Object(Text(TAB, key), TAB))
                if part:
                    nodes.append(Text(part, key))
            return nodes
        return [Object(child, WORD if name in ("fld", "AlternateContent", "m") else "")]

    def _write(self, nodes: Sequence[Node]) -> None:
        element = self._element
        for child in list(element):
            if split_tag(child)[1] not in ("pPr", "endParaRPr"):
                element.remove(child)
        end = element.find(self._tag("endParaRPr"))
        place = len(element) if end is None else element.index(end)
        for node in nodes:
            made = self._make(node)
            if made is not None:
                element.insert(place, made)
                place += 1

    def _make(self, node: Node) -> Element | None:
        if isinstance(node, Object) and isinstance(node.content, Text):
            node = node.content
        if isinstance(node, Text):
            run = self._element.makeelement(self._tag("r"))
            properties = self._formats.copy(node.format)
            if properties is not None:
                run.append(properties)
            text = run.makeelement(self._tag("t"))
            text.text = remove_invalid(node.text).replace("\n", " ")
            run.append(text)
            return run
        return node.content

    def _tag(self, name: str) -> str:
        return f"{{{self._namespace}}}{name}"
