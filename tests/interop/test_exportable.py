"""What cannot be exported is refused by its config, with the setting that prevents it."""

from __future__ import annotations

import pytest

from dragoman.config import Config, load_preset, preset_names
from dragoman.errors import ConfigError
from dragoman.interop import export
from dragoman.interop.export import RUNTIMES, check_exportable, find_obstacle, require_packages


@pytest.mark.parametrize("to", RUNTIMES)
@pytest.mark.parametrize("preset", ["base", "big", "small", "europarl", "multi30k"])
def test_the_presets_that_translate_can_go_everywhere(preset: str, to: str) -> None:
    assert find_obstacle(load_preset(preset), to) is None


@pytest.mark.parametrize(
    ("assignment", "fits"),
    [
        ("model.positions=rotary", ["onnx"]),
        ("model.positions=relative", ["onnx"]),
        ("model.window=4", ["onnx"]),
        ("model.d_k=16", ["onnx"]),
        ("model.d_v=16", ["onnx"]),
        ("model.norm_kind=rms", ["ctranslate2", "onnx", "marian"]),
        ("model.activation=swiglu", ["ctranslate2", "onnx"]),
        ("model.positions=learned", ["ctranslate2", "onnx", "marian"]),
        ("model.activation=gelu", ["huggingface", "ctranslate2", "onnx", "marian"]),
        ("model.shared_embeddings=false", ["huggingface", "ctranslate2", "onnx", "marian"]),
        ("model.experts=4", []),
        ("model.architecture=recurrent", []),
        ("data.task=parsing", []),
    ],
)
def test_a_setting_decides_where_a_model_can_go(assignment: str, fits: list[str]) -> None:
    config = Config().overridden([assignment])
    assert [to for to in RUNTIMES if find_obstacle(config, to) is None] == fits


def test_the_refusal_names_the_setting_and_another_runtime() -> None:
    config = Config().overridden(["model.positions=rotary"])
    with pytest.raises(ConfigError, match=r"^model\.positions = rotary .*huggingface.*--to onnx$"):
        check_exportable(config, "huggingface")
    lstm = load_preset("lstm")
    with pytest.raises(ConfigError, match=r"model\.architecture = recurrent .* either$"):
        check_exportable(lstm, "onnx")
    learned = Config().overridden(["model.positions=learned"])
    with pytest.raises(ConfigError, match=r"norm = post with model\.positions = learned"):
        check_exportable(learned, "huggingface")


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(ConfigError, match="choose huggingface, ctranslate2, onnx, marian"):
        check_exportable(Config(), "tensorflow")


@pytest.mark.parametrize(
    ("assignment", "reason"),
    [
        ("model.norm=pre", "norm = pre"),
        ("model.positions=learned", "positions = learned"),
        ("model.norm_kind=rms", "norm_kind = rms"),
        ("model.d_ff=1000", "d_ff = 1000"),
    ],
)
def test_marian_has_fewer_models_in_int8(assignment: str, reason: str) -> None:
    config = Config().overridden([assignment])
    check_exportable(config, "marian")
    with pytest.raises(
        ConfigError,
        match=rf"^model\.{reason} cannot be exported to marian in int8: .* in float32 alone$",
    ):
        check_exportable(config, "marian", "int8")
    check_exportable(Config(), "marian", "int8")


@pytest.mark.slow
def test_every_preset_either_fits_or_says_why() -> None:
    for name in preset_names():
        for to in RUNTIMES:
            found = find_obstacle(load_preset(name), to)
            assert found is None or found.startswith(("model.", "data.task"))


def test_a_missing_package_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "has_package", lambda name: False)
    with pytest.raises(ConfigError, match=r"^onnx is not .* pip install 'dragoman\[export\]'$"):
        require_packages("onnx", "onnxscript")
    with pytest.raises(ConfigError, match=r"^pymarian is not .* 'dragoman\[marian\]'$"):
        require_packages("pymarian")
