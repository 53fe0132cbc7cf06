"""Sources, their words, and whether what was found is a tree over them."""

from __future__ import annotations

import random

import torch

from dragoman.models import Model
from dragoman.search import Hypothesis, SearchOptions, search
from dragoman.search.batching import source_rows
from dragoman.search.constraints.tree_grammar import TreeConstraint
from dragoman.text.special_tokens import FIRST_PIECE
from dragoman.trees.grammar import SentencesToParse
from dragoman.trees.linearization import LINEARISATIONS, WORD, Actions, get_linearisation
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
    return Actions(get_linearisation(order), ("_x", "_y", *makes), 2)


def sentences(
    order: str, words: list[int], *, announced: bool
) -> tuple[list[list[int]], SentencesToParse]:
    """Sources, and what trees are to be made over."""
    draw, actions = random.Random(0), vocabulary(order)
    first = FIRST_PIECE + len(actions)
    ids = range(first, first + (ANNOUNCEMENTS if announced else 0))
    told = [[draw.choice(ids) for _ in range(n)] if announced else [] for n in words]
    sources = [[draw.randrange(FIRST_PIECE, 150) for _ in range(n + n // 3)] for n in words]
    return sources, SentencesToParse(actions, words, told, ids)


def plain(
    model: Model, sources: list[list[int]], to_parse: SentencesToParse, options: SearchOptions
) -> list[list[Hypothesis]]:
    grammar = TreeConstraint(
        to_parse.actions,
        to_parse.words,
        first=FIRST_PIECE,
        vocabulary=to_parse.announcements.stop if to_parse.announcements else model.targets,
        announced=to_parse.announced,
    )
    assert model.targets == len(grammar._kinds_V)
    return search(model, source_rows(sources, CPU), options, constraint=grammar)


def targets(to_parse: SentencesToParse) -> int:
    return to_parse.announcements.stop if to_parse.announcements else OUTPUTS


def assert_trees(found: list[list[Hypothesis]], to_parse: SentencesToParse) -> None:
    """Of actions that make a tree of the words, each announced where it has to be."""
    actions = to_parse.actions
    for number, hypotheses in enumerate(found):
        words = to_parse.words[number]
        for one in hypotheses:
            only = [id_ for id_ in one.ids if id_ not in to_parse.announcements]
            names = actions.sequence(only, FIRST_PIECE)
            tree = actions.order.decode(names, [f"w{i}" for i in range(words)])
            assert len(list(leaves(tree))) == words
            coming = iter(to_parse.announced[number])
            told = [next(coming)] if to_parse.announcements else []
            for id_ in only:
                told.append(id_)
                if actions.kinds[id_ - FIRST_PIECE] == WORD and (next_ := next(coming, None)):
                    told.append(next_)
            assert one.ids == told
