"""A name stands wherever a model directory can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dragoman

from ..conftest import Result
from ..serve.service_fixtures import translator

pytestmark = pytest.mark.slow

Command = Callable[..., Result]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two installed models that are joined by English."""
    home = tmp_path_factory.mktemp("named")
    translator(home / "de-en", "de-en", 1)
    translator(home / "en-ko", "en-ko", 2)
    return home


@pytest.fixture(autouse=True)
def here(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with some text, where the models are known by name."""
    monkeypatch.setenv("DRAGOMAN_MODELS", str(folder))
    monkeypatch.chdir(tmp_path)
    Path("a.de").write_text("the dog sees\nthe red house\n" * 50)
    Path("a.en").write_text("eht god sees\nder esuoh eht\n" * 50)


USES = {
    "translate": "translate NAME a.de",
    "translate with": "translate NAME a.de --with de-en",
    "translate in parts": "translate NAME a.de --out out --engine local",
    "evaluate": "evaluate NAME --source a.de --reference a.en",
    "evaluate against": "evaluate --hypotheses a.en --source a.de --reference a.en --against NAME",
    "calibrate": "calibrate NAME --source a.de --reference a.en",
    "inspect": "inspect NAME dog --out page.html",
    "score": "score NAME --source a.de --target a.en",
    "alternatives": "alternatives NAME dog",
    "info": "info NAME",
    "quantize": "quantize NAME --out small",
    "exportable": "export NAME --to ctranslate2",
    "bench": "bench translate NAME --source a.de --rounds 1 --alone 1 --sentences 4 --beam 1",
}


@pytest.mark.parametrize(
    "use",
    [pytest.param(use, marks=[pytest.mark.thorough] if use == "bench" else []) for use in USES],
)
def test_a_name_does_what_its_directory_does(use: str, folder: Path, command: Command) -> None:
    words = USES[use].split()
    found = command(*["de-en" if word == "NAME" else word for word in words])
    given = command(*[folder / "de-en" if word == "NAME" else word for word in words])
    assert found.status == 0, found.err
    assert found.status == given.status, given.err
    if use != "bench":
        assert (
            found.out == given.out.replace(str(folder / "de-en"), "de-en") or found.out == given.out
        )


def test_python_loads_names_and_pairs(folder: Path) -> None:
    text = "the dog sees"
    first, second = dragoman.load(folder / "de-en"), dragoman.load(folder / "en-ko")
    assert dragoman.load("de-en").translate(text) == first.translate(text)
    both = dragoman.load("de-ko")
    assert both.through == "en"
    said = first.translate(text, raw=True).text
    assert both.translate(text, raw=True).text == second.translate(said, raw=True).text
    with pytest.raises(
        dragoman.DragomanError, match="ko-de: no such model; installed: de-en, en-k"
    ):
        dragoman.load("ko-de")


PAIR_USES = {
    "translate": ("translate de-ko a.de", None),
    "evaluate": ("evaluate de-ko --source a.de --reference a.en", None),
    "calibrate": ("calibrate de-ko --source a.de --reference a.en", "calibrating needs one"),
    "score": ("score de-ko --source a.de --target a.en", "a score needs one"),
    "alternatives": ("alternatives de-ko dog", "a list of alternatives needs one"),
    "inspect": ("inspect de-ko dog --out page.html", "needs one; name de-en or en-ko"),
    "parts": ("translate de-ko a.de --out out --engine local", "--engine needs one"),
    "info": ("info de-ko", "de-ko: no such model; installed: de-en, en-ko"),
}


@pytest.mark.parametrize("use", PAIR_USES)
def test_two_models_do_what_two_can(use: str, command: Command, folder: Path) -> None:
    words, reason = PAIR_USES[use]
    found = command(*words.split())
    if reason is None:
        assert found.status == 0, found.err
        assert found.out
    else:
        assert (found.status, found.out) == (2, "")
        assert reason in found.err
        assert found.err.count("\n") == 1
    assert not (folder / "en-ko" / "calibration.json").exists()
