"""These commands score given translations, and list how a translation could go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.console import load_translator, print_result, read_aligned_lines
from dragoman.cli.options import Device, Json, LengthPenalty, Model, With


def score(
    model: Model,
    source: Annotated[Path, typer.Option(help="Source lines.")],
    target: Annotated[Path, typer.Option(help="Their translations, line by line.")],
    with_: With = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Also print the log-probability of every piece.")
    ] = False,
    length_penalty: LengthPenalty = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Print the log-probability of each given translation.

    --json adds the score that search ranks by.
    """
    sources, targets = read_aligned_lines(source, target)
    translator = load_translator(model, *(with_ or ()), device=device)
    for one in translator.score(sources, targets, length_penalty=length_penalty):
        if as_json:
            print_result(json.dumps(one.to_dict(tokens=tokens), ensure_ascii=False))
        elif tokens:
            pieces = zip(one.tokens, one.log_probs, strict=True)
            listed = " ".join(f"{piece} {price:.4f}" for piece, price in pieces)
            print_result(f"{one.log_prob:.4f}\t{listed}")
        else:
            print_result(f"{one.log_prob:.4f}")


def alternatives(
    model: Model,
    text: Annotated[str, typer.Argument(help="A sentence.")],
    prefix: Annotated[str, typer.Option(help="How the translation begins, in whole words.")] = "",
    count: Annotated[int, typer.Option(help="How many words to list.")] = 5,
    with_: With = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """List the words that could come next in a translation, and where each leads."""
    found = load_translator(model, *(with_ or ()), device=device).alternatives(text, prefix, count)
    if as_json:
        print_result([one.to_dict() for one in found])
        return
    width = max((len(one.word) for one in found), default=0)
    for one in found:
        print_result(f"{one.probability:.4f}  {one.word:{width}}  {one.translation}")
