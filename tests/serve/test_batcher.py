"""All requests share the steps, and none sees the others."""

from __future__ import annotations

import shutil
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.errors import ModelError
from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.continuous_batching import ContinuousBatch
from dragoman.serve.batcher import MAX_BATCHES, BatchedEngine, Batcher
from dragoman.serve.errors import ServiceError
from dragoman.serve.limits import RequestContext
from dragoman.serve.prometheus_metrics import Metrics

from ..shortlist_helpers import give_shortlist
from .service_fixtures import SENTENCES, Service, start, wait_for

pytestmark = pytest.mark.skipif(
    kernel_library.load_kernel() is None, reason="the kernel is not compiled"
)


def slowly(monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[int]:
    """Steps that take a while; how many sentences each went on with."""
    step, seen = ContinuousBatch.step, []

    def wait(self: ContinuousBatch) -> Any:
        seen.append(len(self))
        time.sleep(seconds)
        return step(self)

    monkeypatch.setattr(ContinuousBatch, "step", wait)
    return seen


def run(
    service: Service, texts: list[str], context: RequestContext | None = None, **options: Any
) -> list[str]:
    translator = service.inner.registry.models[0].translator
    with (context or RequestContext()).activate():
        return [one.text for one in translator.translate(texts, **options)]


@pytest.mark.slow
def test_batched_output_is_identical_to_solo_output(service: Service) -> None:
    alone = dragoman.load(service.inner.registry.models[0].translator.path, device="cpu")
    searches: list[dict[str, Any]] = [{}, {"beam": 1}, {"beam": 3, "n_best": 3}, {"max_extra": 30}]
    translator = service.inner.registry.models[0].translator
    with ThreadPoolExecutor(16) as pool:
        jobs = [
            (text, options, pool.submit(translator.translate, text, **options))
            for text in SENTENCES[:12]
            for options in searches
        ]
        for text, options, job in jobs:
            assert job.result() == alone.translate(text, **options)


@pytest.mark.skipif(
    kernel_library.load_kernel() is None,
    reason="the kernel is not compiled",
)
def test_with_shortlists_each_model_uses_its_own(models: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(models / "ende", tmp_path / "ende"))
    with pytest.raises(ModelError, match="has no shortlist; make one with: dragoman shortlist"):
        start([path], shortlist=True)
    give_shortlist(path, 20)
    service = start([path, models / "trees"], shortlist=True)
    try:
        found = run(service, SENTENCES[:8])
    finally:
        service.inner.close()
    with_it, without = (
        [one.text for one in dragoman.load(path, shortlist=given).translate(SENTENCES[:8])]
        for given in (True, False)
    )
    assert found == with_it
    assert found != without


def test_requests_share_the_steps(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(threads=1)
    seen = slowly(monkeypatch, 0.01)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: run(service, [text], beam=1), SENTENCES[:8]))
    assert max(seen) >= 6


