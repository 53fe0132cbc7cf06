"""These commands examine and prepare corpora, and train tokenisers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.console import (
    message_printer,
    print_message,
    print_result,
    progress_counter,
    read_config,
)
from dragoman.cli.options import (
    Add,
    Files,
    Json,
    Languages,
    PairedFilesCommand,
    Preset,
    Set,
    Task,
    TaskPreset,
    Valid,
    complete_preset,
    refuse_parsing,
)
from dragoman.errors import DataError

tokenizer_app = typer.Typer(
    help="Train a tokeniser, or use one.", no_args_is_help=True, rich_markup_mode=None
)


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
    workers: Annotated[
        int | None, typer.Option(help="Number of processes; default: one per core.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Clean and encode a corpus once.

    Training on the directory it makes starts in seconds, whatever the corpus's size.
    """
    from dragoman.data.prepare import prepare as prepare_corpus
    from dragoman.data.readers import open_corpus
    from dragoman.trees.tokenizer_kinds import load_tokenizer

    config = read_config(preset, set_, languages, files, task)
    with progress_counter() as progress:
        prepared = prepare_corpus(
            open_corpus(files, config.data, add or ()),
            out,
            config,
            valid=open_corpus(valid, config.data) if valid else None,
            tokenizer=load_tokenizer(tokenizer) if tokenizer else None,
            workers=workers,
            progress=progress,
            show_message=message_printer(quiet=False),
        )
    print_result(prepared.report.to_json() if as_json else "\n".join(prepared.lines()))


def filter_(
    files: Files,
    out: Annotated[Path, typer.Option(help="The directory to make.")],
    add: Add = None,
    languages: Languages = None,
    like: Annotated[
        Path | None,
        typer.Option(help="Text of the kind to be translated, in either language, a line each."),
    ] = None,
    repeat: Annotated[
        float, typer.Option(help="With --like: share of the pairs, the most alike, to give twice.")
    ] = 0.25,
    leave_out: Annotated[
        float, typer.Option(help="With --like: share of the pairs, the least alike, to leave out.")
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Keep the pairs of a crawl that are worth training on.

    Copies, broken text, other numbers or markup, templates and repetitions are dropped.
    """
    from dragoman.data.filtering import Selection, filter_corpus
    from dragoman.data.readers import open_corpus

    config = read_config(None, None, languages, files)
    codes = config.data.languages or ("source", "target")
    with progress_counter() as progress:
        report = filter_corpus(
            open_corpus(files, config.data, add or ()),
            out,
            (f"corpus.{codes[0]}", f"corpus.{codes[1]}"),
            selection=Selection(like, repeat, leave_out) if like else None,
            progress=progress,
        )
    print_result(report.to_json() if as_json else "\n".join(report.lines()))


def doctor(
    files: Files,
    valid: Valid = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILES", help="Test pairs, to find those that are also in training."),
    ] = None,
    add: Add = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="The preset to train with, or a .toml file; default: by the number of pairs.",
            autocompletion=complete_preset,
        ),
    ] = None,
    set_: Set = None,
    languages: Languages = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="Examine with the tokeniser in this directory.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find what is wrong with a corpus.

    The exit status is 2 if training would fail on anything that is found.
    """
    from dragoman.data.doctor.examination import choose_preset, examine
    from dragoman.data.readers import open_corpus
    from dragoman.trees.tokenizer_kinds import load_tokenizer

    config = read_config(preset, set_, languages, files)
    refuse_parsing(config, "the doctor examines parallel text; dragoman prepare reports on trees")
    corpus = open_corpus(files, config.data, add or ())
    if preset is None:
        preset = choose_preset(corpus).name
        config = read_config(preset, set_, languages, files)
    with progress_counter() as progress:
        diagnosis = examine(
            corpus,
            config=config,
            preset=preset,
            valid=open_corpus(valid, config.data) if valid else None,
            test=open_corpus(test, config.data) if test else None,
            tokenizer=load_tokenizer(tokenizer) if tokenizer else None,
            progress=progress,
        )
    print_result(diagnosis.to_json() if as_json else "\n".join(diagnosis.lines()))
    if diagnosis.has_errors:
        raise typer.Exit(2)


@tokenizer_app.command("train", cls=PairedFilesCommand)
def tokenizer_train(
    files: Files,
    out: Annotated[Path, typer.Option(help="The directory to make.")],
    add: Add = None,
    preset: Preset = "base",
    set_: Set = None,
    languages: Languages = None,
) -> None:
    """Learn pieces from a corpus; --set tokenizer.vocabulary=8000 sets how many."""
    from dragoman.data.prepare import learn_tokenizer
    from dragoman.data.readers import open_corpus
    from dragoman.system.atomic_files import atomic_directory

    config = read_config(preset, set_, languages, files)
    refuse_parsing(
        config, "a parser's tokeniser is learned by dragoman prepare, together with its actions"
    )
    pairs = open_corpus(files, config.data, add or ())
    learned = learn_tokenizer(pairs, config, print_message)
    with atomic_directory(out) as directory:
        learned.save(directory)
    print_result(f"{out}: {learned.kind}, {len(learned):,} pieces")


@tokenizer_app.command("encode")
def tokenizer_encode(
    directory: Annotated[
        Path, typer.Argument(help="The directory of a tokeniser, a model or a prepared corpus.")
    ],
    ids: Annotated[bool, typer.Option("--ids", help="Print ids instead of pieces.")] = False,
) -> None:
    """Split the lines of stdin into pieces."""
    from dragoman.data.readers.parallel import open_text
    from dragoman.trees.tokenizer_kinds import load_tokenizer

    tokenizer = load_tokenizer(directory)
    for line in open_text("-"):
        found = tokenizer.encode(line)
        print_result(" ".join(map(str, found) if ids else tokenizer.pieces(found)))


@tokenizer_app.command("decode")
def tokenizer_decode(
    directory: Annotated[
        Path, typer.Argument(help="The directory of a tokeniser, a model or a prepared corpus.")
    ],
) -> None:
    """Join the ids on the lines of stdin into text."""
    from dragoman.data.readers.parallel import open_text
    from dragoman.trees.tokenizer_kinds import load_tokenizer

    tokenizer = load_tokenizer(directory)
    for number, line in enumerate(open_text("-"), 1):
        try:
            print_result(tokenizer.decode(int(word) for word in line.split()))
        except ValueError:
            raise DataError(
                f"standard input, line {number}: these are not ids; give what encode --ids printed"
            ) from None
