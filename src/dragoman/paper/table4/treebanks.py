"""The treebanks of Table 4: any files of trees, or the Wall Street Journal's by its sections."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from dragoman.data.readers.text_files import open_text
from dragoman.errors import ConfigError, DataError
from dragoman.evaluation.bracket_f1 import clean_trees
from dragoman.trees.bracketing import bracketing
from dragoman.trees.tree import Tree, leaves

__all__ = ["LICENCE", "Gold", "Treebanks", "tree_files"]

LICENCE: Final = (
    "The Wall Street Journal's trees are the LDC's (LDC99T42) and need its licence; Dragoman does "
    "not carry them."
)

_TRAIN: Final = tuple(f"{number:02d}" for number in range(2, 22))
_ALL: Final = "02-21"
_VALID: Final = "22"
_TEST: Final = "23"
_BELOW: Final = ("wsj", "mrg/wsj", "parsed/mrg/wsj", "treebank_3/parsed/mrg/wsj", "combined/wsj")
"""Where the sections may be in what the LDC delivers."""
_SECTION: Final = re.compile(
    r"(?: wsj[._-]? )? (?: sec (?:tion)? [._-]? )? ( 02-21 | \d\d ) (?: \.[\w.-]+ )?",
    re.VERBOSE | re.IGNORECASE,
)
"""A section's directory or file, such as 22 and wsj_22.trees, or one file to train on."""
_TEXT: Final = re.compile(r"wsj_?(\d\d)\d\d\.mrg(?:\.\w+)?", re.IGNORECASE)
"""One text of a section that has no directory."""


@dataclass(frozen=True, slots=True)
class Treebanks:
    """Where the trees are that one trains on, chooses by and is scored on."""

    name: str
    train: tuple[Path, ...] = ()
    valid: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    """Without any, the validation trees."""
    wsj: Path | None = None
    """The directory of the sections, if it is them."""

    @classmethod
    def of_wsj(cls, directory: Path) -> Self:
        """Sections 02 to 21, 22 and 23, wherever in the directory they are."""
        if not directory.is_dir():
            raise DataError(f"{directory}: no such directory; give the treebank's. {LICENCE}")
        places = [directory, *(d for below in _BELOW if (d := _below(directory, below)))]
        found = max(map(_sections, places), key=len)
        train = [_ALL] if _ALL in found else _TRAIN
        if missing := [section for section in (*train, _VALID, _TEST) if section not in found]:
            raise DataError(
                f"{directory}: not found: section {', '.join(missing)}; give a directory with 02 "
                f"to 23 in it, such as parsed/mrg/wsj. {LICENCE}"
            )
        return cls(
            "wsj",
            tuple(file for section in train for file in found[section]),
            tuple(found[_VALID]),
            tuple(found[_TEST]),
            directory,
        )

    @classmethod
    def of_files(
        cls, train: Sequence[Path], valid: Sequence[Path], test: Sequence[Path] = ()
    ) -> Self:
        """Files of trees, or directories of such files."""
        if train and not valid:
            raise ConfigError("--trees needs --valid too, trees to validate on; name a file")
        if not (first := [*train, *test, *valid]):
            raise ConfigError("no trees; name a file of them with --trees, --wsj or --test")
        name = _name(first[0].resolve())
        files = [tuple(tree_files(paths)) for paths in (train, valid, test)]
        return cls(name, files[0], files[1], files[2])


def _name(path: Path) -> str:
    """A treebank's: its file's, or, of a file that could be anyone's, its directory's."""
    stem = path.name.partition(".")[0]
    if stem.lower() in ("train", "training", "trees", "dev", "valid", "test"):
        stem = path.parent.name
    return re.sub(r"[^\w-]+", "-", stem) or "trees"


def _below(directory: Path, path: str) -> Path | None:
    """A directory within another, whatever its letters' case."""
    found: Path | None = directory
    for name in path.split("/"):
        entries = sorted(found.iterdir()) if found and found.is_dir() else []
        found = next((entry for entry in entries if entry.name.lower() == name), None)
    return found


def _sections(directory: Path) -> dict[str, list[Path]]:
    """The files of each section that lies in a directory itself."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    texts: defaultdict[str, list[Path]] = defaultdict(list)
    for entry in sorted(directory.iterdir()) if directory.is_dir() else []:
        if match := _TEXT.fullmatch(entry.name):
            texts[match[1]].append(entry)
        elif match := _SECTION.fullmatch(entry.name):
            found.setdefault(match[1], _mrg(entry))  # the first of several is as good as any
    return {**texts, **found}


def _mrg(section: Path) -> list[Path]:
    """The files of trees in a section's directory; beside them there may be others."""
    files = list(tree_files([section]))
    return [file for file in files if ".mrg" in file.name.lower()] or files


def tree_files(paths: Sequence[Path]) -> Iterator[Path]:
    """These files, and all files of the directories among them."""
    for path in paths:
        files = [path] if path.is_file() else sorted(filter(Path.is_file, path.rglob("[!.]*")))
        if not files:
            raise DataError(f"{path}: no file of trees; name one, or a directory of some")
        yield from files


@dataclass(frozen=True, slots=True)
class Gold:
    """Trees to be scored on."""

    trees: list[Tree]
    words: list[list[str]]

    @classmethod
    def read(cls, files: Sequence[Path]) -> Self:
        """All trees of the files; one that cannot be read is refused."""
        trees = [tree for file in files for tree in clean_trees(open_text(file), str(file))]
        if not trees:
            raise DataError(f"{', '.join(map(str, files))}: no trees in it; name a file of trees")
        return cls(trees, [[leaf.word for leaf in leaves(tree)] for tree in trees])

    @property
    def texts(self) -> list[str]:
        """In brackets, to be known by."""
        return list(map(bracketing, self.trees))

    @property
    def word_count(self) -> int:
        """Of all sentences."""
        return sum(map(len, self.words))
