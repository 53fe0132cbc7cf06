"""Two models that share a language serve a pair that none of them has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import dragoman
from dragoman.cli.serve import _find_models
from dragoman.inference.pivot_translator import PivotTranslator

from .service_fixtures import Process, Service, start, translator

TEXT = "the old dog. the red house sees."


@pytest.fixture(scope="module")
def folder(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed models: de-en, en-de, en-ko and a parser."""
    home = tmp_path_factory.mktemp("installed")
    for name, path in (("de-en", "deen"), ("en-de", "ende"), ("trees", "trees")):
        (home / name).symlink_to(models / path)
    translator(home / "en-ko", "en-ko", 3)
    return home


@pytest.fixture(scope="module")
def joined(folder: Path) -> Iterator[Service]:
    found = start([folder / name for name in ("de-en", "en-de", "en-ko", "trees")])
    yield found
    found.inner.close()


def test_pairs_are_listed_by_all_apis(joined: Service) -> None:
    listed = {one["name"]: one for one in joined.client.get("/v1/models").json()}
    assert list(listed) == ["de-en", "en-de", "en-ko", "trees", "de-ko"]
    assert listed["de-ko"]["through"] == "en"
    assert listed["de-ko"]["default"]
    assert listed["en-ko"]["through"] is None
    languages = {one["code"]: one["targets"] for one in joined.client.get("/languages").json()}
    assert languages == {"de": ["en", "ko"], "en": ["de", "ko"]}
    targets = joined.client.get("/v2/languages", params={"type": "target"}).json()
    assert [one["language"] for one in targets] == ["EN", "DE", "KO"]


def test_a_model_is_loaded_once(joined: Service) -> None:
    registry = joined.inner.registry
    [pivot] = registry.pivots
    assert isinstance(pivot.translator, PivotTranslator)
    assert pivot.translator.first is registry.find_name("de-en").translator
    assert pivot.translator.second is registry.find_name("en-ko").translator
    assert pivot.batched == registry.find_name("en-ko").batched
    assert set(joined.client.get("/health").json()["models"]) == {
        "de-en",
        "en-de",
        "en-ko",
        "trees",
    }


def test_all_apis_translate_by_two_models(joined: Service, folder: Path) -> None:
    wanted = PivotTranslator(
        dragoman.load(folder / "de-en", device="cpu"), dragoman.load(folder / "en-ko", device="cpu")
    ).translate(TEXT)
    asked = {"source": "de", "target": "ko"}
    own = joined.post("/v1/translate", asked | {"text": TEXT}).json()["translations"][0]
    assert own["text"] == wanted.text
    assert own["through"] == "en"
    assert own["log_prob"] == pytest.approx(wanted.log_prob, abs=1e-5)
    named = joined.post("/v1/translate", {"model": "de-ko", "text": TEXT, "align": True}).json()
    assert named["translations"][0]["text"] == wanted.text
    assert named["translations"][0]["alignment"]
    libre = joined.post("/translate", asked | {"q": TEXT}).json()
    assert libre["translatedText"] == wanted.text
    deepl = joined.post(
        "/v2/translate", {"text": [TEXT], "source_lang": "DE", "target_lang": "KO"}
    ).json()
    assert deepl["translations"][0]["text"] == wanted.text
    direct = joined.post("/v1/translate", {"text": TEXT, "source": "en", "target": "ko"}).json()
    assert "through" not in direct["translations"][0]


def test_the_source_is_detected_among_all_that_lead_there(joined: Service) -> None:
    text = "Die Katze schläft den ganzen Tag auf dem alten Sofa."
    asked = {"q": text, "source": "auto", "target": "ko"}
    assert joined.post("/translate", asked).json()["detectedLanguage"]["language"] == "de"


def test_markup_and_documents_go_through_both(joined: Service) -> None:
    asked = {"q": "<p>the <b>old</b> dog</p>", "source": "de", "target": "ko", "format": "html"}
    found = joined.post("/translate", asked).json()["translatedText"]
    assert found.startswith("<p>")
    assert found.count("<b>") == found.count("</b>") == 1
    sent = joined.client.post(
        "/translate_file",
        data={"source": "de", "target": "ko"},
        files={"file": ("a.html", b"<p>the <i>red</i> house</p>")},
    )
    assert sent.status_code == 200
    assert "<i>" in joined.client.get(sent.json()["translatedFileUrl"]).text


def test_a_stream_has_no_tokens_of_the_language_in_between(joined: Service) -> None:
    asked = {"text": "the dog", "source": "de", "target": "ko"}
    wanted = joined.post("/v1/translate", asked).json()["translations"][0]["text"]
    events = joined.post("/v1/translate/stream", asked).text.strip().split("\n\n")
    [event] = events
    name, data = event.split("\n")
    assert name == "event: translation"
    assert json.loads(data.removeprefix("data: "))["text"] == wanted


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/score", {"text": ["a"], "translation": ["b"]}),
        ("/v1/alternatives", {"text": "a"}),
        ("/v1/attention", {"text": "a"}),
    ],
)
def test_what_needs_one_model_is_refused(joined: Service, path: str, body: dict[str, str]) -> None:
    found = joined.post(path, body | {"model": "de-ko"})
    assert found.status_code == 400
    assert "translated through en by two models" in found.json()["error"]
    assert "name de-en or en-ko" in found.json()["error"]


def test_without_arguments_all_installed_models_are_served(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_MODELS", str(folder))
    assert [one.name for one in _find_models(())] == ["de-en", "en-de", "en-ko", "trees"]
    assert [one.name for one in _find_models(["de-ko"])] == ["de-en", "en-ko"]
    assert [one.name for one in _find_models(["de-ko", "en-ko"])] == ["de-en", "en-ko"]
    process = Process()
    try:
        listed = httpx.get(f"{process.url}/v1/models").json()
        assert {"de-en", "en-ko", "de-ko"} <= {one["name"] for one in listed}
        asked = {"q": TEXT, "source": "de", "target": "ko"}
        assert httpx.post(f"{process.url}/translate", json=asked).status_code == 200
    finally:
        process.popen.terminate()
        lines = process.end()
    logged = [line for line in lines if line.get("event") == "model"]
    assert {"name": "de-ko", "through": "en"}.items() <= logged[-1].items()
