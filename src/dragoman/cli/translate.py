"""The commands that translate, score given translations, and list alternatives."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from dragoman.cli.console import (
    load_translator,
    print_message,
    print_result,
    progress_counter,
    read_lines,
)
from dragoman.cli.options import Device, Json, Model, Precision, Shortlist, Window, With
from dragoman.errors import ConfigError, DataError, ModelError

if TYPE_CHECKING:
    from dragoman.inference import Translator
    from dragoman.search import SamplingOptions


def translate(
    model: Model,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Text, a sentence a line; default: stdin.")
    ] = None,
    with_: With = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept; 1 is greedy.")] = None,
    n_best: Annotated[int, typer.Option(help="Translations of each line, best first.")] = 1,
    diverse: Annotated[
        int, typer.Option(metavar="GROUPS", help="Groups of hypotheses that avoid each other.")
    ] = 1,
    diversity: Annotated[float | None, typer.Option(help="How much they do; default: 2.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's α.")] = None,
    min_length: Annotated[int | None, typer.Option(help="Fewest pieces.")] = None,
    max_extra: Annotated[int | None, typer.Option(help="Most pieces beyond the source's.")] = None,
    prefix: Annotated[str | None, typer.Option(help="How every translation must begin.")] = None,
    must: Annotated[
        list[str] | None,
        typer.Option(metavar="WORDS", help="What each must contain; may be given again."),
    ] = None,
    must_not: Annotated[
        list[str] | None,
        typer.Option(metavar="WORDS", help="What none may contain; may be given again."),
    ] = None,
    glossary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Terms and translations, .tsv or .csv.")
    ] = None,
    protect: Annotated[
        bool, typer.Option("--protect", help="Keep URLs, addresses, tags and placeholders.")
    ] = False,
    sample: Annotated[int, typer.Option(help="Draw so many translations of each line.")] = 0,
    temperature: Annotated[float, typer.Option(help="Of sampling; below 1 is less random.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Sample from the k likeliest pieces.")] = 0,
    top_p: Annotated[float, typer.Option(help="Sample from the likeliest of this mass.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 1,
    align: Annotated[bool, typer.Option("--align", help="Word alignments, with --json.")] = False,
    alignments: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write word alignments here: 0-0 1-2 …, a line each."),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Whole files to --out, in parts that are kept: local, ray.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="With --engine: where the results go.")] = None,
    workers: Annotated[int | None, typer.Option(help="With --engine: how many translate.")] = None,
    part: Annotated[int, typer.Option(help="With --engine: lines of a part.")] = 2000,
    window: Window = None,
    device: Device = "auto",
    precision: Precision = "auto",
    draft: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="A small model that guesses ahead; --window 1 --beam 1."
        ),
    ] = None,
    shortlist: Shortlist = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Ask for lines at a prompt; :help there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Translate lines; their order and number are kept.

    With --n-best or --sample a line becomes several: its number, score and text between tabs.
    """
    options: dict[str, Any] = {
        "beam": beam,
        "n_best": n_best,
        "diverse": diverse,
        "diversity": diversity,
        "length_penalty": length_penalty,
        "min_length": min_length,
        "max_extra": max_extra,
        "prefix": prefix,
        "must": must or (),
        "must_not": must_not or (),
        "protect": protect,
        "align": align or alignments is not None,
    }
    if glossary is not None:
        from dragoman.inference import Glossary

        options["glossary"] = Glossary.read(glossary)
    if interactive and (files or engine or sample or alignments or as_json):
        raise ConfigError("-i translates at a prompt; leave out files, --engine, --sample, --json")
    if engine is not None:
        if n_best > 1 or sample or align or alignments:
            raise ConfigError(
                "--engine writes a line for a line; leave out --n-best, --sample and alignments"
            )
        if precision != "auto" or draft is not None or shortlist:
            raise ConfigError(
                "--engine chooses how to compute; leave out --precision, --draft and --shortlist"
            )
        translate_files(
            [model, *(with_ or ())],
            files or [],
            out,
            engine=engine,
            workers=workers,
            part=part,
            device=device,
            as_json=as_json,
            **options,
        )
        return
    translator = load_translator(
        model, *(with_ or ()), device=device, precision=precision, draft=draft
    )
    if shortlist:
        translator.use_shortlist()
    if draft is not None and (beam or translator.config.search.beam) != 1:
        raise ConfigError("--draft works with greedy search only; add --beam 1")
    if (align or alignments) and not translator.aligns:
        option = "--align" if align else "--alignments"
        raise ModelError(
            f"{model}: has no attention to its source, so no alignments; leave out {option}"
        )
    if interactive:
        from dragoman.cli.interactive import run_prompt

        run_prompt(translator, options)
        return
    if sample:
        options["sampling"] = _sampling(
            translator,
            samples=sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            max_extra=max_extra,
            min_length=min_length or 0,
        )
    lines = read_lines(files or [Path("-")])
    waits = not files and sys.stdin.isatty()
    several = n_best > 1 or sample > 1
    found = translator.translate_lines(lines, window=1 if waits else window, **options)
    with _written(alignments) as file:
        for number, translation in enumerate(found, 1):
            if as_json:
                print_result(json.dumps(translation.to_dict(), ensure_ascii=False))
            elif several:
                for one in (translation, *translation.alternatives):
                    print_result(f"{number}\t{one.score:.4f}\t{one.text}")
            else:
                print_result(translation.text)
            if file is not None:
                file.write(f"{translation.pharaoh}\n")


def score(
    model: Model,
    source: Annotated[Path, typer.Option(help="Source lines.")],
    target: Annotated[Path, typer.Option(help="A translation of each.")],
    with_: With = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Every piece, too.")] = False,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's α.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Print the log-probability of each given translation.

    With --json also the score, which search ranks by.
    """
    translator = load_translator(model, *(with_ or ()), device=device)
    sources, targets = list(read_lines([source])), list(read_lines([target]))
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources)} lines and {target} has {len(targets)}; line n of each "
            "must belong together"
        )
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
    prefix: Annotated[str, typer.Option(help="How its translation begins, in words.")] = "",
    count: Annotated[int, typer.Option(help="How many words.")] = 5,
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


def _sampling(translator: Translator, *, max_extra: int | None, **options: Any) -> SamplingOptions:
    from dragoman.search import SamplingOptions

    extra = translator.config.search.max_extra if max_extra is None else max_extra
    return SamplingOptions(max_extra=extra, **options)


@contextmanager
def _written(path: Path | None) -> Iterator[TextIO | None]:
    """Open a file to write, or give None."""
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror or error})") from None
    with file:
        yield file


def translate_files(
    models: list[Path], files: list[Path], out: Path | None, *, as_json: bool, **options: Any
) -> None:
    """Translate files and directories to files of the same names, in parts that can be resumed.

    The options are those of `translate_directory`.
    """
    from dragoman.workflows.bulk import translate_directory

    if out is None or not files:
        raise ConfigError(
            "--engine translates files to files: name them, or a directory, and --out"
        )
    try:
        with progress_counter("parts") as progress:
            found = translate_directory(
                models, files, out, tell=print_message, progress=progress, **options
            )
    except KeyboardInterrupt:
        print_message(f"stopped; the same command goes on in {out}")
        raise
    paths = list(map(str, found.files))
    print_result(asdict(found) | {"files": paths} if as_json else "\n".join(paths))
