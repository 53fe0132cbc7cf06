"""Running out of memory, in one process; with several, see test_torchrun.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import TrainingError
from dragoman.run_directory import checkpoint_path
from dragoman.training import validation
from dragoman.training.checkpoints.checkpoint import Checkpoint
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.loop import fit
from dragoman.training.loss import Criterion
from dragoman.training.memory import (
    CHECKED_STEPS,
    OomRetry,
    OutOfMemoryRecord,
    UnrecoverableOutOfMemoryError,
    load_record,
    save_record,
)

from .fault_injection import inject_faults, run_out_of_memory

SETTINGS = ["training.steps=6", "training.checkpoint_every=3", "model.dropout=0.0"]


@pytest.fixture
def faults() -> Iterator[Callable[..., None]]:
    undo: list[Callable[[], None]] = []
    yield lambda *names: undo.append(inject_faults(*names))
    for back in reversed(undo):
        back()


@pytest.fixture(scope="module")
def whole(tiny: Config, prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    fit(tiny.overridden(SETTINGS), prepared, run, quiet=True)
    return run


def state(run: Path) -> dict[str, Tensor]:
    return Checkpoint(checkpoint_path(run, 6)).shards.read_all("weights/")


def events(run: Path, kind: str = "out_of_memory") -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [e for e in map(json.loads, lines) if e["kind"] == kind]


def assert_same_end(run: Path, whole: Path) -> None:
    found, expected = ([e["loss"] for e in events(r, "train")] for r in (run, whole))
    assert found == pytest.approx(expected, rel=1e-5)
    for name, tensor in state(whole).items():
        torch.testing.assert_close(state(run)[name], tensor, atol=2e-6, rtol=1e-4, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "host-memory", "memory-in-backward"])
def test_the_step_is_done_again_in_smaller_slices_and_the_run_ends_the_same(
    kind: str,
    faults: Callable[..., None],
    tiny: Config,
    prepared: Prepared,
    whole: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults(f"{kind} 0 2", f"{kind} 0 5.2")  # and one slice of step 5 is done in vain
    fit(tiny.overridden(SETTINGS), prepared, tmp_path / "run", quiet=True)
    assert [(e["step"], e["slices"]) for e in events(tmp_path / "run")] == [(2, 2), (5, 4)]
    said = capsys.readouterr().err
    assert "step 2: out of memory; from here on each batch is computed in 2 slices\n" in said
    assert_same_end(tmp_path / "run", whole)


@pytest.mark.slow
def test_a_run_that_is_resumed_remembers_its_slices(
    faults: Callable[..., None],
    tiny: Config,
    prepared: Prepared,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, sizes = tmp_path / "run", []
    faults("memory 0 2")
    fit(tiny.overridden([*SETTINGS, "training.steps=3"]), prepared, run, quiet=True)
    assert load_record(run) == OutOfMemoryRecord(step=2, slices=2)
    plain = Criterion.forward

    def counted(self: Criterion, batch: Any, *rest: Any) -> Any:
        if self.training:
            sizes.append(len(batch.output_RT))
        return plain(self, batch, *rest)

    monkeypatch.setattr(Criterion, "forward", counted)
    fit(tiny.overridden(SETTINGS), prepared, run, resume=True, quiet=True)
    assert sizes == [4] * 6, "three steps, of eight rows in two slices"
    assert [e["step"] for e in events(run)] == [2], "told once"
    assert_same_end(run, whole)


def test_what_happened_after_the_last_checkpoint_is_told_again(
    tiny: Config, prepared: Prepared, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    fit(tiny.overridden([*SETTINGS, "training.steps=3"]), prepared, run, quiet=True)
    save_record(run, OutOfMemoryRecord(step=5, slices=2))
    fit(tiny.overridden(SETTINGS), prepared, run, resume=True, quiet=True)
    assert [(e["step"], e["slices"]) for e in events(run)] == [(5, 2)]


def test_when_not_even_one_row_fits_the_run_ends_with_what_to_do(
    tiny: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Criterion, "forward", lambda *arguments: run_out_of_memory())
    with pytest.raises(TrainingError) as caught:
        fit(tiny.overridden(SETTINGS), prepared, tmp_path / "run", quiet=True)
    assert str(caught.value) == (
        "out of memory at step 1 on rank 0: not even one row of 64 source and 60 target positions "
        "fits beside the model; lower data.row_length and data.max_length, choose a smaller model, "
        "or give it more GPUs with training.sharding=full"
    )


@pytest.mark.slow
def test_out_of_memory_while_validating_is_one_line_too(
    tiny: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "_loss", lambda *arguments: run_out_of_memory())
    with pytest.raises(TrainingError, match=r"^out of memory while validating; lower search"):
        fit(tiny.overridden(SETTINGS), prepared, tmp_path / "run", quiet=True)


def two_ranks(*short: int) -> Ranks:
    """This rank and another, which runs out of memory at these of its attempts."""
    attempts = count(1)

    class Pair(Ranks):
        def sum(self, *numbers: float) -> list[float]:
            other = next(attempts) in short
            return [number + other for number in numbers]

    return Pair(0, 2)


class Work:
    """Records the steps of a retry."""

    def __init__(self, *short: int) -> None:
        self.done: list[str] = []
        self.short = short
        self.attempts = 0

    def compute(self, sync: bool) -> None:
        self.attempts += 1
        self.done.append("synced" if sync else "alone")
        if self.attempts in self.short:
            run_out_of_memory()

    def run_step(self, retry: OomRetry, step: int) -> list[str]:
        self.done = []
        retry.run_step(
            step,
            8,
            compute=self.compute,
            exchange=lambda: self.done.append("exchange"),
            discard=lambda: self.done.append("discard"),
        )
        return self.done


def test_ranks_exchange_only_after_all_have_computed() -> None:
    retry, work = OomRetry(1, two_ranks(), sharded=False), Work()
    for step in range(CHECKED_STEPS):
        assert work.run_step(retry, step) == ["alone", "exchange"]
    assert work.run_step(retry, CHECKED_STEPS) == ["synced"], "what has fitted will fit"


def test_all_begin_again_when_another_has_run_out() -> None:
    retry, work = OomRetry(1, two_ranks(2), sharded=False), Work()
    assert work.run_step(retry, 1) == ["alone", "exchange"]
    assert work.run_step(retry, 2) == ["alone", "discard", "alone", "exchange"]
    assert retry.records == [OutOfMemoryRecord(step=2, slices=2)]
    for step in range(3, 2 + CHECKED_STEPS):
        assert work.run_step(retry, step) == ["alone", "exchange"], "checked once more"
    assert work.run_step(retry, 9) == ["synced"]


def test_out_of_memory_in_an_exchange_cannot_be_survived() -> None:
    retry, work = OomRetry(1, two_ranks(), sharded=False), Work(CHECKED_STEPS + 1)
    for step in range(CHECKED_STEPS):
        work.run_step(retry, step)
    with pytest.raises(UnrecoverableOutOfMemoryError) as caught:
        work.run_step(retry, 7)
    assert caught.value.record == OutOfMemoryRecord(step=7, slices=2)
    assert not caught.value.is_single_row


def test_in_shards_no_step_is_checked() -> None:
    retry = OomRetry(1, two_ranks(), sharded=True)
    assert Work().run_step(retry, 1) == ["synced"]
    with pytest.raises(UnrecoverableOutOfMemoryError):
        Work(1).run_step(retry, 2)
