"""The command line: one verb a function, each a thin layer over the Python API.

Results go to stdout, everything else to stderr. torch is imported inside the commands, so that
help answers at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dragoman.cli import bench, distill, inspect, interop, parsing, serve, shortlist, translate
from dragoman.cli.console import (
    counter,
    load_system,
    load_translator,
    plain,
    read_config,
    read_lines,
    say,
    show,
)
from dragoman.cli.options import Device, Json, Quiet, Set
from dragoman.cli.paper import paper_app
from dragoman.errors import ConfigError, DragomanError

if TYPE_CHECKING:
    from dragoman.config import Config

app = typer.Typer(
    help="Turn two aligned text files into a translator, or a treebank into a parser.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is there twice as fast
    context_settings={"help_option_names": ["-h", "--help"]},
)
tokenizer_app = typer.Typer(
    help="Train a tokeniser, or use one.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(tokenizer_app, name="tokenizer")
bench_app = typer.Typer(
    help="Measure how fast this machine is.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(bench_app, name="bench")
app.add_typer(paper_app, name="paper")

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What Typer raises at a misspelt option or command; it exports the name no longer."""

Files = Annotated[
    list[Path],
    typer.Argument(help="Two aligned files; or one .tsv, .jsonl or .tmx. Also .gz .bz2 .xz .zst."),
]
Add = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILES", help="More pairs, in the same forms; may be given again."),
]
Valid = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILES", help="Validation pairs; without them some are held out."),
]
Preset = Annotated[str, typer.Option(help="A preset (dragoman presets) or a .toml file.")]
TaskPreset = Annotated[
    str | None,
    typer.Option(help="A preset (dragoman presets) or a .toml file; default: base, or parsing."),
]
Task = Annotated[  # named, since Typer 0.27 takes a metavar that spells the option for its name
    str | None,
    typer.Option("--task", metavar="TASK", help="translation, or parsing: files are trees."),
]
Languages = Annotated[
    str | None, typer.Option(metavar="EN,DE", help="Codes of source and target, if names tell not.")
]


def _version(asked: bool) -> None:
    if asked:
        from dragoman import __version__

        show(f"dragoman {__version__}")
        raise typer.Exit


