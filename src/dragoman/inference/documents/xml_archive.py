"""Texts are found, and replaced, in each part of a document that is an archive of XML."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.file_text import has_letters
from dragoman.inference.documents.inline_tree import InlineTree, Node
from dragoman.inference.documents.xml_positions import remove_invalid
from dragoman.inference.documents.zip_package import Element, ZipPackage, serialize_xml


class Slot(ABC):
    """Hold a place of an XML tree with a text that is to be translated."""

    unit: Unit

    @abstractmethod
    def fill(self, translation: Unit) -> None:
        """Put a translation in its place in the tree."""


@dataclass(slots=True)
class AttributeSlot(Slot):
    """Hold an attribute's value."""

    element: Element
    name: str

    @property
    def unit(self) -> Unit:  # type: ignore[override]
        """Return the attribute's value as a unit."""
        return Unit(self.element.get(self.name))

    def fill(self, translation: Unit) -> None:
        """Set the attribute to its translation."""
        self.element.set(self.name, remove_invalid(translation.text))


@dataclass(slots=True)
class TextSlot(Slot):
    """Hold the text of an element that has nothing else in it."""

    element: Element

    @property
    def unit(self) -> Unit:  # type: ignore[override]
        """Return the element's text as a unit."""
        return Unit(self.element.text)

    def fill(self, translation: Unit) -> None:
        """Replace the element's text by its translation."""
        self.element.text = remove_invalid(translation.text)


class ParagraphSlot(Slot):
    """Hold a paragraph, which is read as a tree and written by the format."""

    def __init__(self, nodes: Sequence[Node], write: Callable[[list[Node]], None]) -> None:
        self._tree, self._write = InlineTree(nodes), write
        self.unit = self._tree.unit

    @property
    def is_translatable(self) -> bool:
        """Return whether there are letters in it."""
        return self._tree.is_translatable

    def fill(self, translation: Unit) -> None:
        """Write the paragraph anew."""
        self._write(self._tree.to_nodes(translation))


Reader = Callable[[Element], list[Slot]]
"""This finds the slots of a part, given its root, and changes nothing."""


class XmlArchiveDocument(Document):
    """Hold a document whose texts are in some parts of an archive."""

    def __init__(self, package: ZipPackage, parts: Sequence[tuple[str, Reader]]) -> None:
        self._package = package
        self._parts: list[tuple[str, Reader, int]] = []
        self.units = []
        for name, reader in parts:
            units = [slot.unit for slot in reader(package.read_xml(name))]
            if units:
                self._parts.append((name, reader, len(units)))
                self.units += units

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with a translation in place of each unit; other parts are copied."""
        if len(translations) != len(self.units):
            raise ValueError(f"{len(translations)} translations for {len(self.units)} units")
        changed: dict[str, bytes] = {}
        done = 0
        for name, reader, count in self._parts:
            coming = translations[done : done + count]
            if list(coming) != self.units[done : done + count]:
                root = self._package.read_xml(name)
                slots = list(zip(reader(root), coming, strict=True))
                # A paragraph is written with copies of what is in it, which comes after it.
                for slot, translation in reversed(slots):
                    if translation != slot.unit:
                        slot.fill(translation)
                changed[name] = serialize_xml(root)
            done += count
        return self._package.write(changed)


_CODE_STYLES: Final = frozenset(
    # paragraphs
    {"code", "codeblock", "sourcecode", "htmlpreformatted", "preformatted", "preformattedtext"}
    # words
    | {"codechar", "htmlcode", "htmlkeyboard", "htmlsample", "inlinecode", "sourcetext"}
    | {"userentry", "verbatimchar"}
)


def is_code_style(name: str | None) -> bool:
    """Return whether text of a style is code, by the names that programs give it."""
    plain = re.sub(r"_20_|[\s_-]", "", name or "").lower()
    return plain in _CODE_STYLES


def split_tag(element: Element) -> tuple[str, str]:
    """Return the namespace and the name of an element; both are empty for comments and the like."""
    tag = element.tag
    if not isinstance(tag, str):
        return "", ""
    namespace, _, name = tag.rpartition("}")
    return namespace[1:], name


def find_text_slots(root: Element, tags: frozenset[str]) -> list[Slot]:
    """Return the texts of all elements of some names, such as a document's title."""
    return [
        TextSlot(element)
        for element in root.iter()
        if split_tag(element)[1] in tags and not len(element) and has_letters(element.text)
    ]
