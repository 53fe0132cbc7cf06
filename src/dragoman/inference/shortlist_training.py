"""Shortlists are learned from a model's training pairs, and what they change is measured.

The lexicon is IBM Model 1 (Brown et al., 1993): each target piece is due to one source piece of its
sentence, and how likely each is follows from all sentences together. A piece counts once a
sentence.
"""

# V ids, E entries: pairs of a source and a target piece, each as one number s V + t, ascending

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.data import Progress
from dragoman.data.prepare import Prepared
from dragoman.data.store import Store
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.inference.cpu import CpuEngine, open_cpu_engine, why_no_cpu_engine
from dragoman.inference.cpu.shortlist import Shortlist
from dragoman.model_directory import LoadedModel
from dragoman.search import Hypothesis, SearchOptions
from dragoman.text.special_tokens import EOS, FIRST_PIECE

Ints: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.floating[Any]]

CHUNK_PAIRS: Final = 20_000
"""So many pairs of sentences are processed together."""
MERGE_THRESHOLD: Final = 30_000_000
"""So many counts wait before they are merged."""
MAX_CANDIDATES: Final = 300
"""So many target pieces of a source piece are considered: those it is most often alone with."""
EM_ROUNDS: Final = 5
"""Probabilities are estimated again so often."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Hold how likely a source piece brings a target piece into the translation of its sentence."""

    sources: Ints
    targets: Ints
    probabilities: Floats

    def best(self, most: int, least: float) -> Lexicon:
        """Return the `most` likeliest of each source piece, none less likely than `least`."""
        kept = (_ranks(self.sources, self.probabilities) < most) & (self.probabilities >= least)
        return Lexicon(self.sources[kept], self.targets[kept], self.probabilities[kept])


def count_target_pieces(store: Store, progress: Progress) -> Ints:
    """Count how often each piece is in the targets of a corpus."""
    counts = np.zeros(store.meta.vocabulary, np.int64)
    for start in range(0, len(store), CHUNK_PAIRS):
        stop = min(start + CHUNK_PAIRS, len(store))
        targets = np.concatenate([store.target(i) for i in range(start, stop)])
        counts += np.bincount(targets, minlength=len(counts))
        progress("counting pieces", stop, len(store))
    return counts


def learn_lexicon(store: Store, without: Ints, progress: Progress) -> Lexicon:
    """Learn the lexicon of a corpus; the target pieces `without` are left out of it."""
    size = store.meta.vocabulary
    wanted = np.ones(size, np.bool_)
    wanted[without] = False
    keys_E, together_E, seen, seen_targets = _count(store, wanted, progress)
    sources_E, targets_E = keys_E // size, keys_E % size
    # What is together by chance is together seldom, unless one of the two is everywhere.
    closeness_E = together_E.astype(np.float64) ** 2 / (seen[sources_E] * seen_targets[targets_E])
    close = _ranks(sources_E, closeness_E) < MAX_CANDIDATES
    keys_E, sources_E, targets_E = keys_E[close], sources_E[close], targets_E[close]
    found = [
        _find_entries(together, keys_E)
        for together in _chunks(store, wanted, "finding pairs", progress)
    ]
    shares_E = closeness_E[close]
    for _ in range(EM_ROUNDS if len(keys_E) else 0):
        totals = np.bincount(sources_E, shares_E, size)
        probabilities_E = shares_E / np.maximum(totals, 1e-12)[sources_E]
        shares_E = np.zeros(len(keys_E))
        for places, lengths in found:
            part = probabilities_E[places]
            sums = np.add.reduceat(part, np.cumsum(lengths) - lengths) if len(lengths) else part
            part /= np.repeat(np.maximum(sums, 1e-12), lengths)
            shares_E += np.bincount(places, part, len(keys_E))
    return Lexicon(sources_E, targets_E, shares_E / seen[sources_E])


