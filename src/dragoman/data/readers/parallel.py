"""Parallel text is read from two aligned files, TSV, JSON lines or TMX, compressed or not.

A corpus is iterable as often as needed and opens its files anew each time. Text that cannot be
read is refused with its file and line; nothing is guessed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import stat
import sys
import zlib
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast
from xml.etree import ElementTree

from dragoman.errors import ConfigError, DataError
from dragoman.messages import counted
from dragoman.system.packages import describe_need
from dragoman.text.languages import language_code, primary_code, same_language
from dragoman.text.normalization import normalize

LONGEST_LINE = 1 << 26
"""The most bytes of a line: a file without line ends is no text, and must not fill memory."""

_BOM = b"\xef\xbb\xbf"
_BUFFER = 1 << 18

ErrorHandler = Callable[[DataError], None]
"""Takes an error instead of its being raised; reading then goes on where it can."""


def open_text(
    path: str | Path, on_error: ErrorHandler | None = None, *, keep_ends: bool = False
) -> Generator[str, None, None]:
    """Yield the lines of a UTF-8 file, or of standard input for "-", without their ends.

    Only LF and CR LF end a line; a byte order mark at the start is dropped. With `on_error`, a bad
    line is reported and yielded with U+FFFD for what is wrong. With `keep_ends` lines come with
    their ends.
    """
    with open_bytes(path) as file:
        readline = file.readline
        for number, raw in enumerate(iter(lambda: readline(LONGEST_LINE), b""), 1):
            end = ""
            if raw[-1:] == b"\n":
                end = "\r\n" if raw[-2:] == b"\r\n" else "\n"
                raw = raw[: -len(end)]
            elif len(raw) == LONGEST_LINE:
                raise DataError(f"{path}: line {number} has more than 64 MiB; this is not text")
            if number == 1:
                raw = raw.removeprefix(_BOM)
            if b"\0" in raw:
                handle_error(on_error, _nul(path, number, raw))
                raw = raw.replace(b"\0", "\ufffd".encode())
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                handle_error(on_error, _not_utf8(path, number, raw, error.start))
                line = raw.decode("utf-8", "replace")
            yield line + end if keep_ends else line


def handle_error(on_error: ErrorHandler | None, error: DataError) -> None:
    """Pass the error to `on_error`, or raise it if there is none."""
    if on_error is None:
        raise error
    on_error(error)


def _nul(path: str | Path, number: int, raw: bytes) -> DataError:
    if number == 1 and (raw[:2] in (b"\xff\xfe", b"\xfe\xff") or raw[1:2] == b"\0"):
        return _not_utf8(path, number, raw, 0)
    files = "" if str(path) == "-" else f" < {path} > fixed"
    return DataError(
        f"{path}, line {number}: a NUL byte (column {raw.index(0) + 1}), which text never has; "
        f"remove it with: tr -d '\\000'{files}"
    )


def _not_utf8(path: str | Path, number: int, raw: bytes, start: int) -> DataError:
    encoding = "utf-16" if b"\0" in raw[:64] else "latin1"
    files = "" if str(path) == "-" else f" {path} > fixed"
    return DataError(
        f"{path}, line {number}: byte 0x{raw[start]:02X} (column {start + 1}) is not UTF-8; save "
        f"the text as UTF-8, e.g. iconv -f {encoding} -t utf-8{files}"
    )


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file's decompressed bytes; whatever goes wrong while they are read is a DataError."""
    try:
        if str(path) == "-":
            yield sys.stdin.buffer
            return
        with _decompressed(Path(path)) as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory; give a text file") from None
    except EOFError:
        raise DataError(f"{path}: is truncated; copy or compress it again") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path}: not a {Path(path).suffix} file, or damaged ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None


def _decompressed(path: Path) -> BinaryIO:
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        return path.open("rb", buffering=_BUFFER)
    # Lines out of a BufferedReader come four times as fast as out of the decompressors.
    return cast(BinaryIO, io.BufferedReader(opener(path), _BUFFER))


class _Zstandard(io.RawIOBase):
    """Read frames one after another and, unlike the library's reader, notice a missing end."""

    def __init__(self, path: Path) -> None:
        try:
            import zstandard
        except ImportError:
            raise DataError(describe_need("zstandard", f"{path}: reading .zst")) from None
        self._library: Any = zstandard
        self._file = path.open("rb")
        self._frame: Any = None
        self._rest = b""  # compressed bytes of the next frame
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._rest or self._file.read(1 << 16)
            self._rest = b""
            if not data:
                if self._frame is not None:
                    raise EOFError
                return 0
            self._frame = self._frame or self._library.ZstdDecompressor().decompressobj()
            try:
                self._ready = memoryview(self._frame.decompress(data))
            except self._library.ZstdError as error:
                raise OSError(f"damaged: {error}") from None
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()


