"""A table is data, to be printed on a terminal or set in the HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class TextTable:
    """Hold rows of text under a header; columns of text are aligned left, numbers right."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """States below the table what a reader must know to read it."""
    text_columns: int = 1
    """Tells how many of the first columns hold text; the others hold numbers."""

    def to_text(self) -> str:
        """Return the table for a terminal, each column as wide as its widest cell."""
        lines = [tuple(self.header), *map(tuple, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        printed = [self.title] if self.title else []
        for line in lines:
            cells = [
                cell.ljust(width) if i < self.text_columns else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            printed.append("  ".join(cells).rstrip())
        if self.note:
            printed.append(self.note)
        return "\n".join(printed)

    def to_html(self) -> str:
        """Return the table as HTML that scrolls by itself where the page is narrow."""
        head = "".join(
            f'<th scope="col"{self._alignment(i)}>{escape(cell)}</th>'
            for i, cell in enumerate(self.header)
        )
        body = "\n".join(
            "<tr>"
            + "".join(f"<td{self._alignment(i)}>{escape(cell)}</td>" for i, cell in enumerate(row))
            + "</tr>"
            for row in self.rows
        )
        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        note = f'\n<p class="note">{escape(self.note)}</p>' if self.note else ""
        table = f"<table>{title}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
        return f'<div class="scroll" tabindex="0">{table}</div>{note}'

    def _alignment(self, column: int) -> str:
        return "" if column < self.text_columns else ' class="number"'
