"""What is too much, too fast or not allowed is refused, at once and in JSON."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.inference.cpu import kernel_library
from dragoman.inference.cpu.continuous_batching import Stream
from dragoman.serve import authentication as guarding
from dragoman.serve.middleware import JsonLines
from dragoman.serve.settings import Settings, digest, read_keys
from dragoman.serve.throughput import Pace

from .serving import SENTENCES, Service, wait_for

ASK: dict[str, Any] = {"q": "the dog", "source": "en", "target": "de"}
needs_kernel = pytest.mark.skipif(
    kernel_library.kernel() is None, reason="the kernel is not compiled"
)


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
    release, step = threading.Event(), Stream.step

    def wait(self: Stream) -> Any:
        release.wait(10)
        return step(self)

    monkeypatch.setattr(Stream, "step", wait)
    return release


@needs_kernel
def test_above_the_bound_503_comes_at_once_and_below_it_all_is_well_again(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(queue=4)
    release = hold(monkeypatch)
    with ThreadPoolExecutor(4) as pool:
        accepted = [pool.submit(service.post, "/translate", ASK) for _ in range(4)]
        wait_for(lambda: service.desk._pace.accepted == 4)
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
    assert service.desk._pace.accepted == 0
    release.set()


def test_what_could_not_be_answered_in_time_is_not_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    pace = Pace()
    pace.accept(100)
    now += 4
    pace.answer(8)
    assert pace.seconds(1) == 0, "too few to tell"
    pace.answer(32)
    assert pace.seconds(20) == pytest.approx((60 + 20) / 10)
    pace.answer(60)
    now += 100
    pace.accept(1)
    assert pace.seconds(1) == 0, "it has been idle"


def test_keys_are_asked_for_in_each_dialects_way(served: Callable[..., Service]) -> None:
    service = served(keys=("secret",))
    assert service.post("/translate", ASK).status_code == 400
    assert service.post("/translate", ASK | {"api_key": "wrong"}).status_code == 403
    assert service.post("/translate", ASK | {"api_key": "secret"}).status_code == 200
    assert service.client.post("/translate", data=ASK | {"api_key": "secret"}).status_code == 200
    assert service.post("/v1/translate", {"text": "a"}).status_code == 401
    for value, status in (("Bearer wrong", 403), ("Bearer secret", 200)):
        head = {"authorization": value}
        assert service.post("/v1/translate", {"text": "a"}, headers=head).status_code == status
    for path in ("/languages", "/health", "/health/live", "/frontend/settings"):
        assert service.client.get(path).status_code == 200


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
    from pathlib import Path

    monkeypatch.setattr(guarding, "REMEMBERED", 10)
    guard = guarding.Guard(Settings(models=(Path("m"),), rate=5))
    for n in range(100):
        guard.slow(f"address {n}")
    assert len(guard._buckets) == 10


def test_keys_come_from_a_file_and_the_environment(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_KEYS", "one,two three")
    (tmp_path / "keys").write_text("# mine\nfour\n\n five \n", encoding="utf-8")
    names = ("one", "two", "three", "four", "five")
    assert read_keys(tmp_path / "keys") == frozenset(map(digest, names))
    (tmp_path / "none").write_text("\n", encoding="utf-8")
    for path in (tmp_path / "none", tmp_path / "missing"):
        with pytest.raises(ConfigError):
            read_keys(path)


def test_no_other_site_may_call_unless_told(served: Callable[..., Service]) -> None:
    ask = {"origin": "https://a.example", "access-control-request-method": "POST"}
    closed, opened = served(), served(origins=("https://a.example",))
    assert (
        "access-control-allow-origin"
        not in closed.client.options("/translate", headers=ask).headers
    )
    answer = opened.client.options("/translate", headers=ask)
    assert answer.headers["access-control-allow-origin"] == "https://a.example"
    other = opened.client.options("/translate", headers=ask | {"origin": "https://b.example"})
    assert "access-control-allow-origin" not in other.headers


def test_every_answer_has_the_headers_a_browser_keeps_to(service: Service) -> None:
    answers = [service.client.get(path) for path in ("/", "/languages", "/nothing")]
    answers += [service.post("/translate", {}), service.post("/translate", {"q": "a" * 3_000_000})]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert [one.status_code for one in answers] == [200, 200, 404, 400, 413]


def test_neither_text_nor_key_nor_address_is_logged_or_counted(
    served: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    service = served(keys=("sesame",))
    with caplog.at_level(logging.INFO, "dragoman.serve"):
        service.post("/translate", ASK | {"q": "xylophone", "api_key": "sesame"})
        service.post("/translate", ASK | {"q": "xylophone", "source": "xylophone"})
        service.client.get("/xylophone?api_key=sesame")
    lines = [json.dumps(record.__dict__.get("facts")) for record in caplog.records]
    metrics = service.client.get("/metrics").text
    assert len(lines) == 3
    for text in (*lines, metrics):
        assert not any(
            word in text for word in ("xylophone", "sesame", digest("sesame"), "testclient")
        )
    facts = json.loads(lines[0])
    assert {key: facts[key] for key in ("method", "route", "status", "items", "characters")} == {
        "method": "POST",
        "route": "/translate",
        "status": 200,
        "items": 1,
        "characters": 9,
    }


def test_an_error_is_logged_without_its_words(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    service = served(precision="float32")

    def fail(texts: list[str]) -> Any:
        raise KeyError(texts[0])

    monkeypatch.setattr(service.desk.fleet.models[0].translator, "translate", fail)
    assert service.post("/translate", ASK | {"q": "xylophone"}).status_code == 500
    (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    line = JsonLines().format(record)
    assert "xylophone" not in line
    assert json.loads(line)["error"] == "KeyError"
    assert json.loads(line)["trace"][-1].endswith("fail")


@pytest.mark.parametrize("precision", ["auto", "float32"])
def test_metrics_count_what_was_done(served: Callable[..., Service], precision: str) -> None:
    service = served(precision=precision)
    texts = SENTENCES[:3]
    service.post("/translate", ASK | {"q": texts})
    service.post("/translate", {})
    lines = service.client.get("/metrics").text
    for wanted in (
        'dragoman_requests_total{method="POST",route="/translate",status="200"} 1.0',
        'dragoman_requests_total{method="POST",route="/translate",status="400"} 1.0',
        "dragoman_accepted_sentences 0.0",
        "dragoman_ready 1.0",
        'dragoman_sentences_total{model="ende"} 3.0',
        "process_resident_memory_bytes",
    ):
        assert wanted in lines
    found = service.desk.fleet.models[0].translator.translate(texts)
    tokens = sum(len(one.tokens) for one in found)
    assert f'dragoman_tokens_total{{model="ende"}} {tokens}.0' in lines
    if precision == "auto" and kernel_library.kernel() is not None:
        assert 'dragoman_running_sentences{model="ende"} 0.0' in lines
        assert 'dragoman_batch_fill_count{model="ende"}' in lines


@needs_kernel
def test_health_tells_whether_the_models_answer(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(names=("ende", "deen", "trees"))
    assert service.client.get("/health").json() == {
        "status": "ok",
        "models": {"ende": True, "deen": True, "trees": True},
    }

    def fail(self: Stream) -> Any:
        raise RuntimeError

    service.desk._answered.clear()
    monkeypatch.setattr(Stream, "step", fail)
    found = service.client.get("/health")
    assert found.status_code == 503
    assert found.json()["models"] == {"ende": False, "deen": False, "trees": True}


def test_a_closing_service_is_alive_and_not_ready(served: Callable[..., Service]) -> None:
    service = served()
    assert service.client.get("/health/ready").status_code == 200
    service.desk.drain()
    assert service.client.get("/health/ready").status_code == 503
    assert service.client.get("/health/live").status_code == 200
    refused = service.post("/translate", ASK)
    assert refused.status_code == 503
    assert refused.headers["connection"] == "close"


def test_what_cannot_be_stopped_is_answered_before_the_end_all_the_same(
    served: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served(precision="float32", deadline=500, patience=0.2)
    begun, release = threading.Event(), threading.Event()

    def wait(texts: list[str]) -> list[str]:
        begun.set()
        release.wait(20)
        return []

    monkeypatch.setattr(service.desk.fleet.models[0].translator, "translate", wait)
    with ThreadPoolExecutor(1) as pool, service.client:
        asked = pool.submit(service.post, "/translate", ASK)
        try:
            assert begun.wait(10)
            began = time.monotonic()
            service.desk.drain()
            assert asked.result(5).status_code == 504
            service.desk.close()
            assert time.monotonic() - began < 5
        finally:
            release.set()


def test_what_was_accepted_has_a_while_after_the_end_and_no_longer(
    served: Callable[..., Service],
) -> None:
    desk = served(deadline=500, patience=5).desk
    with desk.accepted(1) as ticket:
        assert 400 < ticket.seconds <= 500
        desk.drain()
        assert 4 < ticket.seconds <= 5


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from starlette.exceptions import HTTPException

    from dragoman.serve import middleware

    monkeypatch.setattr(middleware, "PATIENCE", 0.05)
    body = middleware._Body(lambda: asyncio.sleep(10), 100)  # type: ignore[arg-type,return-value]
    with pytest.raises(HTTPException) as refusal:
        asyncio.run(body.receive())
    assert refusal.value.status_code == 408


def test_models_without_languages_or_with_one_name_are_refused(
    served: Callable[..., Service], models: Any
) -> None:
    with pytest.raises(ConfigError, match="--pair silent=en-de"):
        served(names=("silent",))
    with pytest.raises(ConfigError, match="same name"):
        served(names=("ende", "ende"))
    with pytest.raises(ConfigError, match="there are the models ende"):
        served(pairs={"other": ("en", "de")})
    service = served(names=("silent",), pairs={"silent": ("ko", "en")})
    assert service.client.get("/languages").json()[0]["name"] == "Korean"