@pytest.mark.slow
def test_a_short_request_does_not_wait_for_a_long_one(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The long one has more sentences waiting than there are places."""
    service = served(threads=1)
    seen = slowly(monkeypatch, 0.005)
    with ThreadPoolExecutor(2) as pool:
        many = [" ".join([text] * 3) for text in SENTENCES * 5]
        long = pool.submit(run, service, many, beam=4, max_extra=0, raw=True)
        wait_for(lambda: bool(seen) and max(seen) >= 24)
        before = len(seen)
        run(service, ["the dog"], beam=4, max_extra=0, raw=True)
        assert len(seen) - before <= 8, "it joined at the next step, and is short"
        assert not long.done()
        long.result()
        assert len(seen) > 40


@pytest.mark.slow
def test_requests_take_turns(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two with more sentences than there are places leave none free; a third need not wait."""
    service = served(threads=1)
    seen = slowly(monkeypatch, 0.005)
    with ThreadPoolExecutor(3) as pool:
        many = [" ".join([text] * 2) for text in SENTENCES * 3]
        long = [pool.submit(run, service, many, beam=4, max_extra=0) for _ in range(2)]
        wait_for(lambda: bool(seen) and seen[-1] >= 30)
        run(service, ["the dog"], beam=4, max_extra=0)
        assert not any(one.done() for one in long)
        assert all(len(one.result()) == len(many) for one in long)


def test_a_request_that_is_left_frees_its_places_within_a_step(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(threads=1)
    seen = slowly(monkeypatch, 0.02)
    context, second = RequestContext(), RequestContext()
    with ThreadPoolExecutor(2) as pool:
        left = pool.submit(run, service, SENTENCES[:10], context, beam=1, max_extra=300)
        other = pool.submit(run, service, SENTENCES[:1], second, beam=1, max_extra=300)
        wait_for(lambda: bool(seen) and seen[-1] == 11)
        context.cancel()
        steps = len(seen)
        with pytest.raises(ServiceError, match="disconnected"):
            left.result()
        assert len(seen) <= steps + 2
        wait_for(lambda: len(seen) > steps + 1)
        assert seen[steps + 1] == 1
        assert not other.done()
        second.cancel()


def test_a_deadline_is_504_though_the_worker_never_answers(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(threads=1)
    release = threading.Event()
    monkeypatch.setattr(ContinuousBatch, "step", lambda self: release.wait(5) and [])
    try:
        began = time.monotonic()
        with pytest.raises(ServiceError) as refusal:
            run(service, ["the dog"], RequestContext(began + 0.2))
        assert refusal.value.status_code == 504
        assert time.monotonic() - began < 4
    finally:
        release.set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RuntimeError("boom"), 500),
        (OSError(), 500),
        (MemoryError(), 503),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), 503),
    ],
)
def test_a_worker_that_fails_answers_and_goes_on(
    served: Callable[..., Service],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
) -> None:
    service = served(threads=1)
    made, start_batch = [], BatchedEngine.start_batch
    monkeypatch.setattr(
        BatchedEngine, "start_batch", lambda *args: made.append(args) or start_batch(*args)
    )
    want = run(service, SENTENCES[:3], raw=True)

    def fail(self: ContinuousBatch) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(ContinuousBatch, "step", fail)
        body = {"text": "the dog", "source": "en", "target": "de", "raw": True}
        answer = service.post("/v1/translate", body)
        assert answer.status_code == status
        assert "error" in answer.json()
    assert run(service, SENTENCES[:3], raw=True) == want
    assert len(made) == 2, "what the failure left half-written is not used again"
    assert b"dragoman_worker_failures_total 1.0" in service.inner.metrics.render()
    assert service.client.get("/health").status_code == 200


def test_a_sentence_that_cannot_be_read_is_answered_and_counted(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of its batch: nobody else was in it."""
    service = served(threads=1)

    def fail(*_: Any) -> Any:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(ContinuousBatch, "admit", fail)
        with pytest.raises(ServiceError) as refusal:
            run(service, ["the dog"])
        assert refusal.value.status_code == 500
    assert b"dragoman_worker_failures_total 1.0" in service.inner.metrics.render()
    assert run(service, ["the dog"])


def test_no_memory_for_a_new_kind_of_search_is_503(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(threads=1)

    def fail(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(BatchedEngine, "start_batch", fail)
        with pytest.raises(ServiceError) as refusal:
            run(service, ["the dog"], beam=2)
        assert refusal.value.status_code == 503
    assert b"dragoman_worker_failures_total 1.0" in service.inner.metrics.render()
    assert run(service, ["the dog"], beam=2)


def test_many_kinds_of_search_do_not_pile_up(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[ContinuousBatch]] = []
    start_batch = BatchedEngine.start_batch

    def noted(self: BatchedEngine, options: Any) -> ContinuousBatch:
        found = start_batch(self, options)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(BatchedEngine, "start_batch", noted)
    service = served(threads=1)
    for extra in range(MAX_BATCHES + 8):
        assert run(service, ["the dog"], beam=1, max_extra=extra, raw=True)
    assert len(made) == MAX_BATCHES + 8
    assert sum(one() is not None for one in made) <= MAX_BATCHES


def test_a_closed_batcher_refuses() -> None:
    batcher = Batcher(1, Metrics())
    batcher.close()
    with pytest.raises(ServiceError, match="shutting down"):
        batcher.search((None, None), [[5]])  # type: ignore[arg-type]
