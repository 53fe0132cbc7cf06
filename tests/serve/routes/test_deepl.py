"""DeepL's fields, statuses and errors."""

from __future__ import annotations

from collections.abc import Callable
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
