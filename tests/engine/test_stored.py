"""The int8 variant of a model directory, and which numbers a translator computes in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dragoman.config import load_preset
from dragoman.errors import ConfigError, ModelError
from dragoman.model_directory import load_model
from dragoman.translate import load
from dragoman.translate.engine import VARIANT, native, quantize

pytestmark = pytest.mark.skipif(native.kernel() is None, reason="the kernel is not compiled")

LINES = ["the old dog sees", "a", "red blue big small tree", ""]


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy that may be written to."""
    return Path(shutil.copytree(trained / "model", tmp_path / "model"))


def texts(path: Path, **options: str) -> list[str]:
    return [one.text for one in load(path, **options).translate(LINES)]  # type: ignore[arg-type]


def test_a_variant_translates_as_the_engine_made_of_the_weights_does(model: Path) -> None:
    before = [(one.text, one.score) for one in load(model).translate(LINES)]
    file = quantize(load_model(model))
    assert file == model / VARIANT
    assert file.stat().st_size < (model / "weights.safetensors").stat().st_size * 0.6
    assert [(one.text, one.score) for one in load(model).translate(LINES)] == before


def test_with_a_variant_the_weights_are_not_read_until_they_are_needed(model: Path) -> None:
    quantize(load_model(model))
    weights = model / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    translator = load(model)
    assert translator.translate("the old dog sees", align=False).text
    with pytest.raises(ModelError, match="truncated"):
        translator.translate("the old dog sees", align=True)


@pytest.mark.parametrize("damage", ["cut", "other card", "no header"])
def test_a_damaged_variant_is_refused_with_what_to_do(model: Path, damage: str) -> None:
    file = quantize(load_model(model))
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-64])
    elif damage == "no header":
        file.write_bytes(b"not at all")
    else:
        card = model / "card.json"
        card.write_text(card.read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(ModelError, match=rf"{VARIANT}: .*dragoman quantize {model}"):
        load(model)
    assert texts(model, precision="float32")


def test_precision_says_which_numbers(model: Path) -> None:
    whole = load(model, precision="float32").translate("the old dog sees")
    rounded = load(model, precision="int8").translate("the old dog sees")
    assert whole.score != rounded.score
    assert whole.score == pytest.approx(rounded.score, rel=0.05)


def test_what_has_no_int8_says_so(model: Path) -> None:
    with pytest.raises(ConfigError, match="an ensemble is computed by PyTorch"):
        load(model, model, precision="int8")
    config = load_preset("base").overridden(["model.positions=rotary"])
    (model / "config.toml").write_text(config.to_toml(), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"model\.positions = rotary"):
        load(model, precision="int8")


def test_every_line_has_its_translation_in_its_place(model: Path) -> None:
    lines = [*LINES * 40, "🙂", "\x00\x07", "x" * 500]
    found = list(load(model).translate_lines(lines))
    assert [one.source for one in found] == lines
    assert [one.text for one in found[:4]] == [one.text for one in found[4:8]]
    assert found[3].text == ""
