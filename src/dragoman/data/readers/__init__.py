"""Readers yield the pairs of parallel text and treebanks as they lie on disk.

`open_corpus` opens what a task takes: parallel text for translation, a treebank for parsing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from dragoman.config import DataConfig
from dragoman.data.readers.parallel import (
    ConcatenatedCorpus,
    Corpus,
    holds_both_sides,
    named_languages,
    open_parallel_corpus,
)
from dragoman.data.readers.treebank import open_treebank
from dragoman.text.languages import guess_languages, same_language

__all__ = ["fill_in_languages", "group_files", "holds_both_sides", "open_corpus"]


def fill_in_languages(config: DataConfig, files: Sequence[Path]) -> DataConfig:
    """Return the settings with the languages that these files tell, unless they name them already.

    File names come first, for they also say which way to translate; but a file that names other
    languages inside is believed.
    """
    if config.task == "parsing" or config.languages:
        return config
    languages = guess_languages(files)
    if len(files) == 1 and (inside := named_languages(files[0])):
        agree = all(any(same_language(one, other) for other in inside) for one in languages)
        languages = languages if languages and agree else inside
    return dataclasses.replace(config, languages=languages)


def open_corpus(
    files: Sequence[str | Path], config: DataConfig, more: Sequence[str | Path] = ()
) -> Corpus:
    """Open the corpus in these files, with the pairs of `more` corpora after its own."""
    if config.task == "parsing":
        return open_treebank([*files, *more])
    codes = config.languages
    languages = (codes[0], codes[1]) if codes else None
    parts = [
        open_parallel_corpus(group, languages=languages)
        for group in (files, *group_files(more, config))
    ]
    return ConcatenatedCorpus(parts) if more else parts[0]


def group_files(files: Sequence[str | Path], config: DataConfig) -> list[list[Path]]:
    """Split the files of several corpora, given one after another, into one list a corpus."""
    groups, rest = [], list(map(Path, files))
    while rest:
        size = 1 if config.task == "parsing" or holds_both_sides(rest[0]) else 2
        groups.append(rest[:size])
        del rest[:size]
    return groups
