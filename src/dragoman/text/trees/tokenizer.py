"""Sentences to pieces, trees to actions: the tokeniser of a parser.

A source is the words of a sentence with spaces between them, a target its tree in brackets on one
line. The actions are symbols of the SentencePiece model, so that they come before all pieces, and
targets have the first ids alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from dragoman.config import TokenizerConfig, TreesConfig
from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.text.normalization import Form
from dragoman.text.symbols import FIRST
from dragoman.text.tokenizer import Kind, Tokenizer
from dragoman.text.trees.actions import Actions
from dragoman.text.trees.bracketing import bracketing, parse_tree
from dragoman.text.trees.cleaning import collapse_unary, restore_unary
from dragoman.text.trees.linear import linearisation
from dragoman.text.trees.tree import Tree

__all__ = ["TreeTokenizer"]

Pair: TypeAlias = tuple[str, str, *tuple[Any, ...]]
"""A sentence and its tree, whatever else comes with them."""


class TreeTokenizer(Tokenizer):
    """Pieces of sentences and actions of trees."""

    actions: Actions

    def __init__(
        self, model: bytes, *, kind: Kind, normalization: Form, trees: dict[str, Any]
    ) -> None:
        super().__init__(model, kind=kind, normalization=normalization)
        try:
            self.actions = Actions.from_data(trees)
            self._collapse = bool(trees["collapse_unary"])
        except (DragomanError, KeyError, TypeError, ValueError):
            raise ModelError("the actions of its trees cannot be read; train it again") from None
        if self.symbols[: len(self.actions)] != _symbols(len(self.actions)):
            raise ModelError("not the tokeniser of these actions; copy the directory again")

    @classmethod
    def learn(
        cls,
        pairs: Iterable[tuple[str, str, *tuple[Any, ...]]],
        config: TokenizerConfig,
        trees: TreesConfig,
    ) -> TreeTokenizer:
        """Take the actions from the trees and learn pieces from the sentences; reads them twice."""
        order = linearisation(trees.linearization, tags=trees.tags)
        actions = Actions.build(
            order, (order.encode(_to_learn(pair[1], trees.collapse_unary)) for pair in pairs)
        )
        if config.symbols:
            raise ConfigError("tokenizer.symbols mean nothing to a parser; leave them out")
        symbols = tuple(_symbols(len(actions)))
        pieces = Tokenizer.train((pair[0] for pair in pairs), replace(config, symbols=symbols))
        return cls(
            pieces.model,
            kind=pieces.kind,
            normalization=pieces.normalization,
            trees={**actions.to_data(), "collapse_unary": trees.collapse_unary},
        )

    @property
    def sizes(self) -> tuple[int, int]:
        """See Tokenizer."""
        return len(self), FIRST + len(self.actions)

    @property
    def longest_target(self) -> int:
        """See Tokenizer: a word and all that stands around it."""
        return 1_000_000

    def source(self, words: Sequence[str]) -> str:
        """Words as a source: one that would vanish is seen as �, so that each has a piece."""
        return " ".join([word if self.normalize(word) else "\ufffd" for word in words])

    def normalize_target(self, text: str) -> str:
        """See Tokenizer: a tree is as it is."""
        return text

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """See Tokenizer."""
        order = self.actions.order
        return [
            self.actions.ids(order.encode(_to_learn(text, self._collapse)), FIRST) for text in texts
        ]

    def decode_target(self, ids: Sequence[int], source: str) -> str:
        """See Tokenizer."""
        return bracketing(self.tree(ids, self.words_of(source)))

    def tree(self, ids: Sequence[int], words: Sequence[str]) -> Tree:
        """The tree that the actions make of the words."""
        tree = self.actions.order.decode(self.actions.sequence(ids, FIRST), words)
        return restore_unary(tree) if self._collapse else tree

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """See Tokenizer; actions by their names."""
        ids = list(ids)
        return [
            self.actions.names[i - FIRST] if FIRST <= i < self.sizes[1] else piece
            for i, piece in zip(ids, super().pieces(ids), strict=True)
        ]

    @property
    def _trees(self) -> dict[str, Any]:
        return {**self.actions.to_data(), "collapse_unary": self._collapse}


def _symbols(count: int) -> list[str]:
    """How SentencePiece knows the actions; labels may hold characters that it does not allow."""
    return [f"⟦{number}⟧" for number in range(count)]


def _to_learn(text: str, collapse: bool) -> Tree:
    tree = parse_tree(text)
    return collapse_unary(tree) if collapse else tree
