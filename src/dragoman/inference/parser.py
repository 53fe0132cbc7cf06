"""Words in, trees out: what the command line, the server and evaluation call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from string import whitespace
from typing import Any

from dragoman.errors import DataError, ModelError
from dragoman.inference.engine import Searcher, best_window, search_each
from dragoman.inference.loading import Loaded, Precision, open_models
from dragoman.model_directory import LoadedModel
from dragoman.search import Hypothesis, SearchOptions
from dragoman.trees.bracketing import bracketing
from dragoman.trees.grammar import Yields
from dragoman.trees.tree import Tree
from dragoman.trees.tree_tokenizer import TreeTokenizer
from dragoman.trees.word_tokenizer import split_words

__all__ = ["Parse", "Parser", "load_parser"]


@dataclass(frozen=True, slots=True)
class Parse:
    """One tree of one sentence."""

    words: tuple[str, ...]
    tree: Tree
    score: float
    """Log-probability / length penalty."""
    log_prob: float
    actions: int
    """How many made the tree."""
    alternatives: tuple[Parse, ...] = ()
    """With n_best: the others, best first."""

    @property
    def confidence(self) -> float:
        """The probability of an action, the geometric mean over the tree's."""
        return exp(self.log_prob / (self.actions + 1))

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        table: dict[str, Any] = {
            "words": list(self.words),
            "tree": bracketing(self.tree),
            "score": round(self.score, 6),
            "confidence": round(self.confidence, 6),
        }
        if self.alternatives:
            table["alternatives"] = [other.to_dict() for other in self.alternatives]
        return table


class Parser(Loaded):
    """A loaded model that parses; every sentence of at least one word gets a tree of its words."""

    def __init__(
        self, loaded: LoadedModel, *others: LoadedModel, engine: Searcher | None = None
    ) -> None:
        """See Loaded."""
        if not isinstance(loaded.tokenizer, TreeTokenizer):
            raise ModelError(f"{loaded.path}: a translator; use it with dragoman translate")
        for other in others:
            if other.tokenizer != loaded.tokenizer:
                raise ModelError(
                    f"{other.path}: has other pieces or labels than {loaded.path}; an ensemble is "
                    "trained on one prepared treebank"
                )
        super().__init__(loaded, *others, engine=engine)
        self.tokenizer: TreeTokenizer = loaded.tokenizer

    def parse(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        beam: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
    ) -> list[Parse | None]:
        """The trees of sentences that are split into words; None of one without words.

        What is not given is as the model's config says. Where a beam holds fewer than n_best
        different trees, those are all.
        """
        _check_words(sentences)
        changes: dict[str, Any] = {
            "beam": beam if beam is not None else max(self.config.search.beam, n_best),
            "n_best": n_best,
            "length_penalty": length_penalty,
        }
        options = SearchOptions.from_config(
            self.config.search, **{k: v for k, v in changes.items() if v is not None}
        )
        if n_best > 1:  # a unary chain may be one action or several, so a tree may be found twice
            options = replace(options, n_best=options.beam)
        there = [i for i, words in enumerate(sentences) if words]
        sources = [self.tokenizer.source(sentences[i]) for i in there]
        ids = self.tokenizer.encode_batch(sources)
        self._warn_of_long(ids)
        results: list[Parse | None] = [None] * len(sentences)
        # A GPU goes on while trees are made of what it has found.
        for number, hypotheses in self._find(sources, ids, options):
            i = there[number]
            best, *rest = self._different(sentences[i], hypotheses)[:n_best]
            results[i] = replace(best, alternatives=tuple(rest))
        return results

    def parse_lines(
        self,
        lines: Iterable[str],
        *,
        tokenized: bool = False,
        window: int | None = None,
        **options: Any,
    ) -> Iterator[Parse | None]:
        """Parse any number of lines, in order, holding one window of them in memory.

        A line is running text, or, `tokenized`, words with white space between them. A window is
        2,000 lines by default, and 20,000 where a GPU's engine parses.
        """
        window = best_window(self._engine) if window is None else window
        most = max(1_000_000, 500 * window)
        split = str.split if tokenized else self.split
        waiting: list[list[str]] = []
        size = 0
        for line in lines:
            waiting.append(split(line))
            size += len(line)
            if len(waiting) >= window or size > most:
                yield from self.parse(waiting, **options)
                waiting, size = [], 0
        if waiting:
            yield from self.parse(waiting, **options)

    def _find(
        self, sources: Sequence[str], ids: Sequence[Sequence[int]], options: SearchOptions
    ) -> Iterable[tuple[int, list[Hypothesis]]]:
        """The hypotheses of each sentence, by its number, in any order."""
        if self._engine is not None and self._engine.serves(options):
            return search_each(self._engine, ids, options, Yields.of(self.tokenizer, sources))
        from dragoman.search import search
        from dragoman.search.batching import search_many
        from dragoman.search.constraints.tree_grammar import constrain

        found = search_many(
            self.model,
            ids,
            lambda rows, prefixes, constraint: search(
                self.model, rows, options, prefixes=prefixes, constraint=constraint
            ),
            batch_tokens=self.config.search.batch_tokens,
            constrain=constrain(self.tokenizer, sources, self.model),
        )
        return enumerate(found)

    def _different(self, words: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[Parse]:
        """The parses, best first, a tree once."""
        parses: dict[str, Parse] = {}
        for one in hypotheses:
            tree = self.tokenizer.tree(one.ids, words)
            parse = Parse(
                tuple(words),
                tree,
                one.score,
                one.log_prob,
                len(self.tokenizer.only_actions(one.ids)),
            )
            parses.setdefault(bracketing(tree) if len(hypotheses) > 1 else "", parse)
        return list(parses.values())

    def split(self, line: str) -> list[str]:
        """The words of running text, with hyphens apart if the treebank has a tag for them."""
        actions = self.tokenizer.actions
        hyphens_apart = not actions.order.tags or "_HYPH" in actions.names
        return split_words(line, hyphens_apart=hyphens_apart)

    def _warn_of_long(self, sentences: Sequence[Sequence[int]]) -> None:
        limit = self.config.data.max_length
        if count := sum(len(ids) > limit for ids in sentences):
            self.warn(
                f"{count} of {len(sentences)} sentences have more than {limit} pieces, longer than "
                "any the model has learned from; their trees may be poor"
            )


def _check_words(sentences: Sequence[Sequence[str]]) -> None:
    for number, words in enumerate(sentences, 1):
        for word in words:
            if not word or not set(whitespace).isdisjoint(word):
                raise DataError(
                    f"sentence {number}: {word!r} is no word; a word is not empty and has no white "
                    "space in it"
                )


def load_parser(*paths: Path | str, device: str = "auto", precision: Precision = "auto") -> Parser:
    """The parser in a model directory, or the one of a run; several are an ensemble.

    `auto` is int8 on a CPU and bf16 on a GPU wherever the engine there can compute the model.
    """
    loaded, engine = open_models(paths, device, precision)
    return Parser(*loaded, engine=engine)
