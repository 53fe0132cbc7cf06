"""A user can say which parts of a document to translate, and into which language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ALL_COLUMNS: Final = "*"
"""This stands for every column of a table that holds text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentOptions:
    """Say what to translate in a document."""

    columns: tuple[str, ...] = ()
    """Of a table these columns are translated, by name or by number from 1; of JSON lines these
    fields. Without any, it is the only column that holds text."""
    header: bool | None = None
    """Whether the first row of a table has names; None means that the row itself tells."""
    leave_keys: tuple[str, ...] = ()
    """Strings under these keys of JSON are left as they are, whatever stands above them."""
    join_lines: bool = True
    """Lines of plain text that an editor wrapped are joined, and wrapped again."""
    overwrite: bool = False
    """Translations that a file has already are made anew; what was approved stays even so."""
    source_language: str | None = None
    target_language: str | None = None
    """A format that names its languages says this one, and has its plural forms."""


NO_OPTIONS: Final = DocumentOptions()
