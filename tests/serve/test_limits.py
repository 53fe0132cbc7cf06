"""What is too much, too fast or too late is refused, at once and in JSON."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dragoman.inference.cpu.continuous_batching import ContinuousBatch
from dragoman.serve import limits
from dragoman.serve.errors import ServiceError

from .service_fixtures import ASK, Service, needs_kernel, wait_for


def test_characters_items_lines_and_bytes_have_bounds(served: Callable[..., Service]) -> None:
    service = served(max_characters=100, max_items=3, max_body=2000, queue=5)
    assert service.post("/translate", ASK | {"q": "a" * 100}).status_code == 200
    for body in ({"q": "a" * 101}, {"q": ["a"] * 4}, {"q": "a\n" * 6}, {"q": "a" * 3000}):
        found = service.post("/translate", ASK | body)
        assert found.status_code == 413, body
        assert list(found.json()) == ["error"]
    assert service.post("/v2/translate", {"text": ["a" * 3000]}).json().keys() == {"message"}


def test_a_body_without_a_length_is_read_only_so_far(served: Callable[..., Service]) -> None:
    service = served(max_body=1000)
    sent = 0

    def endless() -> Any:
        nonlocal sent
        for _ in range(1000):
            sent += 100
            yield b"x" * 100

    head = {"content-type": "application/json"}
    found = service.client.post("/translate", content=endless(), headers=head)
    assert found.status_code == 413
    assert found.headers["connection"] == "close"


def hold(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Steps that wait until they are let go."""
    release, step = threading.Event(), ContinuousBatch.step

    def wait(self: ContinuousBatch) -> Any:
        release.wait(10)
        return step(self)

    monkeypatch.setattr(ContinuousBatch, "step", wait)
    return release


@needs_kernel
def test_above_the_bound_503_comes_at_once_and_below_it_all_is_well_again(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(queue=4)
    release = hold(monkeypatch)
    with ThreadPoolExecutor(4) as pool:
        accepted = [pool.submit(service.post, "/translate", ASK) for _ in range(4)]
        wait_for(lambda: service.inner.admission.waiting == 4)
        times = []
        for _ in range(5):
            began = time.perf_counter()
            refused = service.post("/translate", ASK)
            times.append(time.perf_counter() - began)
            assert refused.status_code == 503
        assert min(times) < 0.05, "whatever else this machine does"
        assert int(refused.headers["retry-after"]) >= 1
        assert "error" in refused.json()
        release.set()
        assert [one.result().status_code for one in accepted] == [200] * 4
    assert service.post("/translate", ASK).status_code == 200


@needs_kernel
def test_a_deadline_is_504_and_gives_its_place_back(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(deadline=0.3)
    release = hold(monkeypatch)
    began = time.perf_counter()
    found = service.post("/translate", ASK)
    assert found.status_code == 504
    assert "deadline" in found.json()["error"]
    assert time.perf_counter() - began < 5
    assert service.inner.admission.waiting == 0
    release.set()


def test_what_could_not_be_answered_in_time_is_not_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    throughput = limits.Throughput()
    throughput.accept(100)
    now += 4
    throughput.answer(8)
    assert throughput.estimate_seconds(1) == 0, "too few to tell"
    throughput.answer(32)
    assert throughput.estimate_seconds(20) == pytest.approx((60 + 20) / 10)
    throughput.answer(60)
    now += 100
    throughput.accept(1)
    assert throughput.estimate_seconds(1) == 0, "it has been idle"


def test_a_minute_has_so_many_requests_and_no_more(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(rate=3)
    codes = [service.post("/translate", ASK).status_code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]
    found = service.post("/translate", ASK)
    assert found.json() == {"error": "Slowdown: 3 per minute"}
    assert 1 <= int(found.headers["retry-after"]) <= 20
    now = time.monotonic() + 21
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert service.post("/translate", ASK).status_code == 200
    assert service.post("/translate", ASK).status_code == 429


def test_rates_are_forgotten_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CLIENTS", 10)
    limiter = limits.RateLimiter(5)
    for n in range(100):
        limiter.check(f"address {n}")
    assert len(limiter._buckets) == 10


@pytest.mark.slow
def test_what_cannot_be_stopped_is_answered_before_the_end_all_the_same(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(precision="float32", deadline=500, drain_seconds=0.2)
    begun, release = threading.Event(), threading.Event()

    def wait(texts: list[str], **options: Any) -> list[str]:
        begun.set()
        release.wait(20)
        return []

    monkeypatch.setattr(service.inner.registry.models[0].translator, "translate", wait)
    with ThreadPoolExecutor(1) as pool, service.client:
        asked = pool.submit(service.post, "/translate", ASK)
        try:
            assert begun.wait(10)
            began = time.monotonic()
            service.inner.admission.drain()
            assert asked.result(5).status_code == 504
            service.inner.close()
            assert time.monotonic() - began < 5
        finally:
            release.set()


def test_what_was_accepted_has_a_while_after_the_end_and_no_longer(
    served: Callable[..., Service],
) -> None:
    admission = served(deadline=500, drain_seconds=5).inner.admission
    with admission.admit(1) as context:
        assert 400 < context.seconds_left <= 500
        admission.drain()
        assert 4 < context.seconds_left <= 5


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.05)
    body = limits.LimitedBody(lambda: asyncio.sleep(10), 100)  # type: ignore[arg-type,return-value]
    with pytest.raises(ServiceError) as error:
        asyncio.run(body.receive())
    assert error.value.status_code == 408
