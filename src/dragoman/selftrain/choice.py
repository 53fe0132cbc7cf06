"""Which automatic trees are good enough to learn from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dragoman.errors import DataError
from dragoman.files import atomic_directory
from dragoman.selftrain.parsing import parsed_trees
from dragoman.selftrain.plan import Plan

__all__ = ["choose"]


def choose(plan: Plan, out: Path) -> dict[str, Any]:
    """Write the confident trees to automatic/trees.txt, in the order of the text; how many."""
    place = out / "automatic"
    if not place.exists():
        found = np.fromiter(
            (confidence if tree else np.nan for confidence, tree in parsed_trees(out)), np.float64
        )
        confidences = np.sort(found[~np.isnan(found)])[::-1]
        if not len(confidences):
            raise DataError(
                f"{out}: the models agree on none of {len(found):,} trees; leave out --agree"
            )
        kept = _count(plan, confidences)
        least = float(confidences[kept - 1])
        with atomic_directory(place) as directory:
            ties = kept - int((confidences > least).sum())
            with (directory / "trees.txt").open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{tree}\n" for tree in _confident(out, least, ties))
            counts = {"parsed": len(found), "agreed": len(confidences), "kept": kept}
            text = json.dumps({**counts, "confidence": round(least, 6)})
            (directory / "counts.json").write_text(text, encoding="utf-8")
    return cast(dict[str, Any], json.loads((place / "counts.json").read_text(encoding="utf-8")))


def _confident(out: Path, least: float, ties: int) -> Iterator[str]:
    """The trees above a confidence, and the first so many of those that just have it."""
    for confidence, tree in parsed_trees(out):
        if tree and confidence >= least:
            ties -= confidence == least
            if confidence > least or ties >= 0:
                yield tree


def _count(plan: Plan, confidences: npt.NDArray[np.float64]) -> int:
    """How many of the trees to keep, the most confident being the first."""
    if plan.threshold is None:
        return max(1, round(plan.share * len(confidences)))
    count = int((confidences >= plan.threshold).sum())
    if not count:
        raise DataError(
            f"no tree has a confidence of {plan.threshold}; the highest is "
            f"{confidences[0]:.4f}: lower --threshold"
        )
    return count
