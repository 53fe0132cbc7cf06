"""The int8 variant of a model directory, and which numbers a translator computes in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from dragoman.config import load_preset
from dragoman.errors import ConfigError, ModelError
from dragoman.inference import Translator, load
from dragoman.model_directory import INT8_FILE, load_model, open_model, write_int8_file
from dragoman.models.int8_weights import CACHE_LINE

from ...kernel import needs_kernel

pytestmark = needs_kernel

LINES = ["the old dog sees", "a", "red blue big small tree", ""]


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy that may be written to."""
    return Path(shutil.copytree(trained / "model", tmp_path / "model"))


def texts(path: Path, **options: str) -> list[str]:
    return [one.text for one in load(path, **options).translate(LINES)]  # type: ignore[arg-type]


def test_a_variant_translates_as_the_engine_made_of_the_weights_does(model: Path) -> None:
    before = [(one.text, one.score) for one in load(model).translate(LINES)]
    file = write_int8_file(load_model(model))
    assert file == model / INT8_FILE
    assert file.stat().st_size < (model / "weights.safetensors").stat().st_size * 0.6
    assert [(one.text, one.score) for one in load(model).translate(LINES)] == before


def test_with_a_variant_the_weights_are_not_read_until_they_are_needed(model: Path) -> None:
    write_int8_file(load_model(model))
    weights = model / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    translator = load(model)
    assert translator.translate("the old dog sees", align=False).text
    with pytest.raises(ModelError, match="truncated"):
        translator.translate("the old dog sees", diverse=2)


def test_a_variant_is_used_where_it_lies(model: Path) -> None:
    write_int8_file(open_model(model))
    engine = load(model)._engine
    assert engine is not None
    weights = [array for array in engine.packed.values() if array.dtype == np.int8]
    assert weights
    for array in weights:
        assert not array.flags.owndata
        assert not array.flags.writeable
        assert array.ctypes.data % CACHE_LINE == 0


def test_a_variant_can_be_made_again_under_a_translator(model: Path) -> None:
    write_int8_file(open_model(model))
    translator = load(model)
    weights = load_file(model / "weights.safetensors")
    save_file({n: torch.zeros_like(w) for n, w in weights.items()}, model / "weights.safetensors")
    before = [one.text for one in translator.translate(LINES)]
    write_int8_file(open_model(model))
    assert [one.text for one in translator.translate(LINES)] == before
    assert texts(model) != before


FOREIGN: dict[str, tuple[Callable[[dict[str, torch.Tensor]], object], str]] = {
    "a row less": (
        lambda w: w.update({"embedding.pieces.weight": w["embedding.pieces.weight"][:-1].clone()}),
        "embedding.pieces.weight should be",
    ),
    "one missing": (
        lambda w: w.pop("decoder.0.source_attention.key.weight"),
        "decoder.0.source_attention.key.weight should be 32×32 and is absent",
    ),
    "one too many": (
        lambda w: w.update({"encoder.7.feed_forward.inner.bias": torch.zeros(64)}),
        "encoder.7.feed_forward.inner.bias should be absent and is 64",
    ),
}


@pytest.mark.parametrize("change", FOREIGN)
def test_weights_of_another_model_are_refused(model: Path, change: str) -> None:
    weights = load_file(model / "weights.safetensors")
    FOREIGN[change][0](weights)
    save_file(weights, model / "weights.safetensors")
    for use in (load, lambda path: write_int8_file(open_model(path))):
        with pytest.raises(ModelError, match=rf"does not fit its config: {FOREIGN[change][1]}"):
            use(model)
    assert not (model / INT8_FILE).exists()


@pytest.mark.parametrize("form", [torch.bfloat16, torch.float16], ids=str)
def test_weights_in_half_as_many_bits_are_rounded_from_these(
    model: Path, form: torch.dtype
) -> None:
    file = model / "weights.safetensors"
    halves = {name: weight.to(form) for name, weight in load_file(file).items()}
    save_file({name: weight.float() for name, weight in halves.items()}, file)
    wanted = [(one.text, one.score) for one in load(model).translate(LINES)]
    save_file(halves, file)
    assert [(one.text, one.score) for one in load(model).translate(LINES)] == wanted


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "other card", "no header"])
def test_a_damaged_variant_is_refused_with_what_to_do(model: Path, damage: str) -> None:
    file = write_int8_file(load_model(model))
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-64])
    elif damage == "no header":
        file.write_bytes(b"not at all")
    else:
        card = model / "card.json"
        card.write_text(card.read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(ModelError, match=rf"{INT8_FILE}: .*dragoman quantize {model}"):
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


def test_a_line_that_asks_for_nothing_is_the_engines_whatever_its_neighbours_ask(
    model: Path,
) -> None:
    translator = load(model)
    alone = translator.translate(LINES[0])
    mixed = translator.translate([LINES[0]] * 3, prefix=["", "tac", ""], must=[[], [], ["dog"]])
    assert mixed[0] == alone
    assert mixed[1].text.startswith("tac")
    assert "dog" in mixed[2].text


@pytest.fixture(scope="module")
def quick(trained: Path) -> Translator:
    """A model that the engine computes; change nothing of it."""
    return load(trained / "model", device="cpu", precision="int8")


ODD = [
    "",
    " ",
    "\x00",
    "\ud800",
    "\udfff\ud800 dog",
    "\x1b[2J",
    "\u2581",
    "\u2028",
    "\r",
    "x" * 300,
]
odd = st.lists(st.text(max_size=20) | st.sampled_from(ODD), max_size=4).map("".join)


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=st.lists(odd, max_size=5), beam=st.sampled_from([1, 2]))
def test_any_text_is_translated_line_by_line(
    lines: list[str], beam: int, quick: Translator
) -> None:
    found = list(quick.translate_lines(lines, beam=beam, max_extra=5, window=3))
    assert [one.source for one in found] == lines
    for one in found:
        assert one.text.encode("utf-8").decode() == one.text
        assert len(one.text.splitlines()) <= max(1, len(one.source.splitlines()))
        assert bool(one.text.strip()) or not quick.tokenizer.normalize(one.source)


@pytest.mark.slow
@pytest.mark.parametrize("character", [" ", "\x01", "\t"], ids=ascii)
def test_ten_megabytes_of_nothing_come_back_as_they_are(character: str, quick: Translator) -> None:
    line = character * 10_000_000
    assert quick.translate(["dog", line])[1].text == line
    assert quick.translate(line, raw=True).text == ""


def test_a_word_without_end_stays_or_is_translated_in_parts(quick: Translator) -> None:
    told: list[str] = []
    quick.warn = told.append
    word = "um" * 5_000
    assert quick.translate(word).text == word
    found = quick.translate(word, beam=1, max_extra=0, protect=False)
    assert found.text
    assert len(told) == 1
    assert "was cut into parts" in told[0]
