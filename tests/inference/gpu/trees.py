"""Sources, their words, and whether what was found is a tree over them."""

from __future__ import annotations

import random

import torch

from dragoman.models import Model
from dragoman.search import Hypothesis, SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.search.constraints.tree_grammar import Grammar
from dragoman.text.special_tokens import FIRST
from dragoman.trees.actions import Actions
from dragoman.trees.grammar import Yields
from dragoman.trees.linearization import LINEARISATIONS, WORD, linearisation
from dragoman.trees.tree import leaves

CPU = torch.device("cpu")
ORDERS = list(LINEARISATIONS)
ANNOUNCEMENTS = 7
OUTPUTS = 40
"""Of the models: there are fewer actions and announcements, and the rest is never right."""


def vocabulary(order: str) -> Actions:
    if order == "bottom-up":
        makes = tuple(f"){label}/{arity}" for arity in (1, 2, 3, 5) for label in "AB")
    else:
        makes = ("(A", ")", "(B")
    return Actions(linearisation(order), ("_x", "_y", *makes), 2)


def sentences(order: str, words: list[int], *, announced: bool) -> tuple[list[list[int]], Yields]:
    """Sources, and what trees are to be made over."""
    draw, actions = random.Random(0), vocabulary(order)
    first = FIRST + len(actions)
    ids = range(first, first + (ANNOUNCEMENTS if announced else 0))
    told = [[draw.choice(ids) for _ in range(n)] if announced else [] for n in words]
    sources = [[draw.randrange(FIRST, 150) for _ in range(n + n // 3)] for n in words]
    return sources, Yields(actions, words, told, ids)


def plain(
    model: Model, sources: list[list[int]], yields: Yields, options: SearchOptions
) -> list[list[Hypothesis]]:
    grammar = Grammar(
        yields.actions,
        yields.words,
        first=FIRST,
        vocabulary=yields.announcements.stop if yields.announcements else model.targets,
        announced=yields.announced,
    )
    assert model.targets == len(grammar._kinds_V)
    return search(model, source_rows(sources, CPU), options, constraint=grammar)


def targets(yields: Yields) -> int:
    return yields.announcements.stop if yields.announcements else OUTPUTS


def assert_trees(found: list[list[Hypothesis]], yields: Yields) -> None:
    """Of actions that make a tree of the words, each announced where it has to be."""
    actions = yields.actions
    for number, hypotheses in enumerate(found):
        words = yields.words[number]
        for one in hypotheses:
            only = [id_ for id_ in one.ids if id_ not in yields.announcements]
            names = actions.sequence(only, FIRST)
            tree = actions.order.decode(names, [f"w{i}" for i in range(words)])
            assert len(list(leaves(tree))) == words
            coming = iter(yields.announced[number])
            told = [next(coming)] if yields.announcements else []
            for id_ in only:
                told.append(id_)
                if actions.kinds[id_ - FIRST] == WORD and (next_ := next(coming, None)):
                    told.append(next_)
            assert one.ids == told