class _Cooccurrences(NamedTuple):
    """Hold every source piece of some sentences beside every wanted target piece of the same."""

    keys: Ints
    """These are the entries, target by target."""
    lengths: Ints
    """Each target is beside so many source pieces."""
    sources: Ints
    targets: Ints


def _chunks(
    store: Store, wanted: NDArray[np.bool_], stage: str, progress: Progress
) -> Iterator[_Cooccurrences]:
    size = store.meta.vocabulary
    for start in range(0, len(store), CHUNK_PAIRS):
        rows = range(start, min(start + CHUNK_PAIRS, len(store)))
        owners, sources = _unique_pieces([store.source(i) for i in rows], size)
        of_targets, targets = _unique_pieces([store.target(i) for i in rows], size)
        of_targets, targets = of_targets[wanted[targets]], targets[wanted[targets]]
        counts = np.bincount(owners, minlength=len(rows))
        lengths = counts[of_targets]
        # Of each target the sources of its own sentence, one after another.
        firsts = (np.cumsum(counts) - counts)[of_targets] - (np.cumsum(lengths) - lengths)
        places = np.arange(lengths.sum()) + np.repeat(firsts, lengths)
        keys = sources[places] * size + np.repeat(targets, lengths)
        yield _Cooccurrences(keys, lengths, sources, targets)
        progress(stage, rows.stop, len(store))


def _unique_pieces(sentences: list[NDArray[Any]], size: int) -> tuple[Ints, Ints]:
    """Return the pieces of each sentence, each once: whose they are, and which."""
    owners = np.repeat(np.arange(len(sentences)), list(map(len, sentences)))
    pieces = np.unique(owners * size + np.concatenate(sentences).astype(np.int64))
    return pieces // size, pieces % size


