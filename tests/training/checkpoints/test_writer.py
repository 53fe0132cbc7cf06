"""Checkpoints written in the background: what the loop waits for, and what it is told."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import TrainingError
from dragoman.run_directory import checkpoint_path, list_checkpoints
from dragoman.training.checkpoints import checkpoint, writer
from dragoman.training.checkpoints.checkpoint import Checkpoint, TrainingState
from dragoman.training.checkpoints.writer import CheckpointWriter
from dragoman.training.distributed.parallel import all_rows
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.loop import fit

from ..test_loop import metrics, settings

GENERATORS = {"cpu": torch.zeros(3, dtype=torch.uint8)}


class WriterHarness:
    """A writer, what it messages, and a run's state of one tensor."""

    def __init__(self, run: Path, *, keep: int = 9, newest: int = 0) -> None:
        self.messages: list[str] = []
        self.weights = torch.zeros(4, 2)
        self.state = TrainingState()
        self.synced = 0
        self.writer = CheckpointWriter(
            run,
            keep=keep,
            newest=newest,
            ranks=Ranks(),
            before_write=self.sync,
            show_message=self.messages.append,
        )

    def sync(self) -> None:
        self.synced += 1

    def save(self, step: int, *, last: bool = False) -> None:
        """Save a run all of whose weights are the step's number."""
        self.weights.fill_(step)
        self.state.step = step
        state = {"weights/w": all_rows(self.weights)}
        self.writer.save(self.state, state, GENERATORS, last=last)


