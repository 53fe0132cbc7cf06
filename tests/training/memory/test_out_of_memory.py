"""Running out of memory, in one process; with several, see test_ranks.py."""

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
from dragoman.training import validation
from dragoman.training.checkpoints.checkpoint import Checkpoint, checkpoint_path
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.loop import fit
from dragoman.training.loss import Criterion
from dragoman.training.memory.oom_retry import CAREFUL_STEPS, Ration
from dragoman.training.memory.out_of_memory import (
    Shortage,
    ShortageError,
    read_note,
    write_note,
)

from ..accidents import arrange, out_of_memory

SETTINGS = ["training.steps=6", "training.checkpoint_every=3", "model.dropout=0.0"]


@pytest.fixture
def accidents() -> Iterator[Callable[..., None]]:
    undo: list[Callable[[], None]] = []
    yield lambda *names: undo.append(arrange(*names))
    for back in reversed(undo):
        back()


@pytest.fixture(scope="module")
def whole(tiny: Config, prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    fit(tiny.overridden(SETTINGS), prepared, run, quiet=True)
    return run


def state(run: Path) -> dict[str, Tensor]:
    return Checkpoint(checkpoint_path(run, 6)).shards.all("weights/")


def events(run: Path, kind: str = "out_of_memory") -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [e for e in map(json.loads, lines) if e["kind"] == kind]


def assert_same_end(run: Path, whole: Path) -> None:
    found, expected = ([e["loss"] for e in events(r, "train")] for r in (run, whole))
    assert found == pytest.approx(expected, rel=1e-5)
    for name, tensor in state(whole).items():
        torch.testing.assert_close(state(run)[name], tensor, atol=2e-6, rtol=1e-4, msg=name)


@pytest.mark.parametrize("kind", ["memory", "host-memory", "memory-in-backward"])
def test_the_step_is_done_again_in_smaller_slices_and_the_run_ends_the_same(
    kind: str,
    accidents: Callable[..., None],
    tiny: Config,
    prepared: Prepared,
    whole: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    accidents(f"{kind} 0 2", f"{kind} 0 5.2")  # and one slice of step 5 is done in vain
    fit(tiny.overridden(SETTINGS), prepared, tmp_path / "run", quiet=True)
    assert [(e["step"], e["slices"]) for e in events(tmp_path / "run")] == [(2, 2), (5, 4)]
    said = capsys.readouterr().err
    assert "step 2: out of memory; from here on each batch is computed in 2 slices\n" in said
    assert_same_end(tmp_path / "run", whole)


def test_a_run_that_is_resumed_remembers_its_slices(
    accidents: Callable[..., None],
    tiny: Config,
    prepared: Prepared,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, sizes = tmp_path / "run", []
    accidents("memory 0 2")
    fit(tiny.overridden([*SETTINGS, "training.steps=3"]), prepared, run, quiet=True)
    assert read_note(run) == Shortage(step=2, slices=2)
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
    write_note(run, Shortage(step=5, slices=2))
    fit(tiny.overridden(SETTINGS), prepared, run, resume=True, quiet=True)
    assert [(e["step"], e["slices"]) for e in events(run)] == [(5, 2)]


def test_when_not_even_one_row_fits_the_run_ends_with_what_to_do(
    tiny: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Criterion, "forward", lambda *arguments: out_of_memory())
    with pytest.raises(TrainingError) as caught:
        fit(tiny.overridden(SETTINGS), prepared, tmp_path / "run", quiet=True)
    assert str(caught.value) == (
        "out of memory at step 1 on rank 0: not even one row of 64 source and 60 target positions "
        "fits beside the model; lower data.row_length and data.max_length, choose a smaller model, "
        "or give it more GPUs with training.sharding=full"
    )


def test_out_of_memory_while_validating_is_one_line_too(
    tiny: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "_loss", lambda *arguments: out_of_memory())
    with pytest.raises(TrainingError, match=r"^out of memory while validating; lower search"):
        fit(tiny.overridden(SETTINGS), prepared, tmp_path / "run", quiet=True)


def two_ranks(*short: int) -> Ranks:
    """This rank and another, which runs out of memory at these of its attempts."""
    attempts = count(1)

    class Pair(Ranks):
        def total(self, *numbers: float) -> list[float]:
            other = next(attempts) in short
            return [number + other for number in numbers]

    return Pair(0, 2)


class Work:
    """What a ration is spent on, recorded."""

    def __init__(self, *short: int) -> None:
        self.done: list[str] = []
        self.short = short
        self.attempts = 0

    def compute(self, together: bool) -> None:
        self.attempts += 1
        self.done.append("together" if together else "alone")
        if self.attempts in self.short:
            out_of_memory()

    def spend(self, ration: Ration, step: int) -> list[str]:
        self.done = []
        ration.spend(
            step,
            8,
            compute=self.compute,
            exchange=lambda: self.done.append("exchange"),
            forget=lambda: self.done.append("forget"),
        )
        return self.done


def test_ranks_exchange_only_after_all_have_computed() -> None:
    ration, work = Ration(1, two_ranks(), sharded=False), Work()
    for step in range(CAREFUL_STEPS):
        assert work.spend(ration, step) == ["alone", "exchange"]
    assert work.spend(ration, CAREFUL_STEPS) == ["together"], "what has fitted will fit"


def test_all_begin_again_when_another_has_run_out() -> None:
    ration, work = Ration(1, two_ranks(2), sharded=False), Work()
    assert work.spend(ration, 1) == ["alone", "exchange"]
    assert work.spend(ration, 2) == ["alone", "forget", "alone", "exchange"]
    assert ration.shortages == [Shortage(step=2, slices=2)]
    for step in range(3, 2 + CAREFUL_STEPS):
        assert work.spend(ration, step) == ["alone", "exchange"], "careful once more"
    assert work.spend(ration, 9) == ["together"]


def test_a_shortage_in_an_exchange_cannot_be_survived() -> None:
    ration, work = Ration(1, two_ranks(), sharded=False), Work(CAREFUL_STEPS + 1)
    for step in range(CAREFUL_STEPS):
        work.spend(ration, step)
    with pytest.raises(ShortageError) as caught:
        work.spend(ration, 7)
    assert caught.value.shortage == Shortage(step=7, slices=2)
    assert not caught.value.hopeless


def test_in_shards_no_step_is_careful() -> None:
    ration = Ration(1, two_ranks(), sharded=True)
    assert Work().spend(ration, 1) == ["together"]
    with pytest.raises(ShortageError):
        Work(1).spend(ration, 2)
