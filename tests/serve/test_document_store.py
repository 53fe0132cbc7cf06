"""Documents are kept for a while, and as long as there is room."""

from __future__ import annotations

import pytest

from dragoman.serve.document_store import DocumentStore
from dragoman.serve.errors import ServiceError


def is_kept(store: DocumentStore[str], name: str) -> bool:
    try:
        return store.get(name) == name
    except ServiceError:
        return False


def test_the_oldest_go_when_there_is_no_room() -> None:
    store: DocumentStore[str] = DocumentStore(max_bytes=250)
    for name in ("first", "second", "third"):
        store.put(name, name, 100)
    assert [is_kept(store, name) for name in ("first", "second", "third")] == [False, True, True]
    store.put("large", "large", 1000)
    assert [is_kept(store, name) for name in ("second", "third", "large")] == [False, False, True]


def test_all_go_after_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("dragoman.serve.document_store.time.monotonic", lambda: now[0])
    store: DocumentStore[str] = DocumentStore(seconds=10)
    store.put("old", "old", 1)
    now[0] = 9.0
    assert is_kept(store, "old")
    store.put("new", "new", 1)
    now[0] = 11.0
    assert not is_kept(store, "old")
    assert is_kept(store, "new")
    store.put("newer", "newer", 1)
    assert list(store._kept) == ["new", "newer"]


def test_what_was_fetched_can_be_forgotten() -> None:
    store: DocumentStore[str] = DocumentStore()
    store.put("one", "one", 1)
    store.drop("one")
    store.drop("never there")
    with pytest.raises(ServiceError, match="no such document") as refused:
        store.get("one")
    assert refused.value.status_code == 404
