"""Distillation: what is translated, what the student learns from, shards, going on after a kill."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU

from dragoman.config import Config, load_preset
from dragoman.data.prepare import Prepared
from dragoman.data.readers.parallel import ParallelFiles
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.inference import load
from dragoman.training.run import train
from dragoman.workflows.distill import Plan, Result, distill
from dragoman.workflows.stages import exclusive_lock

WORDS = ("red", "blue", "big", "small", "dog", "cat", "house", "tree", "sees", "eats", "old", "the")
SETTINGS = [
    "tokenizer.vocabulary=330",
    "data.max_length=40",
    "data.row_length=64",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.d_model=32",
    "model.d_ff=64",
    "model.heads=2",
    "training.steps=120",
    "training.batch_tokens=512",
    "training.schedule=constant",
    "training.learning_rate=0.01",
    "training.warmup_steps=5",
    "training.validate_every=200",
    "training.checkpoint_every=200",
    "training.validate_sentences=10",
    "training.threads=1",
    "training.device=cpu",
    "search.beam=1",
]


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Different sentences, and their words spelt backwards."""
    draw = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        words = draw.choices(WORDS, k=draw.randint(3, 6))
        found[" ".join(words)] = " ".join(word[::-1] for word in words)
    return list(found.items())


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def corpus(directory: Path, name: str, some: list[tuple[str, str]]) -> list[Path]:
    codes = ("en", "de")
    return [write(directory / f"{name}.{codes[i]}", [p[i] for p in some]) for i in (0, 1)]


