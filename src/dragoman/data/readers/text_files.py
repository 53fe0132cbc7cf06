"""Text files are read line by line, compressed or not; what is not UTF-8 is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from dragoman.errors import DataError

__all__ = ["COMPRESSIONS", "ErrorHandler", "handle_error", "open_bytes", "open_text"]

LONGEST_LINE = 1 << 26
"""The most bytes of a line: a file without line ends is no text, and must not fill memory."""

_BOM = b"\xef\xbb\xbf"
_BUFFER = 1 << 18

ErrorHandler = Callable[[DataError], None]
"""Takes an error instead of its being raised; reading then goes on where it can."""


def open_text(path: str | Path, on_error: ErrorHandler | None = None) -> Generator[str, None, None]:
    """Yield the lines of a UTF-8 file, or of standard input for "-", without their ends.

    Only LF and CR LF end a line; a byte order mark at the start is dropped. With `on_error`, a bad
    line is reported and yielded with U+FFFD for what is wrong.
    """
    with open_bytes(path) as file:
        readline = file.readline
        for number, raw in enumerate(iter(lambda: readline(LONGEST_LINE), b""), 1):
            if raw[-1:] == b"\n":
                raw = raw[:-2] if raw[-2:] == b"\r\n" else raw[:-1]
            elif len(raw) == LONGEST_LINE:
                raise DataError(f"{path}: line {number} has more than 64 MiB; this is not text")
            if number == 1:
                raw = raw.removeprefix(_BOM)
            if b"\0" in raw:
                handle_error(on_error, _nul(path, number, raw))
                raw = raw.replace(b"\0", "\ufffd".encode())
            try:
                yield raw.decode("utf-8")
            except UnicodeDecodeError as error:
                handle_error(on_error, _not_utf8(path, number, raw, error.start))
                yield raw.decode("utf-8", "replace")


def handle_error(on_error: ErrorHandler | None, error: DataError) -> None:
    """Pass the error to `on_error`, or raise it if there is none."""
    if on_error is None:
        raise error
    on_error(error)


def _nul(path: str | Path, number: int, raw: bytes) -> DataError:
    if number == 1 and (raw[:2] in (b"\xff\xfe", b"\xfe\xff") or raw[1:2] == b"\0"):
        return _not_utf8(path, number, raw, 0)
    return DataError(
        f"{path}, line {number}: a NUL byte (column {raw.index(0) + 1}); this is not text, or "
        f"remove it: tr -d '\\000' < {path} > fixed"
    )


def _not_utf8(path: str | Path, number: int, raw: bytes, start: int) -> DataError:
    encoding = "utf-16" if b"\0" in raw[:64] else "latin1"
    return DataError(
        f"{path}, line {number}: byte 0x{raw[start]:02X} (column {start + 1}) is not UTF-8; save "
        f"the file as UTF-8, e.g. iconv -f {encoding} -t utf-8 {path} > fixed"
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
        raise DataError(f"{path}: is a directory; name a text file") from None
    except EOFError:
        raise DataError(f"{path}: ends in the middle; copy or compress it again") from None
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
            raise DataError(
                f"{path}: reading .zst needs one more package; pip install 'dragoman[zstd]'"
            ) from None
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
