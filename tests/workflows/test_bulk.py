"""Directories translated in parts: exact lines, nothing done twice, nothing lost with a worker."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.inference import Translator, load
from dragoman.workflows.bulk import Job, Summary, find_inputs, translate_directory

WORDS = ("red", "blue", "big", "small", "dog", "cat", "house", "tree", "sees", "eats")
LINES = [" ".join(WORDS[(i * k) % 10] for k in range(1, 4 + i % 5)) for i in range(40)]


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return load(trained, device="cpu")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A directory of files of all kinds; 40 + 3 + 0 + 12 lines."""
    directory = tmp_path / "texts"
    (directory / "deep" / "er").mkdir(parents=True)
    (directory / "a.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    (directory / "b.en").write_bytes("\ufeffred dog\r\n\r\nblue\u2028cat".encode())
    (directory / "empty").touch()
    (directory / ".hidden").write_text("not text", encoding="utf-8")
    packed = gzip.compress("".join(f"{line}\n" for line in LINES[:12]).encode())
    (directory / "deep" / "er" / "c.txt.gz").write_bytes(packed)
    return directory


def run(trained: Path, texts: Path, out: Path, **changes: object) -> Summary:
    settings = {"part": 5, "device": "cpu", "beam": 1} | changes
    return translate_directory(trained, [texts], out, **settings)  # type: ignore[arg-type]


def lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n") or not text
    return text.split("\n")[:-1]


def unchanged(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.rglob("*.txt")}


def test_every_line_has_its_translation_in_its_place(
    trained: Path, translator: Translator, texts: Path, tmp_path: Path
) -> None:
    found = run(trained, texts, tmp_path / "out")
    names = ["a.txt", "b.en", "deep/er/c.txt", "empty"]
    assert [path.relative_to(tmp_path / "out") for path in found.files] == list(map(Path, names))
    wanted = [one.text for one in translator.translate_lines(LINES, beam=1)]
    assert lines(tmp_path / "out" / "a.txt") == wanted
    assert lines(tmp_path / "out" / "deep" / "er" / "c.txt") == wanted[:12]
    few = translator.translate(["red dog", "", "blue\u2028cat"], beam=1)
    assert lines(tmp_path / "out" / "b.en") == [one.text for one in few]
    assert lines(tmp_path / "out" / "empty") == []
    assert (found.lines, found.parts, found.there) == (40 + 3 + 12, 8 + 1 + 3, 0)
    assert sum(found.workers.values()) == found.parts
    left = [path.name for path in (tmp_path / "out" / ".parts").iterdir()]
    assert sorted(left) == [".job.json", ".lock"]


@pytest.mark.slow
def test_several_processes_find_the_same(trained: Path, texts: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    files = run(trained, texts, one).files
    found = run(trained, texts, two, workers=2)
    assert len(found.workers) == 2
    for file in files:
        assert (two / file.relative_to(one)).read_bytes() == file.read_bytes()


def stop_after(
    count: int, trained: Path, texts: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run until so many parts are there."""
    from dragoman.workflows import bulk

    made = 0
    write = bulk.atomic_write

    def counted(path: Path, content: str) -> None:
        nonlocal made
        if path.suffix != ".json":
            if made == count:
                raise KeyboardInterrupt
            made += 1
        write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(bulk, "atomic_write", counted)
        with pytest.raises(KeyboardInterrupt):
            run(trained, texts, out)


@pytest.mark.slow
def test_finished_parts_and_files_are_not_done_again(
    trained: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    stop_after(3, trained, texts, out, monkeypatch)
    there = unchanged(out / ".parts" / "a.txt" / "translated")
    assert len(there) == 3
    assert not (out / "a.txt").exists()
    stop_after(6, trained, texts, out, monkeypatch)  # the other 5 of a.txt, and b.en
    assert unchanged(out / ".parts" / "a.txt" / "translated") == {}, "its parts are removed"
    before = (out / "a.txt").stat().st_mtime_ns
    messages: list[str] = []
    found = run(trained, texts, out, tell=messages.append)
    assert (found.parts, found.there, found.lines) == (3, 0, 55)
    assert (out / "a.txt").stat().st_mtime_ns == before
    run(trained, texts, tmp_path / "whole")
    for file in found.files:
        assert file.read_bytes() == (tmp_path / "whole" / file.relative_to(out)).read_bytes()
    assert run(trained, texts, out).parts == 0


def test_parts_that_are_there_are_used(
    trained: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    stop_after(3, trained, texts, out, monkeypatch)
    marked = out / ".parts" / "a.txt" / "translated" / "000001.txt"
    marked.write_text("1\n2\n3\n4\n5\n", encoding="utf-8")
    (marked.parent / ".tmp-000004.txt-x").write_text("half a", encoding="utf-8")  # of one killed
    messages: list[str] = []
    found = run(trained, texts, out, tell=messages.append)
    assert messages == ["3 of 12 parts are already done"]
    assert (found.parts, found.there) == (9, 3)
    assert lines(out / "a.txt")[5:10] == ["1", "2", "3", "4", "5"]
    assert not list(out.rglob(".tmp-*"))


def test_a_part_of_other_lines_is_refused_and_not_mixed_in(
    trained: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    stop_after(3, trained, texts, out, monkeypatch)
    (out / ".parts" / "a.txt" / "translated" / "000001.txt").write_text("one\n", encoding="utf-8")
    with pytest.raises(
        DragomanError, match=r"000001.txt: does not have as many lines as .*remove it"
    ):
        run(trained, texts, out)
    assert not (out / "a.txt").exists()


def test_files_may_be_added_and_not_changed(trained: Path, texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(trained, texts, out)
    (texts / "new.txt").write_text("red cat\n", encoding="utf-8")
    assert run(trained, texts, out).parts == 1
    (texts / "a.txt").write_text("red cat\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a.txt: has changed; remove .*a.txt to translate it"):
        run(trained, texts, out)
    (out / "a.txt").unlink()
    assert run(trained, texts, out).parts == 1
    assert len(lines(out / "a.txt")) == 1


@pytest.mark.slow
def test_several_models_are_an_ensemble(trained: Path, texts: Path, tmp_path: Path) -> None:
    from dragoman.inference import Glossary

    out, both = tmp_path / "out", [trained, trained / "best"]
    terms = Glossary([("red dog", "der god", 1)])
    translate_directory(both, [texts], out, device="cpu", beam=1, part=60, glossary=terms)
    wanted = load(*both, device="cpu").translate(LINES, beam=1, glossary=terms)
    assert lines(out / "a.txt") == [one.text for one in wanted]
    again = {"device": "cpu", "beam": 1, "part": 60}
    other = Glossary([("red dog", "other", 1)])
    with pytest.raises(ConfigError, match="made with another --glossary"):
        translate_directory(both, [texts], out, glossary=other, **again)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="made with another model"):
        translate_directory(trained, [texts], out, glossary=terms, **again)  # type: ignore[arg-type]


def test_other_settings_and_other_files_are_refused(
    trained: Path, texts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run(trained, texts, out)
    with pytest.raises(ConfigError, match=r"made with another --beam \(1, now 2\)"):
        run(trained, texts, out, beam=2)
    with pytest.raises(ConfigError, match=r"made with another --part \(5, now 6\)"):
        run(trained, texts, out, part=6)
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"a.txt: was not made by this command; choose another --out"
    ):
        run(trained, texts, other)
    assert (other / "a.txt").read_text(encoding="utf-8") == "mine"


def test_what_cannot_be_is_refused_before_the_work(
    trained: Path, texts: Path, tmp_path: Path
) -> None:
    for changes, message in (
        ({"engine": "steam"}, "--engine steam: choose local or ray"),
        ({"workers": 0}, "--workers 0 must be at least 1"),
        ({"part": 0}, "--part 0 must be at least 1"),
        ({"beam": 0}, "beam"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(trained, texts, tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match=r"is inside .*texts; choose a place"):
        run(trained, texts, texts / "out")
    (texts / "bad.txt").write_bytes(b"good\nb\xffd\n")
    with pytest.raises(DataError, match=r"bad.txt, line 2: byte 0xFF"):
        run(trained, texts, tmp_path / "out")
    assert not list((tmp_path / "out" / ".parts").rglob("translated")), "nothing was translated"


def test_two_inputs_of_one_name_are_refused(texts: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"would both become .*a.txt"):
        find_inputs([texts, texts / "a.txt"], tmp_path / "out")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="no files to translate"):
        find_inputs([tmp_path / "nothing"], tmp_path / "out")


def test_a_file_is_cut_at_its_lines(texts: Path, tmp_path: Path) -> None:
    job = Job.open(tmp_path / "out", find_inputs([texts], tmp_path / "out"), {})
    job.cut(15, lambda *_: None)
    sizes = [len(lines(part.source)) for part in job.missing() if part.name == "a.txt"]
    assert sizes == [15, 15, 10]
    text = [line for p in job.missing() if p.name == "a.txt" for line in lines(p.source)]
    assert text == LINES


# --- Ray ---

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs ray; pip install 'dragoman[ray]'"
)

DRIVER = """
import json, sys
from pathlib import Path
from dragoman.workflows.bulk import translate_directory

found = translate_directory(
    Path(sys.argv[1]), [Path(sys.argv[2])], Path(sys.argv[3]),
    engine="ray", workers=2, part=int(sys.argv[4]), device="cpu", beam=4,
)
print(json.dumps({"workers": found.workers, "parts": found.parts, "there": found.there}))
"""
"""Ray warns of itself, and warnings are errors here; so it runs in a process of its own."""


@contextmanager
def driving(trained: Path, texts: Path, out: Path) -> Iterator[subprocess.Popen[str]]:
    """Two workers of Ray at work on a directory; it ends with the block."""
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, trained, texts, out, "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as driver:
        try:
            yield driver
        finally:
            driver.kill()  # its cluster ends with it


def descendants(pid: int) -> Iterator[int]:
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = child.read_text().split()
        except OSError:
            continue
        for one in map(int, found):
            yield one
            yield from descendants(one)


def workers_of(driver: int) -> list[int]:
    """The processes of Ray's workers that translate."""
    found = []
    for pid in descendants(driver):
        try:
            title = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::") and b"MapWorker" in title:
            found.append(pid)
    return found


@needs_ray
@pytest.mark.slow
def test_a_worker_of_ray_that_is_killed_loses_nothing(
    trained: Path, translator: Translator, tmp_path: Path
) -> None:
    texts, out = tmp_path / "texts", tmp_path / "out"
    texts.mkdir()
    many = [line for _ in range(60) for line in LINES]  # 24 parts
    for name, some in (("a.txt", many[:1750]), ("b.txt", many[1750:])):
        (texts / name).write_text("".join(f"{line}\n" for line in some), encoding="utf-8")
    with driving(trained, texts, out) as driver:
        deadline = time.monotonic() + 120
        while len(there := list(out.glob(".parts/*/translated/0*.txt"))) < 3:
            assert driver.poll() is None, driver.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        workers = workers_of(driver.pid)
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        printed, complaints = driver.communicate(timeout=180)
        assert driver.returncode == 0, complaints
    found = json.loads(printed)
    assert found["parts"] == sum(found["workers"].values()) == 25
    killed = found["workers"].get(f"{platform.node()}:{workers[0]}", 0)
    assert killed <= len(there) + 1, "it was killed in the middle, and others did the rest"
    wanted = [one.text for one in translator.translate(LINES, beam=4)] * 60
    assert lines(out / "a.txt") + lines(out / "b.txt") == wanted
    assert len(lines(out / "a.txt")) == 1750


@needs_ray
@pytest.mark.slow
def test_ray_goes_on_where_local_workers_were_stopped(
    trained: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    stop_after(3, trained, texts, out, monkeypatch)
    code = DRIVER.replace("beam=4", "beam=1")
    done = subprocess.run(
        [sys.executable, "-c", code, trained, texts, out, "5"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["parts"], found["there"]) == (9, 3)
    run(trained, texts, tmp_path / "whole")
    for name in ("a.txt", "b.en", "deep/er/c.txt", "empty"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_without_ray_the_message_says_what_to_install(
    trained: Path, texts: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[ray\]'"):
        run(trained, texts, tmp_path / "out", engine="ray")


def test_a_part_that_workers_die_of_is_given_up(tmp_path: Path) -> None:
    from dragoman.workflows.bulk import Part, _Actor

    class Dying:
        def __call__(self, part: Part) -> None:
            raise SystemExit

    actor = _Actor(Dying())  # type: ignore[arg-type]
    row = {"name": "a", "source": str(tmp_path / "a"), "translated": str(tmp_path / "t" / "0.txt")}
    for _ in range(5):
        with pytest.raises(SystemExit):
            actor(row)
    assert "a: 5 workers died while translating this part" in actor(row)["error"]
