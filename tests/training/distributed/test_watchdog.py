"""Ranks that stop answering are given up, by name; the store is a dictionary here."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import TrainingError
from dragoman.training.checkpoints.checkpoint import checkpoint_path
from dragoman.training.distributed import watchdog as module
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.distributed.watchdog import Watch, watched

from ..dictionary import Dictionary

TIMEOUT = 0.6


def sign(store: Dictionary, rank: int, **values: object) -> None:
    """What a rank says of itself."""
    sign = {"rank": rank, "host": "far", "process": 77, "step": 5, "beat": 1}
    store.values[f"rank/{rank}"] = json.dumps(sign | values).encode()


class Crew:
    """Rank 0 of three, watching rank 1."""

    def __init__(self, run: Path) -> None:
        self.store = Dictionary()
        self.run = run
        self.watch = self.of(0)

    def of(self, rank: int) -> Watch:
        return Watch(Ranks(rank, 3), self.run, TIMEOUT, self.store)

    def said(self, within: float) -> str | None:
        """What the watch comes to say within so many seconds."""
        self.watch._known.wait(within)
        return self.watch._gone


@pytest.fixture
def crew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    monkeypatch.setattr(os, "_exit", lambda status: pytest.fail("the process was ended"))
    crew = Crew(tmp_path / "run")
    yield crew
    crew.watch.leave(module.LEFT)
    crew.watch._thread.join()


def test_a_rank_that_says_nothing_is_given_up_by_name(crew: Crew) -> None:
    sign(crew.store, 1)
    began = time.monotonic()
    checkpoint_path(crew.run, 3).mkdir(parents=True)
    assert crew.said(10 * TIMEOUT) == (
        "rank 1 (far, process 77) stopped answering at step 5; the other ranks stop here; start "
        f"all again with: dragoman train --resume {crew.run}, which goes on from step 3"
    )
    assert TIMEOUT <= time.monotonic() - began < 5 * TIMEOUT
    assert crew.store.values["gone"].startswith(b"rank 1 (far, process 77)"), "the others hear it"


def test_the_step_is_the_one_it_is_missed_at(crew: Crew) -> None:
    sign(crew.store, 1, step=5)
    crew.watch.reached(8)
    assert "rank 1 (far, process 77) stopped answering at step 8;" in (crew.watch.verdict() or "")


def test_a_rank_that_goes_on_saying_so_is_not(crew: Crew) -> None:
    for beat in range(12):
        sign(crew.store, 1, beat=beat)
        time.sleep(TIMEOUT / 8)
    assert crew.said(0) is None


def test_a_rank_that_lives_but_stays_a_step_behind_is_given_up(crew: Crew) -> None:
    crew.watch.reached(6)
    for beat in range(12):
        sign(crew.store, 1, beat=beat)
        time.sleep(TIMEOUT / 8)
    assert "rank 1 (far, process 77) stopped answering at step 5;" in (crew.said(0) or "")


def test_a_rank_that_left_in_peace_is_not_missed(crew: Crew) -> None:
    sign(crew.store, 1, state=module.LEFT)
    assert crew.said(1.5 * TIMEOUT) is None


def test_a_rank_that_failed_is_quoted_at_once(crew: Crew) -> None:
    sign(crew.store, 1, state=module.FAILED, words="the disk is full")
    said = crew.said(TIMEOUT)
    assert (said or "").startswith("rank 1 (far, process 77) ended at step 5: the disk is full;")
    assert "which begins again" in (said or ""), "there is no checkpoint"


def test_the_first_verdict_counts_for_all(crew: Crew) -> None:
    for rank in (1, 2):
        sign(crew.store, rank)
    crew.store.compare_set("gone", "", "rank 2 stopped answering at step 5")
    assert (crew.said(TIMEOUT) or "").startswith("rank 2 stopped answering at step 5;")


def test_in_an_emergency_a_short_silence_is_enough(crew: Crew) -> None:
    sign(crew.store, 1)
    began = time.monotonic()
    assert "rank 1" in (crew.watch.verdict() or "")
    assert time.monotonic() - began < 0.9 * TIMEOUT


def test_a_signal_is_an_emergency_even_where_no_handler_can_run(crew: Crew) -> None:
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    sign(crew.store, 1)
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGTERM)
    assert "rank 1" in (crew.said(10 * TIMEOUT) or "")
    assert time.monotonic() - began < 0.9 * TIMEOUT
    signal.signal(signal.SIGTERM, before)


def test_a_store_that_does_not_answer_is_named(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "node-1")
    monkeypatch.setenv("MASTER_PORT", "29500")
    crew.store.answers = False
    said = crew.said(10 * TIMEOUT) or ""
    assert said.startswith("the store that ranks meet in (node-1:29500) stopped answering;")


def test_a_process_that_waits_for_the_dead_is_ended_with_the_message(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda status: ended.set())
    monkeypatch.setattr(module.dist, "is_initialized", lambda: True)
    sign(crew.store, 1)
    assert ended.wait(10 * TIMEOUT)
    assert (
        "dragoman: rank 1 (far, process 77) stopped answering at step 5;" in capfd.readouterr().err
    )


def test_one_that_has_found_its_way_out_is_not_ended(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.dist, "is_initialized", lambda: False)
    sign(crew.store, 1)
    assert crew.said(10 * TIMEOUT)
    crew.watch._thread.join(10 * TIMEOUT)  # the fixture fails the test if it calls os._exit
    assert not crew.watch._thread.is_alive()


def test_a_failed_exchange_becomes_the_name_of_who_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Dictionary()
    sign(store, 1)
    named = r"^rank 1 \(far, process 77\) stopped answering"
    with (
        pytest.raises(TrainingError, match=named),
        watched(Ranks(0, 2, store=store), tmp_path, TIMEOUT),
    ):
        raise RuntimeError("[gloo] Connection closed by peer")


def test_an_error_of_this_rank_stays_what_it_is_and_the_others_hear_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Dictionary()
    sign(store, 1, state=module.LEFT)
    for error in (TrainingError("the loss was not finite"), RuntimeError("a bug\nin two lines")):
        with (
            pytest.raises(type(error), match=str(error)),
            watched(Ranks(0, 2, store=store), tmp_path, TIMEOUT),
        ):
            raise error
        last = json.loads(store.values["rank/0"])
        assert (last["state"], last["words"]) == (module.FAILED, str(error).partition("\n")[0])


def test_a_single_rank_watches_nobody(tmp_path: Path) -> None:
    before = threading.active_count()
    with watched(Ranks(), tmp_path, TIMEOUT) as reached:
        reached(1)
        assert threading.active_count() == before