def _count(
    store: Store, wanted: NDArray[np.bool_], progress: Progress
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the entries, and in how many sentences each is, and each source and target."""
    size = store.meta.vocabulary
    seen, seen_targets = np.zeros(size, np.int64), np.zeros(size, np.int64)
    done: tuple[Ints, Ints] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    waiting: list[tuple[Ints, Ints]] = []
    for keys, _, sources, targets in _chunks(store, wanted, "counting pairs", progress):
        seen += np.bincount(sources, minlength=size)
        seen_targets += np.bincount(targets, minlength=size)
        waiting.append(np.unique(keys, return_counts=True))
        if sum(len(one) for one, _ in waiting) > MERGE_THRESHOLD:
            done, waiting = _merge_counts([done, *waiting]), []
    return *_merge_counts([done, *waiting]), seen, seen_targets


def _merge_counts(parts: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Merge the counts of several parts."""
    keys, counts = (np.concatenate(side) for side in zip(*parts, strict=True))
    order = np.argsort(keys)
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[firsts], np.add.reduceat(counts[order], firsts) if len(keys) else counts


def _find_entries(together: _Cooccurrences, keys_E: Ints) -> tuple[Ints, Ints]:
    """Return which entries are in these sentences, target by target, and how many of each."""
    order = np.argsort(together.keys)  # a search is faster if what is sought ascends
    sought = together.keys[order]
    near = np.minimum(np.searchsorted(keys_E, sought), max(0, len(keys_E) - 1))
    places = np.full(len(sought), -1, np.int32)
    if len(keys_E):
        places[order] = np.where(keys_E[near] == sought, near, -1)
    known = places >= 0
    owners = np.repeat(np.arange(len(together.lengths)), together.lengths)
    lengths = np.bincount(owners[known], minlength=len(together.lengths))
    return places[known], lengths[lengths > 0]


def _ranks(sources_E: Ints, values_E: Floats) -> Ints:
    """Return how many entries of the same source have a greater value; the sources ascend."""
    order = np.lexsort((-values_E, sources_E))
    firsts = np.flatnonzero(np.diff(sources_E, prepend=-1))
    lengths = np.diff(np.append(firsts, len(sources_E)))
    ranks: Ints = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(firsts, lengths)
    return ranks


MIN_PROBABILITY: Final = 0.002
"""A target piece is listed if it is likelier than this where the source piece is."""
SAMPLE_SIZE: Final = 256
"""So many pieces stand for all that are on no list."""


def check_supports_shortlist(loaded: LoadedModel) -> None:
    """Refuse a model that the CPU engine does not translate with."""
    if loaded.config.data.task != "translation":
        raise ModelError(f"{loaded.path}: is a parser; shortlists are for translators")
    if obstacle := why_no_cpu_engine(loaded.config.model):
        raise ConfigError(f"{loaded.path}: cannot use a shortlist without int8 ({obstacle})")


def make_shortlist(
    loaded: LoadedModel, data: Prepared, *, common: int, most: int, progress: Progress
) -> Shortlist:
    """Return a corpus's `common` likeliest target pieces, and `most` of each source piece."""
    if data.tokenizer != loaded.tokenizer:
        raise DataError(
            f"{data.path}: prepared with other pieces than the model's; give its files, or prepare "
            f"them with --tokenizer {loaded.path}"
        )
    if common < 1 or most < 0:
        raise ConfigError(f"{common} common pieces and {most} of each are too few")
    vocabulary, outputs = loaded.tokenizer.sizes
    counts = count_target_pieces(data.train, progress)[:outputs]
    order = np.argsort(-counts, kind="stable")
    everywhere: Ints = np.sort(order[order >= FIRST_PIECE][:common])
    lexicon = learn_lexicon(data.train, everywhere, progress).best(most, MIN_PROBABILITY)
    rest = np.setdiff1d(np.arange(FIRST_PIECE, outputs), everywhere)
    sample = np.sort(np.random.default_rng(0).permutation(rest)[:SAMPLE_SIZE])
    return Shortlist(
        outputs,
        np.append(EOS, everywhere).astype(np.int32),
        sample.astype(np.int32),
        np.searchsorted(lexicon.sources, np.arange(vocabulary + 1)).astype(np.int32),
        lexicon.targets.astype(np.int32),
    )


@dataclass(frozen=True, slots=True)
class ShortlistComparison:
    """Hold translations of some sentences with all pieces, and with a shortlist."""

    beam: int
    whole: list[str]
    short: list[str]
    references: list[str]
    speed: float
    """The shortlist was so many times as fast, in seconds of the processor."""

    @property
    def changed(self) -> int:
        """Count the translations that are not the same."""
        return sum(a != b for a, b in zip(self.whole, self.short, strict=True))


def compare_with_shortlist(
    loaded: LoadedModel, shortlist: Shortlist, pairs: Store, count: int
) -> list[ShortlistComparison]:
    """Find out what a shortlist changes of the translations of some pairs, evenly from all.

    They are translated greedily, and with the model's beam.
    """
    chosen = np.unique(np.linspace(0, len(pairs) - 1, min(count, len(pairs))).astype(int)).tolist()
    sources = [pairs.source(i).tolist() for i in chosen]
    decode = loaded.tokenizer.decode
    references = [decode(pairs.target(i).tolist()) for i in chosen]
    engine = open_cpu_engine(loaded)
    found = []
    for beam in sorted({1, loaded.config.search.beam}):
        options = SearchOptions.from_config(loaded.config.search, beam=beam)
        whole, slow = _time_search(engine, None, sources, options)
        short, fast = _time_search(engine, shortlist, sources, options)
        before, after = ([decode(best[0].ids) for best in one] for one in (whole, short))
        found.append(ShortlistComparison(beam, before, after, references, slow / max(fast, 1e-9)))
    return found


def _time_search(
    engine: CpuEngine,
    shortlist: Shortlist | None,
    sources: Sequence[Sequence[int]],
    options: SearchOptions,
) -> tuple[list[list[Hypothesis]], float]:
    engine.use_shortlist(shortlist)
    begun = time.process_time()
    found = engine.search(sources, options)
    return found, time.process_time() - begun
