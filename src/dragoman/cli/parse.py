"""This command parses text into trees."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.console import load_parser, print_result, read_lines
from dragoman.cli.options import Beam, Device, Json, LengthPenalty, Precision, Tokenized, Window
from dragoman.errors import ConfigError
from dragoman.system.numpy_threads import import_numpy_without_threads

if TYPE_CHECKING:
    from dragoman.inference.parser import Parse


def parse(
    model: Annotated[Path, typer.Argument(help="A parser's directory, or a run directory.")],
    files: Annotated[
        list[Path] | None, typer.Argument(help="Text, one sentence per line; default: stdin.")
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", metavar="MODEL", help="Another parser, for an ensemble; can be repeated."
        ),
    ] = None,
    tokenized: Tokenized = False,
    beam: Beam = None,
    n_best: Annotated[int, typer.Option(help="Trees for each line, best first.")] = 1,
    length_penalty: LengthPenalty = None,
    pretty: Annotated[bool, typer.Option("--pretty", help="Draw the trees.")] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also draw each tree as DIR/LINE.svg.")
    ] = None,
    window: Window = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: Json = False,
) -> None:
    """Parse lines into trees; their order and number are kept.

    An empty line stays empty. With --n-best, each line becomes several: its number, score and tree
    separated by tabs.
    """
    if pretty and as_json:
        raise ConfigError("--pretty draws for people and --json writes for programs; choose one")
    import_numpy_without_threads()
    parser = load_parser([model, *(also or [])], device, precision)
    interactive = not files and sys.stdin.isatty()
    found = parser.parse_lines(
        read_lines(files or [Path("-")]),
        tokenized=tokenized,
        window=1 if interactive else window,
        beam=beam,
        n_best=n_best,
        length_penalty=length_penalty,
    )
    for number, one in enumerate(found, 1):
        _show(number, one, several=n_best > 1, pretty=pretty, as_json=as_json)
        if svg is not None and one is not None:
            _draw(one, svg / f"{number}.svg")


def _show(number: int, found: Parse | None, *, several: bool, pretty: bool, as_json: bool) -> None:
    from dragoman.trees.bracketing import write_tree
    from dragoman.trees.drawing import draw_tree

    if as_json:
        print_result(json.dumps(found and found.to_dict(), ensure_ascii=False))
    elif found is None:
        print_result("")
    elif pretty:
        for one in (found, *found.alternatives):
            print_result(draw_tree(one.tree, shutil.get_terminal_size((100, 24)).columns) + "\n")
    elif several:
        for one in (found, *found.alternatives):
            print_result(f"{number}\t{one.score:.4f}\t{write_tree(one.tree)}")
    else:
        print_result(write_tree(found.tree))


def _draw(found: Parse, path: Path) -> None:
    from dragoman.system.atomic_files import atomic_write
    from dragoman.trees.drawing import draw_tree_svg

    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, draw_tree_svg(found.tree))
