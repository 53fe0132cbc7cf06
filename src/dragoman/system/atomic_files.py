"""Files and directories worth keeping are written whole or not at all.

A file or a directory is written under a temporary name beside its place (``.tmp-…``), brought to
the disk, and renamed. A reader never sees half of it, and a failed write leaves what was there.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.errors import DragomanError

TEMPORARY_PREFIX = ".tmp-"
"""The names of unfinished files and directories begin with this."""

_ADVICE = {
    errno.ENOSPC: "no space left on device; free some space and run again",
    errno.EDQUOT: "disk quota exceeded; free some space and run again",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.EACCES: "permission denied; choose a place you may write to",
    errno.EPERM: "permission denied; choose a place you may write to",
    errno.EEXIST: "a part of this path is a file, not a directory; choose another place",
    errno.ENOTDIR: "a part of this path is a file, not a directory; choose another place",
    errno.EISDIR: "is a directory; choose another name",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ENOTEMPTY: "already exists and is not empty; remove it or choose another place",
}


def atomic_write(path: Path, content: bytes | str) -> None:
    """Write `content` (text as UTF-8) to `path`, replacing what was there in one step."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f"{TEMPORARY_PREFIX}{path.name}-", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                temporary.chmod(0o666 & ~_umask())
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def write_synced(path: Path, text: str) -> None:
    """Write a file of an unfinished directory, as UTF-8, and flush it to the disk."""
    with path.open("wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def atomic_directory(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a directory to fill; it becomes `path` when the block ends without an error.

    Anything at `path` but an empty directory is refused at the start, unless `replace`.
    """
    with explain_os_errors(path):
        if not replace and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise DragomanError(
                f"{path}: already exists and is not empty; remove it or choose another place"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(
            tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}{path.name}-", dir=path.parent)
        )
        try:
            temporary.chmod(0o777 & ~_umask())
            yield temporary
            _sync_tree(temporary)
            if replace:
                replace_directory(temporary, path)
            else:
                temporary.rename(path)  # replaces an empty directory and fails on a full one
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_directory(path.parent)


def replace_directory(temporary: Path, path: Path) -> None:
    """Rename `temporary` to `path`; what was there is moved aside first and removed last."""
    if not path.exists():
        temporary.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}{path.name}-old-", dir=path.parent))
    try:
        path.rename(old / path.name)
        try:
            temporary.rename(path)
        except OSError:
            (old / path.name).rename(path)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Remove what killed processes left unfinished in `directory`; nothing may be writing there."""
    for leftover in directory.glob(f"{TEMPORARY_PREFIX}*"):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(OSError):
                leftover.unlink()


def sync_directory(path: Path) -> None:
    """Flush the names in a directory to the disk, where the system can do that."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sync_tree(directory: Path) -> None:
    mode = "r+b" if os.name == "nt" else "rb"  # Windows brings to the disk what it may write
    for folder, _, names in os.walk(directory, topdown=False):
        for name in names:
            with Path(folder, name).open(mode) as file:
                os.fsync(file.fileno())
        sync_directory(Path(folder))


def _umask() -> int:
    with suppress(OSError, ValueError):
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.partition("\nUmask:")[2].split("\n")[0], 8)
    mask = os.umask(0o077)  # can only be read by setting it; other threads may see this value
    os.umask(mask)
    return mask


def describe_os_error(error: OSError) -> str:
    """Return why something could not be written, and what to do."""
    return _ADVICE.get(error.errno or 0, f"cannot be written ({error.strerror or error})")


def os_error_cause(error: OSError) -> str:
    """Return why something could not be written, without what to do."""
    return describe_os_error(error).partition("; ")[0]


@contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Turn what the system says while something is written to `path` into one clear line."""
    try:
        yield
    except BrokenPipeError:
        raise  # not about files: the reader of our output has left
    except OSError as error:
        raise DragomanError(f"{path}: {describe_os_error(error)}") from None
