"""These commands show what a model does, and how it was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.console import load_translator, print_result
from dragoman.cli.options import Device, Model
from dragoman.errors import ConfigError


def inspect(
    model: Model,
    sentence: Annotated[str, typer.Argument(help="The sentence to inspect.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write, an .html file.")],
    translation: Annotated[
        str | None, typer.Option(help="Its translation; default: the model's own.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Write a page that shows how a sentence is translated.

    It has the attention, the search and the model's numbers.
    The page is one file and needs nothing else: any browser opens it, without a network.
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"{out}: the page is HTML; name it {out.with_suffix('.html').name}")
    translator = load_translator(model, device=device)
    page = translator.inspect(sentence, translation=translation)
    page.save(out)
    print_result(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def plot(
    runs: Annotated[list[Path], typer.Argument(help="One run, or several to compare.")],
    out: Annotated[
        Path | None, typer.Option(help="The picture to write; default: curves.png in the run.")
    ] = None,
) -> None:
    """Draw the curves of a run: loss, scores, speed."""
    from dragoman.inspection.training_curves import draw_curves

    print_result(str(draw_curves(runs if len(runs) > 1 else runs[0], out)))
