"""Arguments of a command that are texts are told from those that name files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dragoman.errors import ConfigError, DataError

LIKE_A_FILE: Final = re.compile(r"\S*(?:[/\\]\S*|\w\.\w{1,5})")
"""A word that looks like the name of a file: it has a slash or an extension."""


def sort_inputs(inputs: Sequence[str], purpose: str) -> tuple[list[str], list[Path]]:
    """Return which arguments are texts, and which name files or directories.

    What names no file is a text, unless it looks like the name of one. `purpose` is what a text is
    given for, as "translate".
    """
    texts, files = [], []
    for one in inputs:
        if one == "-" or path_exists(one):
            files.append(Path(one))
        elif LIKE_A_FILE.fullmatch(one):
            raise DataError(f"{one}: no such file")
        else:
            texts.append(one)
    if texts and files:
        raise ConfigError(f"'{texts[0]}' is not a file; give files, or a text to {purpose}")
    return [" ".join(texts)] if texts else [], files


def path_exists(name: str) -> bool:
    """Return whether an argument, which may be no name of a file at all, names one that exists."""
    try:
        return bool(name) and Path(name).exists()
    except (OSError, ValueError):  # too long for a name, or with a character that none has
        return False
