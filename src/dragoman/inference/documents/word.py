"""A Word document has paragraphs in its text, tables, headers, footers, notes and text boxes.

Deleted text of tracked changes and comments are left as they are.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman.inference.documents.inline_tree import (
    LINE_BREAK,
    MAX_DEPTH,
    TAB,
    WORD,
    Around,
    Group,
    Node,
    Object,
    Text,
    group_ranges,
    set_code_apart,
)
from dragoman.inference.documents.office_open_xml import (
    Formats,
    OfficePackage,
    find_descriptions,
    is_drawing_paragraph,
    read_drawing,
    read_titles,
)
from dragoman.inference.documents.xml_archive import (
    ParagraphSlot,
    Reader,
    Slot,
    XmlArchiveDocument,
    is_code_style,
    split_tag,
)
from dragoman.inference.documents.xml_positions import remove_invalid
from dragoman.inference.documents.zip_package import Element

_NAMESPACES: Final = frozenset(
    {
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "http://purl.oclc.org/ooxml/wordprocessingml/main",
    }
)
_PARTS: Final = (
    r"word\S*\.(?:header|footer)\+xml$",
    r"word\S*\.(?:footnotes|endnotes)\+xml$",
    r"drawingml\.(?:chart|diagramData)\+xml$",
    r"drawingml\.diagramDrawing\+xml$",
)
_INVISIBLE: Final = frozenset(
    {
        "lang", "noProof", "spacing", "w", "kern", "szCs", "bCs", "iCs", "rPrChange", "ins", "del",
        "rsidR", "rsidRPr", "rsidDel", "hint", "webHidden", "fitText", "snapToGrid",
    }
)  # fmt: skip
"""Runs that differ in these alone are one; spacing and width are what PDF converters write."""
_HOLDERS: Final = frozenset({"hyperlink", "smartTag", "customXml", "ins", "moveTo", "dir", "bdo"})
_DROPPED: Final = frozenset({"proofErr", "lastRenderedPageBreak"})
_TRANSLATED_FIELDS: Final = frozenset({"HYPERLINK", "TOC", "INDEX", "REF", "FORMTEXT", "QUOTE"})
"""Of these fields the result is translated; that of others (page numbers, dates) stays."""


class WordDocument(XmlArchiveDocument):
    """Hold a Word document."""

    def __init__(self, content: bytes, *, max_bytes: int) -> None:
        package = OfficePackage(content, "a Word document", max_bytes=max_bytes)
        parts: list[tuple[str, Reader]] = [(package.main, read_word)]
        for pattern in _PARTS:
            parts += [(name, read_word) for name in package.find_parts(pattern)]
        parts += [
            (name, read_titles) for name in package.find_parts(r"package\.core-properties\+xml$")
        ]
        super().__init__(package, parts)


def read_word(root: Element) -> list[Slot]:
    """Return the paragraphs and descriptions of a part."""
    if split_tag(root)[0] not in _NAMESPACES:
        return read_drawing(root)
    slots: list[Slot] = []
    for element in root.iter():
        namespace, name = split_tag(element)
        if name == "p" and namespace in _NAMESPACES:
            style = element.find(f"{{{namespace}}}pPr/{{{namespace}}}pStyle")
            if style is None or not is_code_style(style.get(f"{{{namespace}}}val")):
                slots += WordParagraph(element).find_slots()
        elif is_drawing_paragraph(element):
            slots += read_drawing(element)
        else:
            slots += find_descriptions(element)
    return slots


@dataclass(slots=True, eq=False)
class _RunChild:
    """Hold what is in a run beside text."""

    element: Element
    properties: Element | None


class WordParagraph:
    """Read and write a paragraph of a Word document."""

    def __init__(self, element: Element) -> None:
        self._element = element
        self._namespace = split_tag(element)[0]
        self._formats = Formats(_INVISIBLE)
        self._code: set[Hashable] = set()

    def find_slots(self) -> list[Slot]:
        """Return the paragraph, if there are letters in it."""
        slot = ParagraphSlot(self._read_children(self._element, 0), self._write_all)
        return [slot] if slot.is_translatable else []

    # --- reading ---

    def _read_children(self, parent: Element, depth: int) -> list[Node]:
        nodes: list[Node] = []
        fields: list[_OpenField] = []
        for child in parent:
            _, name = split_tag(child)
            if name == "r":
                self._read_run(child, nodes, fields)
            elif name not in _DROPPED and not name.endswith("Pr"):
                nodes.append(self._read_other(child, name, depth))
        return group_ranges(set_code_apart(nodes, self._code.__contains__), _find_range_end)

    def _read_other(self, child: Element, name: str, depth: int) -> Node:
        if depth < MAX_DEPTH:
            if name in _HOLDERS:
                return Group(child, self._read_children(child, depth + 1))
            holder = child.find(self._tag("sdtContent")) if name == "sdt" else None
            if holder is not None:
                return Group(child, self._read_children(holder, depth + 1))
            if name == "fldSimple":
                if _is_translated(child.get(self._tag("instr")) or ""):
                    return Group(child, self._read_children(child, depth + 1))
                shown = "".join(one.text or "" for one in child.iter(self._tag("t")))
                return Object(child, WORD if shown else "")
        return Object(child, WORD if name in ("oMath", "oMathPara") else "")

    def _read_run(self, run: Element, nodes: list[Node], fields: list[_OpenField]) -> None:
        properties = run.find(self._tag("rPr"))
        key = self._formats.add(properties)
        style = None if properties is None else properties.find(self._tag("rStyle"))
        if style is not None and is_code_style(style.get(self._tag("val"))):
            self._code.add(key)
        for child in run:
            _, name = split_tag(child)
            if name == "t":
                if child.text:
                    nodes.append(Text(re.sub(r"[\t\r\n]", " ", child.text), key))
            elif name == "noBreakHyphen":
                nodes.append(Text("\u2011", key))
            elif name == "softHyphen":
                nodes.append(Text("\xad", key))
            elif name == "fldChar":
                self._read_field(child, properties, nodes, fields)
            elif name not in _DROPPED and name != "rPr":
                if name == "instrText" and fields:
                    fields[-1].code += child.text or ""
                stands = {"tab": TAB, "ptab": TAB, "br": LINE_BREAK, "cr": LINE_BREAK}.get(name, "")
                if name == "br" and child.get(self._tag("type")) in ("page", "column"):
                    stands = ""
                nodes.append(Object(_RunChild(child, properties), stands))

    def _read_field(
        self,
        mark: Element,
        properties: Element | None,
        nodes: list[Node],
        fields: list[_OpenField],
    ) -> None:
        """Read where a field begins, where its result does, or its end, which makes it one node."""
        kind = mark.get(self._tag("fldCharType"))
        nodes.append(Object(_RunChild(mark, properties)))
        if kind == "begin":
            fields.append(_OpenField(len(nodes) - 1))
        elif kind == "separate" and fields:
            fields[-1].result = len(nodes)
        elif kind == "end" and fields:
            field = fields.pop()
            result = field.result or len(nodes) - 1
            before, inside, after = nodes[field.start : result], nodes[result:-1], nodes[-1:]
            if _is_translated(field.code) and inside:
                made: Node = Group(Around(before, after), inside)
            else:
                shown = any(isinstance(node, Text) and node.text.strip() for node in inside)
                made = Object([*before, *inside, *after], WORD if shown else "")
            nodes[field.start :] = [made]

    # --- writing ---

    def _write_all(self, nodes: Sequence[Node]) -> None:
        self._fill(self._element, nodes)

    def _fill(self, parent: Element, nodes: Sequence[Node]) -> None:
        """Put nodes into an element in place of all it has but its properties."""
        for child in list(parent):
            if not split_tag(child)[1].endswith("Pr"):
                parent.remove(child)
        for node in nodes:
            self._append(parent, node)

    def _append(self, parent: Element, node: Node) -> None:
        if isinstance(node, Text):
            self._append_text(parent, node)
        elif isinstance(node, Group):
            holder = node.content.find(self._tag("sdtContent"))
            parent.append(node.content)
            self._fill(node.content if holder is None else holder, node.children)
        elif isinstance(node.content, Text):
            self._append_text(parent, node.content)
        elif isinstance(node.content, _RunChild):
            run = self._make_run(parent, copy.deepcopy(node.content.properties))
            run.append(node.content.element)
        elif isinstance(node.content, list):
            for one in node.content:
                self._append(parent, one)
        else:
            parent.append(node.content)

    def _append_text(self, parent: Element, node: Text) -> None:
        run = self._make_run(parent, self._formats.copy(node.format))
        for part in re.split("([\u2011\xad])", remove_invalid(node.text).replace("\n", " ")):
            if part in _HYPHENS:
                run.append(run.makeelement(self._tag(_HYPHENS[part])))
            elif part:
                text = run.makeelement(self._tag("t"))
                text.text = part
                if part.strip() != part:
                    text.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
                run.append(text)

    def _make_run(self, parent: Element, properties: Element | None) -> Element:
        run = parent.makeelement(self._tag("r"))
        if properties is not None:
            run.append(properties)
        parent.append(run)
        return run

    def _tag(self, name: str) -> str:
        return f"{{{self._namespace}}}{name}"


_HYPHENS: Final = {"\u2011": "noBreakHyphen", "\xad": "softHyphen"}


@dataclass(slots=True)
class _OpenField:
    """Hold a field whose end has not come yet."""

    start: int
    """It begins at this node,"""
    result: int = 0
    """and its result at this one."""
    code: str = ""


def _is_translated(code: str) -> bool:
    return (code.split() or [""])[0].upper() in _TRANSLATED_FIELDS


def _find_range_end(node: Object) -> tuple[str, bool] | None:
    """Return which bookmark or comment begins or ends at an object, and whether it begins."""
    if isinstance(node.content, _RunChild | list):
        return None
    namespace, name = split_tag(node.content)
    number = node.content.get(f"{{{namespace}}}id")
    if name.endswith("Start"):
        return f"{name.removesuffix('Start')} {number}", True
    return (f"{name.removesuffix('End')} {number}", False) if name.endswith("End") else None