@dataclasses.dataclass
class Files:
    teachers: list[Path]
    train: list[Path]
    valid: list[Path]
    pairs: list[tuple[str, str]]

    def plan(self, **changes: Any) -> Plan:
        known: dict[str, Any] = {
            "teachers": self.teachers[:1],
            "files": self.train,
            "valid": self.valid,
            "beam": 1,
            "window": 50,
            "assignments": ["training.steps=4", "training.checkpoint_every=2"],
        }
        return Plan(**(known | changes))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Two teachers on one prepared corpus; do not write."""
    directory = tmp_path_factory.mktemp("distill")
    every = pairs(320, 1)
    some = corpus(directory, "train", every[:300])
    valid = corpus(directory, "valid", every[300:])
    config = Config().overridden(SETTINGS)
    first = directory / "first"
    train(config, *some, valid=valid, run=first, quiet=True)
    other = config.overridden(["training.seed=2", "training.steps=90"])
    train(other, first / "data", run=directory / "second", quiet=True)
    return Files([first, directory / "second"], some, valid, every[:300])


def run(plan: Plan, out: Path, **options: Any) -> Result:
    return distill(plan, out, device="cpu", quiet=True, **options)


def translated(out: Path) -> list[str]:
    files = sorted((out / "translated").glob("*.txt"))
    return [line for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


# --- the text ---


@pytest.mark.slow
def test_sources_are_dropped_for_what_they_are_and_counted(files: Files, tmp_path: Path) -> None:
    valid = files.valid[0].read_text(encoding="utf-8").splitlines()[0]
    some = [
        ("red dog", "der god"),
        ("", "x"),
        ("red  dog", "other"),
        (valid, "y"),
        ("a " * 60, "z"),
    ]
    test = corpus(tmp_path, "test", [("blue cat", "eulb tac")])
    raw = write(tmp_path / "raw", ["blue cat", "old tree", "red dog"])
    plan = files.plan(files=corpus(tmp_path, "few", some), test=test, text=[raw])
    found = run(plan, tmp_path / "out", translate_only=True)
    assert found.text == {
        "read": 8,
        "to translate": 2,
        "empty": 1,
        "too long": 1,
        "in validation or test": 2,
        "duplicate": 2,
    }
    assert lines(tmp_path / "out" / "text" / "source.txt") == ["red dog", "old tree"]
    assert lines(tmp_path / "out" / "text" / "reference.txt") == ["der god", ""]
    assert lines(tmp_path / "out" / "pairs" / "source.txt") == ["red dog", "old tree"]


@pytest.mark.slow
def test_nothing_to_translate_is_refused(files: Files, tmp_path: Path) -> None:
    plan = files.plan(files=files.valid)
    with pytest.raises(
        DataError, match=r"nothing is left to translate \(empty: 0, too long: 0, in"
    ):
        run(plan, tmp_path / "out", translate_only=True)
    assert not (tmp_path / "out" / "text").exists()


# --- translating ---


def test_the_pairs_are_the_sources_and_what_the_teacher_says(files: Files, tmp_path: Path) -> None:
    found = run(files.plan(beam=3), tmp_path / "out", translate_only=True)
    sources = [source for source, _ in files.pairs]
    teacher = load(files.teachers[0], device="cpu")
    wanted = [one.text for one in teacher.translate(sources, beam=3, raw=True)]
    assert found.pairs == tmp_path / "out" / "pairs"
    assert lines(found.pairs / "source.txt") == sources
    assert lines(found.pairs / "target.txt") == wanted
    assert wanted != [target for _, target in files.pairs], "the test needs a teacher who errs"
    assert len(list((tmp_path / "out" / "translated").iterdir())) == 6
    assert not (tmp_path / "out" / "data").exists()


def test_several_teachers_are_an_ensemble(files: Files, tmp_path: Path) -> None:
    few = corpus(tmp_path, "few", files.pairs[:60])
    both = files.plan(teachers=files.teachers, files=few)
    run(both, tmp_path / "both", translate_only=True)
    teacher = load(*files.teachers, device="cpu")
    sources = [source for source, _ in files.pairs[:60]]
    assert translated(tmp_path / "both") == [
        one.text for one in teacher.translate(sources, beam=1, raw=True)
    ]
    alone_ = load(files.teachers[0], device="cpu").translate(sources, beam=1, raw=True)
    assert translated(tmp_path / "both") != [one.text for one in alone_]


def test_of_several_candidates_the_nearest_to_the_reference_is_taken(
    files: Files, tmp_path: Path
) -> None:
    few = corpus(tmp_path, "few", files.pairs[:40])
    raw = write(tmp_path / "raw", ["cat cat dog", "the the the old"])
    plan = files.plan(files=few, text=[raw], beam=4, n_best=4)
    run(plan, tmp_path / "out", translate_only=True)
    teacher = load(files.teachers[0], device="cpu")
    bleu = BLEU(effective_order=True)
    changed = 0
    for (source, reference), text in zip(
        files.pairs[:40], translated(tmp_path / "out"), strict=False
    ):
        best = teacher.translate(source, beam=4, n_best=4, raw=True)
        candidates = [best.text, *(one.text for one in best.alternatives)]
        scores = [bleu.sentence_score(one, [reference]).score for one in candidates]
        assert bleu.sentence_score(text, [reference]).score == max(scores)
        changed += text != best.text
    assert changed, "the test needs a sentence whose nearest candidate is not the first"
    first = teacher.translate(["cat cat dog", "the the the old"], beam=4, raw=True)
    assert translated(tmp_path / "out")[40:] == [one.text for one in first]


# --- the student ---


@pytest.mark.slow
def test_a_student_learns_from_the_teacher_with_its_pieces(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = run(files.plan(config=load_preset("6-2")), out, translate_only=True)
    small = ["model.d_model=32", "model.d_ff=64", "model.heads=2", "training.device=cpu"]
    small += ["training.steps=3", "training.batch_tokens=512", "training.threads=1"]
    plan = files.plan(config=load_preset("6-2"), assignments=small)
    found = run(plan, out)
    assert found.model == out / "run" / "model"
    student, teacher = load(found.model, device="cpu"), load(files.teachers[0], device="cpu")
    assert student.tokenizer == teacher.tokenizer
    assert student.config.data.languages == ("en", "de")
    assert student.config.data.max_length == 40
    layers = (student.config.model.encoder_layers, student.config.model.decoder_layers)
    assert (layers, student.config.search.beam) == ((6, 2), 1)
    data = Prepared.open(out / "data")
    assert data.valid_target == lines(files.valid[1]), "validation is by people"
    learned = [teacher.tokenizer.decode(data.train.target(i)) for i in range(len(data.train))]
    assert set(learned) <= set(lines(out / "pairs" / "target.txt"))


@pytest.mark.slow
def test_originals_may_be_kept(files: Files, tmp_path: Path) -> None:
    few = corpus(tmp_path, "few", files.pairs[:60])
    for name, keep in (("without", False), ("with", True)):
        run(files.plan(files=few, keep_originals=keep), tmp_path / name)
    sizes = [len(Prepared.open(tmp_path / name / "data").train) for name in ("without", "with")]
    there = lines(tmp_path / "with" / "pairs" / "target.txt")
    different = sum(text != target for text, (_, target) in zip(there, files.pairs, strict=False))
    assert different
    assert sizes[1] == sizes[0] + different


@pytest.mark.slow
def test_students_share_what_was_translated_and_prepared(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(files.plan(name="a"), out)
    made = {path: path.stat().st_mtime_ns for path in out.glob("[tpd]*/*")}
    assert made
    deeper = ["training.steps=2", "model.encoder_layers=2"]
    found = run(files.plan(name="b", assignments=deeper), out)
    assert found.model == out / "b" / "model"
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert run(files.plan(name="a"), out).outcome is None, "it is there already"
    assert json.loads((out / "distill.json").read_text())["b"]["model.encoder_layers"] == 2
    with pytest.raises(
        ConfigError, match=r"b: made with another model.encoder_layers \(2, now 1\)"
    ):
        run(files.plan(name="b"), out)
    with pytest.raises(ConfigError, match=r"remove translated, pairs, data, a and b in it"):
        run(files.plan(name="b", assignments=deeper, beam=2), out)


@pytest.mark.slow
def test_a_run_that_was_interrupted_is_resumed(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(files.plan(), out)
    weights = (out / "run" / "model" / "weights.safetensors").read_bytes()
    for name in ("model", "checkpoints/step-00000004"):
        (out / "run" / name).rename(tmp_path / Path(name).name)
    found = run(files.plan(), out)
    assert found.outcome is not None
    assert (out / "run" / "model" / "weights.safetensors").read_bytes() == weights


# --- shards, and going on ---


@pytest.mark.slow
def test_shards_share_the_windows_and_the_last_assembles(files: Files, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    first = run(files.plan(shards=2, shard=2), out)
    assert (first.missing, first.pairs, first.model) == (3, None, None)
    names = [path.name for path in sorted((out / "translated").iterdir())]
    assert names == ["000001.txt", "000003.txt", "000005.txt"]
    assert not (out / "pairs").exists()
    last = run(files.plan(shards=2, shard=1), out)
    assert last.missing == 0
    assert last.model == out / "run" / "model"
    run(files.plan(), whole, translate_only=True)
    assert (out / "pairs" / "target.txt").read_bytes() == (
        whole / "pairs" / "target.txt"
    ).read_bytes()


def test_shards_at_once_make_the_same(files: Files, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    found: list[Result] = []

    def work(shard: int) -> None:
        plan = files.plan(shards=3, shard=shard, window=20)
        found.append(distill(plan, out, device="cpu", translate_only=True))

    threads = [threading.Thread(target=work, args=(shard,)) for shard in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    run(files.plan(window=20), whole, translate_only=True)
    assert lines(out / "pairs" / "target.txt") == lines(whole / "pairs" / "target.txt")
    assert not list(out.rglob(".tmp-*"))


def test_a_dead_shard_is_finished_by_anyone(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(files.plan(shards=3, shard=1), out, translate_only=True).missing == 4
    there = {path: path.stat().st_mtime_ns for path in (out / "translated").iterdir()}
    (out / "translated" / ".tmp-000004.txt-x").write_text("half a", encoding="utf-8")
    found = run(files.plan(), out, translate_only=True)
    assert found.pairs is not None
    assert {path: path.stat().st_mtime_ns for path in there} == there
    assert not list((out / "translated").glob(".tmp-*"))


@pytest.mark.slow
def test_of_two_that_would_train_one_student_one_does(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    messages: list[str] = []
    with exclusive_lock(out / ".lock-run", wait=False) as lock:
        assert lock is not None
        found = distill(files.plan(), out, device="cpu", tell=messages.append)
        assert (found.pairs, found.model) == (out / "pairs", None)
        assert messages[-1] == f"{out / 'run'}: another process is training it"
        assert run(files.plan(name="other"), out).model is not None
    assert run(files.plan(), out).model is not None


DRIVER = """
import sys
from pathlib import Path
from dragoman.workflows.distill import Plan, distill

