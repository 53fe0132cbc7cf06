"""Training in a process that is killed or gets signals; several at once are in test_torchrun.py."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.run_directory import checkpoint_path, list_checkpoints
from dragoman.training.checkpoints.checkpoint import Checkpoint
from dragoman.training.run import train

from ..conftest import Result

pytestmark = pytest.mark.slow

Command = Callable[..., Result]

STEPS = 60
SETTINGS = [
    f"training.steps={STEPS}",
    "training.validate_every=20",
    "training.checkpoint_every=5",
    "data.subword_sampling=0.1",
    "training.ema=0.9",
]
COMMAND = [sys.executable, "-m", "dragoman", "train"]


@pytest.fixture(scope="module")
def preset(tiny: Config, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The tiny config as an option."""
    file = tmp_path_factory.mktemp("preset") / "tiny.toml"
    file.write_text(tiny.to_toml(), encoding="utf-8")
    return ["--preset", str(file)]


def options(assignments: list[str]) -> list[str]:
    return [word for assignment in assignments for word in ("--set", assignment)]


def start(*arguments: str | Path, command: list[str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*(command or COMMAND), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    out, err = process.communicate(timeout=240)
    assert process.returncode == status, err
    return out + err


def wait_for_checkpoint(process: subprocess.Popen[str], run: Path, more_than: int = 0) -> None:
    deadline = time.monotonic() + 120
    while len(list_checkpoints(run)) <= more_than and process.poll() is None:
        assert time.monotonic() < deadline, "no checkpoint came"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def whole(tiny: Config, prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run nobody disturbed."""
    run = tmp_path_factory.mktemp("whole") / "run"
    train(tiny.overridden(SETTINGS), prepared.path, run=run, quiet=True)
    return run


def state_at(run: Path, step: int) -> dict[str, Tensor]:
    return Checkpoint(checkpoint_path(run, step)).shards.read_all()


def assert_same_end(run: Path, whole: Path) -> None:
    expected, found = state_at(whole, STEPS), state_at(run, STEPS)
    assert expected.keys() == found.keys()
    assert [name for name in expected if not torch.equal(expected[name], found[name])] == []
    models = [(r / "model/weights.safetensors").read_bytes() for r in (run, whole)]
    assert models[0] == models[1]
    assert not list(run.rglob(".tmp*")), "nothing half-written is left"


def steps_recorded(run: Path) -> list[int]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry["step"] for entry in map(json.loads, lines) if entry["kind"] == "train"]


@pytest.mark.thorough  # test_drill.py has more of it, and less of all that is around it
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_random_moments_it_ends_bit_for_bit_the_same(
    seed: int, prepared: Prepared, preset: list[str], whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    draw = random.Random(seed)
    process = start(prepared.path, "--out", run, *preset, *options(SETTINGS))
    wait_for_checkpoint(process, run)
    for _ in range(3):
        time.sleep(draw.uniform(0.0, 0.7))
        process.kill()
        process.communicate()
        process = start("--resume", run)
        time.sleep(draw.uniform(0.0, 3.0))  # sometimes before it has done anything
    finish(process)
    assert_same_end(run, whole)
    assert steps_recorded(run) == list(range(1, STEPS + 1))


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)]
)
def test_a_signal_saves_and_leaves_with_a_word_on_how_to_go_on(
    number: signal.Signals,
    prepared: Prepared,
    preset: list[str],
    whole: Path,
    tmp_path: Path,
    command: Command,
) -> None:
    run = tmp_path / "run"
    process = start(prepared.path, "--out", run, *preset, *options(SETTINGS))
    wait_for_checkpoint(process, run)
    process.send_signal(number)
    said = finish(process, status=128 + number)
    assert f"everything is saved. Continue with: dragoman train --resume {run}" in said
    assert "Traceback" not in said
    assert command("train", "--resume", run).status == 0
    assert_same_end(run, whole)


SLOW_DISK = """
import time
from dragoman.cli import main
from dragoman.training.checkpoints import writer
plain = writer.write_shard
def slow(path, parts):
    path.touch()
    time.sleep(2)
    return plain(path, parts)
writer.write_shard = slow
main()
"""

SLOW_VALIDATION = """
import time
from dragoman.cli import main
from dragoman.training import loop
def validate(*arguments):
    print("validating", flush=True)
    time.sleep(600)
loop.validate = validate
main()
"""


def test_sigterm_while_a_checkpoint_is_being_written_saves_within_ten_seconds(
    prepared: Prepared, preset: list[str], whole: Path, tmp_path: Path, command: Command
) -> None:
    run = tmp_path / "run"
    slow = [sys.executable, "-c", SLOW_DISK, "train"]
    process = start(prepared.path, "--out", run, *preset, *options(SETTINGS), command=slow)
    deadline = time.monotonic() + 120
    while not list(run.glob("checkpoints/.tmp-step-*/rank-*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.3)  # the loop goes on meanwhile
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    said = finish(process, status=128 + signal.SIGTERM)
    assert time.monotonic() - began < 10
    step = int(said.partition("stopped at step ")[2].partition(";")[0])
    newest = list_checkpoints(run)[-1]
    assert Checkpoint(newest).state.step == step
    assert len(list_checkpoints(run)) >= 2, "the one that was being written is there too"
    assert command("train", "--resume", run).status == 0
    assert_same_end(run, whole)


def test_sigterm_breaks_off_a_validation_which_is_done_on_resuming(
    prepared: Prepared, preset: list[str], whole: Path, tmp_path: Path, command: Command
) -> None:
    run = tmp_path / "run"
    slow = [sys.executable, "-c", SLOW_VALIDATION, "train"]
    process = start(prepared.path, "--out", run, *preset, *options(SETTINGS), command=slow)
    assert process.stdout is not None
    assert process.stdout.readline() == "validating\n"
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    said = finish(process, status=128 + signal.SIGTERM)
    assert time.monotonic() - began < 10
    assert "stopped at step 20; everything is saved" in said
    assert command("train", "--resume", run).status == 0
    assert_same_end(run, whole)
    assert records(run, "valid") == records(whole, "valid")


def records(run: Path, kind: str) -> list[dict[str, object]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if entry["kind"] == kind]
