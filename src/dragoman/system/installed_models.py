"""Installed models are distributions named ``dragoman-NAME``, found by their entry points.

Such a distribution holds one package, ``dragoman_NAME``, which is a model directory and nothing
else. Its code is never run: the package is located, not imported.
"""

from __future__ import annotations

import difflib
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ENTRY_POINTS: Final = "dragoman.models"
"""The group of entry points in which a distribution names its model."""


def distribution_name(name: str) -> str:
    """Return the name of the distribution that a model comes in."""
    return f"dragoman-{name}"


def package_name(name: str) -> str:
    """Return the name of the package that holds a model's files."""
    return f"dragoman_{name.replace('-', '_')}"


def installed_models() -> dict[str, Path]:
    """Return the directory of each installed model, by name."""
    found = {}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda one: one.name):
        specification = find_spec(point.module)
        if specification is not None and specification.submodule_search_locations:
            found[point.name] = Path(specification.submodule_search_locations[0])
    return found


def find_installed_model(name: str) -> Path | None:
    """Return the directory of an installed model, or None if none has this name."""
    return installed_models().get(name)


def describe_missing_model(name: str) -> str:
    """Return what to say of a name that is no directory and no installed model."""
    names = list(installed_models())
    if near := difflib.get_close_matches(name, names, n=1, cutoff=0.5):
        return f"{name}: no such model; did you mean {near[0]}?"
    if names:
        return f"{name}: no such model; installed: {', '.join(names)}"
    return (
        f"{name}: no such model; give a directory that dragoman train made, or install a model "
        "with dragoman get"
    )