teacher, source, target, out = map(Path, sys.argv[1:])
plan = Plan(teachers=[teacher], files=[source, target], beam=1, window=5)
distill(plan, out, device="cpu", translate_only=True)
"""


@pytest.mark.slow
def test_killed_while_translating_it_goes_on_and_ends_with_the_same_pairs(
    files: Files, tmp_path: Path
) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, files.teachers[0], *files.train, out],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(list((out / "translated").glob("*.txt"))) < 2:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    there = {path: path.stat().st_mtime_ns for path in (out / "translated").glob("0*.txt")}
    assert 2 <= len(there) < 60
    plan = files.plan(window=5, valid=())
    run(plan, out, translate_only=True)
    assert {path: path.stat().st_mtime_ns for path in there} == there
    run(plan, whole, translate_only=True)
    for name in ("source.txt", "target.txt"):
        assert lines(out / "pairs" / name) == lines(whole / "pairs" / name)


# --- what is refused ---


def test_other_settings_are_refused_from_the_stage_on_that_they_change(
    files: Files, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run(files.plan(), out, translate_only=True)
    with pytest.raises(
        ConfigError,
        match=r"translated: made with another --beam \(1, now 2\); .* remove translated and pairs",
    ):
        run(files.plan(beam=2), out, translate_only=True)
    with pytest.raises(ConfigError, match=r"translated: made with another teacher; "):
        run(files.plan(teachers=files.teachers), out, translate_only=True)
    with pytest.raises(ConfigError, match=r"text: made with another corpus; "):
        run(files.plan(files=files.valid), out, translate_only=True)
    run(files.plan(keep_originals=True), out, translate_only=True)  # nothing of it is made yet


def test_a_directory_of_something_else_is_refused(files: Files, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ConfigError, match=r"not made by dragoman distill; choose another --out"):
        run(files.plan(), tmp_path)


def test_teachers_of_other_pieces_are_refused(files: Files, trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has other pieces than .*an ensemble is trained on one"):
        run(files.plan(teachers=[files.teachers[0], trained]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teachers": []}, "give a teacher"),
        ({"beam": 0}, "--beam 0 must be at least 1"),
        ({"n_best": 3, "beam": 2}, "--n-best 3 is above --beam 2"),
        ({"shards": 2, "shard": 3}, "--shard 3 of --shards 2: they are counted from 1"),
        ({"name": "data"}, "--name data: cannot be a run's directory here"),
        ({"name": "../x"}, "cannot be a run's directory here"),
        ({"assignments": ["tokenizer.vocabulary=9"]}, "the pieces are the teacher's"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(
    files: Files, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        files.plan(**changes)


def test_training_needs_validation_pairs(files: Files, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--valid is missing"):
        run(files.plan(valid=()), tmp_path / "out")


# --- the command and the presets ---


def test_the_command_trains_a_student(files: Files, tmp_path: Path) -> None:
    import typer
    from typer.testing import CliRunner

    from dragoman.cli.workflows import distill as command

    app = typer.Typer()
    app.command()(command)
    arguments = [files.teachers[0], *files.train, "--out", tmp_path / "out", "--beam", "1"]
    for name, value in (("--valid", files.valid), ("--set", ["training.steps=2"])):
        arguments += [word for one in value for word in (name, one)]
    found = CliRunner().invoke(app, list(map(str, [*arguments, "--device", "cpu", "--quiet"])))
    assert found.exit_code == 0, found.output
    model = tmp_path / "out" / "run" / "model"
    assert found.stdout == f"{model}\n"
    again = CliRunner().invoke(app, list(map(str, [*arguments, "--device", "cpu", "--json"])))
    assert json.loads(again.stdout)["model"] == str(model)
    pairs_ = ParallelFiles(tmp_path / "out/pairs/source.txt", tmp_path / "out/pairs/target.txt")
    assert sum(1 for _ in pairs_) == 300


@pytest.mark.parametrize(
    ("name", "layers", "width"),
    [("12-1", (12, 1), 512), ("6-2", (6, 2), 512), ("6-2-tiny", (6, 2), 256)],
)
def test_a_student_is_deep_where_it_reads_and_shallow_where_it_writes(
    name: str, layers: tuple[int, int], width: int
) -> None:
    model = load_preset(name).model
    assert (model.encoder_layers, model.decoder_layers) == layers
    assert model.d_model == width