@pytest.fixture
def harness(tmp_path: Path) -> WriterHarness:
    return WriterHarness(tmp_path)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Nothing is written until this is set."""
    gate = threading.Event()
    plain = writer.write_shard

    def waits(*arguments: object) -> object:
        assert gate.wait(30)
        return plain(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(writer, "write_shard", waits)
    yield gate
    gate.set()


@contextmanager
def failing(number: int) -> Iterator[None]:
    """No shard can be written."""

    def fails(tensors: object, path: Path, metadata: object) -> None:
        path.write_bytes(b"half of it")
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpoint, "write_tensors", fails)
        yield


def steps(run: Path) -> list[int]:
    return [Checkpoint(path).state.step for path in list_checkpoints(run)]


def test_the_loop_goes_on_while_a_checkpoint_is_written_as_it_was(
    harness: WriterHarness, slow: threading.Event, tmp_path: Path
) -> None:
    harness.state.target_tokens = 500
    harness.save(5)
    assert steps(tmp_path) == [], "it has returned, and nothing is written yet"
    harness.weights.fill_(99)  # the next step
    harness.state.step, harness.state.target_tokens = 6, 600
    slow.set()
    harness.writer.wait()
    checkpoint = Checkpoint(checkpoint_path(tmp_path, 5))
    assert torch.equal(checkpoint.shards.read_rows("weights/w"), torch.full((4, 2), 5.0))
    assert (checkpoint.state.step, checkpoint.state.target_tokens) == (5, 500)


def test_a_save_waits_for_the_one_before(
    harness: WriterHarness, slow: threading.Event, tmp_path: Path
) -> None:
    harness.save(5)
    threading.Timer(0.3, slow.set).start()
    harness.save(6)
    assert steps(tmp_path)[0] == 5
    assert 0.2 < harness.writer.take_wait_seconds() < 10, "and the wait is counted"
    assert harness.writer.take_wait_seconds() == 0
    harness.writer.wait()
    assert steps(tmp_path) == [5, 6]
    last = Checkpoint(checkpoint_path(tmp_path, 6)).shards.read_rows("weights/w")
    assert torch.equal(last, torch.full((4, 2), 6.0)), "memory used again is not mixed up"


def test_the_last_save_waits_until_it_is_written(harness: WriterHarness, tmp_path: Path) -> None:
    harness.save(5, last=True)
    assert steps(tmp_path) == [5]
    assert harness.synced == 1, "the metrics it counts on came to the disk before"


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOSPC, "no space left on device"),
        (errno.EDQUOT, "disk quota exceeded"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "cannot be written (Input/output error)"),
    ],
)
def test_what_cannot_be_written_is_said_at_once_and_tried_again_later(
    number: int, what: str, harness: WriterHarness, tmp_path: Path
) -> None:
    directory = tmp_path / "checkpoints"
    with failing(number):
        harness.save(5)
        harness.writer.wait()
        assert harness.messages == [
            f"{directory}/step-00000005: {what}; the run goes on, there is no checkpoint yet"
        ]
    harness.save(6)
    harness.writer.wait()
    with failing(number):
        harness.save(7)
        harness.writer.wait()
    assert harness.messages[1:] == [
        f"{directory}/step-00000007: {what}; the run goes on, the newest checkpoint is step 6"
    ]
    harness.save(8)
    harness.writer.wait()
    assert steps(tmp_path) == [6, 8]
    assert not list(directory.glob(".tmp*"))


def test_a_directory_that_cannot_be_made_is_such_a_case(
    harness: WriterHarness, tmp_path: Path
) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    harness.save(5)
    harness.writer.wait()
    assert "a part of this path is a file, not a directory; the run goes on" in harness.messages[0]


def test_a_run_that_cannot_save_its_end_does_not_end_well(
    harness: WriterHarness, tmp_path: Path
) -> None:
    harness.save(5)
    harness.writer.wait()
    with failing(errno.ENOSPC), pytest.raises(TrainingError) as refused:
        harness.save(6, last=True)
    assert str(refused.value) == (
        f"{tmp_path}/checkpoints/step-00000006: no space left on device; the newest checkpoint is "
        f"step 5; fix this, then: dragoman train --resume {tmp_path}"
    )
    assert harness.messages == [], "not messages twice"


def test_an_old_checkpoint_that_cannot_be_removed_stops_nothing(
    harness: WriterHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(writer, "prune_checkpoints", fails)
    harness.save(5, last=True)
    assert steps(tmp_path) == [5]
    assert harness.messages == [
        f"{tmp_path}/checkpoints: an old checkpoint cannot be removed (Device or resource busy); "
        "the run goes on, remove it by hand"
    ]


def test_what_a_killed_run_did_not_come_to_prune_is_pruned_on_resuming(
    tmp_path: Path,
) -> None:
    first = WriterHarness(tmp_path, keep=9)
    for step in (1, 2, 3, 4):
        first.save(step)
    first.writer.wait()
    with WriterHarness(tmp_path, keep=2, newest=3).writer:
        assert steps(tmp_path) == [2, 3]


def test_a_bug_in_the_thread_is_raised_where_it_is_seen(
    harness: WriterHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(writer, "write_shard", broken)
    harness.save(5)
    with pytest.raises(RuntimeError, match="a bug"):
        harness.save(6)


def leave(harness: WriterHarness, error: BaseException | None) -> None:
    with harness.writer:
        harness.save(5)
        if error is not None:
            raise error


@pytest.mark.slow
@pytest.mark.parametrize("error", [None, ValueError("an error"), SystemExit(3)])
def test_the_end_and_an_error_wait_for_what_is_being_written(
    error: BaseException | None, harness: WriterHarness, slow: threading.Event, tmp_path: Path
) -> None:
    threading.Timer(0.3, slow.set).start()
    if error is None:
        leave(harness, None)
    else:
        with pytest.raises(type(error)):
            leave(harness, error)
    assert steps(tmp_path) == [5]


def test_who_is_impatient_does_not_wait(harness: WriterHarness, slow: threading.Event) -> None:
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        leave(harness, KeyboardInterrupt())
    assert time.monotonic() - started < 5
    assert not slow.is_set()


# --- in a run ---


def at_step(step: int, error: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = writer.write_state_file

    def write(directory: Path, state: TrainingState, index: dict[str, object]) -> None:
        if state.step == step:
            error()
        plain(directory, state, index)

    monkeypatch.setattr(writer, "write_state_file", write)


@pytest.mark.slow
def test_a_disk_that_is_full_for_a_while_changes_nothing_but_one_checkpoint(
    tiny: Config,
    prepared: Prepared,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = settings(tiny, "training.average=1")
    fit(config, prepared, tmp_path / "undisturbed", quiet=True)
    capsys.readouterr()

    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    at_step(4, full, monkeypatch)
    run = tmp_path / "run"
    fit(config, prepared, run, quiet=True)
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == (
        f"{run}/checkpoints/step-00000004: no space left on device; the run goes on, the newest "
        "checkpoint is step 2"
    )
    assert len(rest) == 1, "and that it is done"
    assert steps(run) == [2, 6]
    ends = [
        Checkpoint(checkpoint_path(r, 6)).shards.read_all() for r in (tmp_path / "undisturbed", run)
    ]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


@pytest.mark.slow
def test_the_time_spent_waiting_is_recorded(
    tiny: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_step(6, lambda: time.sleep(0.5), monkeypatch)
    run = tmp_path / "run"
    fit(settings(tiny), prepared, run, quiet=True)
    waits = [line["checkpoint_seconds"] for line in metrics(run)]
    assert len(waits) == 6
    assert 0 < waits[2] < 0.4, "the line after a checkpoint: the copy alone"
    assert waits[0] == waits[1] == 0
    assert metrics(run, "final")[0]["checkpoint_seconds"] > 0.5, "the end waits for the disk"
