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
from dragoman.run_directory import checkpoint_path
from dragoman.training.distributed import watchdog as module
from dragoman.training.distributed.ranks import Ranks
from dragoman.training.distributed.watchdog import Watchdog, run_watchdog

from ..dictionary_store import DictionaryStore

TIMEOUT = 0.6


def write_heartbeat(store: DictionaryStore, rank: int, **values: object) -> None:
    """Write what a rank would say of itself."""
    heartbeat = {"rank": rank, "host": "far", "process": 77, "step": 5, "beat": 1}
    store.values[f"rank/{rank}"] = json.dumps(heartbeat | values).encode()


class WatchedRanks:
    """Rank 0 of three, watching rank 1."""

    def __init__(self, run: Path) -> None:
        self.store = DictionaryStore()
        self.run = run
        self.watchdog = self.watch_from(0)

    def watch_from(self, rank: int) -> Watchdog:
        return Watchdog(Ranks(rank, 3), self.run, TIMEOUT, self.store)

    def failure(self, within: float) -> str | None:
        """Return what the watchdog finds within so many seconds."""
        self.watchdog._failure_found.wait(within)
        return self.watchdog._failure


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WatchedRanks]:
    monkeypatch.setattr(os, "_exit", lambda status: pytest.fail("the process was ended"))
    ranks = WatchedRanks(tmp_path / "run")
    yield ranks
    ranks.watchdog.stop(module.FINISHED)
    ranks.watchdog._thread.join()


@pytest.mark.slow
def test_a_rank_that_says_nothing_is_given_up_by_name(ranks: WatchedRanks) -> None:
    write_heartbeat(ranks.store, 1)
    began = time.monotonic()
    checkpoint_path(ranks.run, 3).mkdir(parents=True)
    assert ranks.failure(10 * TIMEOUT) == (
        "rank 1 (far, process 77) stopped answering at step 5; the other ranks stop here; start "
        f"all again with: dragoman train --resume {ranks.run}, which goes on from step 3"
    )
    assert TIMEOUT <= time.monotonic() - began < 5 * TIMEOUT
    assert ranks.store.values["gone"].startswith(b"rank 1 (far, process 77)"), "the others hear it"


@pytest.mark.slow
def test_the_step_is_the_one_it_is_missed_at(ranks: WatchedRanks) -> None:
    write_heartbeat(ranks.store, 1, step=5)
    ranks.watchdog.report_step(8)
    assert "rank 1 (far, process 77) stopped answering at step 8;" in (
        ranks.watchdog.find_failure() or ""
    )


@pytest.mark.slow
def test_a_rank_that_goes_on_saying_so_is_not(ranks: WatchedRanks) -> None:
    for beat in range(12):
        write_heartbeat(ranks.store, 1, beat=beat)
        time.sleep(TIMEOUT / 8)
    assert ranks.failure(0) is None


@pytest.mark.slow
def test_a_rank_that_lives_but_stays_a_step_behind_is_given_up(ranks: WatchedRanks) -> None:
    ranks.watchdog.report_step(6)
    for beat in range(12):
        write_heartbeat(ranks.store, 1, beat=beat)
        time.sleep(TIMEOUT / 8)
    assert "rank 1 (far, process 77) stopped answering at step 5;" in (ranks.failure(0) or "")


@pytest.mark.slow
def test_a_rank_that_finished_is_not_missed(ranks: WatchedRanks) -> None:
    write_heartbeat(ranks.store, 1, state=module.FINISHED)
    assert ranks.failure(1.5 * TIMEOUT) is None


def test_a_rank_that_failed_is_quoted_at_once(ranks: WatchedRanks) -> None:
    write_heartbeat(ranks.store, 1, state=module.FAILED, error="the disk is full")
    found = ranks.failure(TIMEOUT)
    assert (found or "").startswith("rank 1 (far, process 77) ended at step 5: the disk is full;")
    assert "which begins again" in (found or ""), "there is no checkpoint"


def test_the_first_finding_counts_for_all(ranks: WatchedRanks) -> None:
    for rank in (1, 2):
        write_heartbeat(ranks.store, rank)
    ranks.store.compare_set("gone", "", "rank 2 stopped answering at step 5")
    assert (ranks.failure(TIMEOUT) or "").startswith("rank 2 stopped answering at step 5;")


@pytest.mark.slow
def test_in_an_emergency_a_short_silence_is_enough(ranks: WatchedRanks) -> None:
    write_heartbeat(ranks.store, 1)
    began = time.monotonic()
    assert "rank 1" in (ranks.watchdog.find_failure() or "")
    assert time.monotonic() - began < 0.9 * TIMEOUT


@pytest.mark.slow
def test_a_signal_is_an_emergency_even_where_no_handler_can_run(ranks: WatchedRanks) -> None:
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    write_heartbeat(ranks.store, 1)
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGTERM)
    assert "rank 1" in (ranks.failure(10 * TIMEOUT) or "")
    assert time.monotonic() - began < 0.9 * TIMEOUT
    signal.signal(signal.SIGTERM, before)


@pytest.mark.slow
def test_a_store_that_does_not_answer_is_named(
    ranks: WatchedRanks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASTER_ADDR", "node-1")
    monkeypatch.setenv("MASTER_PORT", "29500")
    ranks.store.answers = False
    found = ranks.failure(10 * TIMEOUT) or ""
    assert found.startswith("the rendezvous store (node-1:29500) stopped answering;")


@pytest.mark.slow
def test_a_process_that_waits_for_the_dead_is_ended_with_the_message(
    ranks: WatchedRanks, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda status: ended.set())
    monkeypatch.setattr(module.dist, "is_initialized", lambda: True)
    write_heartbeat(ranks.store, 1)
    assert ended.wait(10 * TIMEOUT)
    assert (
        "dragoman: rank 1 (far, process 77) stopped answering at step 5;" in capfd.readouterr().err
    )


@pytest.mark.slow
def test_one_that_has_found_its_way_out_is_not_ended(
    ranks: WatchedRanks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.dist, "is_initialized", lambda: False)
    write_heartbeat(ranks.store, 1)
    assert ranks.failure(10 * TIMEOUT)
    ranks.watchdog._thread.join(10 * TIMEOUT)  # the fixture fails the test if it calls os._exit
    assert not ranks.watchdog._thread.is_alive()


def test_a_failed_exchange_becomes_the_name_of_who_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DictionaryStore()
    write_heartbeat(store, 1)
    named = r"^rank 1 \(far, process 77\) stopped answering"
    with (
        pytest.raises(TrainingError, match=named),
        run_watchdog(Ranks(0, 2, store=store), tmp_path, TIMEOUT),
    ):
        raise RuntimeError("[gloo] Connection closed by peer")


@pytest.mark.slow
def test_an_error_of_this_rank_stays_what_it_is_and_the_others_hear_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DictionaryStore()
    write_heartbeat(store, 1, state=module.FINISHED)
    for error in (TrainingError("the loss was not finite"), RuntimeError("a bug\nin two lines")):
        with (
            pytest.raises(type(error), match=str(error)),
            run_watchdog(Ranks(0, 2, store=store), tmp_path, TIMEOUT),
        ):
            raise error
        last = json.loads(store.values["rank/0"])
        assert (last["state"], last["error"]) == (module.FAILED, str(error).partition("\n")[0])


def test_a_single_rank_watches_nobody(tmp_path: Path) -> None:
    before = threading.active_count()
    with run_watchdog(Ranks(), tmp_path, TIMEOUT) as report_step:
        report_step(1)
        assert threading.active_count() == before
