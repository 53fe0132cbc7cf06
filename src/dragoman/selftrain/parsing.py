"""Raw text to trees, a window at a time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from dragoman.data.prepare import Progress
from dragoman.data.readers import open_text
from dragoman.files import atomic_write
from dragoman.model_directory import open_model
from dragoman.selftrain.plan import Plan
from dragoman.text.trees.bracketing import bracketing
from dragoman.translate.parser import Parser, load_parser

__all__ = ["load_parsers", "parse_text", "parsed_trees"]


def load_parsers(plan: Plan, device: str) -> tuple[list[Parser], list[str]]:
    """One ensemble, or each model by itself if they are to agree; and a digest of each model."""
    groups = [[one] for one in plan.models] if plan.agree else [plan.models]
    parsers = [load_parser(*group, device=device) for group in groups]
    digests = []
    for path in plan.models:
        with open_model(path).weights.open("rb") as file:
            digests.append(hashlib.file_digest(file, "blake2b").hexdigest()[:16])
    return parsers, digests


def parse_text(
    parsers: Sequence[Parser], plan: Plan, total: int, out: Path, progress: Progress
) -> None:
    """Parse what has not been parsed; a file of `out`/parsed is whole or not there."""
    with closing(open_text(out / "text" / "sentences.txt")) as lines:
        for start in range(0, total, plan.window):
            window = [line.split(" ") for line in islice(lines, plan.window)]
            file = out / "parsed" / f"{start // plan.window:06}.tsv"
            if not file.exists():
                atomic_write(file, "".join(_lines(parsers, window, plan.beam)))
            progress("parsing", start + len(window), total)


def _lines(parsers: Sequence[Parser], sentences: list[list[str]], beam: int) -> Iterator[str]:
    """One for each sentence; where parsers disagree, it has no tree."""
    for found in zip(*(parser.parse(sentences, beam=beam) for parser in parsers), strict=True):
        parses = [one for one in found if one is not None]
        trees = {bracketing(one.tree) for one in parses}
        confidence = math.prod(one.confidence for one in parses) ** (1 / len(parses))
        yield f"{confidence:.8f}\t{trees.pop() if len(trees) == 1 else ''}\n"


def parsed_trees(out: Path) -> Iterator[tuple[float, str]]:
    """Confidence and tree of all sentences, in the order of the text; no tree is an empty one."""
    for file in sorted((out / "parsed").glob("*.tsv")):
        for line in open_text(file):
            confidence, _, tree = line.partition("\t")
            yield float(confidence), tree
