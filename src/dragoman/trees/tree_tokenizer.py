"""The tokeniser of a parser cuts sentences into pieces and writes trees as actions.

A source is the words of a sentence with spaces between them, a target its tree in brackets on one
line. The actions are symbols of the SentencePiece model, so that they come before all pieces, and
targets have the first ids alone.

A decoder that sees only its own actions must count words to know which comes next, and in long
sentences it loses count. So each word is announced: before the first action, and after each word's
action if there is one more, stands a symbol that the next word's first piece decides. No choice is
made there, and what makes the tree are the actions between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

from dragoman.config import TokenizerConfig, TreesConfig
from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.text.normalization import Form
from dragoman.text.special_tokens import FIRST_PIECE
from dragoman.text.tokenizer import Kind, Tokenizer
from dragoman.trees.bracketing import parse_tree, write_tree
from dragoman.trees.cleaning import collapse_unary, restore_unary
from dragoman.trees.linearization import WORD, Actions, get_linearisation
from dragoman.trees.tree import Tree, leaves

Pair: TypeAlias = tuple[str, str, *tuple[Any, ...]]
"""A sentence and its tree; what else comes with them is not looked at."""


class TreeTokenizer(Tokenizer):
    """Hold the pieces of sentences and the actions of trees."""

    settings_key: ClassVar[str | None] = "trees"
    targets_are_text: ClassVar[bool] = False
    actions: Actions

    def __init__(
        self, model: bytes, *, kind: Kind, normalization: Form, trees: dict[str, Any]
    ) -> None:
        super().__init__(model, kind=kind, normalization=normalization)
        try:
            self.actions = Actions.from_data(trees)
            self._collapse = bool(trees["collapse_unary"])
            self._announcements = int(trees.get("announcements", 0))
        except (DragomanError, KeyError, TypeError, ValueError):
            raise ModelError("the actions of its trees cannot be read; train it again") from None
        count = len(self.actions) + self._announcements
        if self.symbols[:count] != _symbols(count):
            raise ModelError("not the tokeniser of these actions; copy the directory again")

    @classmethod
    def learn(
        cls, pairs: Iterable[Pair], config: TokenizerConfig, trees: TreesConfig
    ) -> TreeTokenizer:
        """Take the actions from the trees and learn pieces from the sentences; reads them twice."""
        order = get_linearisation(trees.linearization, tags=trees.tags)
        actions = Actions.build(
            order, (order.encode(_read_tree(pair[1], trees.collapse_unary)) for pair in pairs)
        )
        if config.symbols:
            raise ConfigError("tokenizer.symbols mean nothing to a parser; leave them out")
        symbols = tuple(_symbols(len(actions) + trees.announcements))
        pieces = Tokenizer.train(
            (pair[0] for pair in pairs),
            replace(config, symbols=symbols),
            additional=trees.announcements,
        )
        return cls(
            pieces.model,
            kind=pieces.kind,
            normalization=pieces.normalization,
            trees={
                **actions.to_data(),
                "collapse_unary": trees.collapse_unary,
                "announcements": trees.announcements,
            },
        )

    @property
    def sizes(self) -> tuple[int, int]:
        """Return how many ids there are, as `Tokenizer.sizes` says."""
        return len(self), self.announcements.stop

    @property
    def announcements(self) -> range:
        """Return the ids that announce a word; none, if words are not announced."""
        first = FIRST_PIECE + len(self.actions)
        return range(first, first + self._announcements)

    def announcement_ids(self, words: Sequence[str]) -> list[int]:
        """Return the id that announces each word; nothing, if words are not announced."""
        ids = self.announcements
        if not ids:
            return []
        pieces = self.encode_batch([self.join_words([word]) for word in words])
        return [ids[word[0] % len(ids)] for word in pieces]

    @property
    def longest_target(self) -> int:
        """See Tokenizer; an id may stand for a word of any length and the brackets around it."""
        return 1_000_000

    def split_source(self, source: str) -> list[str]:
        """Return the words of a source."""
        return source.split(" ")

    def join_words(self, words: Sequence[str]) -> str:
        """Return words as a source; one that would vanish becomes �, so that each has a piece."""
        return " ".join([word if self.normalize(word) else "\ufffd" for word in words])

    def normalize_target(self, text: str) -> str:
        """See Tokenizer; a tree is left as it is."""
        return text

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of targets, as `Tokenizer.encode_targets` says."""
        return [self._encode_tree(_read_tree(text, self._collapse)) for text in texts]

    def _encode_tree(self, tree: Tree) -> list[int]:
        names = self.actions.order.encode(tree)
        ids = self.actions.ids(names, FIRST_PIECE)
        if not self.announcements:
            return ids
        announcements = iter(self.announcement_ids([leaf.word for leaf in leaves(tree)]))
        target = [next(announcements)]
        kind = self.actions.order.kind
        for name, id_ in zip(names, ids, strict=True):
            target.append(id_)
            if kind(name) == WORD and (announced := next(announcements, None)) is not None:
                target.append(announced)
        return target

    def only_actions(self, ids: Iterable[int]) -> list[int]:
        """Return the ids without those that announce words."""
        announcements = self.announcements
        return [id_ for id_ in ids if id_ not in announcements]

    def decode_target(self, ids: Sequence[int], source: str) -> str:
        """Return what a target's ids say, as `Tokenizer.decode_target` says."""
        return write_tree(self.tree(ids, self.split_source(source)))

    def tree(self, ids: Sequence[int], words: Sequence[str]) -> Tree:
        """Return the tree that the actions make of the words."""
        names = self.actions.sequence(self.only_actions(ids), FIRST_PIECE)
        tree = self.actions.order.decode(names, words)
        return restore_unary(tree) if self._collapse else tree

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """See Tokenizer; actions have their names, and # is what announces a word."""
        ids = list(ids)
        names = [*self.actions.names, *("#" for _ in self.announcements)]
        return [
            names[i - FIRST_PIECE] if FIRST_PIECE <= i < self.sizes[1] else piece
            for i, piece in zip(ids, super().pieces(ids), strict=True)
        ]

    @property
    def _additional_settings(self) -> dict[str, Any]:
        data = {**self.actions.to_data(), "collapse_unary": self._collapse}
        return data | ({"announcements": self._announcements} if self._announcements else {})


def _symbols(count: int) -> list[str]:
    """Return SentencePiece's names of actions; labels may hold characters it does not allow."""
    return [f"⟦{number}⟧" for number in range(count)]


def _read_tree(text: str, collapse: bool) -> Tree:
    tree = parse_tree(text)
    return collapse_unary(tree) if collapse else tree
