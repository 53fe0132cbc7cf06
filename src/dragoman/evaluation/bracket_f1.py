"""A parser is scored on gold trees by bracket F1, as EVALB counts it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.errors import DataError
from dragoman.inference.parser import Parser
from dragoman.trees.bracketing import read_trees
from dragoman.trees.cleaning import clean_tree
from dragoman.trees.evalb import PREDICTED_TAGS, BracketScores, EvalbParameters, score_trees
from dragoman.trees.tree import Tree, leaves


def clean_trees(lines: Iterable[str], name: str) -> list[Tree]:
    """Read and clean the trees of a test set, in which no tree may be without words."""
    trees: list[Tree] = []
    for number, tree in enumerate(read_trees(lines, name), 1):
        cleaned = clean_tree(tree)
        if cleaned is None:
            raise DataError(f"{name}, tree {number}: has no words; remove it")
        trees.append(cleaned)
    return trees


def evaluate_trees(
    system: Parser | Sequence[Tree | None],
    gold: Sequence[Tree],
    parameters: EvalbParameters = PREDICTED_TAGS,
    **options: Any,
) -> tuple[list[Tree | None], BracketScores]:
    """Return a parser's trees, or those given in its place, and how well they match the gold trees.

    `options` are those of `Parser.parse`, such as beam.
    """
    if not isinstance(system, Parser):
        found = list(system)
    else:
        words = [[leaf.word for leaf in leaves(tree)] for tree in gold]
        found = [parse.tree if parse else None for parse in system.parse(words, **options)]
    return found, score_trees(gold, found, parameters)
