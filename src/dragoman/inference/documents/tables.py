"""Chosen columns of CSV, TSV and JSON lines are translated where they stand."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from dragoman.errors import DataError
from dragoman.inference.documents.document import Document, Unit
from dragoman.inference.documents.file_text import (
    LINE,
    decode_file,
    has_letters,
    list_some,
    replace_spans,
)
from dragoman.inference.documents.json_strings import (
    check_json,
    find_strings,
    is_code,
    write_string,
)
from dragoman.inference.documents.message_text import MessageText
from dragoman.inference.documents.options import ALL_COLUMNS, NO_OPTIONS, DocumentOptions

_SAMPLE_ROWS: Final = 1000
"""So many rows are looked at to see which columns hold text."""


class Cell(NamedTuple):
    """Hold the value of a cell, and where it stands in the file."""

    start: int
    end: int
    value: str


class _Table(Document):
    """Hold cells of a file's text that are translated where they stand."""

    def _set_text(self, content: bytes, max_bytes: int) -> str:
        self._file = decode_file(content, max_bytes=max_bytes)
        return self._file.text

    def _set_cells(self, cells: Iterable[Cell]) -> None:
        self._cells = [(cell, MessageText(cell.value)) for cell in sorted(cells)]
        self.units = [unit for _, message in self._cells for unit in message.units]

    def fill(self, translations: Sequence[Unit]) -> bytes:
        """Return the file with a translation in place of each chosen cell."""
        text = self._file.text
        coming = iter(translations)
        replacements = []
        for cell, message in self._cells:
            value = message.fill(coming)
            if value != cell.value:
                written = self._write(value, text[cell.start : cell.end])
                replacements.append((cell.start, cell.end, written))
        assert next(coming, None) is None
        return self._file.encode(replace_spans(text, replacements))

    @abstractmethod
    def _write(self, value: str, like: str) -> str:
        """Return a value as the file has it, quoted as the one that was there if need be."""


# --- CSV and TSV ---


class CsvDocument(_Table):
    """Hold a table whose cells are separated by commas, semicolons, tabs or bars."""

    def __init__(
        self,
        content: bytes,
        *,
        max_bytes: int,
        options: DocumentOptions = NO_OPTIONS,
        separators: str = ",;\t|",
    ) -> None:
        """Read a table; the separator is the one of `separators` that the rows agree on."""
        text = self._set_text(content, max_bytes)
        self._separator = _find_separator(text, separators)
        declared = _DECLARED_SEPARATOR.match(text)
        rows = list(_read_rows(text, self._separator, declared.end() if declared else 0))
        if not rows:
            self._set_cells([])
            return
        has_header = options.header
        if has_header is None:
            has_header = _has_header(rows, options.columns, likely=separators != "\t")
        body = rows[1:] if has_header else rows
        names = [cell.value.strip() for cell in rows[0]] if has_header else []
        columns = _choose_columns(body, names, max(map(len, rows)), options.columns)
        self._set_cells(row[n] for row in body for n in columns if n < len(row))

    def _write(self, value: str, like: str) -> str:
        quoted = len(like) > 1 and like[0] == like[-1] == '"'
        if self._separator == "\t" and not quoted:  # quotes are characters like others there
            return re.sub(r"[\t\r\n]+", " ", value)
        if quoted or any(one in value for one in (self._separator, '"', "\n", "\r")):
            return '"{}"'.format(value.replace('"', '""'))
        return value


def read_tsv(
    content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
) -> CsvDocument:
    """Read a table whose cells are separated by tabs."""
    return CsvDocument(content, max_bytes=max_bytes, options=options, separators="\t")


_DECLARED_SEPARATOR: Final = re.compile(r"sep=(.)(?:\r?\n|\Z)")
"""Excel writes and reads this as a first line."""


def _read_rows(text: str, separator: str, start: int = 0) -> Iterator[list[Cell]]:
    """Yield the rows of a table; raise DataError for a quote that is not closed."""
    stop = re.escape(separator)
    inside = r'[^"\r\n]' if separator == "\t" else r'[^"]'
    quoted = re.compile(rf'"({inside}*(?:""{inside}*)*)"(?=[{stop}\r\n]|\Z)')
    bare = re.compile(rf"[^{stop}\r\n]*")
    line_end = re.compile(r"\r\n|\n|\r")
    at = start
    row: list[Cell] = []
    while at < len(text):
        if text[at] == '"' and (match := quoted.match(text, at)):
            row.append(Cell(at, match.end(), match[1].replace('""', '"')))
        elif text[at] == '"' and separator != "\t" and '"' not in _rest_of_line(text, at + 1):
            line = text.count("\n", 0, at) + 1
            raise DataError(f"line {line}: a quote is opened and never closed")
        else:
            match = bare.match(text, at)
            assert match is not None
            row.append(Cell(at, match.end(), match.group()))
        at = match.end()
        if at < len(text) and text[at] == separator:
            at += 1
            if at == len(text):
                row.append(Cell(at, at, ""))
            continue
        if end := line_end.match(text, at):
            at = end.end()
        yield row
        row = []
    if row:
        yield row


def _rest_of_line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[at : end if end >= 0 else len(text)]


