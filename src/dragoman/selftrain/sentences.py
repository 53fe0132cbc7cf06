"""Which sentences of raw text are worth parsing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias, cast

import numpy as np

from dragoman.data.cleaning import HashSet, pair_hash
from dragoman.data.prepare import Progress
from dragoman.data.readers import open_text
from dragoman.data.treebank import treebank
from dragoman.errors import DataError
from dragoman.files import atomic_directory
from dragoman.selftrain.plan import Plan

__all__ = ["REASONS", "gather"]

REASONS: Final = ("too short", "too long", "in the gold trees", "duplicate")
"""Why a sentence is not parsed; the first that applies is the one that counts."""


Split: TypeAlias = Callable[[str], list[str]]


def gather(plan: Plan, split: Split, place: Path, progress: Progress) -> dict[str, int]:
    """Write the sentences to sentences.txt, words between spaces; the counts of all.

    `split` cuts running text, unless the plan says that this is done.
    """
    if not place.exists():
        counts = dict.fromkeys(("read", "to parse", *REASONS), 0)
        with atomic_directory(place) as directory:
            with (directory / "sentences.txt").open("w", encoding="utf-8", newline="\n") as file:
                for sentence in islice(_sentences(plan, split, counts), plan.limit):
                    file.write(f"{sentence}\n")
                    counts["to parse"] += 1
                    progress("reading", counts["read"], None)
            if not counts["to parse"]:
                reasons = ", ".join(f"{reason}: {counts[reason]}" for reason in REASONS)
                raise DataError(
                    f"{' + '.join(map(str, plan.text))}: nothing is left to parse ({reasons}); "
                    "change --shortest or --longest, or bring other text"
                )
            (directory / "counts.json").write_text(json.dumps(counts), encoding="utf-8")
    text = (place / "counts.json").read_text(encoding="utf-8")
    return cast(dict[str, int], json.loads(text))


def _sentences(plan: Plan, split: Split, counts: dict[str, int]) -> Iterator[str]:
    gold = {
        _key(pair.source.split(" "))
        for files in (plan.trees, plan.valid, plan.test)
        if files
        for pair in treebank(files)
    }
    seen = HashSet()  # small, for text may have millions of lines
    cut = str.split if plan.tokenized else split
    for file in plan.text:
        for line in open_text(file):
            counts["read"] += 1
            words = cut(line)
            if len(words) < plan.shortest:
                counts["too short"] += 1
            elif len(words) > plan.longest:
                counts["too long"] += 1
            elif (key := _key(words)) in gold:
                counts["in the gold trees"] += 1
            elif not seen.add(np.array([key], np.uint64))[0]:
                counts["duplicate"] += 1
            else:
                yield " ".join(words)


def _key(words: Sequence[str]) -> int:
    """What copies of a sentence share, however they are cut and their quotes are written."""
    return pair_hash("".join(words).replace("``", '"').replace("''", '"'), "")
