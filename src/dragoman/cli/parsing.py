"""The commands that parse."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.console import read_lines, say, show
from dragoman.cli.options import Device, Json, Precision, Quiet, Set, Window
from dragoman.cli.stages import carry_out
from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.inference.parser import Parse, Parser

__all__ = ["evaluate_parser", "load_parser", "parse", "selftrain"]

Tokenized = Annotated[
    bool, typer.Option("--tokenized", help="Words are separated by spaces already.")
]


def load_parser(paths: list[Path], device: str, precision: Any = "auto") -> Parser:
    """The parser at a path, or an ensemble; what it warns of goes to stderr."""
    from dragoman.inference import parser

    found = parser.load_parser(*paths, device=device, precision=precision)
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
    tokenized: Tokenized = False,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.")] = None,
    n_best: Annotated[int, typer.Option(help="Trees of each line, best first.")] = 1,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's α.")] = None,
    pretty: Annotated[bool, typer.Option("--pretty", help="Draw the trees.")] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also draw each as DIR/LINE.svg.")
    ] = None,
    window: Window = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: Json = False,
) -> None:
    """Parse lines into trees; their order and number are kept.

    An empty line stays empty. With --n-best a line becomes several: its number, score and tree
    between tabs.
    """
    if pretty and as_json:
        raise ConfigError("--pretty draws for people and --json writes for programs; choose one")
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
    from dragoman.trees.bracketing import bracketing
    from dragoman.trees.drawing import tree_text

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
    from dragoman.system.atomic_files import atomic_write
    from dragoman.trees.drawing import tree_svg

    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, tree_svg(found.tree))


def evaluate_parser(
    models: list[Path],
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
    from dragoman.evaluation.bracket_f1 import clean_trees, evaluate_trees
    from dragoman.system.atomic_files import atomic_write
    from dragoman.trees.bracketing import bracketing
    from dragoman.trees.evalb import PREDICTED_TAGS, read_parameters

    gold = clean_trees(read_lines([reference]), str(reference))
    rules = PREDICTED_TAGS if parameters is None else read_parameters(parameters)
    if models:
        system = load_parser(models, device)
        options = {"beam": beam, "length_penalty": length_penalty}
        trees, scores = evaluate_trees(system, gold, rules, **options)
    else:
        assert hypotheses is not None
        guesses = clean_trees(read_lines([hypotheses]), str(hypotheses))
        trees, scores = evaluate_trees(guesses, gold, rules)
    if out is not None:
        atomic_write(out, "".join(f"{bracketing(tree) if tree else ''}\n" for tree in trees))
    show(scores.to_json() if as_json else str(scores))


def selftrain(
    models: Annotated[
        list[Path], typer.Argument(help="A parser; or several on one prepared treebank.")
    ],
    trees: Annotated[
        list[Path], typer.Option("--trees", metavar="TREES", help="Gold trees to learn from.")
    ],
    text: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Raw text, a sentence a line; again for more."),
    ],
    out: Annotated[Path, typer.Option(help="The directory of all stages; continued if begun.")],
    valid: Annotated[
        list[Path] | None, typer.Option(metavar="TREES", help="Gold trees to validate on.")
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(metavar="TREES", help="More, scored at every validation, never chosen by."),
    ] = None,
    tokenized: Tokenized = False,
    shortest: Annotated[int, typer.Option(help="Fewest words of a sentence.")] = 3,
    longest: Annotated[int, typer.Option(help="Most words of a sentence.")] = 60,
    limit: Annotated[int | None, typer.Option(help="Parse so many sentences at most.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept; 1 is greedy.")] = 1,
    agree: Annotated[
        bool, typer.Option("--agree", help="Only trees that every model finds by itself.")
    ] = False,
    keep: Annotated[
        float | None,
        typer.Option(
            help="Share of trees to keep, the most confident; default: 0.5, or all with --agree."
        ),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Or: keep trees of at least this confidence.")
    ] = None,
    gold_weight: Annotated[
        int, typer.Option(help="How often a gold tree is seen for each automatic one.")
    ] = 1,
    new_tokenizer: Annotated[
        bool, typer.Option("--new-tokenizer", help="Learn pieces and labels anew from all trees.")
    ] = False,
    preset: Annotated[
        str | None, typer.Option(help="A preset or a .toml file; default: the model's settings.")
    ] = None,
    set_: Set = None,
    parse_only: Annotated[
        bool, typer.Option("--parse-only", help="Stop when the automatic trees are there.")
    ] = False,
    window: Annotated[int, typer.Option(help="Sentences parsed between two savings.")] = 2000,
    device: Annotated[
        str, typer.Option(help="To parse on: cpu, cuda, or auto: the GPU if any.")
    ] = ("auto"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Parse raw text, and train a new parser on gold and automatic trees (§6.3).

    Interrupted at any moment, the same command goes on; docs/selftraining.md.
    """
    from dragoman.config import load_preset
    from dragoman.workflows.selftrain import Plan
    from dragoman.workflows.selftrain import selftrain as teach

    plan = Plan(
        models=models,
        trees=trees,
        text=text,
        valid=valid or (),
        test=test or (),
        tokenized=tokenized,
        shortest=shortest,
        longest=longest,
        limit=limit,
        beam=beam,
        agree=agree,
        window=window,
        keep=keep,
        threshold=threshold,
        gold_weight=gold_weight,
        new_tokenizer=new_tokenizer,
        config=load_preset(preset) if preset else None,
        assignments=set_ or (),
    )
    found = carry_out(teach, plan, out, device=device, quiet=quiet, parse_only=parse_only)
    if as_json:
        show(
            {"text": found.text, "automatic": found.automatic, "trees": str(found.trees)}
            | {"model": found.model and str(found.model)}
        )
    else:
        show(str(found.model or found.trees))
