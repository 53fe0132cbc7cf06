"""The commands export and import."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from dragoman.cli import models
from dragoman.errors import ConfigError
from dragoman.model_directory import LoadedModel

app = typer.Typer()
app.command()(models.export)
app.command("import")(models.import_model)


def run(*arguments: object) -> str:
    found = CliRunner().invoke(app, [str(word) for word in arguments], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.mark.slow
def test_export_says_what_it_compared_and_where_the_model_is(
    make: Callable[..., LoadedModel], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: dragoman[export]")
    make()
    sentences = tmp_path / "sentences"
    sentences.write_text("A cat sleeps.\n\nTwo cats sleep.\n")
    out = tmp_path / "out"
    options = ["--to", "ctranslate2", "--sample", sentences]
    assert str(out) in run("export", tmp_path / "model", out, *options)
    assert (out / "model.bin").exists()


def test_a_preset_is_examined_before_anything_is_trained() -> None:
    assert "europarl can be exported to huggingface" in run("export", "europarl")
    with pytest.raises(ConfigError, match=r"model\.window = 8 cannot be exported to ctranslate2"):
        run("export", "restricted", "--to", "ctranslate2")
    assert "6-2-tiny can be exported to marian" in run("export", "6-2-tiny", "--to", "marian")
    with pytest.raises(ConfigError, match=r"model\.norm = pre cannot .* marian in int8"):
        run("export", "6-2-tiny", "--to", "marian", "--quantization", "int8")


@pytest.mark.slow
def test_a_model_is_examined_by_its_config(make: Callable[..., LoadedModel]) -> None:
    directory = make("model.positions=rotary").path
    with pytest.raises(ConfigError, match=r"model\.positions = rotary"):
        run("export", directory)
    assert "can be exported to onnx" in run("export", directory, "--to", "onnx")


def test_quantization_is_refused_where_it_means_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="--quantization works only with --to ctranslate2 or marian, not onnx"
    ):
        run("export", "base", tmp_path / "out", "--to", "onnx", "--quantization", "int8")
