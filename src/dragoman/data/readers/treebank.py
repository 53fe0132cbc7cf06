"""A treebank is read as parallel text: sentences, and their trees in brackets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from dragoman.data.readers.parallel import (
    ConcatenatedCorpus,
    Corpus,
    ErrorHandler,
    Pair,
    SingleFile,
    check_rereadable,
    open_text,
)
from dragoman.errors import DataError
from dragoman.trees.bracketing import read_trees, write_tree
from dragoman.trees.cleaning import clean_tree
from dragoman.trees.tree import leaves


class Treebank(SingleFile):
    """Read a file of trees, cleaned; a tree that holds only traces is skipped."""

    unit = "tree"

    def read(self, on_error: ErrorHandler | None = None) -> Iterator[Pair]:
        """Yield each sentence, its words joined by spaces, and its tree on one line.

        A tree that cannot be read is remembered as malformed, and reading goes on.
        """
        problems: list[DataError] = []
        with closing(open_text(self.path, on_error)) as lines:
            trees = read_trees(lines, self.name, on_error=on_error or problems.append)
            for number, tree in enumerate(trees, 1):
                cleaned = clean_tree(tree)
                if cleaned is not None:
                    words = " ".join(leaf.word for leaf in leaves(cleaned))
                    yield Pair(words, write_tree(cleaned), number)
        self.malformed = tuple(map(str, problems))


def open_treebank(paths: Sequence[str | Path]) -> Corpus:
    """Open the trees in these files, and in all files of a directory that are not hidden."""
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if file.is_file())
            found = [file for file in found if not _is_hidden(file.relative_to(path))]
            if not found:
                raise DataError(f"{path}: this directory has no files; give a file of trees")
            files += found
        else:
            files.append(path)
    for file in files:
        check_rereadable(file)
    if not files:
        raise DataError("give a file of trees")
    return Treebank(files[0]) if len(files) == 1 else ConcatenatedCorpus(list(map(Treebank, files)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
