"""The program `dragoman` has its commands from here, and deals with errors and signals."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated, Any, Final, NoReturn

import typer

from dragoman.cli import (
    bench,
    data,
    evaluate,
    inspect,
    installed,
    models,
    parse,
    score,
    serve,
    train,
    translate,
    workflows,
)
from dragoman.cli.console import print_message, print_result
from dragoman.cli.options import PairedFilesCommand
from dragoman.cli.paper import paper_app
from dragoman.errors import DragomanError

try:
    from typer import TyperException as UsageError
except ImportError:  # older versions raise click's errors
    from click import ClickException as UsageError  # type: ignore[assignment]

_SETTINGS: Final[dict[str, Any]] = {
    "help": "Turn two aligned text files into a translator, or a treebank into a parser.",
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # plain help is there twice as fast
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
app = typer.Typer(**_SETTINGS)
bench_app = typer.Typer(
    help="Measure how fast this machine is.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(data.tokenizer_app, name="tokenizer")
app.add_typer(bench_app, name="bench")
app.add_typer(paper_app, name="paper")

app.command()(train.demo)
app.command(cls=PairedFilesCommand)(data.prepare)
app.command("filter", cls=PairedFilesCommand)(data.filter_)
app.command(cls=PairedFilesCommand)(data.doctor)
app.command(cls=PairedFilesCommand)(train.train)
app.command()(train.average)
app.command()(translate.translate)
app.command()(score.score)
app.command()(models.quantize)
app.command()(models.shortlist)
app.command()(score.alternatives)
app.command()(models.export)
app.command("import")(models.import_model)
app.command()(parse.parse)
app.command()(workflows.selftrain)
app.command(cls=PairedFilesCommand)(workflows.distill)
app.command()(serve.serve)
app.command()(inspect.inspect)
app.command()(evaluate.evaluate)
app.command()(evaluate.calibrate)
app.command()(installed.models)
app.command()(installed.get)
app.command()(installed.remove)
app.command()(train.presets)
app.command()(models.info)
app.command()(inspect.plot)
bench_app.command("train")(bench.bench_train)
bench_app.command("translate")(bench.bench_translate)


def _print_version(asked: bool) -> None:
    if asked:
        from dragoman import __version__

        print_result(f"dragoman {__version__}")
        raise typer.Exit


@app.callback()
def dragoman(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Turn two aligned text files into a translator, or a treebank into a parser."""


def main() -> NoReturn:
    """Run a command and exit; what Dragoman refuses is one line on stderr and status 2."""
    # Waiting threads that spin make two threads slower than one as soon as a core is busy.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        status = _app_of(sys.argv[1:2])(prog_name="dragoman", standalone_mode=False)
        sys.stdout.flush()
    except DragomanError as error:
        print_message(str(error))
        sys.exit(2)
    except UsageError as error:
        _exit_with_usage(error)
    except ModuleNotFoundError as error:
        _exit_without_package(error)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # most likely standard output, on a full disk
        from dragoman.system.atomic_files import describe_os_error

        print_message(f"{error.filename or 'standard output'}: {describe_os_error(error)}")
        sys.exit(2)
    sys.exit(status or 0)


def _app_of(words: list[str]) -> typer.Typer:
    """Return a program with nothing but the command that is asked for, or with all of them.

    Typer examines every command of a program, which takes longer than most commands here.
    """
    asked = [
        one
        for one in app.registered_commands
        if [one.name or getattr(one.callback, "__name__", "")] == words
    ]
    if not asked:
        return app
    alone = typer.Typer(**_SETTINGS)
    alone.registered_callback, alone.registered_commands = app.registered_callback, asked
    return alone


def _exit_without_package(error: ModuleNotFoundError) -> NoReturn:
    """Say in one line what to install for a command, and exit with status 2."""
    from dragoman.system.packages import describe_missing

    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    grouped = words[:1] in [[group.name] for group in app.registered_groups]
    message = describe_missing(error, " ".join(["dragoman", *words[: 2 if grouped else 1]]))
    if message is None:
        raise error
    print_message(message)
    sys.exit(2)


def _exit_with_usage(error: Any) -> NoReturn:
    """Say in one line what was misspelt and what was probably meant, and exit with status 2."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        sys.exit(2)
    message = " ".join(error.format_message().split()).removesuffix(".")
    message = re.sub(r" \(Possible options: (.*)\)$", r"; did you mean \1?", message)
    message = message[:1].lower() + message[1:].replace(". Did you mean", "; did you mean")
    if not message.endswith("?"):
        message += f"; see {error.ctx.command_path if error.ctx else 'dragoman'} --help"
    print_message(message)
    sys.exit(2)
