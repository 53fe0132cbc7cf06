"""A parser on gold trees: parse their words, and count brackets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.errors import DataError
from dragoman.inference.parser import Parser
from dragoman.trees.bracketing import read_trees
from dragoman.trees.cleaning import clean
from dragoman.trees.evalb import PREDICTED_TAGS, BracketScores, EvalbParameters, score_trees
from dragoman.trees.tree import Tree, leaves

__all__ = ["clean_trees", "evaluate_trees"]


def clean_trees(lines: Iterable[str], name: str) -> list[Tree]:
    """The trees in lines, cleaned; unlike a training set, a test set must be whole."""
    trees: list[Tree] = []
    for number, tree in enumerate(read_trees(lines, name), 1):
        cleaned = clean(tree)
        if cleaned is None:
            raise DataError(f"{name}, tree {number}: has no words; take it out")
        trees.append(cleaned)
    return trees


def evaluate_trees(
    system: Parser | Sequence[Tree | None],
    gold: Sequence[Tree],
    parameters: EvalbParameters = PREDICTED_TAGS,
    **options: Any,
) -> tuple[list[Tree | None], BracketScores]:
    """The trees of a parser, or those that are there already, and how well they match gold ones.

    `options` are those of `Parser.parse`, such as beam.
    """
    if not isinstance(system, Parser):
        found = list(system)
    else:
        words = [[leaf.word for leaf in leaves(tree)] for tree in gold]
        found = [parse.tree if parse else None for parse in system.parse(words, **options)]
    return found, score_trees(gold, found, parameters)
