"""The commands of `dragoman paper` make the paper's tables, one each, and its figures."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.console import load_translator, print_message, print_result
from dragoman.cli.options import Device, Json, PairedFilesCommand
from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.paper.text_table import TextTable

paper_app = typer.Typer(
    help="The paper's tables and figures, measured.", no_args_is_help=True, rich_markup_mode=None
)

Out = Annotated[Path, typer.Option(help="Directory for results, pictures and runs.")]
Data = Annotated[
    Path | None, typer.Option(metavar="DIR", help="A corpus that dragoman prepare made.")
]
Jobs = Annotated[int | None, typer.Option(help="Models trained at the same time.")]
HERE = Path("runs/paper")


def _publish(out: Path, name: str, found: Any, table: Any, as_json: bool) -> None:
    """Write results and their picture where the report finds them, and print them.

    `table` is the package of `dragoman.paper` that they come from.
    """
    from dragoman.system.atomic_files import atomic_write

    values, picture = found.to_json(), out / f"{name}.png"
    atomic_write(out / f"{name}.json", json.dumps(values, indent=2, ensure_ascii=False) + "\n")
    table.draw(found, picture)
    print_result(values if as_json else table.render(found))
    print_message(f"{picture} and the figures behind it are in {out}")


@paper_app.command()
def table1(
    out: Out = HERE,
    longest: Annotated[int, typer.Option(help="Length of the longest sentence.")] = 4096,
    widest: Annotated[int, typer.Option(help="Width of the widest layer.")] = 512,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Measure what a layer costs: operations, time, sequential steps, path lengths.

    About two minutes on two cores.
    """
    from dragoman.paper import table1 as table
    from dragoman.training.distributed.ranks import pick_device

    found = table.measure(
        [n for n in table.LENGTHS if n <= longest],
        [d for d in table.WIDTHS if d <= widest],
        device=pick_device(device),
        print_message=print_message,
    )
    _publish(out, "table1", found, table, as_json)


@paper_app.command(cls=PairedFilesCommand)
def table2(
    data: Data = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(metavar="SOURCE REFERENCE", help="Test files; default: the validation set."),
    ] = None,
    parameters: Annotated[
        int | None,
        typer.Option(help="Parameters of each model; default: as many as the data's preset has."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps of the first round.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Train only this row; can be repeated.")
    ] = None,
    jobs: Jobs = None,
    out: Out = HERE,
    as_json: Json = False,
) -> None:
    """Train every model on the same data, at equal parameters and at equal FLOPs.

    Without --data, on the phrasebook: a quarter of an hour or more on two cores. If it is
    interrupted, the same command continues.
    """
    from dragoman.paper import table2 as table

    models = _select_models(model or [])
    asked = {"parameters": parameters, "steps": steps, "jobs": jobs}
    given: dict[str, Any] = {"print_message": print_message, "models": models}
    given |= {name: value for name, value in asked.items() if value is not None}
    if data is None:
        name = "table2-phrasebook"
        found = table.measure_phrasebook(out / name, **given)
    else:
        name = f"table2-{data.resolve().name}"
        if test is not None and len(test) != 2:
            raise ConfigError("--test takes two files, sources and references; give both")
        pair = (test[0], test[1]) if test else None
        found = table.measure(data, out / name, test=pair, **_budget(data, given))
    _publish(out, name, found, table, as_json)


def _select_models(names: list[str]) -> Any:
    """Return all rows, or those named and the Transformer, which sets the FLOPs."""
    from dragoman.paper.table2 import COMPARED_MODELS

    known = [one.name for one in COMPARED_MODELS]
    for name in names:
        if name not in known:
            raise ConfigError(f"--model {name}: no such row; choose from: {', '.join(known)}")
    return [one for one in COMPARED_MODELS if not names or one.name in (*names, known[-1])]


