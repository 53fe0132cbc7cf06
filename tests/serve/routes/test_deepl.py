"""DeepL's fields, statuses and errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ..service_fixtures import SENTENCES, Service

ASK: dict[str, Any] = {"text": SENTENCES[:2], "source_lang": "EN", "target_lang": "DE"}


@pytest.mark.slow
def test_texts_become_translations_with_what_they_cost(service: Service) -> None:
    translator = service.inner.registry.models[0].translator
    found = service.post("/v2/translate", ASK)
    assert found.json() == {
        "translations": [
            {
                "detected_source_language": "EN",
                "text": translator.translate(text).text,
                "billed_characters": len(text),
            }
            for text in SENTENCES[:2]
        ]
    }


def test_the_source_need_not_be_named_and_regions_do_not_matter(
    served: Callable[..., Service],
) -> None:
    service = served(names=("deen",))
    found = service.post("/v2/translate", {"text": [SENTENCES[0]], "target_lang": "EN-GB"})
    assert found.json()["translations"][0]["detected_source_language"] == "DE"


def test_a_form_does_as_well_as_json(service: Service) -> None:
    found = service.client.post("/v2/translate", data=ASK)
    assert found.json() == service.post("/v2/translate", ASK).json()
    single = service.client.post("/v2/translate", data=ASK | {"text": SENTENCES[0]})
    assert single.json()["translations"] == found.json()["translations"][:1]


@pytest.mark.parametrize(
    "change",
    [{"text": None}, {"text": []}, {"text": [1]}, {"target_lang": None}, {"target_lang": "XX"}],
)
def test_what_is_wrong_is_a_400_with_a_message(service: Service, change: dict[str, Any]) -> None:
    body = {key: value for key, value in (ASK | change).items() if value is not None}
    found = service.post("/v2/translate", body)
    assert found.status_code == 400
    assert list(found.json()) == ["message"]


def test_a_key_is_in_the_header_and_its_characters_are_counted(
    served: Callable[..., Service],
) -> None:
    service = served(keys=("one", "two"))
    assert service.post("/v2/translate", ASK).status_code == 403
    wrong = {"authorization": "DeepL-Auth-Key three"}
    assert service.post("/v2/translate", ASK, headers=wrong).status_code == 403
    one, two = ({"authorization": f"DeepL-Auth-Key {key}"} for key in ("one", "two"))
    assert service.post("/v2/translate", ASK, headers=one).status_code == 200
    counts = [
        service.client.get("/v2/usage", headers=key).json()["character_count"] for key in (one, two)
    ]
    assert counts == [sum(map(len, ASK["text"])), 0]


def test_languages_are_of_sources_or_of_targets(served: Callable[..., Service]) -> None:
    service = served()
    assert [one["language"] for one in service.client.get("/v2/languages").json()] == ["EN"]
    found = service.client.get("/v2/languages?type=target").json()
    assert found == [{"language": "DE", "name": "German", "supports_formality": False}]


# --- documents ---


def send(service: Service, name: str, content: bytes, **fields: str) -> Any:
    data = {"source_lang": "EN", "target_lang": "DE"} | fields
    return service.client.post("/v2/document", data=data, files={"file": (name, content)})


def wait(service: Service, handle: dict[str, str]) -> dict[str, Any]:
    body = {"document_key": handle["document_key"]}
    for _ in range(200):
        state: dict[str, Any] = service.post(f"/v2/document/{handle['document_id']}", body).json()
        if state["status"] in ("done", "error"):
            return state
        time.sleep(0.05)
    raise AssertionError(state)


@pytest.fixture
def service_of_documents(served: Callable[..., Service]) -> Iterator[Service]:
    """A service that goes on between requests."""
    found = served()
    with found.client:
        yield found


def test_a_document_is_sent_asked_after_and_fetched_once(service_of_documents: Service) -> None:
    service = service_of_documents
    translator = service.inner.registry.models[0].translator
    content = f"# {SENTENCES[0]}\n\n```\ncode\n```\n".encode()
    handle = send(service, "a.md", content).json()
    state = wait(service, handle)
    assert state == {
        "document_id": handle["document_id"],
        "status": "done",
        "billed_characters": len(SENTENCES[0]),
    }
    key = {"document_key": handle["document_key"]}
    found = service.post(f"/v2/document/{handle['document_id']}/result", key)
    wanted = translator.translate(SENTENCES[0]).text
    assert found.text == f"# {wanted}\n\n```\ncode\n```\n"
    assert service.post(f"/v2/document/{handle['document_id']}/result", key).status_code == 404


def test_a_document_in_another_language_is_told_of(service_of_documents: Service) -> None:
    service = service_of_documents
    text = "안녕하세요. 저는 학생입니다. 오늘은 날씨가 아주 좋습니다."
    state = wait(service, send(service, "a.txt", text.encode()).json())
    assert state["status"] == "done"
    assert state["issues"] == [{"kind": "language", "detail": "ko", "repaired": False}]


def test_a_broken_document_says_what_is_wrong(service_of_documents: Service) -> None:
    service = service_of_documents
    state = wait(service, send(service, "a.docx", b"no zip").json())
    assert state["status"] == "error"
    assert state["error_message"]
    assert "\n" not in state["error_message"]


def test_nobody_gets_the_document_of_another(service_of_documents: Service) -> None:
    service = service_of_documents
    handle = send(service, "a.txt", b"the dog").json()
    other = {"document_key": "0" * 64}
    assert service.post(f"/v2/document/{handle['document_id']}", other).status_code == 404
    assert service.post("/v2/document/NO/result", other).status_code == 404
    wait(service, handle)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("a.exe", {}),
        ("a", {}),
        ("a.txt", {"output_format": "pdf"}),
        ("a.txt", {"source_lang": "XX"}),
    ],
)
def test_a_document_that_cannot_be_translated_is_refused_at_once(
    name: str, fields: dict[str, str], service: Service
) -> None:
    assert send(service, name, b"the dog", **fields).status_code == 400
