"""OpenDocument files hold texts, presentations, and the texts of spreadsheets.

Formatting is in spans that name styles. LibreOffice makes a style for each revision of a text;
those that say nothing else are left out, or words would be cut in two. odfdo writes all parts anew,
so the parts are edited here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Final

from dragoman.errors import DataError
from dragoman.inference.documents.inline_tree import (
    LINE_BREAK,
    MAX_DEPTH,
    TAB,
    WORD,
    Group,
    Node,
    Object,
    Text,
    collapse_markup_spaces,
    group_ranges,
    set_code_apart,
)
from dragoman.inference.documents.xml_archive import (
    ParagraphSlot,
    Reader,
    Slot,
    XmlArchiveDocument,
    find_text_slots,
    is_code_style,
    split_tag,
)
from dragoman.inference.documents.xml_positions import remove_invalid
from dragoman.inference.documents.zip_package import Element, ZipPackage

_TEXT: Final = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_OFFICE: Final = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
_TABLE: Final = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
_STYLE: Final = "urn:oasis:names:tc:opendocument:xmlns:style:1.0"
_SVG: Final = "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
_TYPES: Final = ("text", "presentation", "spreadsheet")
_INVISIBLE: Final = frozenset({"rsid", "paragraph-rsid", "language", "country", "script"})
_GROUPS: Final = frozenset({"a", "meta", "meta-field"})
_NO_WORDS: Final = frozenset(
    {
        "note", "number", "bookmark", "bookmark-start", "bookmark-end", "reference-mark",
        "reference-mark-start", "reference-mark-end", "toc-mark", "toc-mark-start", "toc-mark-end",
        "user-index-mark", "alphabetical-index-mark", "alphabetical-index-mark-start",
        "alphabetical-index-mark-end", "change", "change-start", "change-end",
    }
)  # fmt: skip
_LEFT_ALONE: Final = frozenset({f"{{{_TEXT}}}tracked-changes", f"{{{_OFFICE}}}annotation"})
_TITLES: Final = frozenset({"title", "subject"})


class OpenDocumentText(XmlArchiveDocument):
    """Hold an OpenDocument text, presentation or spreadsheet."""

    def __init__(self, content: bytes, *, max_bytes: int) -> None:
        kind = "an OpenDocument file"
        package = ZipPackage(content, kind, max_bytes=max_bytes)
        if "content.xml" not in package.names or not _is_opendocument(package):
            raise DataError(f"the file is a zip archive of another kind, not {kind}")
        if "META-INF/manifest.xml" in package.names:
            manifest = package.read_xml("META-INF/manifest.xml")
            if any(split_tag(element)[1] == "encryption-data" for element in manifest.iter()):
                raise DataError("the file is protected by a password; remove it and try again")
        parts: list[tuple[str, Reader]] = [("content.xml", read_content)]
        if "styles.xml" in package.names:
            parts.append(("styles.xml", read_content))
        if "meta.xml" in package.names:
            parts.append(("meta.xml", partial(find_text_slots, tags=_TITLES)))
        super().__init__(package, parts)


def _is_opendocument(package: ZipPackage) -> bool:
    if "mimetype" not in package.names:
        return split_tag(package.read_xml("content.xml"))[0] == _OFFICE
    kind = package.read("mimetype")[:200].decode("ascii", "replace").strip()
    prefix = "application/vnd.oasis.opendocument."
    return kind.startswith(tuple(prefix + one for one in _TYPES))


def read_content(root: Element) -> list[Slot]:
    """Return the paragraphs of a part, and the descriptions of its pictures."""
    styles, code = _find_styles(root), _find_code_styles(root)
    slots: list[Slot] = []
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.tag in _LEFT_ALONE or not isinstance(element.tag, str):
            continue
        namespace, name = split_tag(element)
        if namespace == _TABLE and name in ("table-cell", "covered-table-cell"):
            if _is_computed(element):
                continue
        elif namespace == _TEXT and name in ("p", "h"):
            style = element.get(f"{{{_TEXT}}}style-name")
            if style in code or is_code_style(style):
                continue
            slots += Paragraph(element, styles, code).find_slots()
        elif (namespace == _SVG and name in ("title", "desc")) or name == "index-title-template":
            slots += find_text_slots(element, frozenset({name}))
        waiting += reversed(element)
    return slots


def _is_computed(cell: Element) -> bool:
    """Return whether a cell has a number, a date or the result of a formula."""
    kind = cell.get(f"{{{_OFFICE}}}value-type") or "string"
    return kind != "string" or cell.get(f"{{{_TABLE}}}formula") is not None


def _find_code_styles(root: Element) -> set[str]:
    """Return the styles of this part that are made from one for code."""
    return {
        style.get(f"{{{_STYLE}}}name") or ""
        for style in root.iter(f"{{{_STYLE}}}style")
        if is_code_style(style.get(f"{{{_STYLE}}}parent-style-name"))
    }


def _find_styles(root: Element) -> dict[str, str]:
    """Return, for the styles of this part, the first that looks the same; "" if it says nothing."""
    found: dict[str, str] = {}
    known: dict[Hashable, str] = {}
    for style in root.iter(f"{{{_STYLE}}}style"):
        if style.get(f"{{{_STYLE}}}family") != "text":
            continue
        name = style.get(f"{{{_STYLE}}}name") or ""
        properties = tuple(
            sorted(
                (split_tag(child)[1], attribute, value)
                for child in style
                for attribute, value in child.attrib.items()
                if attribute.rpartition("}")[2].removesuffix("-asian").removesuffix("-complex")
                not in _INVISIBLE
            )
        )
        parent = style.get(f"{{{_STYLE}}}parent-style-name") or ""
        if not properties and not any(len(child) for child in style):
            found[name] = parent
        else:
            found[name] = known.setdefault((parent, properties), name)
    return found


class Paragraph:
    """Read and write a paragraph or a heading; formatting is a tuple of styles, the outer first."""

    def __init__(self, element: Element, styles: dict[str, str], code: set[str]) -> None:
        self._element, self._styles, self._code = element, styles, code

    def find_slots(self) -> list[Slot]:
        """Return the paragraph, if there are letters in it."""
        nodes: list[Node] = []
        self._read(self._element, (), nodes, 0)
        slot = ParagraphSlot(self._group(nodes), self._write)
        return [slot] if slot.is_translatable else []

    # --- reading ---

    def _read(
        self, element: Element, styles: tuple[str, ...], nodes: list[Node], depth: int
    ) -> None:
        if element.text:
            nodes.append(Text(collapse_markup_spaces(element.text), styles))
        for child in element:
            self._read_child(child, styles, nodes, depth)
            if child.tail:
                nodes.append(Text(collapse_markup_spaces(child.tail), styles))

    def _read_child(
        self, child: Element, styles: tuple[str, ...], nodes: list[Node], depth: int
    ) -> None:
        namespace, name = split_tag(child)
        if namespace != _TEXT or depth >= MAX_DEPTH:
            nodes.append(Object(child))
        elif name == "span":
            style = child.get(f"{{{_TEXT}}}style-name") or ""
            style = self._styles.get(style, style)
            self._read(child, (*styles, style) if style else styles, nodes, depth + 1)
        elif name in _GROUPS:
            group = Group(child)
            self._read(child, styles, group.children, depth + 1)
            group.children = self._group(group.children)
            nodes.append(group)
        elif name == "s":
            count = child.get(f"{{{_TEXT}}}c") or "1"
            few = count.isdecimal() and len(count) < 3
            nodes.append(Text("\0" * int(count), styles) if few else Object(child, TAB))
        elif name == "tab":
            nodes.append(Object(child, TAB))
        elif name == "line-break":
            nodes.append(Object(child, LINE_BREAK))
        elif name != "soft-page-break":
            shown = name not in _NO_WORDS and "".join(child.itertext()).strip()
            nodes.append(Object(child, WORD if shown else ""))

    def _group(self, nodes: list[Node]) -> list[Node]:
        return group_ranges(set_code_apart(_join_spaces(nodes), self._is_code), _find_range_end)

    def _is_code(self, styles: Hashable) -> bool:
        assert isinstance(styles, tuple)
        return any(style in self._code or is_code_style(style) for style in styles)

    # --- writing ---

    def _write(self, nodes: Sequence[Node]) -> None:
        for cell in self._element.iterancestors(f"{{{_TABLE}}}table-cell"):
            cell.attrib.pop(f"{{{_OFFICE}}}string-value", None)  # the paragraphs say it
            break
        self._spaced = True
        self._fill(self._element, nodes)

    def _fill(self, parent: Element, nodes: Sequence[Node]) -> None:
        for child in list(parent):
            parent.remove(child)
        parent.text = None
        for node in nodes:
            if isinstance(node, Object) and isinstance(node.content, Text):
                node = node.content  # code
            if isinstance(node, Text):
                holder = parent
                assert isinstance(node.format, tuple)
                for style in node.format:
                    span = holder.makeelement(f"{{{_TEXT}}}span")
                    span.set(f"{{{_TEXT}}}style-name", style)
                    holder.append(span)
                    holder = span
                self._append_text(
                    holder, remove_invalid(node.text).replace("\n", " ").replace("\t", " ")
                )
            else:
                child = node.content
                child.tail = None
                parent.append(child)
                if isinstance(node, Group):
                    self._fill(child, node.children)
                elif node.stands_for:
                    self._spaced = False

    def _append_text(self, parent: Element, text: str) -> None:
        """Append text; spaces that would be one with others are elements."""
        start = 0
        for i, character in enumerate(text):
            if character == " " and self._spaced:
                _append(parent, text[start:i])
                start = i + 1
                last = parent[-1] if len(parent) else None
                if last is not None and last.tag == f"{{{_TEXT}}}s" and not last.tail:
                    count = int(last.get(f"{{{_TEXT}}}c") or "1")
                    last.set(f"{{{_TEXT}}}c", str(count + 1))
                else:
                    parent.append(parent.makeelement(f"{{{_TEXT}}}s"))
            self._spaced = character == " "
        _append(parent, text[start:])


def _append(parent: Element, text: str) -> None:
    if not text:
        return
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def _find_range_end(node: Object) -> tuple[str, bool] | None:
    """Return which bookmark or change begins or ends at an object, and whether it begins."""
    name = split_tag(node.content)[1]
    which = node.content.get(f"{{{_TEXT}}}name") or node.content.get(f"{{{_TEXT}}}change-id")
    if name.endswith("-start"):
        return f"{name.removesuffix('-start')} {which}", True
    return (f"{name.removesuffix('-end')} {which}", False) if name.endswith("-end") else None


def _join_spaces(nodes: list[Node], *, spaced: bool = True) -> list[Node]:
    """Return nodes in which white space that counts for nothing is gone: all but one of several."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Text):
            text = node.text
            if spaced and text.startswith(" "):
                text = text[1:]
            if not text:
                continue
            spaced = text.endswith(" ")
            node = Text(text.replace("\0", " "), node.format)
        elif isinstance(node, Group) or node.stands_for:
            spaced = False
        found.append(node)
    return found