@app.callback()
def dragoman(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Turn two aligned text files into a translator, or a treebank into a parser."""


@app.command()
def demo(
    out: Annotated[
        Path | None, typer.Option(help="Where to put everything; default: runs/demo-LANGUAGE.")
    ] = None,
    language: Annotated[str, typer.Option(help="Translate English to: de or ko.")] = "de",
    task: Annotated[
        str,
        typer.Option(
            "--task", metavar="TASK", help="translation, or parsing: train a parser instead."
        ),
    ] = "translation",
    steps: Annotated[int | None, typer.Option(help="Training steps, if not the preset's.")] = None,
) -> None:
    """Train and try a translator, or a parser, on the phrasebook.

    Minutes on a laptop; what is there already is continued.
    """
    if task == "parsing":
        from dragoman.workflows.demo import run_parsing_demo

        run_parsing_demo(out or Path("runs/demo-trees"), steps)
        return
    if task != "translation":
        raise ConfigError(f"--task {task}: there are translation and parsing")
    from dragoman.workflows.demo import run_demo

    run_demo(out or Path(f"runs/demo-{language}"), language, steps)


@app.command()
def prepare(
    files: Files,
    out: Annotated[Path, typer.Option(help="The directory to make.")],
    valid: Valid = None,
    add: Add = None,
    task: Task = None,
    preset: TaskPreset = None,
    set_: Set = None,
    languages: Languages = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="Use the tokeniser in this directory.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; default: a core each.")] = None,
    as_json: Json = False,
) -> None:
    """Clean and encode a corpus once.

    Training on the directory it makes starts in seconds, whatever the corpus's size.
    """
    from dragoman.data.prepare import prepare as prepare_corpus
    from dragoman.data.readers.open_corpus import open_corpus
    from dragoman.text.tokenizer import Tokenizer

    config = read_config(preset, set_, languages, files, task)
    with counter() as progress:
        prepared = prepare_corpus(
            open_corpus(files, config.data, add or ()),
            out,
            config,
            valid=open_corpus(valid, config.data) if valid else None,
            tokenizer=Tokenizer.load(tokenizer) if tokenizer else None,
            workers=workers,
            progress=progress,
        )
    show(prepared.report.to_json() if as_json else "\n".join(prepared.lines()))


@app.command()
def doctor(
    files: Files,
    valid: Valid = None,
    test: Annotated[
        list[Path] | None, typer.Option(metavar="FILES", help="Test pairs, to find overlaps.")
    ] = None,
    add: Add = None,
    preset: Preset = "base",
    set_: Set = None,
    languages: Languages = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="Examine with the tokeniser in this directory.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a corpus.

    Ends with status 2 if anything is found that training would fail on.
    """
    from dragoman.data.doctor.examination import examine
    from dragoman.data.readers.open_corpus import open_corpus
    from dragoman.text.tokenizer import Tokenizer

    config = read_config(preset, set_, languages, files)
    _refuse_parsing(config, "the doctor examines parallel text; dragoman prepare reports on trees")
    with counter() as progress:
        diagnosis = examine(
            open_corpus(files, config.data, add or ()),
            config=config,
            valid=open_corpus(valid, config.data) if valid else None,
            test=open_corpus(test, config.data) if test else None,
            tokenizer=Tokenizer.load(tokenizer) if tokenizer else None,
            progress=progress,
        )
    show(diagnosis.to_json() if as_json else "\n".join(diagnosis.lines()))
    if diagnosis.has_errors:
        raise typer.Exit(2)


@tokenizer_app.command("train")
def tokenizer_train(
    files: Files,
    out: Annotated[Path, typer.Option(help="The directory to make.")],
    add: Add = None,
    preset: Preset = "base",
    set_: Set = None,
    languages: Languages = None,
) -> None:
    """Learn pieces from a corpus; --set tokenizer.vocabulary=8000 and the like."""
    from dragoman.data.readers.open_corpus import open_corpus
    from dragoman.system.atomic_files import atomic_directory
    from dragoman.text.tokenizer import Tokenizer

    config = read_config(preset, set_, languages, files)
    _refuse_parsing(config, "a parser's pieces are learned by dragoman prepare, with its actions")
    pairs = open_corpus(files, config.data, add or ())
    learned = Tokenizer.train((side for pair in pairs for side in pair[:2]), config.tokenizer)
    with atomic_directory(out) as directory:
        learned.save(directory)
    show(f"{out}: {learned.kind}, {len(learned):,} pieces")


@tokenizer_app.command("encode")
def tokenizer_encode(
    directory: Annotated[Path, typer.Argument(help="A tokeniser, model or prepared directory.")],
    ids: Annotated[bool, typer.Option("--ids", help="Print ids instead of pieces.")] = False,
) -> None:
    """Cut the lines of stdin into pieces."""
    from dragoman.data.readers.parallel import open_text
    from dragoman.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(directory)
    for line in open_text("-"):
        found = tokenizer.encode(line)
        show(" ".join(map(str, found) if ids else tokenizer.pieces(found)))


@tokenizer_app.command("decode")
def tokenizer_decode(
    directory: Annotated[Path, typer.Argument(help="A tokeniser, model or prepared directory.")],
) -> None:
    """Join the ids on the lines of stdin into text."""
    from dragoman.data.readers.parallel import open_text
    from dragoman.errors import DataError
    from dragoman.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(directory)
    for number, line in enumerate(open_text("-"), 1):
        try:
            show(tokenizer.decode(int(word) for word in line.split()))
        except ValueError:
            raise DataError(
                f"standard input, line {number}: not ids; give what encode --ids printed"
            ) from None


@app.command()
def train(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Aligned files, or a directory that dragoman prepare made."),
    ] = None,
    valid: Valid = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILES",
            help="More pairs, scored at every validation, never chosen by; may be given again.",
        ),
    ] = None,
    task: Task = None,
    preset: TaskPreset = None,
    set_: Set = None,
    languages: Languages = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's directory; default: runs/DATE.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Continue this run.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a model, or continue a run.

    dragoman train corpus.en corpus.de --preset small --out runs/mine
    """
    from dragoman.data.readers.open_corpus import sets_of
    from dragoman.training import run as runs

    if resume is not None:
        if files or valid or test or out or languages:
            raise ConfigError("--resume RUN needs nothing but --set; its files are known")
        outcome = runs.resume(resume, set_ or (), quiet=quiet)
    else:
        config = read_config(preset, set_, languages, files or [], task)
        with counter() as progress:
            outcome = runs.train(
                config,
                *(files or ()),
                valid=valid or (),
                tests=sets_of(test or [], config.data),
                run=out,
                quiet=quiet,
                progress=progress,
            )
    if outcome.signal is not None:
        raise typer.Exit(128 + outcome.signal)
    if outcome.model is not None:
        show(
            {"run": str(outcome.run), "model": str(outcome.model), "steps": outcome.step}
            | {"seconds": round(outcome.seconds, 1), "score": outcome.score}
            | {"perplexity": outcome.perplexity}
            if as_json
            else str(outcome.model)
        )


@app.command()
def average(
    paths: Annotated[
        list[Path], typer.Argument(help="A run, or several checkpoints or models of one shape.")
    ],
    out: Annotated[Path, typer.Option(help="The model directory to make.")],
    last: Annotated[int, typer.Option(help="Of a run: so many of its last checkpoints.")] = 5,
) -> None:
    """Average checkpoints into a model (§6.1)."""
    from dragoman.training.checkpoints.averaging import average as average_models

    show(average_models(paths, out, last=last))


app.command()(translate.translate)
app.command()(translate.score)
app.command()(translate.quantize)
app.command()(shortlist.shortlist)
app.command()(translate.alternatives)
app.command()(interop.export)
app.command("import")(interop.import_model)
app.command()(parsing.parse)
app.command()(parsing.selftrain)
app.command()(distill.distill)
app.command()(serve.serve)
app.command()(inspect.inspect)


@app.command()
def evaluate(
    model: Annotated[
        Path | None, typer.Argument(help="A model directory, or a run's; or use --hypotheses.")
    ] = None,
    with_: translate.With = None,
    source: Annotated[Path | None, typer.Option(help="Source lines.")] = None,
    reference: Annotated[Path | None, typer.Option(help="Reference lines.")] = None,
    hypotheses: Annotated[Path | None, typer.Option(help="Translations to score instead.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="A model or a file of translations to compare with.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the translations here.")] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's α.")] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    tokenize: Annotated[str | None, typer.Option(help="A tokeniser of sacreBLEU.")] = None,
    task: Annotated[
        str,
        typer.Option("--task", metavar="TASK", help="translation, or parsing: files are trees."),
    ] = "translation",
    evalb: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of trees: EVALB's parameter file.")
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """BLEU, chrF and TER with sacreBLEU's signatures, and perplexity.

    Of trees (--task parsing): precision, recall and F1 of labelled brackets by EVALB's rules.
    """
    from dragoman.evaluation.evaluate import evaluate as measure
    from dragoman.system.atomic_files import atomic_write

    if reference is None:
        raise ConfigError("--reference is needed: the file of correct translations, or trees")
    if (model is None) == (hypotheses is None):
        raise ConfigError("give a model, or --hypotheses with translations, and not both")
    if model is None and with_:
        raise ConfigError("--with is more of a model; give the model as well")
    models = [model, *(with_ or ())] if model is not None else []
    if task == "parsing":
        given = {"source": source, "against": against, "tokenize": tokenize, "lowercase": lowercase}
        for name, value in given.items():
            if value:
                raise ConfigError(f"--{name} means nothing to trees; leave it out")
        parsing.evaluate_parser(
            models,
            reference,
            hypotheses,
            out=out,
            beam=beam,
            length_penalty=length_penalty,
            parameters=evalb,
            device=device,
            as_json=as_json,
        )
        return
    if task != "translation":
        raise ConfigError(f"--task {task}: there are translation and parsing")
    if evalb is not None:
        raise ConfigError("--evalb is of trees; add --task parsing")
    if source is None and (model is not None or (against is not None and against.is_dir())):
        raise ConfigError("--source is needed: the file to translate")
    found = measure(
        load_translator(*models, device=device)
        if models
        else list(read_lines([hypotheses or Path("-")])),
        list(read_lines([reference])),
        list(read_lines([source])) if source is not None else [],
        baseline=load_system(against, device),
        lowercase=lowercase,
        tokenize=tokenize,
        beam=beam,
        length_penalty=length_penalty,
    )
    if out is not None:
        atomic_write(out, "".join(f"{line}\n" for line in found.hypotheses))
    show(found.to_json() if as_json else str(found))


@bench_app.command("train")
def bench_train(
    preset: Preset = "base",
    set_: Set = None,
    against: Annotated[
        bool, typer.Option("--against", help="Compare with Marian and nn.Transformer.")
    ] = False,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of a round.")] = None,
    as_json: Json = False,
) -> None:
    """Time training steps on made-up sentences.

    Speed, share of what the device can do, and where the time goes; docs/bench.md.
    """
    config = read_config(preset, set_, None, [])
    from dragoman.bench.training.benchmark import measure

    report = measure(config, preset, steps=steps, against=against, say=say)
    show(report.to_dict() if as_json else "\n".join(report.lines()))


bench_app.command("translate")(bench.bench_translate)


@app.command()
def presets(
    name: Annotated[str | None, typer.Argument(help="Print this preset's settings, all.")] = None,
    as_json: Json = False,
) -> None:
    """List the presets with their parameters beside the paper's."""
    from dragoman import config as configs

    if name is not None:
        config = configs.load_preset(name)
        show(config.to_dict() if as_json else config.to_toml())
        return
    from dragoman.models import count_parameters

    rows = []
    for preset in configs.preset_names():
        config = configs.load_preset(preset)
        count = count_parameters(config.model, config.tokenizer.vocabulary)
        paper = configs.preset_paper_figures(preset).get("parameters")
        rows.append((preset, count, paper, configs.preset_title(preset)))
    if as_json:
        keys = ("name", "parameters", "paper_millions", "title")
        show([dict(zip(keys, row, strict=True)) for row in rows])
        return
    width = max(len(row[0]) for row in rows)
    show(f"{'preset':{width}}  {'parameters':>10}  {'paper':>5}")
    for preset, count, paper, title in rows:
        shown = f"{paper:.0f}M" if paper else ""
        show(f"{preset:{width}}  {count / 1e6:9.2f}M  {shown:>5}  {title}")


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="A model, a run or a prepared directory.")],
    as_json: Json = False,
) -> None:
    """Say what a directory holds.

    A model, a run or a prepared corpus.
    """
    from dragoman.cli.describe import describe

    facts = describe(path)
    lines = (f"{key.replace('_', ' ')}: {plain(value)}" for key, value in facts.items())
    show(facts if as_json else "\n".join(lines))


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(help="One run, or several to compare.")],
    out: Annotated[Path | None, typer.Option(help="Default: curves.png in the run.")] = None,
) -> None:
    """Draw the curves of a run: loss, BLEU or F1, learning rate, speed."""
    from dragoman.inspection.training_curves import draw_curves

    show(str(draw_curves(runs if len(runs) > 1 else runs[0], out)))


