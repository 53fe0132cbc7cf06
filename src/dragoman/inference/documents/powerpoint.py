"""PowerPoint presentations have slides with tables, diagrams and charts, and notes."""

from __future__ import annotations

from typing import Final

from dragoman.inference.documents.office_open_xml import (
    DrawingParagraph,
    OfficePackage,
    find_descriptions,
    is_drawing_paragraph,
    read_drawing,
    read_titles,
)
from dragoman.inference.documents.xml_archive import Reader, Slot, XmlArchiveDocument, split_tag
from dragoman.inference.documents.zip_package import Element

_SLIDE_PARTS: Final = ("/diagramData", "/diagramDrawing", "/chart", "/notesSlide")
"""What a slide shows in parts of their own, by the kind of the relation."""


class PowerPointDocument(XmlArchiveDocument):
    """Hold a PowerPoint presentation."""

    def __init__(self, content: bytes, *, max_bytes: int) -> None:
        package = OfficePackage(content, "a PowerPoint presentation", max_bytes=max_bytes)
        slides = package.find_parts(r"presentationml\.slide\+xml$")
        shown = _find_order(package, slides)
        parts: dict[str, Reader] = {}
        for slide in sorted(slides, key=lambda name: shown.index(name) if name in shown else 1e9):
            parts[slide] = read_drawing
            for relation in _SLIDE_PARTS:
                for name in package.find_related(slide, relation):
                    parts.setdefault(name, read_drawing)
        for name in package.find_parts(r"drawingml\.(?:chart|diagramData|diagramDrawing)\+xml$"):
            parts.setdefault(name, read_drawing)
        for name in package.find_parts(r"presentationml\.slide(?:Master|Layout)\+xml$"):
            parts[name] = read_background
        for name in package.find_parts(r"package\.core-properties\+xml$"):
            parts[name] = read_titles
        super().__init__(package, list(parts.items()))


def read_background(root: Element) -> list[Slot]:
    """Return what a master or layout shows on every slide: not the prompts of its placeholders."""
    prompts = {
        element
        for shape in root.iter()
        if split_tag(shape)[1] == "sp" and any(split_tag(one)[1] == "ph" for one in shape.iter())
        for element in shape.iter()
    }
    slots: list[Slot] = []
    for element in root.iter():
        if element in prompts:
            continue
        if is_drawing_paragraph(element):
            slots += DrawingParagraph(element).find_slots()
        else:
            slots += find_descriptions(element)
    return slots


def _find_order(package: OfficePackage, slides: list[str]) -> list[str]:
    """Return slides in the order in which they are shown, as far as it is told."""
    targets = package.read_relations(package.main)
    found = []
    for element in package.read_xml(package.main).iter():
        if split_tag(element)[1] == "sldId":
            ids = [value for name, value in element.attrib.items() if name.endswith("}id")]
            found += [targets[one][1] for one in ids if one in targets]
    return [name for name in found if name in slides]
