"""Parsing in minutes: a parser trained on the phrasebook's trees, and tried."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman.data.phrasebook import generate
from dragoman.demo import trained
from dragoman.evaluation.trees import evaluate_trees
from dragoman.files import atomic_write
from dragoman.inspection.trees import tree_svg, tree_text
from dragoman.text.trees.bracketing import parse_tree
from dragoman.text.trees.tree import leaves
from dragoman.translate.parser import load_parser

__all__ = ["run_parsing_demo"]

TRAIN, VALID, TEST = 60_000, 300, 1000


def run_parsing_demo(directory: Path, steps: int | None = None) -> None:
    """Train on the phrasebook's English trees, score on its compositional test split, draw one."""
    files = _write_splits(directory)
    print(
        f"The phrasebook: {TRAIN:,} English trees to train on, {TEST:,} to test on.\n"
        "Every test sentence combines words or structures that never meet in training.",
        flush=True,
    )
    run = directory / "run"
    model = trained("phrasebook-trees", [files["train"]], [files["valid"]], run, steps)
    parser = load_parser(model)
    gold = [parse_tree(e.source_tree) for e in generate("de", "test", TEST)]
    found, scores = evaluate_trees(parser, gold)
    print(scores)
    example = max(
        (tree for tree in found if tree is not None and len(list(leaves(tree))) <= 14),
        key=lambda tree: len(list(leaves(tree))),
    )
    picture = directory / "tree.svg"
    atomic_write(picture, tree_svg(example))
    print(f"\n{tree_text(example)}\n\n{picture}")
    program = sys.argv[0] if Path(sys.argv[0]).name == "dragoman" else "dragoman"
    words = " ".join(leaf.word for leaf in leaves(example))
    print(f"Try your own:  echo '{words}' | {program} parse {model} --pretty")


def _write_splits(directory: Path) -> dict[str, Path]:
    files = {}
    for split, count in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        files[split] = directory / f"{split}.trees"
        trees = (f"{example.source_tree}\n" for example in generate("de", split, count))
        atomic_write(files[split], "".join(trees))
    return files