# --- running one ---


def _refuse_parsing(config: Config, advice: str) -> None:
    if config.data.task == "parsing":
        raise ConfigError(advice)


def _spread(arguments: Sequence[str]) -> list[str]:
    """``--valid dev.en dev.de`` as ``--valid dev.en --valid dev.de``; trees come singly."""
    spread: list[str] = []
    rest = list(arguments)
    options = {*(f"{a}={b}" for a, b in pairwise(rest)), *rest}
    trees = ("--task=parsing", "--preset=parsing", "--preset=phrasebook-trees")
    if rest[:1] == ["selftrain"] or any(one.startswith(trees) for one in options):
        return rest
    while rest:
        word = rest.pop(0)
        spread.append(word)
        if word in ("--valid", "--test", "--add") and rest:
            from dragoman.data.readers.open_corpus import holds_both

            first = rest.pop(0)
            spread.append(first)
            if not holds_both(Path(first)) and rest and not rest[0].startswith("-"):
                spread += [word, rest.pop(0)]
    return spread


def main() -> NoReturn:
    """Run a command; what Dragoman refuses is one line on stderr and status 2."""
    # Waiting threads that spin make two threads slower than one as soon as a core is busy.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        status = app(_spread(sys.argv[1:]), prog_name="dragoman", standalone_mode=False)
        sys.stdout.flush()
    except DragomanError as error:
        say(str(error))
        sys.exit(2)
    except UsageError as error:
        _refuse_usage(error)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # most likely standard output, on a full disk
        from dragoman.system.atomic_files import reason

        say(f"{error.filename or 'standard output'}: {reason(error)}")
        sys.exit(2)
    sys.exit(status or 0)


def _refuse_usage(error: Any) -> NoReturn:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        sys.exit(2)
    message = " ".join(error.format_message().split()).removesuffix(".")
    message = re.sub(r" \(Possible options: (.*)\)$", r"; did you mean \1?", message)
    message = message[:1].lower() + message[1:].replace(". Did you mean", "; did you mean")
    if not message.endswith("?"):
        message += f"; see {error.ctx.command_path if error.ctx else 'dragoman'} --help"
    say(message)
    sys.exit(2)


if __name__ == "__main__":
    main()
