"""The treebanks of Table 4 are any files of trees, or the sections of the Wall Street Journal."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from dragoman.data.readers.parallel import open_text
from dragoman.errors import ConfigError, DataError
from dragoman.evaluation.bracket_f1 import clean_trees
from dragoman.trees.bracketing import write_tree
from dragoman.trees.tree import Tree, leaves

LICENCE: Final = (
    "The Wall Street Journal's trees are the LDC's (LDC99T42) and need its licence; Dragoman does "
    "not include them."
)

_TRAIN_SECTIONS: Final = tuple(f"{number:02d}" for number in range(2, 22))
_JOINED_TRAIN_SECTIONS: Final = "02-21"
_VALID_SECTION: Final = "22"
_TEST_SECTION: Final = "23"
_WSJ_DIRECTORIES: Final = (
    "wsj",
    "mrg/wsj",
    "parsed/mrg/wsj",
    "treebank_3/parsed/mrg/wsj",
    "combined/wsj",
)
"""The directories that may hold the sections in what the LDC delivers."""
_SECTION_NAME: Final = re.compile(
    r"(?: wsj[._-]? )? (?: sec (?:tion)? [._-]? )? ( 02-21 | \d\d ) (?: \.[\w.-]+ )?",
    re.VERBOSE | re.IGNORECASE,
)
"""The name of a section's directory or file, such as 22 and wsj_22.trees, or of all to train on."""
_ARTICLE_NAME: Final = re.compile(r"wsj_?(\d\d)\d\d\.mrg(?:\.\w+)?", re.IGNORECASE)
"""The name of one article of a section that has no directory."""


@dataclass(frozen=True, slots=True)
class Treebanks:
    """Hold the files of trees for training, for choosing settings and for scoring."""

    name: str
    train: tuple[Path, ...] = ()
    valid: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    """Is empty if the validation trees are scored."""
    wsj: Path | None = None
    """Is the directory of the Wall Street Journal's sections, if the trees are these."""

    @classmethod
    def from_wsj(cls, directory: Path) -> Self:
        """Find sections 02 to 21, 22 and 23, wherever in the directory they are."""
        if not directory.is_dir():
            raise DataError(f"{directory}: no such directory; give the treebank's. {LICENCE}")
        places = [
            directory,
            *(d for below in _WSJ_DIRECTORIES if (d := _find_directory(directory, below))),
        ]
        found = max(map(_find_sections, places), key=len)
        train = [_JOINED_TRAIN_SECTIONS] if _JOINED_TRAIN_SECTIONS in found else _TRAIN_SECTIONS
        if missing := [
            section for section in (*train, _VALID_SECTION, _TEST_SECTION) if section not in found
        ]:
            raise DataError(
                f"{directory}: section {', '.join(missing)} not found; give a directory that "
                f"contains 02 to 23, such as parsed/mrg/wsj. {LICENCE}"
            )
        return cls(
            "wsj",
            tuple(file for section in train for file in found[section]),
            tuple(found[_VALID_SECTION]),
            tuple(found[_TEST_SECTION]),
            directory,
        )

    @classmethod
    def from_files(
        cls, train: Sequence[Path], valid: Sequence[Path], test: Sequence[Path] = ()
    ) -> Self:
        """Take files of trees, or directories of such files."""
        if train and not valid:
            raise ConfigError("--trees needs --valid, too; give a file of trees to validate on")
        if not (first := [*train, *test, *valid]):
            raise ConfigError(
                "there are no trees; give a file of trees with --trees, --wsj or --test"
            )
        name = _treebank_name(first[0].resolve())
        files = [tuple(tree_files(paths)) for paths in (train, valid, test)]
        return cls(name, files[0], files[1], files[2])


def _treebank_name(path: Path) -> str:
    """Return the name of a file or, if that is one like train.mrg, of its directory."""
    stem = path.name.partition(".")[0]
    if stem.lower() in ("train", "training", "trees", "dev", "valid", "test"):
        stem = path.parent.name
    return re.sub(r"[^\w-]+", "-", stem) or "trees"


def _find_directory(directory: Path, path: str) -> Path | None:
    """Return a directory within another, ignoring case, or None."""
    found: Path | None = directory
    for name in path.split("/"):
        entries = sorted(found.iterdir()) if found and found.is_dir() else []
        found = next((entry for entry in entries if entry.name.lower() == name), None)
    return found


def _find_sections(directory: Path) -> dict[str, list[Path]]:
    """Return the files of each section that lies directly in a directory."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    texts: defaultdict[str, list[Path]] = defaultdict(list)
    for entry in sorted(directory.iterdir()) if directory.is_dir() else []:
        if match := _ARTICLE_NAME.fullmatch(entry.name):
            texts[match[1]].append(entry)
        elif match := _SECTION_NAME.fullmatch(entry.name):
            found.setdefault(
                match[1], _section_files(entry)
            )  # the first of several is as good as any
    return {**texts, **found}


def _section_files(section: Path) -> list[Path]:
    """Return the .mrg files in a section's directory or, if there are none, all files."""
    files = list(tree_files([section]))
    return [file for file in files if ".mrg" in file.name.lower()] or files


def tree_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield these files, and all files of the directories among them."""
    for path in paths:
        files = [path] if path.is_file() else sorted(filter(Path.is_file, path.rglob("[!.]*")))
        if not files:
            raise DataError(f"{path}: not a file of trees; give a file, or a directory of files")
        yield from files


@dataclass(frozen=True, slots=True)
class GoldTrees:
    """Hold gold trees and their words."""

    trees: list[Tree]
    words: list[list[str]]

    @classmethod
    def read(cls, files: Sequence[Path]) -> Self:
        """Read all trees of the files; raise DataError for one that cannot be read."""
        trees = [tree for file in files for tree in clean_trees(open_text(file), str(file))]
        if not trees:
            raise DataError(
                f"{', '.join(map(str, files))}: there are no trees in it; name another file"
            )
        return cls(trees, [[leaf.word for leaf in leaves(tree)] for tree in trees])

    @property
    def texts(self) -> list[str]:
        """Return the trees in brackets, of which fingerprints are made."""
        return list(map(write_tree, self.trees))

    @property
    def word_count(self) -> int:
        """Return the number of words of all sentences."""
        return sum(map(len, self.words))
