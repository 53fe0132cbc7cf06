"""This command serves models over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Device, Precision, Shortlist
from dragoman.errors import ConfigError
from dragoman.system.numpy_threads import import_numpy_without_threads

if TYPE_CHECKING:
    from dragoman.serve.settings import NamedModel


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Directories of models or runs, or names; NAME=DIRECTORY gives one a name; "
            "default: all that are installed."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 means all.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 means any free one.")] = 5000,
    pair: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=EN-DE", help="Languages of a model that does not name them."),
    ] = None,
    memory: Annotated[
        list[Path] | None,
        typer.Option(metavar="TMX", help="Translation memory, only read; can be repeated."),
    ] = None,
    corrections: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep users' corrections in this .jsonl file, and use them at once.",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of API keys, one per line; or set DRAGOMAN_KEYS."),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN", help="Site whose pages may call the service; can be repeated."
        ),
    ] = None,
    max_characters: Annotated[int, typer.Option(help="Most characters in a request.")] = 20_000,
    max_items: Annotated[int, typer.Option(help="Most texts in a request.")] = 128,
    max_body: Annotated[int, typer.Option(help="Most bytes in a request.")] = 2 << 20,
    queue: Annotated[int, typer.Option(help="Most sentences waiting for an answer.")] = 512,
    deadline: Annotated[float, typer.Option(help="Seconds a request may take.")] = 30.0,
    rate: Annotated[
        int, typer.Option(help="Most requests a minute from one key or address; 0: no limit.")
    ] = 0,
    threads: Annotated[
        int | None, typer.Option(help="Number of workers; default: one per core.")
    ] = None,
    linger: Annotated[
        float,
        typer.Option(help="Seconds to go on listening at shutdown after /health/ready fails."),
    ] = 1.0,
    device: Device = "auto",
    precision: Precision = "auto",
    shortlist: Shortlist = False,
) -> None:
    """Serve models over HTTP, and a page to try them; those that are installed, or some.

    The APIs are LibreTranslate's, DeepL's and its own; see docs/serving.md.
    """
    import_numpy_without_threads()
    from dragoman.serve.authentication import read_keys
    from dragoman.serve.limits import Limits
    from dragoman.serve.server import serve as run
    from dragoman.serve.settings import Settings

    limits = Limits(
        max_characters=max_characters,
        max_items=max_items,
        max_body=max_body,
        queue=queue,
        deadline=deadline,
        rate=rate,
    )
    run(
        Settings(
            models=_find_models(models or ()),
            pairs=dict(map(_parse_pair, pair or ())),
            host=host,
            port=port,
            memories=tuple(memory or ()),
            corrections=corrections,
            keys=read_keys(keys),
            origins=tuple(cors or ()),
            limits=limits,
            threads=threads,
            device=device,
            precision=precision,
            shortlist=shortlist,
            linger=linger,
        )
    )


def _find_models(given: Sequence[str]) -> tuple[NamedModel, ...]:
    """Return the models to serve: those given, the two that a pair such as de-ko takes, or all."""
    from dragoman.inference.model_chains import find_named_chain
    from dragoman.serve.settings import NamedModel
    from dragoman.system.installed_models import installed_models

    if not given:
        found = [NamedModel(name, path) for name, path in installed_models().items()]
        if not found:
            raise ConfigError(
                "no model is installed to be served; get one, as in: dragoman get en-de, or give a "
                "model directory"
            )
        return tuple(found)
    models: list[NamedModel] = []
    for text in given:
        if (chain := find_named_chain(text)) is None:
            models.append(NamedModel.parse(text))
            continue
        for one in chain.models:
            if one.name not in given and all(one.name != other.name for other in models):
                models.append(NamedModel(one.name, one.path))
    return tuple(models)


def _parse_pair(text: str) -> tuple[str, tuple[str, str]]:
    name, _, codes = text.partition("=")
    source, dash, target = codes.partition("-")
    if not (name and source and dash and target):
        raise ConfigError(f"--pair {text}: write a model's name and two codes, as in news=en-de")
    return name, (source, target)