_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _Zstandard,
}
COMPRESSIONS: Final = tuple(_OPENERS)
"""The suffixes of compressed files."""


class Pair(NamedTuple):
    """Hold a sentence, its translation, and their number in the corpus, from 1."""

    source: str
    target: str
    number: int


class Corpus(ABC):
    """Yield pairs of sentences in their order."""

    name: str
    unit = "line"
    """What pairs are counted by in messages."""
    malformed: tuple[str, ...] = ()
    """What could not be read the last time, and where; most formats refuse it instead."""

    @abstractmethod
    def read(self, on_error: ErrorHandler | None = None) -> Iterator[Pair]:
        """Yield the pairs from the beginning; with `on_error`, go on after an error."""

    def __iter__(self) -> Iterator[Pair]:
        return self.read()

    def locate(self, number: int, *, target: bool = False) -> str:
        """Return where a pair stands, for messages; sides may be in different files."""
        return f"{self.name}, {self.unit} {number}"


class SingleFile(Corpus):
    """Read one file that holds both sides."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)


class UnequalLinesError(DataError):
    """Raised when two files that should be aligned have different numbers of lines."""

    def __init__(self, message: str, *, difference: int) -> None:
        super().__init__(message)
        self.difference = difference
        """The target has this many lines more."""


class ParallelFiles(Corpus):
    """Read two files in which the same line of each is a pair."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source = source
        self.target = target
        self.name = str(source)

    def read(self, on_error: ErrorHandler | None = None) -> Iterator[Pair]:
        """Yield the pairs; different lengths are an error at the end of the shorter file."""
        with (
            closing(open_text(self.source, on_error)) as sources,
            closing(open_text(self.target, on_error)) as targets,
        ):
            for before, (source, target) in enumerate(zip_longest(sources, targets)):
                if source is None or target is None:
                    rest = 1 + sum(1 for _ in (targets if source is None else sources))
                    handle_error(
                        on_error, self._unequal(before, rest, longer_source=target is None)
                    )
                    return
                yield Pair(source, target, before + 1)

    def locate(self, number: int, *, target: bool = False) -> str:
        """Return where a pair stands, for messages."""
        return f"{self.target if target else self.source}, line {number}"

    def _unequal(self, shorter: int, rest: int, *, longer_source: bool) -> DataError:
        counts = (shorter + rest, shorter) if longer_source else (shorter, shorter + rest)
        return UnequalLinesError(
            f"{self.source} has {counted(counts[0], 'line')} and {self.target} has {counts[1]:,}; "
            "they must be aligned line by line: dragoman doctor finds where they diverge",
            difference=counts[1] - counts[0],
        )


class Tsv(SingleFile):
    """Read one file with a source, a tab and a target on each line.

    A first line that names the columns, by languages or as source and target, is no pair. It says
    where the two languages are, and then there may be other columns too.
    """

    def __init__(self, path: Path, languages: tuple[str, str] | None = None) -> None:
        super().__init__(path)
        self.languages = languages

    def read(self, on_error: ErrorHandler | None = None) -> Iterator[Pair]:
        """Yield the pairs; a line with other columns than source and target is an error."""
        width, source, target, named = 2, 0, 1, False
        for number, line in enumerate(open_text(self.path, on_error), 1):
            columns = line.split("\t")
            if number == 1 and _is_header(columns):
                width, named = len(columns), True
                try:
                    source, target = self._find_columns(columns)
                except DataError as error:
                    handle_error(on_error, error)
            elif len(columns) == width:
                yield Pair(columns[source], columns[target], number)
            else:
                wrong = self._wrong_columns(len(columns), width, named)
                handle_error(on_error, DataError(f"{self.path}, line {number}: {wrong}"))

    def _find_columns(self, header: list[str]) -> tuple[int, int]:
        """Return where source and target are, as the first line names them."""
        codes = [language_code(cell) for cell in header]
        wanted = self.languages or named_languages(self.path)
        if wanted and any(codes):
            places = [
                [i for i, code in enumerate(codes) if code and same_language(code, language)]
                for language in wanted
            ]
            if all(len(found) == 1 for found in places):
                return places[0][0], places[1][0]
            raise DataError(
                f"{self.path}, line 1: the columns are {', '.join(header)}, and the languages "
                f"{wanted[0]} and {wanted[1]}; name those to translate between with --languages"
            )
        lower = [cell.strip().lower() for cell in header]
        for source, target in _COLUMN_NAMES:
            if source in lower and target in lower:
                return lower.index(source), lower.index(target)
        raise DataError(
            f"{self.path}, line 1: the columns are {', '.join(header)}; name the two languages to "
            "translate between with --languages"
        )

    def _wrong_columns(self, columns: int, width: int, named: bool) -> str:
        if named:
            return f"{counted(columns, 'column')}, and the first line names {width}"
        advice = f"; keep two: cut -f1,2 {self.path}" if columns > 2 else ""
        return f"{counted(columns, 'column')} instead of source, tab, target{advice}"


