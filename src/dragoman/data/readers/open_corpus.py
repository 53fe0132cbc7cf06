"""The corpus that a task takes: parallel text for translation, a treebank for parsing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.config import DataConfig
from dragoman.data.readers.parallel import Concatenated, Corpus, corpus
from dragoman.data.readers.treebank import treebank

__all__ = ["holds_both", "open_corpus", "sets_of"]


def open_corpus(
    files: Sequence[str | Path], config: DataConfig, more: Sequence[str | Path] = ()
) -> Corpus:
    """The pairs in these files, with those of `more` corpora after them."""
    if config.task == "parsing":
        return treebank([*files, *more])
    codes = config.languages
    languages = (codes[0], codes[1]) if codes else None
    first = corpus(files, languages=languages)
    if not more:
        return first
    return Concatenated([first, *(corpus(s, languages=languages) for s in sets_of(more, config))])


def sets_of(files: Sequence[str | Path], config: DataConfig) -> list[list[Path]]:
    """The files of several corpora, one after another, as one list a corpus."""
    sets, rest = [], list(map(Path, files))
    while rest:
        size = 1 if config.task == "parsing" or holds_both(rest[0]) else 2
        sets.append(rest[:size])
        del rest[:size]
    return sets


def holds_both(path: Path) -> bool:
    """Whether a file has both sides of its pairs, by its name."""
    return any(suffix in (".tsv", ".jsonl", ".tmx") for suffix in path.suffixes)
