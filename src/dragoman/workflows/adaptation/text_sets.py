"""The sets of an adaptation are drawn from the user's files, the same ones every time.

Which pairs are held out, and which of the general ones are learned from, depends on the hash of
their source sides alone. A source is in one set only, with whatever translations it has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dragoman.config import DataConfig
from dragoman.data import Progress
from dragoman.data.cleaning import HashSet, pair_hash
from dragoman.data.prepare import Prepared, PreparedPairs
from dragoman.data.readers import holds_both_sides, open_corpus
from dragoman.data.readers.parallel import (
    ConcatenatedCorpus,
    Corpus,
    Pair,
    check_rereadable,
    open_parallel_corpus,
    open_text,
)
from dragoman.errors import ConfigError, DataError
from dragoman.messages import counted
from dragoman.text.languages import guess_languages, same_language
from dragoman.text.tokenizer import Tokenizer

Hashes: TypeAlias = npt.NDArray[np.uint64]

LEAST_PAIRS: Final = 50
"""Fewer different sentences than this teach a model nothing that could be measured."""
LEAST_GENERAL: Final = 100
"""Less general text than this neither protects nor measures anything."""
CHOICE, MEASURED = "choice", "measured"
"""The two kinds of held-out sets: what the model is chosen by, and what the report is made on."""


@dataclass(frozen=True, slots=True)
class TextSet:
    """Hold source texts and their references, which are empty where there are none."""

    source: list[str]
    target: list[str]

    def __len__(self) -> int:
        return len(self.source)

    def first(self, count: int) -> TextSet:
        """Return the set cut to so many pairs."""
        return TextSet(self.source[:count], self.target[:count])


def write_set(file: Path, pairs: Iterable[tuple[str, str]]) -> int:
    """Write pairs as JSON lines, and return how many there were."""
    count = 0
    with file.open("w", encoding="utf-8", newline="\n") as lines:
        for source, target in pairs:
            pair = {"source": source, "target": target}
            lines.write(json.dumps(pair, ensure_ascii=False) + "\n")
            count += 1
    return count


def read_set(file: Path) -> TextSet:
    """Read what `write_set` wrote; a file that is not there is an empty set."""
    if not file.exists():
        return TextSet([], [])
    with file.open(encoding="utf-8") as lines:
        pairs = [json.loads(line) for line in lines]
    return TextSet([pair["source"] for pair in pairs], [pair["target"] for pair in pairs])


# Where the text comes from.


class SourceText(Corpus):
    """Read files of the source language as pairs without translations."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths, self.name = paths, " + ".join(map(str, paths))

    def read(self, on_error: Callable[[DataError], None] | None = None) -> Iterator[Pair]:
        """Yield every line that is not empty."""
        number = 0
        for path in self.paths:
            for line in open_text(path, on_error):
                number += 1
                if line.strip():
                    yield Pair(line, "", number)


def open_domain(files: Sequence[Path], config: DataConfig) -> Corpus:
    """Open the user's own pairs."""
    if len(files) == 1 and files[0].is_dir():
        return PreparedPairs(Prepared.open(files[0]))
    return open_corpus(files, config)


def open_general(paths: Sequence[Path], languages: Sequence[str]) -> tuple[Corpus, bool]:
    """Open general text, and say whether it has translations.

    Two files in a row are pairs, unless their names say that they are in one language.
    """
    pairs: list[Corpus] = []
    alone: list[Path] = []
    rest = list(paths)
    while rest:
        path = rest.pop(0)
        if path.is_dir():
            pairs.append(PreparedPairs(Prepared.open(path)))
        elif holds_both_sides(path):
            pairs.append(open_parallel_corpus([path], languages=_two(languages)))
        elif rest and not rest[0].is_dir() and not _same_side(path, rest[0]):
            pairs.append(open_parallel_corpus([path, rest.pop(0)], languages=_two(languages)))
        else:
            check_rereadable(path)
            alone.append(path)
    if pairs and alone:
        raise ConfigError(
            f"--replay {alone[0]}: has one language, and {pairs[0].name} two; give the file of its "
            "translations as well, or source text alone"
        )
    if alone:
        return SourceText(alone), False
    return (ConcatenatedCorpus(pairs) if len(pairs) > 1 else pairs[0]), True


def _two(languages: Sequence[str]) -> tuple[str, str] | None:
    return (languages[0], languages[1]) if len(languages) == 2 else None


def _same_side(one: Path, other: Path) -> bool:
    """Return whether two files are in one language, by their names."""
    if holds_both_sides(other):
        return True
    codes = [guess_languages([path, Path("other.zxx")]) for path in (one, other)]
    return all(codes) and same_language(codes[0][0], codes[1][0])


