"""A table as data: printed on a terminal, or set in the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Grid"]


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of text under a header; numbers stand right, the first `words` columns left."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """What the reader must know to read it."""
    words: int = 1

    def text(self) -> str:
        """For a terminal: columns as wide as what is in them."""
        lines = [tuple(self.header), *map(tuple, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        printed = [self.title] if self.title else []
        for line in lines:
            cells = [
                cell.ljust(width) if i < self.words else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            printed.append("  ".join(cells).rstrip())
        if self.note:
            printed.append(self.note)
        return "\n".join(printed)

    def html(self) -> str:
        """For the report: a table that scrolls by itself where the page is narrow."""
        head = "".join(
            f'<th scope="col"{self._side(i)}>{escape(cell)}</th>'
            for i, cell in enumerate(self.header)
        )
        body = "\n".join(
            "<tr>"
            + "".join(f"<td{self._side(i)}>{escape(cell)}</td>" for i, cell in enumerate(row))
            + "</tr>"
            for row in self.rows
        )
        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        note = f'\n<p class="note">{escape(self.note)}</p>' if self.note else ""
        table = f"<table>{title}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
        return f'<div class="scroll" tabindex="0">{table}</div>{note}'

    def _side(self, column: int) -> str:
        return "" if column < self.words else ' class="number"'
