"""Writes that happen whole or not at all."""

import errno
import os
import stat

import pytest

from dragoman.errors import DragomanError
from dragoman.system import atomic_files
from dragoman.system.atomic_files import atomic_directory, atomic_write, remove_leftovers


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def fail_with(number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    return fail


def test_a_file_is_replaced_in_one_step(tmp_path):
    atomic_write(tmp_path / "deep" / "file", "first")
    atomic_write(tmp_path / "deep" / "file", "zweité".encode())
    assert (tmp_path / "deep" / "file").read_text(encoding="utf-8") == "zweité"
    assert names(tmp_path / "deep") == ["file"]


def test_others_may_read_what_is_written(tmp_path):
    mask = os.umask(0o022)
    try:
        atomic_write(tmp_path / "file", "text")
        with atomic_directory(tmp_path / "made"):
            pass
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "file: no space left on device; free some space and run again"),
        (errno.EROFS, "file: the file system is read-only"),
        (errno.EIO, "file: cannot be written"),
    ],
)
def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch, number, message):
    atomic_write(tmp_path / "file", "old")
    monkeypatch.setattr(atomic_files.os, "fsync", fail_with(number))
    with pytest.raises(DragomanError, match=message):
        atomic_write(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_a_directory_appears_when_it_is_complete(tmp_path):
    with atomic_directory(tmp_path / "out") as directory:
        (directory / "inner").mkdir()
        (directory / "inner" / "file").write_text("text")
        assert not (tmp_path / "out").exists()
        assert directory.name.startswith(atomic_files.TEMPORARY_PREFIX)
    assert (tmp_path / "out" / "inner" / "file").read_text() == "text"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_inside_leaves_nothing(tmp_path, error):
    def fail():
        with atomic_directory(tmp_path / "out") as directory:
            (directory / "file").write_text("text")
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == []


def test_a_full_disk_inside_is_one_line(tmp_path):
    with (
        pytest.raises(DragomanError, match="out: no space left on device"),
        atomic_directory(tmp_path / "out"),
    ):
        fail_with(errno.ENOSPC)()
    assert names(tmp_path) == []


def test_a_directory_with_something_in_it_is_kept_unless_told(tmp_path):
    atomic_write(tmp_path / "out" / "precious", "data")
    with (
        pytest.raises(DragomanError, match="already exists and is not empty"),
        atomic_directory(tmp_path / "out"),
    ):
        pytest.fail("refused before any work")
    with atomic_directory(tmp_path / "out", replace=True) as directory:
        (directory / "new").write_text("data")
    assert names(tmp_path / "out") == ["new"]
    assert names(tmp_path) == ["out"]


def test_an_empty_directory_is_taken(tmp_path):
    (tmp_path / "out").mkdir()
    with atomic_directory(tmp_path / "out") as directory:
        (directory / "file").write_text("text")
    assert names(tmp_path / "out") == ["file"]


def test_a_path_through_a_file_is_one_line(tmp_path):
    (tmp_path / "file").write_text("text")
    with pytest.raises(DragomanError, match="is a file, not a directory"):
        atomic_write(tmp_path / "file" / "below", "text")


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path):
    (tmp_path / ".tmp-model-x1").mkdir()
    (tmp_path / ".tmp-model-x1" / "part").write_text("half")
    (tmp_path / ".tmp-file-x2").write_text("half")
    (tmp_path / "kept").write_text("whole")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["kept"]
