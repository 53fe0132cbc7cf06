"""LibreTranslate's fields, statuses and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..service_fixtures import SENTENCES, Service

ASK: dict[str, Any] = {"q": SENTENCES[0], "source": "en", "target": "de"}


def expected(service: Service, text: str, model: int = 0) -> str:
    return service.inner.registry.models[model].translator.translate(text).text


def test_a_text_becomes_a_text_and_a_list_a_list(service: Service) -> None:
    one = service.post("/translate", ASK)
    assert one.status_code == 200
    assert one.json() == {"translatedText": expected(service, SENTENCES[0])}
    several = service.post("/translate", ASK | {"q": SENTENCES[:3]})
    assert several.json() == {"translatedText": [expected(service, s) for s in SENTENCES[:3]]}
    assert service.post("/translate", ASK | {"q": []}).json() == {"translatedText": []}
    assert service.post("/translate", ASK | {"q": ""}).json() == {"translatedText": ""}


def test_a_form_does_as_well_as_json(service: Service) -> None:
    found = service.client.post("/translate", data=ASK | {"alternatives": "2"})
    assert found.status_code == 200
    assert found.json() == service.post("/translate", ASK | {"alternatives": 2}).json()
    parts = service.client.post("/translate", files={k: (None, v) for k, v in ASK.items()})
    assert parts.json() == service.post("/translate", ASK).json()


def test_a_form_may_hold_characters_as_they_are(service: Service) -> None:
    """As `curl -d 'q=안녕'` sends them."""
    kind = {"content-type": "application/x-www-form-urlencoded"}
    text = f"{SENTENCES[0]} 안녕, Zürich & Köln 😀".replace("&", "%26")
    body = "&".join(f"{name}={value}" for name, value in (ASK | {"q": text}).items())
    found = service.client.post("/translate", content=body.encode(), headers=kind)
    assert found.json() == service.post("/translate", ASK | {"q": text.replace("%26", "&")}).json()
    broken = service.client.post("/translate", content=b"q=\xff&source=en", headers=kind)
    assert (broken.status_code, broken.json()["error"][:16]) == (400, "Invalid request:")


def test_alternatives_come_only_when_asked_for(service: Service) -> None:
    found = service.post("/translate", ASK | {"alternatives": 3}).json()
    assert len(found["alternatives"]) == 3
    translator = service.inner.registry.models[0].translator
    wanted = translator.translate(SENTENCES[0], n_best=4)
    assert found["alternatives"] == [one.text for one in wanted.alternatives]
    several = service.post("/translate", ASK | {"q": SENTENCES[:2], "alternatives": 1}).json()
    assert [len(one) for one in several["alternatives"]] == [1, 1]


def test_lines_and_the_white_space_around_them_stay(service: Service) -> None:
    text = f"  {SENTENCES[0]}\n\n{SENTENCES[1]} \n"
    found = service.post("/translate", ASK | {"q": text}).json()["translatedText"]
    assert found == f"  {expected(service, SENTENCES[0])}\n\n{expected(service, SENTENCES[1])} \n"


def test_the_pair_chooses_the_model(service: Service) -> None:
    found = service.post("/translate", ASK | {"source": "de", "target": "en"}).json()
    assert found["translatedText"] == expected(service, SENTENCES[0], 1)
    assert found != service.post("/translate", ASK).json()


ENGLISH = "The weather is very nice today, isn't it?"


def test_each_item_is_detected_for_itself(served: Callable[..., Service], models: Any) -> None:
    service = served(names=("ende", "silent"), pairs={"silent": ("fr", "de")})
    texts = [ENGLISH, "Le temps est très beau aujourd'hui."]
    found = service.post("/translate", ASK | {"q": texts, "source": "auto"}).json()
    assert [one["language"] for one in found["detectedLanguage"]] == ["en", "fr"]
    assert all(50 < one["confidence"] <= 100 for one in found["detectedLanguage"])
    ranked = service.post("/detect", {"q": texts[1]}).json()
    assert [one["language"] for one in ranked] == ["fr", "en"]
    assert ranked[0]["confidence"] > 90
    assert ranked[1]["confidence"] < 1
    ranked = service.post("/detect", {"q": "오늘은 날씨가 아주 좋습니다."}).json()
    assert all(one["confidence"] < 1 for one in ranked)


def test_one_language_is_detected_as_several_are(served: Callable[..., Service]) -> None:
    service = served(names=("ende",))
    for text, least, most in ((ENGLISH, 90, 100), ("Das Wetter ist heute sehr schön.", 0, 1)):
        [found] = service.post("/detect", {"q": text}).json()
        assert found["language"] == "en"
        assert least <= found["confidence"] <= most


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": None}, "missing q"),
        ({"source": None}, "missing source"),
        ({"target": None}, "missing target"),
        ({"q": 7}, "q"),
        ({"q": ["a", 7]}, "q"),
        ({"q": {"a": 1}}, "q"),
        ({"source": ["en"]}, "source"),
        ({"alternatives": "many"}, "alternatives"),
        ({"alternatives": -1}, "alternatives"),
        ({"alternatives": True}, "alternatives"),
        ({"format": "pdf"}, "format"),
        ({"source": "xx"}, "xx is not supported"),
        ({"target": "xx"}, "xx is not supported"),
        ({"source": "en", "target": "en"}, "en to en is not supported"),
    ],
)
def test_what_is_wrong_is_a_400_that_says_so(
    service: Service, change: dict[str, Any], message: str
) -> None:
    body = {key: value for key, value in (ASK | change).items() if value is not None}
    found = service.post("/translate", body)
    assert found.status_code == 400
    assert list(found.json()) == ["error"]
    assert message in found.json()["error"]


def test_half_a_character_is_a_400(service: Service) -> None:
    body = b'{"q": "\\ud800", "source": "en", "target": "de"}'
    found = service.client.post(
        "/translate", content=body, headers={"content-type": "application/json"}
    )
    assert found.status_code == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'"q"', b"[" * 100_000, b"null"])
def test_a_body_that_is_no_json_is_a_400(service: Service, body: bytes) -> None:
    found = service.client.post(
        "/translate", content=body, headers={"content-type": "application/json"}
    )
    assert found.status_code == 400
    assert "error" in found.json()


def test_languages_have_names_and_targets(service: Service) -> None:
    assert service.client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": ["en"]},
    ]
    settings = service.client.get("/frontend/settings").json()
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert settings["keyRequired"] is False
    assert ".docx" in settings["supportedFilesFormat"]


def test_html_keeps_its_tags_and_translates_its_text(service: Service) -> None:
    text = f"<p>{SENTENCES[0]}</p><script>the dog</script><ul><li>{SENTENCES[1]} &amp; so</li></ul>"
    found = service.post("/translate", ASK | {"q": text, "format": "html"})
    assert found.status_code == 200, found.text
    result = found.json()["translatedText"]
    assert result.startswith(f"<p>{expected(service, SENTENCES[0])}</p><script>the dog</script>")
    assert result.endswith("</li></ul>")
    assert "the dog" not in result.replace("<script>the dog</script>", "")
