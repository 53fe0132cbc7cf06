"""Ranks agree on a name that no earlier start has used, whoever comes first."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import pytest

from dragoman.training.distributed import rendezvous
from dragoman.training.distributed.rendezvous import agree_on_name

from ..dictionary import Dictionary

WORLD = 3


def start(store: Dictionary, order: tuple[int, ...]) -> list[str]:
    """The names that ranks come to know, which arrive in this order."""

    def arrive(rank: int) -> str:
        time.sleep(0.03 * order.index(rank))
        return agree_on_name(store, rank, WORLD, timeout=10)

    with ThreadPoolExecutor(WORLD) as pool:
        return list(pool.map(arrive, range(WORLD)))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "PAUSE", 0.002)


@pytest.mark.parametrize("order", list(permutations(range(WORLD))))
def test_every_start_has_a_name_of_its_own(order: tuple[int, ...]) -> None:
    store = Dictionary()
    names = [start(store, tuple(range(WORLD))), start(store, order), start(store, order)]
    assert all(len(set(known)) == 1 for known in names), "all ranks of a start know the same"
    assert len({known[0] for known in names}) == 3


def test_a_start_that_never_was_complete_does_not_matter() -> None:
    store = Dictionary()
    for rank in (0, 1):
        with pytest.raises(RuntimeError, match="some did not come"):
            agree_on_name(store, rank, WORLD, timeout=0.02)
    assert len(set(start(store, (2, 1, 0)))) == 1


def test_nobody_goes_on_before_all_are_there() -> None:
    store, done = Dictionary(), threading.Event()

    def first() -> None:
        agree_on_name(store, 0, 2, timeout=10)
        done.set()

    store.set("word/1", "of an earlier start")
    thread = threading.Thread(target=first)
    thread.start()
    assert not done.wait(0.1)
    agree_on_name(store, 1, 2, timeout=10)
    assert done.wait(1)
    thread.join()
