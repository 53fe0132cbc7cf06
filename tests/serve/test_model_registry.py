"""Models are found by name and languages, and what cannot be served is refused at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.serve.settings import NamedModel

from .service_fixtures import Service, start


def test_models_without_languages_or_with_one_name_are_refused(
    served: Callable[..., Service], models: Any
) -> None:
    with pytest.raises(ConfigError, match="--pair silent=en-de"):
        served(names=("silent",))
    with pytest.raises(
        ConfigError, match=r"are both named ende; give one another name, as in other=.*/ende"
    ):
        served(names=("ende", "ende"))
    with pytest.raises(ConfigError, match="no such model is served; the models are ende"):
        served(pairs={"other": ("en", "de")})
    service = served(names=("silent",), pairs={"silent": ("ko", "en")})
    assert service.client.get("/languages").json()[0]["name"] == "Korean"


def test_two_models_of_one_pair_are_told_apart_by_their_names(models: Path) -> None:
    first, second = f"news={models / 'ende'}", f"books={models / 'silent'}"
    service = start([first, second], pairs={"books": ("en", "de")})
    try:
        listed = service.client.get("/v1/models").json()
        assert [(one["name"], one["default"]) for one in listed] == [
            ("news", True),
            ("books", False),
        ]
        assert service.client.get("/languages").json()[0]["targets"] == ["de"]
        ask = {"text": "the dog"}
        for name in ("news", "books"):
            with_name = service.post("/v1/translate", ask | {"model": name})
            assert with_name.status_code == 200
        asked = [{"source": "en", "target": "de"}, {"model": "news"}]
        answers = [service.post("/v1/translate", ask | choice).json() for choice in asked]
        assert answers[0] == answers[1]
        assert service.inner.registry.find_pair("en", "de").name == "news"
        without = service.post("/v1/translate", ask)
        assert without.status_code == 400
        assert "several models are served; name the model" in without.json()["error"]
        assert set(service.client.get("/health").json()["models"]) == {"news", "books"}
    finally:
        service.inner.close()


@pytest.mark.parametrize(
    ("text", "name", "path"),
    [
        ("runs/news/model", "news", "runs/news/model"),
        ("runs/news/best", "news", "runs/news/best"),
        ("runs/news", "news", "runs/news"),
        ("old=runs/news/best", "old", "runs/news/best"),
        ("old=a=b", "old", "a=b"),
        ("lr=0.1", "lr=0.1", "lr=0.1"),
    ],
)
def test_a_model_is_named_after_its_directory_or_as_asked(
    text: str, name: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lr=0.1").mkdir()  # a directory that is there is no name and directory
    monkeypatch.chdir(tmp_path)
    assert NamedModel.parse(text) == (name, Path(path))


@pytest.mark.parametrize("text", ["=runs/mine", "news="])
def test_half_a_name_and_directory_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write a name and a model directory"):
        NamedModel.parse(text)


TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en" datatype="plaintext" segtype="sentence"
 creationtool="x" creationtoolversion="1" adminlang="en" o-tmf="x"/><body>
<tu><tuv xml:lang="en"><seg>the dog.</seg></tuv><tuv xml:lang="de"><seg>der Köter.</seg></tuv></tu>
</body></tmx>
"""


def test_a_translation_memory_is_used_by_the_models_of_its_languages(
    served: Callable[..., Service], tmp_path: Path
) -> None:
    file = tmp_path / "known.tmx"
    file.write_text(TMX, encoding="utf-8")
    service = served(names=("ende", "deen"), memories=(file,))
    asked = {"q": "the dog. the dog.", "source": "en", "target": "de"}
    found = service.post("/translate", asked).json()["translatedText"]
    assert found == "der Köter. der Köter."
    back = service.post("/translate", asked | {"source": "de", "target": "en"}).json()
    assert "Köter" not in back["translatedText"]
    assert file.read_text(encoding="utf-8") == TMX


def test_a_memory_that_no_model_can_use_is_refused(
    served: Callable[..., Service], tmp_path: Path
) -> None:
    file = tmp_path / "known.tmx"
    file.write_text(TMX.replace('"de"', '"fr"'), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"known\.tmx"):
        served(memories=(file,))
