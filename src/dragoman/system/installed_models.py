"""Models that go by a name are installed as packages, or lie in a folder of models.

A package is a distribution named ``dragoman-NAME``. It holds one package, ``dragoman_NAME``, which
is a model directory and nothing else, and an entry point that names it. Its code is never run: the
package is located, not imported. A folder of models has a model directory for each name;
``DRAGOMAN_MODELS`` names such folders, and where it is not set, a clone of the repository has one.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

ENTRY_POINTS: Final = "dragoman.models"
"""The group of entry points in which a distribution names its model."""
FOLDERS: Final = "DRAGOMAN_MODELS"
"""The environment variable that names folders of models, as PATH names those of programs."""
_CARD: Final = "card.json"
_ENTRY_POINT: Final = re.compile(rf"\[{re.escape(ENTRY_POINTS)}\]\s+([a-z0-9-]+)\s*=\s*(\w+)")

_PAIR: Final = re.compile(r"[a-z]{2}-[a-z]{2}")


class ModelPackage(NamedTuple):
    """Hold where the package of a model is installed, and in which version."""

    path: Path
    version: str
    info: Path
    """The directory of its metadata."""


def distribution_name(name: str) -> str:
    """Return the name of the distribution that a model comes in."""
    return f"dragoman-{name}"


def package_name(name: str) -> str:
    """Return the name of the package that holds a model's files."""
    return f"dragoman_{name.replace('-', '_')}"


def installed_models() -> dict[str, Path]:
    """Return the directory of each model that has a name; folders come before packages."""
    found = {name: package.path for name, package in model_packages().items()}
    for folder in reversed(model_folders()):
        found |= {card.parent.name: card.parent for card in folder.glob(f"*/{_CARD}")}
    return dict(sorted(found.items()))


def model_folders() -> list[Path]:
    """Return the folders of models: those of DRAGOMAN_MODELS, or the one of this clone."""
    named = os.environ.get(FOLDERS)
    if named is not None:
        return [Path(folder) for folder in named.split(os.pathsep) if folder]
    root = Path(__file__).resolve().parents[3]
    return [root / "models"] if (root / "pyproject.toml").is_file() else []


def model_packages() -> dict[str, ModelPackage]:
    """Return the installed package of each model, by name.

    Only the names of directories are read, and the entry points of models: Python's own search
    opens a file of every distribution there is.
    """
    found: dict[str, ModelPackage] = {}
    for folder in map(Path, sys.path):
        for file in sorted(folder.glob("dragoman_*.dist-info/entry_points.txt")):
            named = _ENTRY_POINT.search(file.read_text(encoding="utf-8", errors="replace"))
            if named is not None and (folder / named[2]).is_dir():
                version = file.parent.name.removesuffix(".dist-info").partition("-")[2]
                package = ModelPackage(folder / named[2], version, file.parent)
                found.setdefault(named[1], package)
    return dict(sorted(found.items()))


def find_installed_model(name: str) -> Path | None:
    """Return the directory of an installed model, or None if none has this name."""
    return installed_models().get(name)


def describe_missing_model(name: str) -> str:
    """Return what to say of a name that is no directory and no installed model."""
    names = list(installed_models())
    if near := nearest_name(name, names):
        return f"{name}: no such model; did you mean {near}?"
    if names:
        return f"{name}: no such model; installed: {', '.join(names)}"
    return (
        f"{name}: no such model; give a directory that dragoman train made, or install a model "
        "with dragoman get"
    )


def nearest_name(name: str, names: list[str]) -> str | None:
    """Return the one of some names that was probably meant, if any is near.

    Of two pairs of codes, such as en-ko and de-ko, neither is meant for the other unless they
    differ in one letter.
    """
    for near in difflib.get_close_matches(name, names, n=3, cutoff=0.5):
        different = sum(a != b for a, b in zip(name, near, strict=False))
        if not (_PAIR.fullmatch(name) and _PAIR.fullmatch(near)) or different < 2:
            return near
    return None
