"""The commands that parse."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.console import read_lines, say, show
from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.translate.parser import Parse, Parser

__all__ = ["evaluate_parser", "load_parser", "parse"]


def load_parser(paths: list[Path], device: str) -> Parser:
    """The parser at a path, or an ensemble; what it warns of goes to stderr."""
    from dragoman.translate import parser

    found = parser.load_parser(*paths, device=device)
    found.warn = say
    return found


def parse(
    model: Annotated[Path, typer.Argument(help="A parser's directory, or a run's.")],
    files: Annotated[
        list[Path] | None, typer.Argument(help="Text, a sentence a line; default: stdin.")
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="MODEL", help="One more of an ensemble; again for more."),
    ] = None,
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="Words are separated by spaces already.")
    ] = False,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.")] = None,
    n_best: Annotated[int, typer.Option(help="Trees of each line, best first.")] = 1,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's α.")] = None,
    pretty: Annotated[bool, typer.Option("--pretty", help="Draw the trees.")] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also draw each as DIR/LINE.svg.")
    ] = None,
    window: Annotated[int, typer.Option(help="Lines read before the first is written.")] = 2000,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: the GPU if there is one.")] = (
        "auto"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Parse lines into trees; their order and number are kept.

    An empty line stays empty. With --n-best a line becomes several: its number, score and tree
    between tabs.
    """
    if pretty and as_json:
        raise ConfigError("--pretty draws for people and --json writes for programs; choose one")
    parser = load_parser([model, *(also or [])], device)
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
    from dragoman.inspection.trees import tree_text
    from dragoman.text.trees.bracketing import bracketing

    if as_json:
        show(json.dumps(found and found.to_dict(), ensure_ascii=False))
    elif found is None:
        show("")
    elif pretty:
        for one in (found, *found.alternatives):
            show(tree_text(one.tree, shutil.get_terminal_size((100, 24)).columns) + "\n")
    elif several:
        for one in (found, *found.alternatives):
            show(f"{number}\t{one.score:.4f}\t{bracketing(one.tree)}")
    else:
        show(bracketing(found.tree))


def _draw(found: Parse, path: Path) -> None:
    from dragoman.files import atomic_write
    from dragoman.inspection.trees import tree_svg

    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, tree_svg(found.tree))


def evaluate_parser(
    model: Path | None,
    reference: Path,
    hypotheses: Path | None,
    *,
    out: Path | None,
    beam: int | None,
    length_penalty: float | None,
    parameters: Path | None,
    device: str,
    as_json: bool,
) -> None:
    """Labelled bracketing by EVALB's rules, of a parser or of trees that are there already."""
    from dragoman.evaluation.trees import clean_trees, evaluate_trees
    from dragoman.files import atomic_write
    from dragoman.text.trees.bracketing import bracketing
    from dragoman.text.trees.evalb import PREDICTED_TAGS, read_parameters

    gold = clean_trees(read_lines([reference]), str(reference))
    rules = PREDICTED_TAGS if parameters is None else read_parameters(parameters)
    if model is not None:
        system = load_parser([model], device)
        options = {"beam": beam, "length_penalty": length_penalty}
        trees, scores = evaluate_trees(system, gold, rules, **options)
    else:
        assert hypotheses is not None
        guesses = clean_trees(read_lines([hypotheses]), str(hypotheses))
        trees, scores = evaluate_trees(guesses, gold, rules)
    if out is not None:
        atomic_write(out, "".join(f"{bracketing(tree) if tree else ''}\n" for tree in trees))
    show(scores.to_json() if as_json else str(scores))
