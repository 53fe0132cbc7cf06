"""The commands that take models elsewhere and bring them here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.console import read_lines, say, show
from dragoman.errors import ConfigError

__all__ = ["export", "import_model"]


def export(
    model: Annotated[
        str, typer.Argument(help="A model directory, or a run's; without DIR also a preset.")
    ],
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Where to; not there, or empty.")
    ] = None,
    to: Annotated[str, typer.Option(help="huggingface, ctranslate2 or onnx.")] = "huggingface",
    quantization: Annotated[
        str | None, typer.Option(help="Of ctranslate2: int8, float16 and others.")
    ] = None,
    sample: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Sentences to compare on, too.")
    ] = None,
) -> None:
    """Write a model for another runtime, and compare the two.

    The directory appears when the runtime has translated a sample as Dragoman does. Without DIR
    nothing is written: the command says whether such a model can be exported, trained or not.
    """
    from dragoman.interop.support import PACKAGES, check_fit, require

    if quantization is not None and to != "ctranslate2":
        raise ConfigError(f"--quantization is for ctranslate2, not for {to}; leave it out")
    if directory is None:
        from dragoman.config import Config, load_preset

        path = Path(model)
        config = Config.load(path / "config.toml") if path.is_dir() else load_preset(model)
        check_fit(config, to)
        show(f"{model} can be exported to {to}")
        return
    from dragoman.interop.export import export as export_model
    from dragoman.model_directory import load_model

    loaded = load_model(Path(model))
    check_fit(loaded.config, to)
    require(*PACKAGES[to])
    options = {"quantization": quantization} if quantization is not None else {}
    texts = list(read_lines(sample)) if sample else []
    found = export_model(loaded, directory, to, texts=texts, **options)
    say(f"compared with {to}: {found}")
    show(str(directory))


def import_model(
    source: Annotated[
        Path, typer.Argument(help="A Marian model as Hugging Face keeps it, already downloaded.")
    ],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The model directory to make.")],
    sample: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Sentences to compare on, too.")
    ] = None,
) -> None:
    """Make a model directory of a Marian model, such as those of OPUS-MT, and compare the two.

    Only weights are read, never code. The model translates, is evaluated and goes on training as
    any other.
    """
    from dragoman.interop.marian_import import import_marian

    texts = list(read_lines(sample)) if sample else []
    found = import_marian(source, directory, texts=texts)
    say(f"compared with huggingface: {found}")
    show(str(directory))
