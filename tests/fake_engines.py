"""Engines that stand for models of a certain behaviour, and a translator around each."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from dragoman.config import Config, TokenizerConfig
from dragoman.inference import Translator
from dragoman.inference.engine import Engine, ForcedDecoding
from dragoman.model_directory import LoadedModel
from dragoman.search.options import Hypothesis, SearchOptions, longest_output
from dragoman.text.special_tokens import FIRST_PIECE
from dragoman.text.tokenizer import Tokenizer
from dragoman.trees.grammar import SentencesToParse

BEHAVIOURS = ("identity", "random", "silent", "endless", "reversed")
"""It copies; says anything; says nothing; never ends; copies the words in reverse order."""


class FakeEngine(Engine):
    """An engine that finds what its behaviour says, whatever the options ask for."""

    window = 100
    max_beam = 64

    def __init__(self, behaviour: str, tokenizer: Tokenizer) -> None:
        assert behaviour in BEHAVIOURS
        self._behaviour, self._tokenizer = behaviour, tokenizer
        self.searched: list[str] = []
        """What was searched, for tests that want to know."""

    def search_each(
        self,
        sentences: Sequence[Sequence[int]],
        options: SearchOptions,
        to_parse: SentencesToParse | None = None,
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        for number, ids in enumerate(sentences):
            self.searched.append(self._tokenizer.decode(ids))
            found = self._find(list(ids), longest_output(len(ids), options))
            log_probs = [-0.1] * (len(found) + 1)
            best = Hypothesis(found, sum(log_probs), sum(log_probs), log_probs)
            yield number, [best] * options.n_best

    def _find(self, ids: list[int], longest: int) -> list[int]:
        chance = random.Random(repr(ids))
        size = len(self._tokenizer)
        match self._behaviour:
            case "identity":
                return ids
            case "reversed":
                words = self._tokenizer.decode(ids).split()
                return self._tokenizer.encode(" ".join(reversed(words)))
            case "silent":
                return []
            case "endless":
                return [chance.randrange(FIRST_PIECE, size)] * longest
        count = chance.randint(1, max(1, min(longest, 2 * len(ids))))
        return [chance.randrange(FIRST_PIECE, size) for _ in range(count)]

    def force_decode(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[ForcedDecoding]:
        found = []
        for source, target in zip(sources, targets, strict=True):
            attention = np.full((len(target), max(1, len(source))), 0.01, np.float32)
            for t in range(len(target)):
                s = len(target) - 1 - t if self._behaviour == "reversed" else t
                attention[t, min(s, len(source) - 1)] = 1.0
            attention = attention[:, : len(source)]
            found.append(ForcedDecoding(np.full(len(target) + 1, -0.1, np.float32), attention))
        return found


LETTERS = "abcdefghijklmnopqrstuvwxyzäöüßABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÜ"
MARKS = "0123456789.,;:!?'\"()[]{}<>/\\@#$%&*+-=_|~^`€§°"
WORDS = """\
the a of and to in is it you that he was for on are with as his they be at one have this from or
had by not word but what some we can out other were all there when up use your how said an each
she which do their time if will way about many then them write would like so these her long make
thing see him two has look more day could go come did number sound no most people my over know
water than call first who may down side been now find any new work part take get place made live
where after back little only round man year came show every good me give our under name very
through just form sentence great think say help low line differ turn cause much mean before move
right boy old too same tell does set three want air well also play small end put home read hand
port large spell add even land here must big high such follow act why ask men change went light
kind off need house picture try us again animal point mother world near build self earth father
der die und das ist nicht ein eine mit von auf für dem den des im zu sich auch wie bei nach aus
noch sind war nur werden wird kann haben
"""


@cache
def make_tokenizer() -> Tokenizer:
    """A tokeniser that knows Latin letters, digits and ASCII marks, and nothing else."""
    known = [" ".join(LETTERS), " ".join(MARKS), LETTERS, MARKS, WORDS.replace("\n", " ")] * 20
    config = TokenizerConfig(vocabulary=700, character_coverage=1.0, normalization="plain")
    return Tokenizer.train(known, config)


def make_translator(
    behaviour: str, languages: tuple[str, str] = ("en", "de"), max_length: int = 255
) -> Translator:
    """A translator with such an engine; nothing of it is ever computed by PyTorch."""
    data = {"languages": list(languages), "max_length": max_length}
    config = Config().updated({"data": data, "search": {"beam": 1}})
    tokenizer = make_tokenizer()
    loaded = LoadedModel(None, tokenizer, config, {}, Path("no-such-model"))
    return Translator(loaded, engine=FakeEngine(behaviour, tokenizer))
