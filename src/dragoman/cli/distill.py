"""The command that makes a fast student of a teacher."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.console import show
from dragoman.cli.options import Json, Quiet, Set
from dragoman.cli.stages import carry_out

__all__ = ["distill"]


def distill(
    teacher: Annotated[Path, typer.Argument(help="A model directory, or a run's.")],
    files: Annotated[
        list[Path],
        typer.Argument(help="The training pairs: two aligned files; or one .tsv, .jsonl or .tmx."),
    ],
    out: Annotated[Path, typer.Option(help="The directory of all stages; continued if begun.")],
    also: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="MODEL", help="One more teacher, an ensemble; or more."),
    ] = None,
    valid: Annotated[
        list[Path] | None, typer.Option(metavar="FILES", help="Validation pairs, by people.")
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILES", help="More, scored at every validation, never chosen by."),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="More source text, a sentence a line; again for more."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="The student's: 12-1, 6-2, …; or a .toml file; default: the teacher's."),
    ] = None,
    set_: Set = None,
    name: Annotated[
        str, typer.Option(help="Of the student's run in --out, if there are several.")
    ] = "run",
    beam: Annotated[int, typer.Option(help="Hypotheses the teacher keeps; 1 is greedy.")] = 4,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's α.")] = None,
    n_best: Annotated[
        int, typer.Option(help="Of so many translations take the nearest to the reference.")
    ] = 1,
    keep_originals: Annotated[
        bool, typer.Option("--keep-originals", help="Learn from the pairs as they are, too.")
    ] = False,
    shards: Annotated[int, typer.Option(help="So many processes translate.")] = 1,
    shard: Annotated[int, typer.Option(help="Which of them this is, from 1.")] = 1,
    translate_only: Annotated[
        bool, typer.Option("--translate-only", help="Stop when the new pairs are there.")
    ] = False,
    window: Annotated[int, typer.Option(help="Sentences translated between two savings.")] = 2000,
    device: Annotated[
        str, typer.Option(help="To translate on: cpu, cuda, or auto: the GPU if any.")
    ] = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Translate the training sources with a teacher, and train a fast student on that.

    Interrupted at any moment, the same command goes on; docs/distillation.md.
    """
    from dragoman.config import load_preset
    from dragoman.workflows.distill import Plan
    from dragoman.workflows.distill import distill as teach

    plan = Plan(
        teachers=[teacher, *(also or ())],
        files=files,
        text=text or (),
        valid=valid or (),
        test=test or (),
        beam=beam,
        length_penalty=length_penalty,
        n_best=n_best,
        window=window,
        shards=shards,
        shard=shard,
        keep_originals=keep_originals,
        name=name,
        config=load_preset(preset) if preset else None,
        assignments=set_ or (),
    )
    found = carry_out(teach, plan, out, device=device, quiet=quiet, translate_only=translate_only)
    made = found.model or found.pairs
    if as_json:
        show(
            {"text": found.text, "missing": found.missing}
            | {"pairs": found.pairs and str(found.pairs)}
            | {"model": found.model and str(found.model)}
        )
    elif made is not None:
        show(str(made))