_COLUMN_NAMES: Final = (("source", "target"), ("src", "tgt"), ("src", "trg"))


def _is_header(columns: list[str]) -> bool:
    """Return whether the first line of a table names its columns: all short, two of them known."""
    lower = [cell.strip().lower() for cell in columns]
    if any({source, target} <= set(lower) for source, target in _COLUMN_NAMES):
        return True
    codes = {code for cell in columns if (code := language_code(cell))}
    return len(codes) >= 2 and all(len(cell) <= 30 for cell in columns)


class JsonLines(SingleFile):
    """Read one JSON object a line, with the two texts in it or both under "translation".

    The keys are "source" and "target", or the two languages by their codes or names. Where objects
    name their languages ("source_lang" and "target_lang"), those of other pairs are skipped, and
    those of the other direction are turned round. A last line that was never finished is malformed.
    """

    def __init__(
        self, path: Path, languages: tuple[str, str] | None = None, *, both_ways: bool = True
    ) -> None:
        """Without `both_ways`, pairs of the other direction are skipped, too."""
        super().__init__(path)
        self.languages = languages
        self._both_ways = both_ways
        self._keys = languages
        """The keys that the last object had."""

    def read(self, on_error: ErrorHandler | None = None) -> Iterator[Pair]:
        """Yield the pairs; a line that is not such an object is an error."""
        self.malformed = ()
        others: dict[str, None] = {}
        wrong: list[DataError] = []
        number, found = 0, False
        for number, line in enumerate(open_text(self.path, wrong.append, keep_ends=True), 1):
            try:
                texts = self._texts(line)
            except ValueError as error:
                wrong = wrong or [DataError(f"{self.path}, line {number}: {error}")]
                if number > 1 and not line.endswith("\n"):
                    self.malformed = (f"{self.path}, line {number}: the line has no end",)
                else:
                    handle_error(on_error, wrong[0])
            else:
                if wrong:
                    handle_error(on_error, wrong[0])
                if isinstance(texts, str):
                    others[texts] = None
                else:
                    found = True
                    yield Pair(*texts, number)
            wrong.clear()
        if others and not found:
            assert self.languages is not None
            message = (
                f"{self.path}: none of its {counted(number, 'line')} goes from {self.languages[0]} "
                f"to {self.languages[1]}; they go from {', '.join(others)}"
            )
            handle_error(on_error, DataError(message))

    def _texts(self, line: str) -> tuple[str, str] | str:
        """Return the two texts of a line; or its languages, where it is in others."""
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            raise ValueError("not a JSON object") from None
        if isinstance(record, dict) and isinstance(record.get("translation"), dict):
            record = record["translation"]
        if not isinstance(record, dict):
            raise ValueError("not a JSON object")
        if keys := self._find_keys(record):
            self._keys = keys
            texts = _one_line(record[keys[0]]), _one_line(record[keys[1]])
            there = _named_direction(record)
            if self.languages is None or there is None or keys != ("source", "target"):
                return texts
            wanted = primary_code(self.languages[0]), primary_code(self.languages[1])
            if there == wanted:
                return texts
            if self._both_ways and there == wanted[::-1]:
                return texts[1], texts[0]
            return " to ".join(there)
        wanted = self.languages or ("source", "target")
        raise ValueError(
            f"no text under '{wanted[0]}' and '{wanted[1]}'; the keys are: "
            f"{', '.join(map(str, record)) or 'none'}; name the languages with --languages"
        )

    def _find_keys(self, record: dict[str, Any]) -> tuple[str, str] | None:
        """Return the keys of source and target; an object mostly has those of the one before."""

        def are_texts(keys: tuple[str, str] | None) -> bool:
            return keys is not None and all(isinstance(record.get(key), str) for key in keys)

        if are_texts(self._keys):
            return self._keys
        if self.languages is not None:
            by_code = {language_code(key): key for key in record}
            keys = tuple(by_code.get(primary_code(code), code) for code in self.languages)
            if are_texts((keys[0], keys[1])):
                return keys[0], keys[1]
        return ("source", "target") if are_texts(("source", "target")) else None


