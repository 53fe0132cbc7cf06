"""Ranks agree on an id that no earlier start has used, whoever comes first."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import pytest

from dragoman.config import Config
from dragoman.data.prepare import Prepared
from dragoman.errors import TrainingError
from dragoman.training.distributed import ranks
from dragoman.training.distributed.ranks import agree_on_start_id
from dragoman.training.run import train

from ..dictionary_store import DictionaryStore

WORLD = 3


def start(store: DictionaryStore, order: tuple[int, ...]) -> list[str]:
    """Return the ids that ranks agree on when they arrive in this order."""

    def arrive(rank: int) -> str:
        time.sleep(0.03 * order.index(rank))
        return agree_on_start_id(store, rank, WORLD, timeout=10)

    with ThreadPoolExecutor(WORLD) as pool:
        return list(pool.map(arrive, range(WORLD)))


@pytest.fixture(autouse=True)
def _poll_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "POLL_SECONDS", 0.002)


@pytest.mark.slow
@pytest.mark.parametrize("order", list(permutations(range(WORLD))))
def test_every_start_has_an_id_of_its_own(order: tuple[int, ...]) -> None:
    store = DictionaryStore()
    ids = [start(store, tuple(range(WORLD))), start(store, order), start(store, order)]
    assert all(len(set(known)) == 1 for known in ids), "all ranks of a start know the same"
    assert len({known[0] for known in ids}) == 3


def test_a_start_that_never_was_complete_does_not_matter() -> None:
    store = DictionaryStore()
    for rank in (0, 1):
        with pytest.raises(RuntimeError, match="timed out waiting for the other ranks"):
            agree_on_start_id(store, rank, WORLD, timeout=0.02)
    assert len(set(start(store, (2, 1, 0)))) == 1


def test_nobody_goes_on_before_all_are_there() -> None:
    store, done = DictionaryStore(), threading.Event()

    def first() -> None:
        agree_on_start_id(store, 0, 2, timeout=10)
        done.set()

    store.set("token/1", "of an earlier start")
    thread = threading.Thread(target=first)
    thread.start()
    assert not done.wait(0.1)
    agree_on_start_id(store, 1, 2, timeout=10)
    assert done.wait(1)
    thread.join()


# --- a command that torchrun starts again resumes its own run, and no other's ---

SETTINGS = ["training.steps=2", "training.checkpoint_every=2", "training.validate_sentences=0"]


def begin(
    monkeypatch: pytest.MonkeyPatch, *, job: str = "", restarts: int = 0, parent: int = 1
) -> None:
    """As torchrun would start this process."""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", job)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(restarts))
    monkeypatch.setattr(ranks.os, "getppid", lambda: parent)


def test_the_second_start_of_a_job_resumes_what_the_first_began(
    tiny: Config, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, config = tmp_path / "run", tiny.overridden(SETTINGS)
    begin(monkeypatch, job="mine")
    train(config, prepared.path, run=run, quiet=True)
    begin(monkeypatch, job="mine", restarts=1)
    outcome = train(config.overridden(["training.steps=3"]), prepared.path, run=run, quiet=True)
    assert outcome.step == 2, "it is the run as it was begun, and that has ended"


@pytest.mark.slow
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
    with pytest.raises(TrainingError, match="already contains a run"):
        train(config, prepared.path, run=run, quiet=True)


def test_a_job_without_a_name_is_known_by_its_torchrun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(monkeypatch, job="none", parent=7)
    first = ranks.job_id()
    begin(monkeypatch, job="none", parent=8)
    assert first != ranks.job_id()
    begin(monkeypatch, job="")
    assert ranks.job_id() == "", "no torchrun"