# Which text is in which set.


@dataclass(frozen=True, slots=True)
class Sizes:
    """Say how many sources the sets that are drawn from a corpus have."""

    measured: int
    choice: int
    learned: int | None = None
    """The rest is left out; None: all are learned from."""


def domain_sizes(sources: int) -> Sizes:
    """Return how many of a user's own sentences are held out."""
    return Sizes(min(1000, max(20, sources // 10)), min(500, max(10, sources // 20)))


def general_sizes(sources: int, wanted: int, *, translated: bool) -> Sizes:
    """Return how many of the general sentences are held out, and how many learned from."""
    choice = min(200, sources // 10) if translated else 0
    return Sizes(min(500, sources // 5), choice, wanted)


class Splitter:
    """Draw sets from a corpus by the hashes of its sources."""

    def __init__(
        self, corpus: Corpus, tokenizer: Tokenizer, excluded: Hashes, progress: Progress
    ) -> None:
        self.corpus = corpus
        self._tokenizer = tokenizer
        hashes = np.fromiter(self._hash_all(progress), np.uint64)
        self._sorted = np.setdiff1d(hashes, np.append(excluded, np.uint64(0)))

    def __len__(self) -> int:
        """Return how many different sources there are."""
        return len(self._sorted)

    def _hash_all(self, progress: Progress) -> Iterator[int]:
        for count, pair in enumerate(self.corpus, 1):
            yield self._hash(pair)
            if count % 10_000 == 0:
                progress("reading", count, None)

    def _hash(self, pair: Pair) -> int:
        """Return the hash of a pair's source, and 0 where there is none."""
        text = self._tokenizer.normalize(pair.source)
        return pair_hash(text, "") if text else 0

    def split(self, sizes: Sizes) -> dict[str, Hashes]:
        """Return the hashes of each set: `MEASURED`, `CHOICE`, and "learned"."""
        first, second = sizes.measured, sizes.measured + sizes.choice
        end = None if sizes.learned is None else second + sizes.learned
        return {
            MEASURED: self._sorted[:first],
            CHOICE: self._sorted[first:second],
            "learned": self._sorted[second:end],
        }

    def write(self, sets: dict[str, Hashes], files: dict[str, Path]) -> dict[str, int]:
        """Write each set to its file in the order of the corpus; return how many pairs each has.

        Of the copies of a held-out source only the first is kept.
        """
        kept: dict[str, list[tuple[str, str]]] = {name: [] for name in (MEASURED, CHOICE)}
        seen = HashSet()

        def learned() -> Iterator[tuple[str, str]]:
            for pair in self.corpus:
                value = self._hash(pair)
                name = next((n for n, hashes in sets.items() if _contains(hashes, value)), "")
                if name == "learned":
                    yield pair.source, pair.target
                elif name and seen.add(np.array([value], np.uint64))[0]:
                    kept[name].append((pair.source, pair.target))

        counts = {"learned": write_set(files["learned"], learned())}
        for name, pairs in kept.items():
            if pairs:
                counts[name] = write_set(files[name], pairs)
        return counts


def _contains(hashes: Hashes, value: int) -> bool:
    """Return whether sorted hashes have one."""
    place = int(np.searchsorted(hashes, np.uint64(value)))
    return place < len(hashes) and int(hashes[place]) == value


def check_enough(corpus: Corpus, sources: int) -> None:
    """Raise DataError if there are too few different sentences to adapt to."""
    if sources < LEAST_PAIRS:
        raise DataError(
            f"{corpus.name}: {counted(sources, 'different sentence')} "
            f"{'is' if sources == 1 else 'are'} too few to adapt a model to; give "
            f"{LEAST_PAIRS} or more, or use them as a translation memory: dragoman translate "
            "--memory"
        )


def check_enough_general(corpus: Corpus, sources: int) -> None:
    """Raise DataError if there is too little general text to protect a model, or to measure it."""
    if sources < LEAST_GENERAL:
        raise DataError(
            f"{corpus.name}: {counted(sources, 'different sentence')} besides those of the other "
            f"files, too little to protect a model with; give {LEAST_GENERAL} or more, or leave "
            "out --replay"
        )


def hash_sources(tokenizer: Tokenizer, *sets: TextSet) -> Hashes:
    """Return the hashes of the sources of sets."""
    texts = [tokenizer.normalize(text) for one in sets for text in one.source]
    return np.array(sorted({pair_hash(text, "") for text in texts}), np.uint64)
