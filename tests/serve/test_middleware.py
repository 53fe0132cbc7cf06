"""Every answer has its headers, and every request its line in the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.serve.authentication import hash_key
from dragoman.serve.middleware import JsonFormatter

from .service_fixtures import ASK, Service


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
    lines = [json.dumps(record.__dict__.get("fields")) for record in caplog.records]
    metrics = service.client.get("/metrics").text
    assert len(lines) == 3
    for text in (*lines, metrics):
        assert not any(
            word in text for word in ("xylophone", "sesame", hash_key("sesame"), "testclient")
        )
    fields = json.loads(lines[0])
    assert {key: fields[key] for key in ("method", "route", "status", "items", "characters")} == {
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

    def fail(texts: list[str], **options: Any) -> Any:
        raise KeyError(texts[0])

    monkeypatch.setattr(service.inner.registry.models[0].translator, "translate", fail)
    assert service.post("/translate", ASK | {"q": "xylophone"}).status_code == 500
    (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    line = JsonFormatter().format(record)
    assert "xylophone" not in line
    assert json.loads(line)["error"] == "KeyError"
    assert json.loads(line)["trace"][-1].endswith("fail")
