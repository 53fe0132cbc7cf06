"""A command that torchrun starts again takes up its own run, and no other's."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import TrainingError
from dragoman.training.distributed import rendezvous
from dragoman.training.run import train

SETTINGS = ["training.steps=2", "training.checkpoint_every=2", "training.validate_sentences=0"]


def begin(
    monkeypatch: pytest.MonkeyPatch, *, job: str = "", restarts: int = 0, parent: int = 1
) -> None:
    """As torchrun would start this process."""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", job)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(restarts))
    monkeypatch.setattr(rendezvous.os, "getppid", lambda: parent)


def test_the_second_start_of_a_job_resumes_what_the_first_began(
    tiny: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, config = tmp_path / "run", tiny.overridden(SETTINGS)
    begin(monkeypatch, job="mine")
    train(config, prepared.path, run=run, quiet=True)
    begin(monkeypatch, job="mine", restarts=1)
    outcome = train(config.overridden(["training.steps=3"]), prepared.path, run=run, quiet=True)
    assert outcome.step == 2, "it is the run as it was begun, and that has ended"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"job": "mine"}, {"job": "mine", "restarts": 0}),
        ({"job": "mine"}, {"job": "another", "restarts": 1}),
        ({}, {"job": "mine", "restarts": 1}),
        ({"job": "none", "parent": 7}, {"job": "none", "parent": 8, "restarts": 1}),
    ],
)
def test_a_run_that_was_there_before_is_refused_at_every_start(
    before: dict[str, int],
    now: dict[str, int],
    tiny: Config,
    prepared: Prepared,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, config = tmp_path / "run", tiny.overridden(SETTINGS)
    begin(monkeypatch, **before)  # type: ignore[arg-type]
    train(config, prepared.path, run=run, quiet=True)
    begin(monkeypatch, **now)  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="holds a run already"):
        train(config, prepared.path, run=run, quiet=True)


def test_a_job_without_a_name_is_known_by_its_torchrun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(monkeypatch, job="none", parent=7)
    first = rendezvous.job()
    begin(monkeypatch, job="none", parent=8)
    assert first != rendezvous.job()
    begin(monkeypatch, job="")
    assert rendezvous.job() == "", "no torchrun"
