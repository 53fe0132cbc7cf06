"""The demos, as short as they can be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.workflows import demo
from dragoman.workflows.installed_demo import try_installed_translators

from ..conftest import Result
from ..serve.service_fixtures import translator


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models, which may be filled."""
    monkeypatch.setenv("DRAGOMAN_MODELS", str(tmp_path))
    return tmp_path


def test_installed_translators_are_tried_without_training(
    folder: Path, command: Callable[..., Result]
) -> None:
    translator(folder / "de-en", "de-en", 1)
    translator(folder / "en-ko", "en-ko", 2)
    found = command("demo", "--no-training")
    assert found.status == 0, found.err
    titles = [line for line in found.out.splitlines() if line.endswith(" s):")]
    assert [title.partition(", loaded")[0] for title in titles] == [
        "German to English (de-en",
        "English to Korean (en-ko",
        "German to Korean through English (de-en and en-ko",
    ]
    assert found.out.count("\n  → ") == 9
    assert 'dragoman translate "Guten Morgen! Haben Sie gut geschlafen?" --to ko' in found.out


def test_a_broken_model_does_not_end_the_demo(folder: Path) -> None:
    translator(folder / "en-de", "en-de", 1)
    (folder / "en-de" / "weights.safetensors").write_bytes(b"")
    said: list[str] = []
    assert try_installed_translators(said.append)
    assert said[0].startswith("English to German (en-de): ")


def test_without_installed_translators_the_demo_trains_as_ever(
    folder: Path, command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []
    monkeypatch.setattr(demo, "run_demo", lambda *arguments: ran.append(arguments))
    found = command("demo")
    assert (found.status, found.out) == (0, "")
    assert ran == [(Path("runs/demo-de"), "de", None)]
    found = command("demo", "--no-training")
    assert (found.status, found.err) == (
        2,
        "dragoman: no translator is installed; get one, as in: dragoman get en-de\n",
    )
    assert len(ran) == 1


@pytest.mark.slow
def test_the_parsing_demo_trains_scores_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SPLIT_SIZES", {"train": 2000, "valid": 3, "test": 5})
    demo.run_parsing_demo(tmp_path, steps=2)
    out = capsys.readouterr().out
    assert "2,000 English trees to train on, 5 to test on" in out
    assert "labelled F1|evalb|prm:COLLINS|punctuation:gold" in out
    assert f"dragoman parse {tmp_path / 'run' / 'model'} --pretty" in out
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8").startswith("<svg")
    demo.run_parsing_demo(tmp_path, steps=2)
    assert "already exists and is continued" in capsys.readouterr().out
