"""Bad input: one line on stderr, status 2, nothing half-written, nothing lost."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.run_directory import checkpoint_path, list_checkpoints
from dragoman.system.atomic_files import TEMPORARY_PREFIX
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.checkpoints.checkpoint import Checkpoint

from ..conftest import Result, reversals, write_pairs

Command = Callable[..., Result]


@pytest.fixture(scope="module")
def preset(tiny: Config, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("preset") / "tiny.toml"
    settings = ["training.steps=4", "training.validate_every=2", "training.checkpoint_every=2"]
    file.write_text(tiny.overridden(settings).to_toml(), encoding="utf-8")
    return ["--preset", str(file)]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A corpus that may be spoilt."""
    (tmp_path / "corpus").mkdir()
    return write_pairs(tmp_path / "corpus", reversals(300))


def refusal(result: Result) -> str:
    """The one line of a command that refused."""
    assert result.status == 2, result
    assert result.out == ""
    assert result.err.startswith("dragoman: ")
    assert result.err.endswith("\n")
    assert result.err.count("\n") == 1, result.err
    return result.err.removeprefix("dragoman: ").removesuffix("\n")


# --- corpora ---


def _replace_line(path: Path, number: int, line: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))


def _missing(en: Path, de: Path) -> None:
    en.unlink()


def _directory(en: Path, de: Path) -> None:
    en.unlink()
    en.mkdir()


def _unequal(en: Path, de: Path) -> None:
    de.write_bytes(de.read_bytes() + b"eno erom\n")


def _latin(en: Path, de: Path) -> None:
    _replace_line(de, 7, "schön".encode("latin1"))


def _nul(en: Path, de: Path) -> None:
    _replace_line(en, 9, b"the \0 dog")


def _empty(en: Path, de: Path) -> None:
    en.write_bytes(b"")
    de.write_bytes(b"")


def _blank(en: Path, de: Path) -> None:
    en.write_bytes(b"\n" * 300)
    de.write_bytes(b"\n" * 300)


CORPORA: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "missing": (_missing, "{en}: no such file"),
    "a directory": (_directory, "{en}: is a directory; give a text file"),
    "of different lengths": (_unequal, "{en} has 300 lines and {de} has 301; they must be aligned"),
    "not UTF-8": (_latin, "{de}, line 7: byte 0xF6 (column 4) is not UTF-8; save the text as"),
    "with a NUL": (_nul, "{en}, line 9: a NUL byte (column 5), which text never has; remove it"),
    "empty": (_empty, "there is no text to learn the pieces from; every line is empty"),
    "blank": (_blank, "there is no text to learn the pieces from; every line is empty"),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["train", "prepare", "tokenizer train"])