def _find_separator(text: str, separators: str) -> str:
    """Return the separator that most rows have equally often, more than none at all."""
    if len(separators) == 1:
        return separators
    if match := _DECLARED_SEPARATOR.match(text):
        return match[1]

    def agreement(separator: str) -> tuple[float, int]:
        rows: list[list[Cell]] = []
        with suppress(DataError):  # the sample may end in a quoted cell
            rows += islice(_read_rows(text[: 1 << 16], separator), 100)
        widths = [len(row) for row in rows if len(row) > 1 or row[0].value]
        most = max(set(widths), key=widths.count, default=1)
        return (widths.count(most) / len(widths) if most > 1 else 0.0), most

    return max(separators, key=agreement)


def _has_header(rows: Sequence[Sequence[Cell]], columns: Sequence[str], *, likely: bool) -> bool:
    """Return whether the first row has names: a chosen column's, or labels that look like names.

    Where it is not `likely`, there must be values of another kind below one.
    """
    first = [cell.value.strip() for cell in rows[0]]
    if any(name in first for name in columns if not name.isdecimal() and name != ALL_COLUMNS):
        return True
    if len(rows) < 2 or len(set(first)) < len(first) or not all(map(_NAME.fullmatch, first)):
        return False
    if likely:
        return True
    below = [[row[n].value for row in rows[1:50] if n < len(row)] for n in range(len(first))]
    return any(
        values
        and (
            not has_letters("".join(values)) or sum(map(len, values)) / len(values) > 3 * len(name)
        )
        for name, values in zip(first, below, strict=True)
    )


_NAME: Final = re.compile(r"(?=.{1,40}$)[^\W\d][\w/()#%-]*(?:[ .][\w/()#%-]+){0,3}")
"""The name of a column has at most four words, and does not end like a sentence."""


def _choose_columns(
    rows: Sequence[Sequence[Cell]], names: Sequence[str], width: int, wanted: Sequence[str]
) -> list[int]:
    """Return the numbers, from 0, of the columns to translate."""
    if wanted and ALL_COLUMNS not in wanted:
        return sorted({_find_column(one, names, width) for one in wanted})
    samples = [[row[n].value for row in rows[:_SAMPLE_ROWS] if n < len(row)] for n in range(width)]
    texts = [n for n, values in enumerate(samples) if holds_text(values)]
    if not texts:
        texts = [n for n, values in enumerate(samples) if any(map(_is_text, values))]
    if len(texts) > 1 and not wanted:
        labels = [names[n] if n < len(names) and names[n] else str(n + 1) for n in texts]
        raise DataError(
            f"{len(texts)} columns hold text ({list_some(labels)}); name those to translate, "
            f"e.g. --column {labels[-1] if ' ' not in labels[-1] else texts[-1] + 1}"
        )
    return texts


def _find_column(wanted: str, names: Sequence[str], width: int) -> int:
    if wanted in names:
        return names.index(wanted)
    lower = [name.lower() for name in names]
    if wanted.strip().lower() in lower:
        return lower.index(wanted.strip().lower())
    if wanted.isdecimal() and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    known = list_some(names) if names else f"1 to {width}"
    raise DataError(f"there is no column '{wanted}'; choose from: {known}")


def holds_text(values: Iterable[str]) -> bool:
    """Return whether most of some values are text, and not codes, numbers or addresses."""
    filled = [value for value in values if value.strip()]
    return sum(map(_is_text, filled)) * 2 > len(filled)


def _is_text(value: str) -> bool:
    return not is_code(value) and not _is_label(value)


def _is_label(value: str) -> bool:
    """Return whether a value is one short code: DE, A-17."""
    value = value.strip()
    return value.isascii() and (
        (len(value) <= 3 and value.isupper())
        or (" " not in value and any(map(str.isdecimal, value)))
    )


# --- JSON lines ---


class JsonLinesDocument(_Table):
    """Hold a file with a JSON value on each line, of which chosen fields are translated."""

    def __init__(
        self, content: bytes, *, max_bytes: int, options: DocumentOptions = NO_OPTIONS
    ) -> None:
        """Read a file; `options.columns` names fields, a field in another with a dot between."""
        text = self._set_text(content, max_bytes)
        fields: dict[str, list[Cell]] = {}
        for number, match in enumerate(LINE.finditer(text), 1):
            line, start = match[1], match.start()
            if line.strip():
                try:
                    check_json(line)
                except DataError as error:
                    raise DataError(f"line {number}: {error}") from None
                for one in find_strings(line):
                    name = ".".join(str(key) for key in one.path if isinstance(key, str))
                    cell = Cell(start + one.start, start + one.end, one.value)
                    fields.setdefault(name, []).append(cell)
        self._set_cells(
            cell for name in _choose_fields(fields, options.columns) for cell in fields[name]
        )

    def _write(self, value: str, like: str) -> str:
        return write_string(value, like)


def _choose_fields(fields: dict[str, list[Cell]], wanted: Sequence[str]) -> list[str]:
    if wanted and ALL_COLUMNS not in wanted:
        for name in wanted:
            if fields and name not in fields:
                raise DataError(
                    f"there is no field '{name}'; choose from: {list_some(list(fields))}"
                )
        return [name for name in fields if name in wanted]
    texts = [name for name, cells in fields.items() if holds_text(cell.value for cell in cells)]
    if len(texts) > 1 and not wanted:
        raise DataError(
            f"{len(texts)} fields hold text ({list_some(texts)}); name those to translate, "
            f"e.g. --column {texts[-1]}"
        )
    return texts
