"""The parser makes trees of words for the command line, the server and evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from string import whitespace
from typing import Any, Final

from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.inference.engine import Engine
from dragoman.inference.loading import Precision, Predictor, load_for_inference
from dragoman.messages import counted
from dragoman.model_directory import LoadedModel, is_parser
from dragoman.search import Hypothesis, SearchOptions
from dragoman.system.installed_models import installed_models
from dragoman.text.sentence_splitting import sentence_spans
from dragoman.trees.bracketing import write_tree
from dragoman.trees.grammar import SentencesToParse
from dragoman.trees.tree import Tree
from dragoman.trees.tree_tokenizer import TreeTokenizer
from dragoman.trees.word_tokenizer import split_words

LANGUAGE: Final = "en"
"""Running text is cut into sentences and words by the rules of this language."""


@dataclass(frozen=True, slots=True)
class Parse:
    """Hold one tree of one sentence."""

    words: tuple[str, ...]
    tree: Tree
    score: float
    """This is the log-probability / length penalty."""
    log_prob: float
    actions: int
    """So many actions made the tree."""
    alternatives: tuple[Parse, ...] = ()
    """With n_best these are the others, best first."""

    @property
    def confidence(self) -> float:
        """Return the geometric mean of the probabilities of the tree's actions."""
        return exp(self.log_prob / (self.actions + 1))

    def to_dict(self) -> dict[str, Any]:
        """Return the parse as JSON holds it."""
        table: dict[str, Any] = {
            "words": list(self.words),
            "tree": write_tree(self.tree),
            "score": round(self.score, 6),
            "confidence": round(self.confidence, 6),
        }
        if self.alternatives:
            table["alternatives"] = [other.to_dict() for other in self.alternatives]
        return table


class Parser(Predictor):
    """Parse with a loaded model; every sentence of at least one word gets a tree of its words."""

    def __init__(
        self, loaded: LoadedModel, *others: LoadedModel, engine: Engine | None = None
    ) -> None:
        """Refuse translators, and models that have not the same pieces; see Predictor."""
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
        """Return the trees of sentences that are split into words; None for one without words.

        What is not given is as the model's config says. Where a beam holds fewer than n_best
        different trees, those are all.
        """
        _check_words(sentences)
        options = SearchOptions.from_config(
            self.config.search,
            beam=beam if beam is not None else max(self.config.search.beam, n_best),
            n_best=n_best,
            length_penalty=length_penalty,
        )
        if n_best > 1:  # a unary chain may be one action or several, so a tree may be found twice
            options = replace(options, n_best=options.beam)
        there = [i for i, words in enumerate(sentences) if words]
        sources = [self.tokenizer.join_words(sentences[i]) for i in there]
        ids = self.tokenizer.encode_batch(sources)
        self._warn_of_long_sentences(ids)
        results: list[Parse | None] = [None] * len(sentences)
        # A GPU goes on while trees are made of what it has found.
        for number, hypotheses in self._search(sources, ids, options):
            i = there[number]
            best, *rest = self._distinct_parses(sentences[i], hypotheses)[:n_best]
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
        split = str.split if tokenized else self.split
        for some in self._windows(lines, window):
            yield from self.parse([split(line) for line in some], **options)

    def _search(
        self, sources: Sequence[str], ids: Sequence[Sequence[int]], options: SearchOptions
    ) -> Iterable[tuple[int, list[Hypothesis]]]:
        """Return the number of each sentence and its hypotheses, in any order."""
        if self._engine is not None and self._engine.supports(options):
            to_parse = SentencesToParse.from_sources(self.tokenizer, sources)
            return self._engine.search_each(ids, options, to_parse)
        from dragoman.search import search
        from dragoman.search.batching import search_in_batches
        from dragoman.search.constraints.tree_grammar import tree_constraints

        found = search_in_batches(
            self.model,
            ids,
            lambda rows, prefixes, constraint: search(
                self.model, rows, options, prefixes=prefixes, constraint=constraint
            ),
            batch_tokens=self.config.search.batch_tokens,
            constrain=tree_constraints(self.tokenizer, sources, self.model),
        )
        return enumerate(found)

    def _distinct_parses(
        self, words: Sequence[str], hypotheses: Sequence[Hypothesis]
    ) -> list[Parse]:
        """Return the parses, best first, each tree once."""
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
            parses.setdefault(write_tree(tree) if len(hypotheses) > 1 else "", parse)
        return list(parses.values())

    def split_sentences(self, line: str) -> list[str]:
        """Return the sentences of a line of running text; of one without words, an empty one."""
        return [line[start:end] for start, end in sentence_spans(line, LANGUAGE)] or [""]

    def split(self, line: str) -> list[str]:
        """Split running text into words, with hyphens apart if the treebank has a tag for them."""
        actions = self.tokenizer.actions
        hyphens_apart = not actions.order.tags or "_HYPH" in actions.names
        return split_words(line, hyphens_apart=hyphens_apart)

    def _warn_of_long_sentences(self, sentences: Sequence[Sequence[int]]) -> None:
        limit = self.config.data.max_length
        if count := sum(len(ids) > limit for ids in sentences):
            self.warn(
                f"{counted(count, 'sentence')} of more than {limit} pieces, longer than any the "
                "model has learned from; the trees may be poor"
            )


def _check_words(sentences: Sequence[Sequence[str]]) -> None:
    for number, words in enumerate(sentences, 1):
        for word in words:
            if not word or not set(whitespace).isdisjoint(word):
                raise DataError(
                    f"sentence {number}: {word!r} is not a word; a word is not empty and has no "
                    "white space in it"
                )


def load_parser(*paths: Path | str, device: str = "auto", precision: Precision = "auto") -> Parser:
    """Load the parser in a model directory, or the one of a run; several are an ensemble.

    Without a path it is the one that is installed. `auto` is int8 on a CPU and bf16 on a GPU
    wherever the engine there supports the model.
    """
    loaded, engine = load_for_inference(paths or [find_installed_parser()], device, precision)
    return Parser(*loaded, engine=engine)


def find_installed_parser() -> Path:
    """Return the directory of the installed parser; where there is not just one, say what to do."""
    found = {name: path for name, path in installed_models().items() if is_parser(path)}
    if not found:
        raise ModelError(
            f"no parser is installed; get one, as in: dragoman get parse-{LANGUAGE}, or give a "
            "model directory"
        )
    if len(found) > 1:
        raise ConfigError(f"several parsers are installed; name one of {', '.join(found)}")
    return next(iter(found.values()))
