"""Making a shortlist of a model's training pairs, and finding out what it changes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dragoman.data.prepare import Prepared
from dragoman.data.store import Store
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.model_directory import LoadedModel
from dragoman.search import Hypothesis, SearchOptions
from dragoman.text.symbols import EOS, FIRST
from dragoman.translate.engine import Engine, open_engine, why_no_engine
from dragoman.translate.engine.shortlist import Shortlist
from dragoman.translate.shortlist_lexicon import Ints, Progress, frequencies, learn

__all__ = ["Compared", "check", "compare", "make_shortlist"]

LEAST: Final = 0.002
"""A target piece is listed if it is likelier than this where the source piece is."""
SAMPLE: Final = 256
"""Pieces that stand for all that are on no list."""


def check(loaded: LoadedModel) -> None:
    """Refuse a model that the engine does not translate with."""
    if loaded.config.data.task != "translation":
        raise ModelError(f"{loaded.path}: a parser; a shortlist is of translation")
    if obstacle := why_no_engine(loaded.config.model):
        raise ConfigError(f"{loaded.path}: no int8 ({obstacle}), and so no shortlist")


def make_shortlist(
    loaded: LoadedModel, data: Prepared, *, common: int, most: int, progress: Progress
) -> Shortlist:
    """The `common` likeliest target pieces of a corpus, and `most` of each source piece."""
    if data.tokenizer != loaded.tokenizer:
        raise DataError(
            f"{data.path}: prepared with other pieces than the model's; give its files, or prepare "
            f"them with --tokenizer {loaded.path}"
        )
    if common < 1 or most < 0:
        raise ConfigError(f"{common} common pieces and {most} of each are too few")
    vocabulary, outputs = loaded.tokenizer.sizes
    counts = frequencies(data.train, progress)[:outputs]
    order = np.argsort(-counts, kind="stable")
    everywhere: Ints = np.sort(order[order >= FIRST][:common])
    lexicon = learn(data.train, everywhere, progress).best(most, LEAST)
    rest = np.setdiff1d(np.arange(FIRST, outputs), everywhere)
    sample = np.sort(np.random.default_rng(0).permutation(rest)[:SAMPLE])
    return Shortlist(
        outputs,
        np.append(EOS, everywhere).astype(np.int32),
        sample.astype(np.int32),
        np.searchsorted(lexicon.sources, np.arange(vocabulary + 1)).astype(np.int32),
        lexicon.targets.astype(np.int32),
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """Translations of some sentences with all pieces, and with a shortlist."""

    beam: int
    whole: list[str]
    short: list[str]
    references: list[str]
    speed: float
    """How many times as fast the shortlist was, in seconds of the processor."""

    @property
    def changed(self) -> int:
        """Translations that are not the same."""
        return sum(a != b for a, b in zip(self.whole, self.short, strict=True))


def compare(loaded: LoadedModel, shortlist: Shortlist, pairs: Store, count: int) -> list[Compared]:
    """What a shortlist changes of the translations of some pairs, evenly from all.

    Greedily, and with the model's beam.
    """
    chosen = np.unique(np.linspace(0, len(pairs) - 1, min(count, len(pairs))).astype(int)).tolist()
    sources = [pairs.source(i).tolist() for i in chosen]
    decode = loaded.tokenizer.decode
    references = [decode(pairs.target(i).tolist()) for i in chosen]
    engine = open_engine(loaded)
    found = []
    for beam in sorted({1, loaded.config.search.beam}):
        options = SearchOptions.from_config(loaded.config.search, beam=beam)
        whole, slow = _timed(engine, None, sources, options)
        short, fast = _timed(engine, shortlist, sources, options)
        before, after = ([decode(best[0].ids) for best in one] for one in (whole, short))
        found.append(Compared(beam, before, after, references, slow / max(fast, 1e-9)))
    return found


def _timed(
    engine: Engine,
    shortlist: Shortlist | None,
    sources: Sequence[Sequence[int]],
    options: SearchOptions,
) -> tuple[list[list[Hypothesis]], float]:
    engine.take(shortlist)
    begun = time.process_time()
    found = engine.search(sources, options)
    return found, time.process_time() - begun
