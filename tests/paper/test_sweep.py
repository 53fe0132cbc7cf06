"""Many runs as one: done once, continued after any end, never mixed."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import ConfigError, DataError, TrainingError
from dragoman.model_directory import load_model
from dragoman.models import count_parameters
from dragoman.paper import sweep
from dragoman.paper.sweep import Trial, TrialResult

pytestmark = pytest.mark.slow

STEPS = 30


def trial(tiny: Config, name: str, *assignments: str) -> Trial:
    settings = [f"training.steps={STEPS}", "training.validate_every=1000", "training.average=1"]
    return Trial(name, tiny.overridden([*settings, *assignments]))


@pytest.fixture(scope="module")
def trials(tiny: Config) -> list[Trial]:
    return [
        trial(tiny, "one", "training.checkpoint_every=5"),
        trial(tiny, "two", "training.seed=2"),
    ]


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What `swept` says."""
    return []


@pytest.fixture(scope="module")
def swept(
    trials: list[Trial],
    prepared: Prepared,
    said: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> list[TrialResult]:
    """An undisturbed sweep; do not write to it."""
    return sweep.run_sweep(
        trials, prepared.path, tmp_path_factory.mktemp("sweep"), print_message=said.append
    )


def weights(found: TrialResult) -> bytes:
    return (found.run_directory / "model/weights.safetensors").read_bytes()


def no_child(*arguments: object, **options: object) -> None:
    raise AssertionError("a process was started")


def copied(what: Path, where: Path) -> Path:
    return Path(shutil.copytree(what, where))


# --- one after another ---


def test_every_trial_is_trained_and_measured(
    swept: list[TrialResult], trials: list[Trial], prepared: Prepared, said: list[str]
) -> None:
    assert [found.name for found in swept] == ["one", "two"]
    for found, asked in zip(swept, trials, strict=True):
        assert found.failure is None
        assert found.model is not None
        assert load_model(found.model).config == found.config
        assert found.config.model == asked.config.model
        assert found.config.training == asked.config.training
        assert found.steps == STEPS
        assert found.parameters == count_parameters(asked.config.model, len(prepared.tokenizer))
        assert 400 * STEPS < found.target_tokens < 512 * STEPS
        assert 0 < found.seconds < 60
        assert found.tokens_per_second > 100
        assert found.perplexity is not None
        assert 1 < found.perplexity < 330
        assert found.bleu is not None
        assert not (found.run_directory / "checkpoints").exists(), "they are not needed any more"
    assert weights(swept[0]) != weights(swept[1])
    assert [line.split(" ")[0] for line in said] == ["one:", "two:"]
    assert f"perplexity {swept[0].perplexity:.3f} after 30 steps" in said[0]
    assert said[0].endswith("1 of 2 trials left")
    assert said[1].endswith("0 of 2 trials left")


def test_the_figures_are_those_of_the_run(swept: list[TrialResult]) -> None:
    run = swept[0].run_directory
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    speeds = sorted(line["tokens_per_second"] for line in lines if line["kind"] == "train")
    assert len(speeds) == STEPS
    assert swept[0].tokens_per_second == (speeds[14] + speeds[15]) / 2
    assert swept[0].seconds == [line for line in lines if line["kind"] == "train"][-1]["seconds"]


def test_what_is_done_is_not_done_again(
    swept: list[TrialResult],
    trials: list[Trial],
    prepared: Prepared,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweep.subprocess, "Popen", no_child)
    said: list[str] = []
    out = swept[0].run_directory.parent
    assert sweep.run_sweep(trials, prepared.path, out, print_message=said.append) == swept
    assert said == [f"{out}: 2 of 2 trials are done already"]


def test_each_is_handed_on_while_the_others_go_on(
    trials: list[Trial], prepared: Prepared, swept: list[TrialResult], tmp_path: Path
) -> None:
    out = copied(swept[0].run_directory.parent, tmp_path / "sweep")
    shutil.rmtree(out / "two")
    handed: list[tuple[str, bool]] = []

    def then(found: TrialResult) -> None:
        handed.append((found.name, (out / "two/model").exists()))

    sweep.run_sweep(trials, prepared.path, out, print_message=lambda line: None, on_trained=then)
    assert handed == [("one", False), ("two", True)]


def test_other_settings_are_refused_before_anything_starts(
    swept: list[TrialResult],
    trials: list[Trial],
    tiny: Config,
    prepared: Prepared,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweep.subprocess, "Popen", no_child)
    changed = [trial(tiny, "new"), trials[0], trial(tiny, "two", "training.seed=3")]
    out = swept[0].run_directory.parent
    with pytest.raises(ConfigError, match=r"two was begun with other settings; remove .*/two to"):
        sweep.run_sweep(changed, prepared.path, out, print_message=print)
    assert not (out / "new.toml").exists()


def test_another_corpus_is_refused_wherever_it_is(
    swept: list[TrialResult], trials: list[Trial], prepared: Prepared, tmp_path: Path
) -> None:
    out = swept[0].run_directory.parent
    for file in ("train/target.ids", "valid/source.txt"):
        other = copied(prepared.path, tmp_path / file.partition("/")[0])
        content = bytearray((other / file).read_bytes())
        content[:2] = reversed(content[:2])
        (other / file).write_bytes(content)
        with pytest.raises(DataError, match=r"one: begun on another corpus than .*; remove"):
            sweep.run_sweep(trials, other, out, print_message=print)


def test_a_trial_without_a_fingerprint_is_known_by_its_place(
    swept: list[TrialResult], trials: list[Trial], prepared: Prepared, tmp_path: Path
) -> None:
    copy = copied(prepared.path, tmp_path / "copy")
    out = copied(swept[0].run_directory.parent, tmp_path / "out")
    for each in trials:
        (out / f"{each.name}.toml").write_text(each.config.to_toml(), encoding="utf-8")
        place = json.dumps({"data": str(prepared.path)})
        (out / each.name / "run.json").write_text(place, encoding="utf-8")
    assert sweep.run_sweep(trials, prepared.path, out, print_message=print)[0].bleu == swept[0].bleu
    with pytest.raises(DataError, match="one: begun on another corpus"):
        sweep.run_sweep(trials, copy, out, print_message=print)


def test_a_directory_of_somebody_else_is_refused(
    trials: list[Trial], prepared: Prepared, tmp_path: Path
) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "two/letter.txt").touch()
    with pytest.raises(TrainingError, match="two: not a trial of a sweep"):
        sweep.run_sweep(trials, prepared.path, tmp_path, print_message=print)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "two"]


