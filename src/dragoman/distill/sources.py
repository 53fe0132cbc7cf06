"""Which sentences the teacher translates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast

import numpy as np

from dragoman.config import DataConfig
from dragoman.data.cleaning import HashSet, pair_hash
from dragoman.data.corpora import open_corpus, sets_of
from dragoman.data.prepare import Progress
from dragoman.data.readers import open_text
from dragoman.distill.plan import Plan
from dragoman.errors import DataError
from dragoman.files import atomic_directory
from dragoman.text.tokenizer import Tokenizer

__all__ = ["REASONS", "Sentence", "gather", "sentences"]

REASONS: Final = ("empty", "too long", "in validation or test", "duplicate")
"""Why a sentence is not translated; the first that applies is the one that counts."""
_CHUNK: Final = 2000

Counts: TypeAlias = dict[str, int]


class Sentence(NamedTuple):
    """What is translated, and how somebody has; empty if nobody has."""

    source: str
    reference: str


def gather(
    plan: Plan, tokenizer: Tokenizer, config: DataConfig, place: Path, progress: Progress
) -> Counts:
    """Write the sentences to source.txt and reference.txt, each source once; the counts of all."""
    if not place.exists():
        counts = dict.fromkeys(("read", "to translate", *REASONS), 0)
        with atomic_directory(place) as directory:
            with (
                (directory / "source.txt").open("w", encoding="utf-8", newline="\n") as sources,
                (directory / "reference.txt").open("w", encoding="utf-8", newline="\n") as refs,
            ):
                for source, reference in _chosen(plan, tokenizer, config, counts):
                    sources.write(f"{source}\n")
                    refs.write(f"{reference}\n")
                    counts["to translate"] += 1
                    progress("reading", counts["read"], None)
            if not counts["to translate"]:
                reasons = ", ".join(f"{reason}: {counts[reason]}" for reason in REASONS)
                raise DataError(
                    f"{' + '.join(map(str, (*plan.files, *plan.text)))}: nothing is left to "
                    f"translate ({reasons}); bring other text"
                )
            (directory / "counts.json").write_text(json.dumps(counts), encoding="utf-8")
    return cast(Counts, json.loads((place / "counts.json").read_text(encoding="utf-8")))


def sentences(place: Path) -> Iterator[Sentence]:
    """What `gather` wrote."""
    files = (open_text(place / name) for name in ("source.txt", "reference.txt"))
    return (Sentence(*lines) for lines in zip(*files, strict=True))


def _chosen(
    plan: Plan, tokenizer: Tokenizer, config: DataConfig, counts: Counts
) -> Iterator[Sentence]:
    held_out = {
        pair_hash(tokenizer.normalize(pair.source), "")
        for files in [plan.valid, *sets_of(plan.test, config)]
        if files
        for pair in open_corpus(files, config)
    }
    seen = HashSet()  # small, for text may have millions of lines
    reading = _all(plan, config)
    while chunk := list(islice(reading, _CHUNK)):
        counts["read"] += len(chunk)
        texts = [tokenizer.normalize(one.source) for one in chunk]
        pieces = tokenizer.encode_normalized(texts)
        for text, ids, one in zip(texts, pieces, chunk, strict=True):
            key = pair_hash(text, "")
            if not text:
                counts["empty"] += 1
            elif len(ids) > config.max_length:
                counts["too long"] += 1
            elif key in held_out:
                counts["in validation or test"] += 1
            elif not seen.add(np.array([key], np.uint64))[0]:
                counts["duplicate"] += 1
            else:
                yield Sentence(text, tokenizer.normalize(one.reference))


def _all(plan: Plan, config: DataConfig) -> Iterator[Sentence]:
    pairs = (Sentence(pair.source, pair.target) for pair in open_corpus(plan.files, config))
    raw: Iterable[str] = chain.from_iterable(open_text(file) for file in plan.text)
    return chain(pairs, (Sentence(line, "") for line in raw))