class Tmx(SingleFile):
    """Read a translation memory; a language code matches its regions too ("en" fits "en-GB").

    Units that lack one of the languages are skipped. Formatting codes inside a segment are dropped,
    the text they surround is kept.
    """

    unit = "unit"

    def __init__(self, path: Path, languages: tuple[str, str]) -> None:
        super().__init__(path)
        self.languages = languages

    def read(self, on_error: ErrorHandler | None = None) -> Iterator[Pair]:
        """Yield the pairs; XML that is not well-formed is an error."""
        others: dict[str, None] = {}
        number, found = 0, False
        try:
            for number, unit in enumerate(_elements(self.path, "tu"), 1):
                texts = [_segment(unit, language) for language in self.languages]
                if texts[0] is not None and texts[1] is not None:
                    found = True
                    yield Pair(texts[0], texts[1], number)
                elif not found:
                    others |= dict.fromkeys(map(_language_of, unit))
        except ElementTree.ParseError as error:
            line, column = error.position
            reason = str(error).partition(":")[0]
            message = f"{self.path}, line {line}: not XML at column {column + 1} ({reason})"
            handle_error(on_error, DataError(message))
        if number and not found:
            there = ", ".join(filter(None, others)) or "none"
            message = (
                f"{self.path}: none of its {counted(number, 'unit')} has both {self.languages[0]} "
                f"and {self.languages[1]}; its languages are: {there}"
            )
            handle_error(on_error, DataError(message))


def _elements(path: Path, *tags: str) -> Generator[ElementTree.Element, None, None]:
    """Yield the elements of these kinds in a translation memory."""
    with open_bytes(path) as file:
        above: list[ElementTree.Element] = []
        for event, element in ElementTree.iterparse(file, ("start", "end")):
            if event == "start":
                above.append(element)
                continue
            above.pop()
            if _tag(element) in tags:
                yield element
                if above:
                    above[-1].clear()  # or the whole file would stay in memory


_CODES = {"bpt", "ept", "it", "ph", "ut"}
"""TMX elements whose text is another program's formatting code."""
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _language_of(variant: ElementTree.Element) -> str:
    return (variant.get(_LANGUAGE) or variant.get("lang") or "").lower().replace("_", "-")


def _segment(unit: ElementTree.Element, language: str) -> str | None:
    wanted = language.lower().replace("_", "-")
    for variant in unit:
        code = _language_of(variant)
        if code == wanted or code.startswith(f"{wanted}-"):
            for child in variant:
                if _tag(child) == "seg":
                    return _one_line("".join(_texts_of(child)))
    return None


def _texts_of(element: ElementTree.Element) -> Iterator[str]:
    if _tag(element) not in _CODES:
        yield element.text or ""
        for child in element:
            yield from _texts_of(child)
            yield child.tail or ""


def _one_line(text: str) -> str:
    """Make one line of a text from a format that can hold what a line cannot."""
    return text if text.isprintable() else normalize(text, "none")


class ConcatenatedCorpus(Corpus):
    """Read several corpora one after another, with one numbering."""

    def __init__(self, parts: Sequence[Corpus]) -> None:
        self.parts = tuple(parts)
        self.name = " + ".join(part.name for part in parts)
        self._before = [0]  # pairs before each part, as far as they have been read

    def read(self, on_error: ErrorHandler | None = None) -> Iterator[Pair]:
        """Yield the pairs of all parts."""
        before = 0
        self._before = []
        self.malformed = ()
        for part in self.parts:
            self._before.append(before)
            last = 0
            for source, target, number in part.read(on_error):
                last = number
                yield Pair(source, target, before + number)
            before += last
            self.malformed += part.malformed

    def locate(self, number: int, *, target: bool = False) -> str:
        """Return where a pair that has been read stands, for messages."""
        index = bisect_right(self._before, number - 1) - 1
        return self.parts[index].locate(number - self._before[index], target=target)