def test_two_sweeps_in_one_place_are_refused(
    trials: list[Trial], prepared: Prepared, tmp_path: Path
) -> None:
    with (tmp_path / ".lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(TrainingError, match="another sweep, or a run that one has left behind"):
            sweep.run_sweep(trials, prepared.path, tmp_path, print_message=print)


def test_what_is_no_prepared_corpus_is_refused(trials: list[Trial], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a prepared corpus"):
        sweep.run_sweep(trials, tmp_path, tmp_path / "out", print_message=print)
    with pytest.raises(ConfigError, match="jobs = 0"):
        sweep.run_sweep(trials, tmp_path, tmp_path / "out", jobs=0, print_message=print)


# --- carried to another place ---

CARRIED = ("config.toml", "run.json", "metrics.jsonl", "model/card.json", "model/config.toml")


def test_the_small_files_of_a_finished_trial_are_enough_anywhere(
    swept: list[TrialResult],
    trials: list[Trial],
    prepared: Prepared,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = swept[0].run_directory.parent, tmp_path / "far/away"
    for each in trials:
        for name in (f"{each.name}.toml", *(f"{each.name}/{file}" for file in CARRIED)):
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here / name, there / name)
    data = copied(prepared.path, tmp_path / "data")
    monkeypatch.setattr(sweep.subprocess, "Popen", no_child)
    found = sweep.run_sweep(trials, data, there, print_message=print)
    moved = [
        dataclasses.replace(
            each, run_directory=there / each.name, model=there / each.name / "model"
        )
        for each in swept
    ]
    assert found == moved


@pytest.mark.thorough
def test_what_was_interrupted_goes_on_in_another_place_and_ends_the_same(
    swept: list[TrialResult],
    trials: list[Trial],
    prepared: Prepared,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it began there is no corpus any more."""
    data = copied(prepared.path, tmp_path / "data")
    process = start(trials[:1], 1, data)
    wait_for(tmp_path / "out/one/checkpoints/step-00000005/state.json", process)
    os.killpg(process.pid, signal.SIGKILL)
    wait_until_nobody_is_left(tmp_path / "out")
    there = copied(tmp_path / "out", tmp_path / "far/away/out")
    data = data.rename(tmp_path / "far/corpus")
    begun: list[list[str]] = []
    popen = subprocess.Popen

    def record(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        begun.append(command)
        return popen(command, **options)

    monkeypatch.setattr(sweep.subprocess, "Popen", record)
    [found] = sweep.run_sweep(trials[:1], data, there, print_message=print)
    assert ["--resume" in command for command in begun] == [True]
    assert weights(found) == weights(swept[0])


# --- side by side ---


@pytest.mark.thorough
def test_two_at_a_time_are_the_same_and_one_that_fails_hinders_no_other(
    swept: list[TrialResult], trials: list[Trial], tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    bad = trial(tiny, "bad", "training.device=cuda")
    said: list[str] = []
    found = sweep.run_sweep(
        [bad, *trials], prepared.path, tmp_path, jobs=2, print_message=said.append
    )
    assert [f.name for f in found] == ["bad", "one", "two"]
    assert list(map(weights, found[1:])) == list(map(weights, swept))
    assert [(f.bleu, f.perplexity) for f in found[1:]] == [(f.bleu, f.perplexity) for f in swept]
    assert found[0].failure is not None
    assert "CUDA" in found[0].failure or "GPU" in found[0].failure
    assert found[0].model is None
    assert any(line.startswith(f"bad: failed: {found[0].failure}; ") for line in said)
    assert said[-1].startswith("1 of 3 trials failed (bad); see ")
    again = sweep.run_sweep([bad, *trials], prepared.path, tmp_path, print_message=said.append)
    assert again[0].failure == found[0].failure, "it was tried again"
    assert again[1:] == found[1:]
    assert f"{tmp_path}: 2 of 3 trials are done already" in said


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core has nothing to share")
def test_several_at_a_time_share_the_cores(
    trials: list[Trial], prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []

    class Child:
        def __init__(self, *arguments: object, env: dict[str, str], **options: object) -> None:
            seen.append(env)

        def poll(self) -> int:
            return 1

    monkeypatch.setattr(sweep.subprocess, "Popen", Child)
    monkeypatch.setattr(sweep, "available_cores", lambda: 7)
    monkeypatch.delenv("OMP_NUM_THREADS")
    sweep.run_sweep(trials, prepared.path, tmp_path, jobs=5, print_message=print)
    sweep.run_sweep(trials, prepared.path, tmp_path, jobs=1, print_message=print)
    assert [env.get("OMP_NUM_THREADS") for env in seen] == ["3", "3", None, None]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    sweep.run_sweep(trials, prepared.path, tmp_path, jobs=2, print_message=print)
    assert seen[-1]["OMP_NUM_THREADS"] == "2", "who has set it knows why"


# --- stopped ---

DRIVER = """
import sys
from pathlib import Path
from dragoman.config import Config
from dragoman.paper.sweep import Trial, run_sweep
out, data, jobs, *names = sys.argv[1:]
trials = [Trial(Path(name).stem, Config.load(Path(name))) for name in names]
def show(line):
    print(line, flush=True)
run_sweep(trials, Path(data), Path(out), jobs=int(jobs), print_message=show)
"""


Start: TypeAlias = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(prepared: Prepared, tmp_path: Path) -> Iterator[Start]:
    """Begin a sweep in tmp_path/out, in a process group of its own that does not outlive a test."""
    begun: list[subprocess.Popen[str]] = []

    def start(
        trials: Sequence[Trial], jobs: int, data: Path = prepared.path
    ) -> subprocess.Popen[str]:
        files = [tmp_path / f"{each.name}.toml" for each in trials]
        for file, each in zip(files, trials, strict=True):
            file.write_text(each.config.to_toml(), encoding="utf-8")
        command = [sys.executable, "-c", DRIVER, tmp_path / "out", data, jobs, *files]
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def wait_for(what: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not what.exists() or not what.stat().st_size:
        assert process.poll() is None, "the sweep has ended"
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.01)


def wait_until_nobody_is_left(out: Path, seconds: float = 10.0) -> None:
    """Every run of a sweep holds the lock as long as it lives."""
    deadline = time.monotonic() + seconds
    with (out / ".lock").open("wb") as file:
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                assert time.monotonic() < deadline, "a run is left"
                time.sleep(0.01)


@pytest.mark.thorough  # test_drill.py kills a run
def test_killed_it_goes_on_where_it_was_and_ends_the_same(
    swept: list[TrialResult], trials: list[Trial], prepared: Prepared, start: Start, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start(trials, 1)
    wait_for(out / "one/checkpoints/step-00000005/state.json", process)
    os.killpg(process.pid, signal.SIGSTOP)
    process.kill()
    process.wait()
    with pytest.raises(
        TrainingError,
        match="left behind, is still working here; wait until it",
    ):
        sweep.run_sweep(trials, prepared.path, out, print_message=print)
    os.killpg(process.pid, signal.SIGKILL)
    wait_until_nobody_is_left(out)
    assert not (out / "one/model").exists()
    begun = (out / "one/run.json").stat().st_mtime_ns
    found = sweep.run_sweep(trials, prepared.path, out, print_message=print)
    assert (out / "one/run.json").stat().st_mtime_ns == begun, "it began anew"
    assert list(map(weights, found)) == list(map(weights, swept))
    assert [(f.target_tokens, f.bleu) for f in found] == [(f.target_tokens, f.bleu) for f in swept]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_never_gets_the_same_signal_from_the_terminal_and_from_the_sweep(
    number: signal.Signals,
    trials: list[Trial],
    prepared: Prepared,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would obey the second of a kind at once, and save nothing."""
    sent: list[int] = []

    class Child:
        def __init__(self, *arguments: object, **options: object) -> None:
            pass

        def poll(self) -> None:
            signal.raise_signal(number)

        def send_signal(self, number: int) -> None:
            sent.append(number)

        def wait(self, timeout: float = 0.0) -> None:
            pass

        kill = wait

    monkeypatch.setattr(sweep.subprocess, "Popen", Child)
    with pytest.raises(SystemExit) as left:
        sweep.run_sweep(trials, prepared.path, tmp_path, print_message=print)
    assert left.value.code == 128 + number
    assert sent == [{signal.SIGINT: signal.SIGTERM, signal.SIGTERM: signal.SIGINT}[number]]


@pytest.mark.thorough  # test_signals.py has a run save and end; above, each gets the right signal
@pytest.mark.parametrize(("number", "everyone"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_signal_makes_every_run_save_and_end(
    number: signal.Signals, everyone: bool, tiny: Config, start: Start, tmp_path: Path
) -> None:
    """Whether a terminal sends it to all of them, or somebody to the sweep alone."""
    long = ["training.steps=100000", "training.checkpoint_every=100000"]
    trials = [trial(tiny, name, *long) for name in ("one", "two", "three")]
    out = tmp_path / "out"
    process = start(trials, 2)
    for name in ("one", "two"):
        wait_for(out / name / "metrics.jsonl", process)
    if everyone:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said == (f"{out}: stopped with 0 of 3 trials done; run the same command to continue\n")
    wait_until_nobody_is_left(out, seconds=0.0)
    for name in ("one", "two"):
        assert len(list((out / name / "checkpoints").glob("step-*/state.json"))) == 1
    assert not (out / "three").exists()
