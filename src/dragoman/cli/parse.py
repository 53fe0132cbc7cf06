"""This command parses text into trees."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dragoman.cli.console import load_parser, print_message, print_result, read_lines
from dragoman.cli.inputs import path_exists, sort_inputs
from dragoman.cli.options import Beam, Device, Json, LengthPenalty, Precision, Tokenized, Window
from dragoman.errors import ConfigError, ModelError
from dragoman.system.numpy_threads import import_numpy_without_threads

if TYPE_CHECKING:
    from dragoman.inference.parser import Parse

JUDGED_CHARACTERS: Final = 2000
"""So much of a text is enough to tell its language."""


def parse(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A parser's directory, a run directory, or a name; default: the parser that is "
            "installed."
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES]...", help="Files of text, or the text itself; default: stdin."
        ),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", metavar="MODEL", help="Another parser, for an ensemble; can be repeated."
        ),
    ] = None,
    by_line: Annotated[
        bool, typer.Option("--lines", help="Each line is one sentence; none is split.")
    ] = False,
    tokenized: Tokenized = False,
    beam: Beam = None,
    n_best: Annotated[int, typer.Option(help="Trees for each sentence, best first.")] = 1,
    length_penalty: LengthPenalty = None,
    pretty: Annotated[bool, typer.Option("--pretty", help="Draw the trees.")] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also draw each tree as DIR/NUMBER.svg.")
    ] = None,
    window: Window = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: Json = False,
) -> None:
    """Parse text into trees, one for each sentence.

    dragoman parse "The cat sat on the mat.", or: dragoman parse runs/mine book.txt

    A line may hold several sentences, and none goes on in the next line. An empty line stays empty.
    With --n-best, each sentence becomes several lines: its number, score and tree, separated by
    tabs.
    """
    import_numpy_without_threads()
    from dragoman.inference.parser import find_installed_parser

    if pretty and as_json:
        raise ConfigError("--pretty draws for people and --json writes for programs; choose one")
    words = [*([] if model is None else [model]), *(inputs or ())]
    named, rest = split_parser(words)
    texts, files = sort_inputs(rest, "parse")
    path = find_installed_parser() if named is None else Path(named)
    parser = load_parser([path, *(also or [])], device, precision)
    interactive = not rest and sys.stdin.isatty()
    lines: Iterable[str] = (
        texts[0].splitlines() or [""] if texts else read_lines(files or [Path("-")])
    )
    if not by_line and not tokenized:
        lines = (sentence for line in lines for sentence in parser.split_sentences(line))
    judge = LanguageJudge(str(parser.card.get("language", "")))
    found = parser.parse_lines(
        judge.note(lines),
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
    judge.finish()


def split_parser(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the parser that the first of the arguments names, if it does, and the others.

    It does if it is a directory or the name of an installed model. What has spaces, or is a file,
    is something to parse. Any other word was meant for a parser.
    """
    from dragoman.model_directory import names_a_model
    from dragoman.system.installed_models import describe_missing_model

    if not words:
        return None, []
    first, *rest = words
    if first == "-" or not first.strip():
        return None, list(words)
    if path_exists(first):
        return (first, rest) if Path(first).is_dir() or names_a_model(first) else (None, [*words])
    if len(first.split()) > 1:
        return None, list(words)
    if not rest and not set("-/\\").intersection(first) and not names_a_model(first):
        advice = (
            f"to parse this word, write it to stdin: echo {shlex.quote(first)} | dragoman parse"
        )
        raise ModelError(f"{describe_missing_model(first)}; {advice}")
    return first, rest


class LanguageJudge:
    """Say once that a text is in another language than the parser's, if that is known."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._seen = ""

    def note(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines as they are, and remember how the text begins."""
        for line in lines:
            if len(self._seen) < JUDGED_CHARACTERS:
                self._seen += f"{line}\n"
            yield line

    def finish(self) -> None:
        """Judge what has been seen."""
        if not self._language:
            return
        from dragoman.text.languages import language_name
        from dragoman.text.wrong_language import find_other_language

        sys.stdout.flush()  # judging a language takes a moment
        other = find_other_language(self._seen, self._language)
        if other is not None:
            print_message(
                f"this seems to be {language_name(other)}, but the parser learned from "
                f"{language_name(self._language)}"
            )


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