def _budget(data: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Fill in what was not given from the corpus's own config."""
    from dragoman.data.prepare import Prepared
    from dragoman.models import count_parameters

    prepared = Prepared.open(data)
    size = count_parameters(prepared.config.model, len(prepared.tokenizer))
    return {"parameters": size, "steps": prepared.config.training.steps} | given


@paper_app.command()
def table3(
    data: Data = None,
    seeds: Annotated[int, typer.Option(help="Number of runs of each row.")] = 3,
    steps: Annotated[
        int | None, typer.Option(help="Training steps of each run; big gets three times as many.")
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(help="Train only this row: A, B, C, D, E or big; can be repeated."),
    ] = None,
    jobs: Jobs = None,
    out: Out = HERE,
    as_json: Json = False,
) -> None:
    """Compare the Transformer's variations: parameters at the paper's size, scores at a smaller.

    Without --data, only the parameters. If it is interrupted, the same command continues.
    """
    from dragoman.paper import table3 as table

    if data is None:
        counted = table.parameter_table(table.count_paper_parameters())
        print_result(_as_json(counted) if as_json else counted.to_text())
        return
    name = f"table3-{data.resolve().name}"
    found = table.measure(
        data,
        out / name,
        seeds=range(1, seeds + 1),
        steps=steps,
        rows=row or (),
        jobs=1 if jobs is None else jobs,
        print_message=print_message,
    )
    _publish(out, name, found, table, as_json)


def _as_json(table: TextTable) -> list[dict[str, str]]:
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


@paper_app.command()
def figures(
    model: Annotated[
        Path | None,
        typer.Argument(help="A model or run directory; without one, only formulas are drawn."),
    ] = None,
    sentence: Annotated[
        str | None, typer.Option(help="Draw this sentence instead of the paper's.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Its translation; default: the model's own.")
    ] = None,
    word: Annotated[str | None, typer.Option(help="The word whose heads are shown.")] = None,
    layer: Annotated[
        int | None, typer.Option(help="Layer, counted from 1; default: like the paper's, 5 of 6.")
    ] = (None),
    head: Annotated[
        list[int] | None, typer.Option(help="Head, counted from 1; can be repeated.")
    ] = None,
    pieces: Annotated[bool, typer.Option("--pieces", help="Show pieces, not words.")] = False,
    device: Device = "auto",
    out: Out = HERE,
) -> None:
    """Draw Figures 3 to 5, positions, the learning rate, and why √d_k."""
    from dragoman.paper.figures.all_figures import draw_all

    translator = None if model is None else load_translator(model, device=device)
    drawn = draw_all(
        translator,
        out / "figures",
        sentence=sentence,
        target=target,
        layer=layer,
        heads=head or (),
        word=word,
        pieces=pieces,
    )
    for path in drawn:
        print_result(str(path))


@paper_app.command()
def report(out: Out = HERE) -> None:
    """Write everything that was measured on one page, beside the paper's figures."""
    from dragoman.paper.report import write_report

    print_result(str(write_report(out)))


Trees = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Trees to train on, files or directories; can be repeated."),
]


@paper_app.command()
def table4(
    trees: Trees = None,
    valid: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Trees to validate and choose on.")
    ] = None,
    test: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Trees to score on; default: --valid.")
    ] = None,
    wsj: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The Wall Street Journal's trees: sections 02-21, 22 and 23."
        ),
    ] = None,
    preset: Annotated[
        list[str] | None,
        typer.Option(help="Preset to train; can be repeated. Default: parsing and parsing-small."),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of all presets."),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Choose dropout, learning rate and beam on --valid.")
    ] = False,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Only score --model and --trees-of.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=DIR", help="Score this parser, too; can be repeated."),
    ] = None,
    trees_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE", help="Score another parser's trees of the test set, too."
        ),
    ] = None,
    jobs: Jobs = None,
    out: Out = HERE,
    as_json: Json = False,
) -> None:
    """Train and score constituency parsers: F1, speed and size beside the paper's.

    Without trees, only the paper's rows. The Wall Street Journal's trees are the LDC's (LDC99T42)
    and need its licence; Dragoman does not include them. If it is interrupted, the same command
    continues.
    """
    from dragoman.paper import table4 as table

    if not (trees or valid or test or wsj or preset or model or trees_of):
        shown = table.paper_table()
        print_result(_as_json(shown) if as_json else f"{shown.to_text()}\n{table.LICENCE}")
        return
    if wsj is not None and (trees or valid or test):
        raise ConfigError("--wsj brings its own --trees, --valid and --test; leave them out")
    if wsj is not None:
        treebanks = table.Treebanks.from_wsj(wsj)
    else:
        treebanks = table.Treebanks.from_files(trees or (), valid or (), test or ())
    trained = [] if no_train else (preset or (table.PRESETS if treebanks.train else []))
    name = f"table4-{treebanks.name}"
    found = table.measure(
        treebanks,
        out / name,
        presets=table.load_presets(trained, assignments or ()),
        models=_named("--model", model or []),
        trees=_named("--trees-of", trees_of or []),
        search=search,
        jobs=1 if jobs is None else jobs,
        print_message=print_message,
        command=_again(
            {"--trees": trees, "--valid": valid, "--test": test, "--wsj": [wsj] if wsj else []},
            {"--preset": preset, "--set": assignments, "--model": model, "--trees-of": trees_of},
            {"--search": search, "--no-train": no_train},
        ),
    )
    _publish(out, name, found, table, as_json)


def _named(option: str, texts: list[str]) -> dict[str, Path]:
    """Return the paths of an option whose values are NAME=PATH, by name."""
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise ConfigError(f"{option} {text}: needs a name, as in {option} mine={text}")
        if name in found:
            raise ConfigError(f"{option} {text}: the name {name} is already taken; choose another")
        found[name] = Path(path)
    return found


def _again(
    files: Mapping[str, Sequence[Path] | None],
    texts: Mapping[str, Sequence[str] | None],
    flags: Mapping[str, bool],
) -> str:
    """Return the command line that has these options."""
    words = ["dragoman", "paper", "table4"]
    for option, values in (*files.items(), *texts.items()):
        words += [word for value in values or () for word in (option, str(value))]
    return shlex.join([*words, *(flag for flag, on in flags.items() if on)])
