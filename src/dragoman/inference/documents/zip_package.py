"""Some parts of a zip archive of XML are read, and replaced.

All other parts are copied, in the same order. XML is read without entities and without the network.
"""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

from lxml import etree

from dragoman.errors import DataError
from dragoman.inference.documents.document import DocumentTooLargeError
from dragoman.inference.documents.file_signatures import refuse_other_files

Element = Any
"""An element of lxml's trees."""
_MAX_RATIO: Final = 100
"""The parts that are read are together at most this many times as large as the file,"""
_ALWAYS_READ: Final = 4 << 20
"""or have this many bytes."""
_DAMAGE: Final = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError,
    IndexError,
)  # fmt: skip
"""What reading a broken archive raises."""


class ZipPackage:
    """Hold an archive whose parts can be read and replaced."""

    def __init__(self, content: bytes, kind: str, *, max_bytes: int) -> None:
        """Open an archive; `kind` says what it should be, as in "a Word document"."""
        self._content, self._kind = content, kind
        if not content:
            raise DataError(f"the file is empty, not {kind}")
        refuse_other_files(content, kind, ("a zip archive",))
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
            entries = self._archive.infolist()
        except (
            zipfile.BadZipFile,
            struct.error,
            ValueError,
            OSError,
            EOFError,
            NotImplementedError,
        ):
            what = "broken or cut off" if content.startswith(b"PK") else "not a document"
            raise DataError(f"the file is {what}: {kind} cannot be read from it") from None
        if sum(entry.file_size for entry in entries) > max_bytes:
            raise DocumentTooLargeError(f"the file unpacks to more than {max_bytes} bytes")
        if any(entry.flag_bits & 1 for entry in entries):
            raise DataError("the file is protected by a password; remove it and try again")
        for entry in entries:
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DataError(
                    f"{entry.filename} in the file cannot be read: "
                    "it is compressed in an unknown way"
                )
        self._entries = {entry.filename: entry for entry in entries}
        self._sizes: dict[str, int] = {}
        self.names = list(self._entries)
        """These are the names of the parts, in the order of the archive."""

    def read(self, name: str) -> bytes:
        """Return a part of the archive; what is read together is bounded by the file's size."""
        entry = self._entries.get(name)
        if entry is None:
            raise DataError(f"the file is not {self._kind}: it has no {name}")
        self._sizes[name] = entry.file_size
        if sum(self._sizes.values()) > max(_ALWAYS_READ, _MAX_RATIO * len(self._content)):
            raise DocumentTooLargeError(
                f"the texts of the file unpack to more than {_MAX_RATIO} times its size"
            )
        try:
            with self._archive.open(entry) as part:
                return part.read(entry.file_size + 1)  # never more, whatever is there
        except _DAMAGE:
            raise DataError(f"{name} in the file cannot be read: it is damaged") from None

    def read_xml(self, name: str) -> Element:
        """Return the root of a part that is XML."""
        return parse_xml(self.read(name), name)

    def write(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the archive with other content in place of some parts."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.comment = self._archive.comment
            for name, entry in self._entries.items():
                copy = zipfile.ZipInfo(name, max(entry.date_time, (1980, 1, 1, 0, 0, 0)))
                copy.compress_type = entry.compress_type
                copy.external_attr = entry.external_attr
                copy.create_system = entry.create_system
                copy.comment = entry.comment
                if name in changed:
                    archive.writestr(copy, changed[name])
                    continue
                copy.file_size = entry.file_size
                try:
                    with self._archive.open(entry) as part, archive.open(copy, "w") as target:
                        shutil.copyfileobj(part, target)
                except _DAMAGE:
                    raise DataError(f"{name} in the file cannot be read: it is damaged") from None
        return out.getvalue()


def parse_xml(content: bytes, name: str) -> Element:
    """Return the root of an XML file; `name` is what messages call it."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False,
        remove_blank_text=False,
    )  # fmt: skip
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f" (line {line})" if line else ""
        raise DataError(f"{name} in the file is not well-formed XML{place}") from None
    if root.getroottree().docinfo.internalDTD is not None and any(
        True for _ in root.iter(etree.Entity)
    ):
        raise DataError(f"{name} in the file uses entities of its own, which are not read")
    return root


def serialize_xml(root: Element) -> bytes:
    """Return an XML tree as a file, declared as it was."""
    info = root.getroottree().docinfo
    found: bytes = etree.tostring(
        root.getroottree(),
        xml_declaration=True,
        encoding=info.encoding or "UTF-8",
        standalone=info.standalone,
    )
    return found