def open_parallel_corpus(
    paths: Sequence[str | Path], *, languages: tuple[str, str] | None = None
) -> Corpus:
    """Open the corpus in these files: two of aligned lines, or one .tsv, .jsonl or .tmx.

    The files must be there; nothing of them is read yet.
    """
    files = [Path(path) for path in paths]
    for file in files:
        check_rereadable(file)
    if len(files) == 2:
        for file in files:
            if holds_both_sides(file):
                raise DataError(f"{file}: contains both languages; give it without a second file")
        return ParallelFiles(files[0], files[1])
    if len(files) != 1:
        raise DataError(
            f"a corpus is two aligned files or one .tsv, .jsonl or .tmx, not {len(files)} files"
        )
    match _suffix(files[0]):
        case ".tsv":
            return Tsv(files[0], languages)
        case ".jsonl":
            return JsonLines(files[0], languages)
        case ".tmx":
            if languages is None:
                raise ConfigError(
                    f"{files[0]}: it is not clear which two languages to read; name them, source "
                    "first, as in --languages en,de"
                )
            return Tmx(files[0], languages)
    raise DataError(
        f"{files[0]}: give the file of its translations as well, or one file that contains both "
        "(.tsv, .jsonl, .tmx)"
    )


def named_languages(path: Path) -> tuple[str, ...]:
    """Return the two languages that a file with both sides names inside, or nothing.

    A table names them in its first line, JSON lines by their keys, and a translation memory in
    its units. More than two leave open which are meant. A file that cannot be read names none
    here; what is wrong with it is said when it is read.
    """
    readers = {".tsv": _column_languages, ".jsonl": _key_languages, ".tmx": _unit_languages}
    reader = readers.get(_suffix(path))
    try:
        found = list(dict.fromkeys(reader(path))) if reader else []
    except (DataError, ElementTree.ParseError):
        return ()
    return tuple(found) if len(found) == 2 else ()


def _column_languages(path: Path) -> list[str]:
    with closing(open_text(path)) as lines:
        columns = next(lines, "").split("\t")
    return _languages_of(columns) if _is_header(columns) else []


def _key_languages(path: Path) -> list[str]:
    with closing(open_text(path)) as lines:
        try:
            record = json.loads(next(lines, ""))
        except (json.JSONDecodeError, RecursionError):
            return []
    if not isinstance(record, dict):
        return []
    if direction := _named_direction(record):
        return list(direction)
    texts = record["translation"] if isinstance(record.get("translation"), dict) else record
    return _languages_of([key for key, text in texts.items() if isinstance(text, str)])


def _named_direction(record: dict[str, Any]) -> tuple[str, str] | None:
    """Return the languages that an object says its source and its target are in."""
    for name in ("lang", "language", "lang_code"):
        values = [record.get(f"{side}_{name}") for side in ("source", "target")]
        codes = [_language_in(value) for value in values if isinstance(value, str)]
        if len(codes) == 2 and all(codes):
            return codes[0], codes[1]
    return None


def _language_in(value: str) -> str:
    """Return the code in a field for one, also of a language without a name here, or nothing."""
    code = language_code(value) or primary_code(value)
    return code if len(code) in (2, 3) and code.isalpha() else ""


def _languages_of(labels: Sequence[str]) -> list[str]:
    """Return the languages that columns or keys are named by."""
    codes = [code for label in labels if (code := language_code(label))]
    if len(codes) > 2 and "id" in codes:
        codes.remove("id")  # here this is more often a number than Indonesian
    return codes


_LOOKED_AT: Final = 1000
"""So many units of a translation memory are looked at to know its languages."""


def _unit_languages(path: Path) -> list[str]:
    """Return the languages, the header's source first, without regions if that tells them apart."""
    codes: dict[str, None] = {}
    source = ""
    with closing(_elements(path, "header", "tu")) as elements:
        for element in islice(elements, _LOOKED_AT):
            if _tag(element) == "header":
                source = primary_code(element.get("srclang"))
            else:
                codes |= dict.fromkeys(filter(None, map(_language_of, element)))
    primary = list(dict.fromkeys(map(primary_code, codes)))
    found = primary if len(primary) > 1 else list(codes)
    return sorted(found, key=lambda code: primary_code(code) != source)


def holds_both_sides(path: Path) -> bool:
    """Return whether a file has both sides of its pairs, by its name."""
    return _suffix(path) in (".tsv", ".jsonl", ".tmx")


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def check_rereadable(path: Path) -> None:
    """Refuse what is not a file, or can be read only once."""
    if str(path) == "-":
        raise DataError("a corpus is read more than once; save standard input to a file first")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    if stat.S_ISDIR(mode):
        raise DataError(f"{path}: is a directory; give a text file")
    if not stat.S_ISREG(mode):
        raise DataError(f"{path}: a corpus is read more than once; save it to a file first")