@pytest.mark.parametrize("what", CORPORA)
def test_a_corpus_that_cannot_be_read_is_refused(
    what: str, verb: str, files: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    spoil, message = CORPORA[what]
    spoil(*files)
    out = tmp_path / "out"
    result = command(*verb.split(), *files, "--out", out, *preset)
    assert refusal(result).startswith(message.format(en=files[0], de=files[1]))
    assert not out.exists() or list(out.iterdir()) == []
    assert not list(tmp_path.rglob(f"{TEMPORARY_PREFIX}*"))


def test_characters_without_room_in_the_vocabulary_are_refused_and_leave_no_run(
    files: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    files[0].write_text("".join(f"{chr(0x4E00 + number) * 2}\n" for number in range(300)))
    out = tmp_path / "run"
    arguments = ["--set", "tokenizer.vocabulary=400", "--out", out]
    assert "too small for the characters" in refusal(command("train", *files, *preset, *arguments))
    assert not out.exists()
    out.mkdir()  # the user's own
    refusal(command("train", *files, *preset, *arguments))
    assert not list(out.iterdir())


@pytest.mark.parametrize("verb", ["prepare", "tokenizer train"])
def test_a_vocabulary_the_corpus_cannot_fill_shrinks_and_says_so(
    verb: str, files: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ["--set", "tokenizer.vocabulary=9000", "--out", out]
    result = command(*verb.split(), *files, *preset, *arguments)
    assert result.status == 0
    pieces = len(Tokenizer.load(out))
    assert 300 < pieces < 9000
    assert result.err == (
        f"dragoman: vocabulary: {pieces:,} pieces instead of 9,000: the corpus has too few "
        "different words\n"
    )
    if verb == "prepare":
        assert Prepared.open(out).config.tokenizer.vocabulary == pieces


def test_training_with_a_vocabulary_the_corpus_cannot_fill_goes_on_with_fewer_pieces(
    files: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    settings = ["--set", "tokenizer.vocabulary=9000", "--set", "training.steps=1"]
    result = command("train", *files, *preset, *settings, "--out", run)
    assert result.status == 0
    assert "pieces instead of 9,000: the corpus has too few different words\n" in result.err
    assert Config.load(run / "model/config.toml").tokenizer.vocabulary < 9000


@pytest.mark.parametrize("what", sorted(CORPORA.keys() - {"empty", "blank"}))
def test_a_validation_set_that_cannot_be_read_is_refused(
    what: str, files: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    (tmp_path / "dev").mkdir()
    dev = write_pairs(tmp_path / "dev", reversals(300, seed=1))
    spoil, message = CORPORA[what]
    spoil(*dev)
    out = tmp_path / "out"
    result = command("prepare", *files, "--valid", *dev, "--out", out, *preset)
    assert refusal(result).startswith(message.format(en=dev[0], de=dev[1]))
    assert not out.exists()
    assert not list(tmp_path.rglob(f"{TEMPORARY_PREFIX}*"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_nobody_may_read_is_refused(
    files: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    files[0].chmod(0)
    result = command("prepare", *files, "--out", tmp_path / "out", *preset)
    assert refusal(result) == f"{files[0]}: cannot be read (Permission denied)"


def test_a_file_the_disk_cannot_read_is_refused(
    files: list[Path], preset: list[str], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Path.open

    def broken(self: Path, *arguments: object, **options: object) -> object:
        if self == files[0]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return plain(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", broken)
    out = files[0].parent / "out"
    result = command("prepare", *files, "--out", out, *preset)
    assert refusal(result) == f"{files[0]}: cannot be read (Input/output error)"
    assert not out.exists()


def test_text_to_translate_that_cannot_be_read_is_refused_after_what_could(
    trained: Path, command: Command, tmp_path: Path
) -> None:
    assert refusal(command("translate", trained, tmp_path / "no")) == (
        f"{tmp_path / 'no'}: no such file"
    )
    result = command("translate", trained, "--window", 1, stdin=b"red cat\n\xff\n")
    assert result.status == 2
    assert result.out.count("\n") == 1
    assert result.err.startswith("dragoman: -, line 2: byte 0xFF (column 1) is not UTF-8")


@pytest.mark.slow
def test_a_line_of_a_megabyte_is_dropped_and_reported(
    files: list[Path], preset: list[str], command: Command, tmp_path: Path
) -> None:
    _replace_line(files[0], 5, b"the dog sees " * 80_000)
    _replace_line(files[1], 6, b"x" * 1_000_000)
    result = command("prepare", *files, "--out", tmp_path / "data", *preset)
    assert result.status == 0
    assert f"{files[0]}, line 5" in result.out
    report = Prepared.open(tmp_path / "data").report
    assert report.dropped["too long"] == 2
    run = tmp_path / "run"
    assert command("train", *files, "--out", run, *preset, "--quiet").status == 0


def test_a_line_of_thousands_of_sentences_is_translated_as_one_line(
    trained: Path, command: Command
) -> None:
    line = b"red cat. " * 2000
    options = ["--beam", 1, "--max-extra", 0]
    result = command("translate", trained, *options, stdin=b"dog\n" + line + b"\ndog\n")
    assert (result.status, result.err) == (0, "")
    assert result.out.count("\n") == 3
    first, _, last = result.out.splitlines()
    assert first == last


# --- configs ---


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("model.heads=3", "model.heads = 3 does not divide model.d_model = 32; try 4, or set "),
        ("model.hedas=4", "--set: there is no setting 'model.hedas'; did you mean 'heads'?"),
        ("training.steps=soon", "--set: training.steps = 'soon' must be a whole number"),
        ("training.device=cuda", 'training.device = "cuda", but no GPU is visible; try "auto"'),
    ],
)
def test_an_impossible_config_is_refused(
    assignment: str,
    message: str,
    files: list[Path],
    preset: list[str],
    command: Command,
    tmp_path: Path,
) -> None:
    if "cuda" in assignment and torch.cuda.is_available():
        pytest.skip("possible here")
    result = command("train", *files, "--out", tmp_path / "run", *preset, "--set", assignment)
    assert refusal(result).startswith(message)
    assert not list(tmp_path.rglob(f"{TEMPORARY_PREFIX}*"))
    assert not (tmp_path / "run/config.toml").exists()


def test_settings_that_do_not_fit_a_run_are_refused_on_resume(run: Path, command: Command) -> None:
    before = snapshot(run / "checkpoints")
    result = command("train", "--resume", run, "--set", "model.d_ff=128")
    assert "does not fit its config" in refusal(result)
    assert snapshot(run / "checkpoints") == before


# --- checkpoints and models ---


@pytest.fixture
def run(trained: Path, prepared: Prepared, tmp_path: Path) -> Path:
    """A finished run that may be damaged."""
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    (copy / "run.json").write_text(json.dumps({"data": str(prepared.path)}))
    return copy


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-50])


def _foreign(file: Path) -> None:
    save_file({"bert": torch.zeros(2)}, file)


def _pickled(file: Path) -> None:
    file.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_truncate, _foreign, _pickled])
def test_only_damaged_or_foreign_checkpoints_are_refused(
    damage: Callable[[Path], None], run: Path, command: Command, tmp_path: Path
) -> None:
    for path in list_checkpoints(run):
        damage(path / "rank-0000.safetensors")
    before = snapshot(run / "checkpoints")
    result = command("train", "--resume", run)
    assert result.status == 2
    assert "Traceback" not in result.err
    *passed_over, last = result.err.splitlines()
    assert len(passed_over) == len(list_checkpoints(run)), "one line for each, and the last"
    assert last == f"dragoman: {run}: every checkpoint is damaged; start the run again"
    assert snapshot(run / "checkpoints") == before
    result = command("average", run, "--out", tmp_path / "mean")
    assert "rank-0000.safetensors: damaged (" in refusal(result)
    assert not (tmp_path / "mean").exists()


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["translate", "info", "evaluate"])
@pytest.mark.parametrize("damage", [_truncate, _foreign, _pickled])
def test_a_damaged_or_foreign_model_is_refused(
    verb: str, damage: Callable[[Path], None], run: Path, command: Command, files: list[Path]
) -> None:
    damage(run / "model/weights.safetensors")
    options = ["--source", files[0], "--reference", files[1]] if verb == "evaluate" else []
    assert str(run / "model") in refusal(command(verb, run / "model", *options))


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        "translate NO",
        "info NO",
        "plot NO",
        "average NO --out OUT",
        "train --resume NO",
        "train NO --out OUT",
        "evaluate NO --source NO --reference NO",
        "tokenizer encode NO",
    ],
)
def test_a_directory_that_is_not_there_or_holds_something_else_is_refused(
    arguments: str, command: Command, tmp_path: Path
) -> None:
    for place in (tmp_path / "nothing", tmp_path / "foreign"):
        if place.name == "foreign":
            place.mkdir()
            (place / "cat.jpg").write_bytes(b"cat")
        words = arguments.replace("NO", str(place)).replace("OUT", str(tmp_path / "out"))
        assert str(place) in refusal(command(*words.split()))
        assert not (tmp_path / "out").exists()


# --- disks ---


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a file system of its own with these options."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options: str) -> Path:
        again = "remount," if os.path.ismount(place) else ""
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", again + options, "tmpfs", str(place)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"cannot mount a file system here: {done.stderr.strip()}")
        return place

    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    yield mount
    if os.path.ismount(place):
        subprocess.run(["umount", "--lazy", str(place)], check=True)  # weights are mapped


def dragoman(*arguments: object) -> Result:
    """A process of its own: what an exit leaves behind is part of the question."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return Result(done.returncode, done.stdout, done.stderr)


KEEP_ALL = ["--set", "training.keep_checkpoints=99", "--set", "training.checkpoint_every=1"]
NO_VALIDATION = ["--set", "training.validate_every=1000"]


@pytest.mark.slow
def test_a_full_disk_is_said_at_once_and_loses_nothing(
    disk: Callable[[str], Path],
    prepared: Prepared,
    preset: list[str],
    command: Command,
    tmp_path: Path,
) -> None:
    place = disk("size=2m")
    run = place / "run"
    options = [*preset, *KEEP_ALL, *NO_VALIDATION, "--set", "training.steps=8", "--quiet"]
    result = dragoman("train", prepared.path, "--out", run, *options)
    saved = len(list_checkpoints(run))
    assert 1 <= saved < 8
    newest = f"the newest checkpoint is step {saved}"
    full = [
        f"{checkpoint_path(run, step)}: no space left on device; " for step in range(saved + 1, 9)
    ]
    said = [f"{line}the run goes on, {newest}" for line in full[:-1]]
    said += [f"dragoman: {full[-1]}{newest}; fix this, then: dragoman train --resume {run}"]
    assert (result.status, result.err.splitlines()) == (2, said)
    assert not list(run.rglob(f"{TEMPORARY_PREFIX}*"))
    before = snapshot(run / "checkpoints")

    # Still full: the same lines, and everything is still there.
    assert command("train", "--resume", run, "--quiet").err.splitlines() == said
    assert snapshot(run / "checkpoints") == before

    disk("size=20m")
    assert command("train", "--resume", run, "--quiet").status == 0
    whole = tmp_path / "whole"
    assert command("train", prepared.path, "--out", whole, *options).status == 0
    ends = [Checkpoint(checkpoint_path(r, 8)).shards.read_all() for r in (run, whole)]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    after = snapshot(run / "checkpoints")
    assert {name: after[name] for name in before} == before


@pytest.mark.slow
def test_a_disk_without_room_for_a_line_of_metrics_stops_training_too(
    disk: Callable[[str], Path], prepared: Prepared, preset: list[str], command: Command
) -> None:
    place = disk("size=4m")
    run = place / "run"
    assert command("train", prepared.path, "--out", run, *preset, "--quiet").status == 0
    before = snapshot(run / "checkpoints")
    free = shutil.disk_usage(place).free
    (place / "filler").write_bytes(b"\0" * (free - 16_384))
    options = ["--set", "training.steps=100000", "--set", "training.checkpoint_every=100000"]
    result = dragoman("train", "--resume", run, "--quiet", *options, *NO_VALIDATION)
    assert refusal(result) == f"{run}: no space left on device; free some space and run again"
    assert snapshot(run / "checkpoints") == before
    (place / "filler").unlink()
    options = ["--set", "training.steps=5"]
    assert command("train", "--resume", run, "--quiet", *options).status == 0


@pytest.mark.slow
def test_a_full_disk_leaves_no_half_of_anything_else(
    disk: Callable[[str], Path],
    trained: Path,
    prepared: Prepared,
    files: list[Path],
    preset: list[str],
    command: Command,
) -> None:
    place = disk("size=64k")
    full = "no space left on device; free some space and run again"
    for words in (
        ["prepare", *files, *preset, "--out", place / "out"],
        ["train", *files, *preset, "--out", place / "out"],
        ["average", trained, "--out", place / "out"],
    ):
        assert refusal(command(*words)).endswith(full)
        assert list(place.rglob("*")) in ([], [place / "out"])
        shutil.rmtree(place / "out", ignore_errors=True)
    with (place / "text").open("wb") as text:  # standard output
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "tokenizer", "encode", str(prepared.path)],
            input=b"the dog sees\n" * 20_000,
            stdout=text,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.decode() == f"dragoman: standard output: {full}\n"


@pytest.mark.slow
def test_a_read_only_disk_is_refused(
    disk: Callable[[str], Path], trained: Path, prepared: Prepared, command: Command, preset: object
) -> None:
    place = disk("size=4m")
    shutil.copytree(trained, place / "run")
    (place / "run/run.json").write_text(json.dumps({"data": str(prepared.path)}))
    disk("ro")
    before = snapshot(place)
    advice = "the file system is read-only; choose another place"
    result = command("average", trained, "--out", place / "out")
    assert refusal(result) == f"{place / 'out'}: {advice}"
    result = command("train", "--resume", place / "run", "--set", "training.steps=99")
    assert refusal(result).endswith(advice)
    assert snapshot(place) == before
    assert command("translate", place / "run", stdin=b"dog\n").status == 0
