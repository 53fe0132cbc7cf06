"""These commands list, install and remove models that come as packages."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli.console import print_result
from dragoman.cli.options import Json

_Name = Annotated[str, typer.Argument(help="A model's name, such as en-de.")]


def models(
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DIR|FILE|URL",
            help="List what a folder of wheels, a wheel or an index has instead.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the installed models: languages, size, licence, scores."""
    from dragoman.system.installed_models import installed_models
    from dragoman.workflows.model_packages import (
        describe_directory,
        description_lines,
        list_origin,
        to_json,
    )

    if origin is not None:
        found = list_origin(origin)
    else:
        found = [describe_directory(name, path) for name, path in installed_models().items()]
    print_result(to_json(found) if as_json else "\n".join(description_lines(found)))


def get(
    name: _Name,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DIR|FILE|URL",
            help="A folder of wheels, a wheel, or an index; default: pip's own index.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Install anew a model that is installed.")
    ] = False,
) -> None:
    """Install a model, so that its name can be given for its directory."""
    from dragoman.workflows.model_packages import description_lines, install_model

    print_result("\n".join(description_lines([install_model(name, origin, force=force)])))


def remove(name: _Name) -> None:
    """Remove an installed model."""
    from dragoman.workflows.model_packages import remove_model

    remove_model(name)
