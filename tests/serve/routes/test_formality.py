"""Requests ask for a formality, as DeepL's clients do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.config import Config
from dragoman.model_directory import save_model
from dragoman.models import build
from dragoman.models.weights import get_weights
from dragoman.serve.service import TranslationService
from dragoman.text.tokenizer import Tokenizer

from ...conftest import reversals
from ..service_fixtures import SENTENCES, SMALL, Service, start
from .test_deepl import send, wait

ASK: dict[str, Any] = {"text": SENTENCES[:1], "source_lang": "EN", "target_lang": "DE"}
WISHES = ("more", "less", "default")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with tags, and weights as they were drawn, so that a tag changes what it says."""
    directory = tmp_path_factory.mktemp("tagged") / "tagged"
    config = Config().overridden([*SMALL, 'data.languages=["en","de"]', "data.formality=0.5"])
    texts = [side for pair in reversals(300) for side in pair]
    tokenizer = Tokenizer.train(texts, config.tokenizer, tags=("<formal>", "<informal>"))
    torch.manual_seed(1)
    network = build(config.model, *tokenizer.sizes)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    save_model(directory, get_weights(network), config, tokenizer, {})
    return directory


@pytest.fixture(scope="module")
def tagged(model: Path) -> Iterator[Service]:
    """A service of that model."""
    found = start([model])
    with found.client:
        yield found
    found.inner.close()


def wanted(inner: TranslationService, wish: str, text: str = SENTENCES[0]) -> str:
    """What the translator itself says, and no other formality."""
    translator = inner.registry.models[0].translator
    texts = {one: translator.translate(text, formality=one).text for one in WISHES}
    assert len(set(texts.values())) == len(WISHES)
    return texts[wish]


@pytest.mark.parametrize("wish", WISHES)
def test_deepl_and_our_own_routes_say_what_the_translator_says(tagged: Service, wish: str) -> None:
    found = tagged.post("/v2/translate", ASK | {"formality": wish})
    assert found.json()["translations"][0]["text"] == wanted(tagged.inner, wish)
    form = tagged.client.post("/v2/translate", data=ASK | {"formality": wish})
    assert form.json() == found.json()
    own = tagged.post("/v1/translate", {"text": SENTENCES[0], "formality": wish})
    assert own.json()["translations"][0]["text"] == wanted(tagged.inner, wish)


def test_a_preference_is_followed_where_it_can_be(tagged: Service, service: Service) -> None:
    for wish in ("more", "less"):
        found = tagged.post("/v2/translate", ASK | {"formality": f"prefer_{wish}"})
        assert found.json()["translations"][0]["text"] == wanted(tagged.inner, wish)
        plain = service.post("/v2/translate", ASK | {"formality": f"prefer_{wish}"})
        assert plain.json() == service.post("/v2/translate", ASK).json()


def test_a_stream_has_the_formality_too(tagged: Service) -> None:
    found = tagged.post("/v1/translate/stream", {"text": SENTENCES[0], "formality": "less"})
    last = found.text.strip().rpartition("data: ")[2]
    assert json.loads(last)["text"] == wanted(tagged.inner, "less")
    assert "formal" not in found.text


@pytest.mark.parametrize("wish", ["more", "less"])
def test_a_model_without_tags_refuses_it(service: Service, wish: str) -> None:
    for path in ("/v1/translate", "/v1/translate/stream"):
        body = {"text": SENTENCES[0], "source": "en", "target": "de", "formality": wish}
        found = service.post(path, body)
        assert found.status_code == 400
        assert "trained without formality tags" in found.json()["error"]
    found = service.post("/v2/translate", ASK | {"formality": wish})
    assert found.status_code == 400
    assert "trained without formality tags" in found.json()["message"]
    sent = send(service, "a.txt", b"the dog", formality=wish)
    assert sent.status_code == 400


@pytest.mark.parametrize("path", ["/v1/translate", "/v2/translate"])
def test_a_wish_that_does_not_exist_is_refused(service: Service, path: str) -> None:
    ours = {"text": SENTENCES[0], "source": "en", "target": "de"}
    found = service.post(path, (ours if path.startswith("/v1") else ASK) | {"formality": "most"})
    assert found.status_code == 400
    assert "formality" in found.text


def test_the_languages_say_whether_a_formality_can_be_asked_for(tagged: Service) -> None:
    find = tagged.client.get
    assert find("/v2/languages?type=target").json()[0]["supports_formality"] is True
    assert find("/v2/languages?type=source").json()[0]["supports_formality"] is False


@pytest.mark.parametrize("wish", WISHES)
def test_documents_have_it(tagged: Service, wish: str) -> None:
    handle = send(tagged, "a.txt", SENTENCES[0].encode(), formality=wish).json()
    assert wait(tagged, handle)["status"] == "done"
    key = {"document_key": handle["document_key"]}
    found = tagged.post(f"/v2/document/{handle['document_id']}/result", key)
    assert found.text.strip() == wanted(tagged.inner, wish)


def test_a_document_of_an_unnamed_language_is_refused_when_it_is_known(
    served: Callable[..., Service],
) -> None:
    service = served()
    with service.client:
        sent = service.client.post(
            "/v2/document",
            data={"target_lang": "DE", "formality": "more"},
            files={"file": ("a.txt", SENTENCES[0].encode())},
        )
        state = wait(service, sent.json())
    assert state["status"] == "error"
    assert "trained without formality tags" in state["error_message"]
