"""XML is read with the places of its elements, to edit a file without writing it anew."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from xml.parsers import expat

from dragoman.errors import DataError
from dragoman.inference.documents.file_text import FileText, decode_file

_DECLARED: Final = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""")
_MAX_DEPTH: Final = 200


@dataclass(slots=True, eq=False)
class Element:
    """Hold an element and where it stands in the text of its file."""

    name: str
    """Without the prefix of a namespace."""
    attributes: dict[str, str]
    start: int
    inside: int
    """Here its content begins,"""
    inside_end: int = 0
    """and here it ends. In one that is empty (<x/>) both are where the element ends."""
    end: int = 0
    children: list[Element] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Return whether there is no closing tag."""
        return self.inside == self.end

    def find(self, name: str) -> Element | None:
        """Return the first child of a name."""
        return next((child for child in self.children if child.name == name), None)

    def walk(self) -> Iterator[Element]:
        """Yield this element and those in it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()


def decode_xml(content: bytes, *, max_bytes: int) -> FileText:
    """Return the text of an XML file, in the encoding that it declares."""
    declared = _DECLARED.match(content[:200].lstrip())
    encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    if encoding.startswith("utf-16"):
        encoding = "utf-8"  # there is a byte order mark, or it could not be read as it was
    return decode_file(content, max_bytes=max_bytes, encoding=encoding, markup=True)


def parse_xml(text: str) -> Element:
    """Return the root of an XML text; raise DataError for what is not XML.

    Entities that the text defines are refused: they could be made to swell.
    """
    data = text.encode("utf-8", "surrogatepass")
    parser: Any = expat.ParserCreate("utf-8")
    parser.ordered_attributes = False
    open_elements: list[Element] = []
    roots: list[Element] = []
    spans: list[tuple[Element, int, int]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        element = Element(name.rpartition(":")[2], attributes, parser.CurrentByteIndex, 0)
        if len(open_elements) >= _MAX_DEPTH:
            raise DataError(f"the XML is nested more than {_MAX_DEPTH} deep")
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        element = open_elements.pop()
        element.inside_end = parser.CurrentByteIndex
        spans.append((element, element.start, element.inside_end))

    def refuse(name: str, *_: Any) -> None:
        raise DataError(f"the XML defines an entity ({name}); such files are not read")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise DataError(
            f"not XML: {reason} (line {error.lineno}, column {error.offset + 1})"
        ) from None
    except UnicodeError:
        raise DataError("not XML: half of a surrogate pair is not a character") from None
    _set_places(data, roots[0])
    return roots[0]


def _set_places(data: bytes, root: Element) -> None:
    """Turn places in bytes into places in the text, and find where tags end."""
    elements = list(root.walk())
    for element in elements:
        element.inside = _find_tag_end(data, element.start)
        if data[element.inside - 2 : element.inside] == b"/>":
            element.inside_end = element.end = element.inside
        else:
            element.end = data.index(b">", element.inside_end) + 1
    if data.isascii():
        return
    places = sorted(
        {p for one in elements for p in (one.start, one.inside, one.inside_end, one.end)}
    )
    found, size, done = {}, 0, 0
    for place in places:
        size += len(data[done:place].decode("utf-8", "surrogatepass"))
        found[place], done = size, place
    for one in elements:
        one.start, one.inside = found[one.start], found[one.inside]
        one.inside_end, one.end = found[one.inside_end], found[one.end]


_TAG_END: Final = re.compile(rb"""(?:[^>"']|"[^"]*"|'[^']*')*>""")


def _find_tag_end(data: bytes, start: int) -> int:
    match = _TAG_END.match(data, start)
    assert match is not None  # the parser has read it
    return match.end()


_RAW: Final = re.compile(r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<\?.*?\?>", re.DOTALL)


def read_text(raw: str) -> str:
    """Return how a piece of XML without elements reads."""
    parts, done = [], 0
    for match in _RAW.finditer(raw):
        parts += [html.unescape(raw[done : match.start()]), match[1] or ""]
        done = match.end()
    return "".join([*parts, html.unescape(raw[done:])])


_INVALID: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def remove_invalid(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return _INVALID.sub("", text)


def write_text(text: str) -> str:
    """Return a text as XML."""
    return html.escape(remove_invalid(text), quote=False)


def set_attribute(tag: str, name: str, value: str) -> str:
    """Return an opening tag with another value of an attribute, which is added if it is missing."""
    written = write_text(value).replace('"', "&quot;")
    pattern = re.compile(rf"""(\s{re.escape(name)}\s*=\s*)(?:"[^"]*"|'[^']*')""")
    if pattern.search(tag):
        return pattern.sub(lambda match: f'{match[1]}"{written}"', tag, count=1)
    return re.sub(r"\s*(/?>)$", rf' {name}="{written}"\1', tag)
