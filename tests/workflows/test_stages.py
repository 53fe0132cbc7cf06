"""Stages: made once, with one set of settings, by one process at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, DataError
from dragoman.workflows.stages import (
    check_directory,
    exclusive_lock,
    fill_windows,
    join_names,
    make_stage,
    read_windows,
    record_stages,
)

STAGES = {"text": {"--limit": 3}, "parsed": {"--beam": 1, "files": ["a"]}, "run": {"steps": 5}}


def silent(activity: str, done: int, total: int | None) -> None:
    pass


def test_a_stage_is_made_once_and_a_failed_one_is_not_there(tmp_path: Path) -> None:
    calls = []

    def make(directory: Path) -> dict[str, int]:
        calls.append(directory)
        (directory / "lines.txt").write_text("a\n", encoding="utf-8")
        if len(calls) == 1:
            raise DataError("no")
        return {"lines": 1}

    with pytest.raises(DataError):
        make_stage(tmp_path / "text", make)
    assert not list(tmp_path.iterdir())
    assert make_stage(tmp_path / "text", make) == {"lines": 1}
    assert make_stage(tmp_path / "text", make) == {"lines": 1}
    assert len(calls) == 2


def test_windows_are_made_once_and_shared(tmp_path: Path) -> None:
    items = [f"{n}" for n in range(7)]
    made: list[list[str]] = []

    def make(window: list[str]) -> str:
        made.append(window)
        return "".join(f"{item}\n" for item in window)

    def fill(share: tuple[int, int]) -> int:
        return fill_windows(
            tmp_path, items, 7, 2, make, progress=silent, activity="making", share=share
        )

    assert fill((2, 3)) == 3
    assert made == [["2", "3"]]
    assert fill((1, 1)) == 0
    assert made[1:] == [["0", "1"], ["4", "5"], ["6"]]
    assert fill((1, 1)) == 0
    assert len(made) == 4
    assert list(read_windows(tmp_path)) == items


def test_other_settings_are_refused_with_what_to_remove(tmp_path: Path) -> None:
    record_stages(tmp_path, STAGES, command="work")
    for stage in STAGES:
        (tmp_path / stage).mkdir()
    record_stages(tmp_path, STAGES, command="work")
    changed = {**STAGES, "parsed": {"--beam": 2, "files": ["a"]}}
    with pytest.raises(
        ConfigError,
        match=r"parsed: made with another --beam \(1, now 2\); .* remove parsed and run in it",
    ):
        record_stages(tmp_path, changed, command="work")
    assert json.loads((tmp_path / "work.json").read_text(encoding="utf-8")) == STAGES
    for stage in ("parsed", "run"):
        (tmp_path / stage).rmdir()
    record_stages(tmp_path, changed, command="work")
    assert json.loads((tmp_path / "work.json").read_text(encoding="utf-8")) == changed


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    check_directory(tmp_path / "new", command="work")
    (tmp_path / ".hidden").touch()
    check_directory(tmp_path, command="work")
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ConfigError, match="not made by dragoman work"):
        check_directory(tmp_path, command="work")


def test_a_lock_is_held_by_one_process_and_freed_when_it_dies(tmp_path: Path) -> None:
    lock = tmp_path / "deep" / ".lock"
    code = (
        "import sys; from pathlib import Path; from dragoman.workflows.stages import exclusive_lock"
        "\nwith exclusive_lock(Path(sys.argv[1]), wait=False) as held:"
        "\n    print(held is not None, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        with exclusive_lock(lock, wait=False) as held:
            assert held is None
        other.kill()
        other.wait()
    with exclusive_lock(lock, wait=False) as held:
        assert held is not None


def test_names_are_joined_as_in_a_sentence() -> None:
    assert [join_names(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]
