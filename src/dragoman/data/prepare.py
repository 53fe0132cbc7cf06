"""`prepare` makes of a corpus a directory that training can start from.

The corpus is read once to learn the pieces, if no tokeniser is given, and once to encode it in
worker processes. Memory does not grow with the corpus, but for 16 to 32 bytes a pair to know
duplicates by. The directory appears when it is complete.
"""

from __future__ import annotations

import dataclasses
import heapq
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dragoman.config import Config, DataConfig, parse_assignments, write_value
from dragoman.data import Progress
from dragoman.data.cleaning import EXAMPLES, REASONS, Cleaner, CleaningReport, HashSet, pair_hash
from dragoman.data.readers.parallel import Corpus, ErrorHandler, Pair
from dragoman.data.store import Store, StoreWriter, id_type
from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.messages import counted
from dragoman.system.atomic_files import atomic_directory
from dragoman.system.cores import available_cores
from dragoman.system.process_pool import map_ahead
from dragoman.text.formality import formality_of, formality_tag, formality_tags
from dragoman.text.normalization import normalize
from dragoman.text.tokenizer import LEAST_VOCABULARY, Tokenizer, VocabularyTooLargeError
from dragoman.trees.tokenizer_kinds import load_tokenizer
from dragoman.trees.tree_tokenizer import TreeTokenizer

Ids: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]

_CHUNK_PAIRS: Final = 2000
_CHUNK_CHARACTERS: Final = 1_000_000
_HELD_OUT: Final = 2000
"""At most this many pairs, and about 1 in 100, become the validation set if none is given."""
NOT_IN_LOSS: Final = "not in the loss"
"""The reason under which the report's examples list validation pairs."""
NO_LANGUAGES: Final = "not stated; name them with --languages, as in --languages en,de"
FIXED_DATA_SETTINGS: Final = tuple(
    field.name
    for field in dataclasses.fields(DataConfig)
    if field.name not in ("subword_sampling", "row_length")
)
"""The settings in [data] that a prepared corpus was made with; the others are for training."""
_LOTS: Final = 1 << 16
_KEPT: Final = len(REASONS)
"""The verdict on a pair that is kept; other verdicts are indices into REASONS."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Hold a prepared corpus: stores of ids, their tokeniser, and the validation set as text."""

    path: Path
    config: Config
    tokenizer: Tokenizer
    train: Store
    valid: Store
    """The validation pairs that fit data.max_length; the texts below are all of them."""
    valid_source: list[str]
    valid_target: list[str]
    report: CleaningReport

    @classmethod
    def open(cls, path: Path) -> Prepared:
        """Open what `prepare` wrote; anything else is refused."""
        if not (path / "report.json").is_file():
            raise DataError(f"{path}: not a prepared corpus; make one with dragoman prepare")
        try:
            prepared = cls(
                path=path,
                config=Config.load(path / "config.toml"),
                tokenizer=load_tokenizer(path),
                train=Store.open(path / "train"),
                valid=Store.open(path / "valid"),
                valid_source=_read_lines(path / "valid" / "source.txt"),
                valid_target=_read_lines(path / "valid" / "target.txt"),
                report=CleaningReport.from_json(
                    json.loads((path / "report.json").read_text(encoding="utf-8"))
                ),
            )
        except (ConfigError, ModelError) as error:
            raise DataError(f"{error}; or run dragoman prepare again") from None
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{path}: damaged ({error}); run dragoman prepare again") from None
        for store in (prepared.train, prepared.valid):
            if store.meta.tokenizer != prepared.tokenizer.fingerprint:
                raise DataError(
                    f"{store.path}: encoded with a different tokeniser from the one in {path}; run "
                    "dragoman prepare again"
                )
        return prepared

    def lines(self) -> list[str]:
        """Describe for people what was prepared."""
        train, valid = self.train.meta, self.valid.meta
        places = self.report.places(NOT_IN_LOSS)
        languages = self.config.data.languages
        named = f"{languages[0]} → {languages[1]}" if languages else NO_LANGUAGES
        return [
            *self.report.lines(),
            f"train: {counted(train.pairs, 'pair')}, {train.source_pieces:,} source and "
            f"{train.target_pieces:,} target pieces, longest {train.longest_source} and "
            f"{train.longest_target}",
            f"valid: {counted(len(self.valid_source), 'pair')}"
            + (", held out of the corpus" if self.report.held_out else "")
            + (
                f", {len(self.valid_source) - valid.pairs:,} of them not in the loss (empty or "
                f"above {self.config.data.max_length} pieces){places and ': '}{places}"
                if valid.pairs < len(self.valid_source)
                else ""
            ),
            f"tokenizer: {self.tokenizer.kind}, {len(self.tokenizer):,} pieces, "
            f"{self.tokenizer.fingerprint[:8]}",
            *([] if self.config.data.task == "parsing" else [f"languages: {named}"]),
            *([f"tags: {self._count_tags()}"] if self.tokenizer.tags else []),
        ]

    def _count_tags(self) -> str:
        counts = {tag: self.train.count_first(i) for tag, i in self.tokenizer.tags.items()}
        return ", ".join(f"{tag} before {counted(n, 'source')}" for tag, n in counts.items())

    def refuse_contradictions(self, assignments: Iterable[str]) -> None:
        """Raise ConfigError if any of these ``section.key=value`` is not what was prepared with."""
        tables = parse_assignments(assignments)
        wanted = self.config.updated(tables, where="--set")
        for section, table in tables.items():
            for key in table:
                value, made_with = (
                    getattr(getattr(config, section), key) for config in (wanted, self.config)
                )
                if value == made_with or not self._is_fixed(section, key, value):
                    continue
                name = f"{section}.{key}"
                raise ConfigError(
                    f"{name} = {write_value(value)}, but {self.path} was prepared with {name} = "
                    f"{write_value(made_with)}; leave it out, or run dragoman prepare again with "
                    f"--set '{name}={write_value(value)}'"
                )

    def _is_fixed(self, section: str, key: str, value: Any) -> bool:
        """Return whether another value than the corpus was prepared with contradicts it."""
        if section == "data":
            unknown = key == "languages" and not self.config.data.languages
            return key in FIXED_DATA_SETTINGS and not unknown
        if (section, key) == ("tokenizer", "vocabulary") and self.config.data.task == "parsing":
            # The recorded number has the announcements in it, the setting has not.
            return bool(value != self.config.tokenizer.vocabulary - self.config.trees.announcements)
        return section in ("tokenizer", "trees")

    def describe_too_long(self) -> str | None:
        """Say which pairs are not learned from because of their length, if there are any."""
        if not (count := self.report.dropped.get("too long", 0)):
            return None
        return (
            f"{count:,} of {self.report.read:,} pairs have more than data.max_length = "
            f"{self.config.data.max_length} pieces and are not learned from: "
            f"{self.report.places('too long')}"
        )


class PreparedPairs(Corpus):
    """Read the training pairs of a prepared corpus as text, normalised as its tokeniser does it."""

    unit = "pair"

    def __init__(self, prepared: Prepared) -> None:
        if prepared.config.data.task != "translation":
            raise DataError(f"{prepared.path}: prepared for {prepared.config.data.task}")
        self.prepared, self.name = prepared, str(prepared.path)

    def read(self, on_error: ErrorHandler | None = None) -> Iterator[Pair]:
        """Yield the pairs in their order."""
        store, decode = self.prepared.train, self.prepared.tokenizer.decode
        for i in range(len(store)):
            yield Pair(decode(store.source(i).tolist()), decode(store.target(i).tolist()), i + 1)


def prepare(
    corpus: Corpus,
    out: Path,
    config: Config,
    *,
    valid: Corpus | None = None,
    tokenizer: Tokenizer | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    show_message: Callable[[str], None] | None = None,
    replace: bool = False,
) -> Prepared:
    """Clean and encode a corpus into the directory `out`, learning a tokeniser unless given one.

    Without `valid`, some pairs are held out; which ones depends on their text alone. No pair of
    the validation set stays in training. Workers default to the number of cores; 0 means none.
    Where the corpus has too few different words for tokenizer.vocabulary, as many pieces as it
    allows are learned; `show_message` is told so, and the config of the directory has the number.
    """
    report = progress or (lambda stage, done, total: None)
    with atomic_directory(out, replace=replace) as directory:
        Cleaner(config.data)  # so that impossible settings are refused before the long work
        total = None
        if tokenizer is None:
            counting = _CountingCorpus(corpus, report)
            tokenizer = learn_tokenizer(counting, config, show_message)
            total = counting.pairs
        _check_tags(config.data, tokenizer)
        config = dataclasses.replace(
            config,
            tokenizer=dataclasses.replace(
                config.tokenizer,
                kind=tokenizer.kind,
                vocabulary=len(tokenizer),
                normalization=tokenizer.normalization,
            ),
        )
        tokenizer.save(directory)
        (directory / "config.toml").write_text(config.to_toml(), encoding="utf-8")
        for name in ("train", "valid"):
            (directory / name).mkdir()
        processes = available_cores() if workers is None else workers
        encoder = ChunkEncoder(tokenizer, config)
        with (
            _open_writer(directory / "train", tokenizer) as train_writer,
            _open_writer(directory / "valid", tokenizer) as valid_writer,
        ):
            known: set[int] = set()
            outside: list[str] = []
            if valid is not None:
                known, outside = _encode_valid(valid, encoder, valid_writer, processes)
            training = _TrainingPass(corpus, encoder, train_writer, known, hold_out=valid is None)
            if outside:
                training.report.examples[NOT_IN_LOSS] = outside[:EXAMPLES]
            training.encode(processes, lambda done: report("encoding", done, total))
            if valid is None:
                training.write_held_out(valid_writer)
            training.check_not_empty()
            train_writer.close(training.report.to_json())
            valid_writer.close()
        text = json.dumps(training.report.to_json(), indent=2, ensure_ascii=False)
        (directory / "report.json").write_text(text + "\n", encoding="utf-8")
    return Prepared.open(out)


def learn_tokenizer(
    pairs: Iterable[Pair], config: Config, show_message: Callable[[str], None] | None = None
) -> Tokenizer:
    """Learn a tokeniser from pairs, with fewer pieces than asked for if there are not so many.

    The largest vocabulary that is possible would have every word as one piece, and each of its
    beginnings too, most of them seen once. So as many pieces are learned as there are different
    words and characters. The pairs are read again for that, and `show_message` is told.
    """
    try:
        return _learn_pieces(pairs, config)
    except VocabularyTooLargeError as error:
        wanted, largest = config.tokenizer.vocabulary, error.largest
    fitting = min(largest, _count_different(pairs, config))
    try:
        tokenizer = _learn_pieces(pairs, _with_vocabulary(config, fitting))
    except ConfigError:  # a parser's actions may need more
        tokenizer = _learn_pieces(pairs, _with_vocabulary(config, largest))
    if show_message is not None:
        show_message(describe_smaller_vocabulary(len(tokenizer), wanted))
    return tokenizer


def _with_vocabulary(config: Config, vocabulary: int) -> Config:
    smaller = dataclasses.replace(config.tokenizer, vocabulary=vocabulary)
    return dataclasses.replace(config, tokenizer=smaller)


def _count_different(pairs: Iterable[Pair], config: Config) -> int:
    """Return a vocabulary for all different words and characters, special pieces included."""
    parses = config.data.task == "parsing"  # a tree is made of actions, not of words
    symbols = len(config.tokenizer.symbols) + len(_wanted_tags(config.data))
    words: set[str] = set()
    for source, target, _ in pairs:
        for text in (source,) if parses else (source, target):
            words.update(normalize(text, config.tokenizer.normalization).split(" "))
    characters = set().union(*words) if words else set()
    return LEAST_VOCABULARY + symbols + len(words) + len(characters)


def describe_smaller_vocabulary(pieces: int, wanted: int) -> str:
    """Say that a corpus gives fewer pieces than tokenizer.vocabulary asks for."""
    return (
        f"vocabulary: {counted(pieces, 'piece')} instead of {wanted:,}: the corpus has too few "
        "different words"
    )


def _learn_pieces(pairs: Iterable[Pair], config: Config) -> Tokenizer:
    if config.data.task == "parsing":
        return TreeTokenizer.learn(pairs, config.tokenizer, config.trees)
    texts = (side for pair in pairs for side in pair[:2])
    return Tokenizer.train(texts, config.tokenizer, tags=_wanted_tags(config.data))


def _wanted_tags(data: DataConfig) -> tuple[str, ...]:
    """Return the tags that sources are to begin with."""
    if not data.formality:
        return ()
    if data.task == "parsing":
        raise ConfigError("data.formality means nothing to a parser; leave it out")
    return formality_tags(data.target_language)


def _check_tags(data: DataConfig, tokenizer: Tokenizer) -> None:
    """Raise ConfigError if sources are to begin with tags that the tokeniser does not have."""
    if missing := [tag for tag in _wanted_tags(data) if tag not in tokenizer.tags]:
        raise ConfigError(
            f"data.formality = {data.formality} needs a tokeniser with the tag {missing[0]}, and "
            "this one was learned without; learn one with --set data.formality, or leave it out"
        )


class _CountingCorpus:
    """Yield the pairs of a corpus, and count and report them as they are read."""

    def __init__(self, corpus: Corpus, report: Progress) -> None:
        self._corpus = corpus
        self._report = report
        self.pairs = 0

    def __iter__(self) -> Iterator[Pair]:
        self.pairs = 0
        for pair in self._corpus:
            yield pair
            self.pairs += 1
            if self.pairs % 10_000 == 0:
                self._report("learning pieces", self.pairs, None)


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """Hold a chunk of pairs after tokenising and cleaning; the ids are those of the kept pairs."""

    verdicts: npt.NDArray[np.uint8]
    hashes: npt.NDArray[np.uint64]
    source: Ids
    source_lengths: npt.NDArray[np.int64]
    target: Ids
    target_lengths: npt.NDArray[np.int64]


class ChunkEncoder:
    """Tokenise and judge chunks of pairs; this is what the workers run."""

    def __init__(self, tokenizer: Tokenizer, config: Config) -> None:
        self.tokenizer = tokenizer
        self.config = config
        self._cleaner = Cleaner(config.data)

    def __reduce__(self) -> tuple[Any, ...]:
        return ChunkEncoder, (self.tokenizer, self.config)

    def __call__(self, pairs: list[tuple[str, str]]) -> EncodedChunk:
        """Encode pairs; what exceeds data.max_length by its characters alone is not tokenised."""
        tokenizer, longest = self.tokenizer, self.config.data.max_length
        texts = [(tokenizer.normalize(s), tokenizer.normalize_target(t)) for s, t in pairs]
        fitting = [
            i
            for i, (source, target) in enumerate(texts)
            if len(source) < longest * tokenizer.longest_piece
            and len(target) < longest * tokenizer.longest_target
        ]
        sources, targets = ([texts[i][side] for i in fitting] for side in (0, 1))
        encoded = tokenizer.encode_normalized(sources), tokenizer.encode_targets(targets)
        hashes = np.array([pair_hash(*pair) for pair in texts], np.uint64)
        if self.config.data.formality:
            for row, i in enumerate(fitting):
                encoded[0][row] = self._find_tag(targets[row], int(hashes[i])) + encoded[0][row]
        too_long = REASONS.index("too long")
        verdicts = np.full(len(pairs), too_long, np.uint8)
        kept = []
        for row, i in enumerate(fitting):
            ids = encoded[0][row], encoded[1][row]
            reason = self._cleaner.reason_to_drop(*texts[i], len(ids[0]), len(ids[1]))
            verdicts[i] = _KEPT if reason is None else REASONS.index(reason)
            if reason is None:
                kept.append(ids)
        flat = [self._concatenate([ids[side] for ids in kept]) for side in (0, 1)]
        return EncodedChunk(verdicts, hashes, *flat[0], *flat[1])

    def _find_tag(self, target: str, value: int) -> list[int]:
        """Return the tag before the source of this target, if it has one and the lot falls on it.

        The lot is a pair's hash, so that the same pairs are drawn each time.
        """
        data = self.config.data
        if value % _LOTS >= data.formality * _LOTS:  # not its highest bits, which hold out pairs
            return []
        found = formality_of(target, data.target_language or "")
        return [] if found is None else [self.tokenizer.tags[formality_tag(found)]]

    def _concatenate(self, sequences: list[list[int]]) -> tuple[Ids, npt.NDArray[np.int64]]:
        lengths = np.array([len(ids) for ids in sequences], np.int64)
        ids = np.fromiter(
            chain.from_iterable(sequences), id_type(len(self.tokenizer)), int(lengths.sum())
        )
        return ids, lengths


class _Candidate(NamedTuple):
    """Hold a pair that may become a validation pair."""

    pair: Pair
    source: Ids
    target: Ids


class _HeldOut:
    """Keep the pairs with the smallest hashes so far, with all their copies."""

    def __init__(self) -> None:
        self._copies: dict[int, list[_Candidate]] = {}
        self._largest_first: list[int] = []

    @property
    def bound(self) -> int:
        """Return the largest hash that may still be taken in."""
        full = len(self._copies) >= _HELD_OUT
        return -self._largest_first[0] if full else (1 << 64) - 1

    def offer(self, value: int, candidate: _Candidate) -> list[_Candidate]:
        """Take one in if its hash is small enough; return those that have to leave for it."""
        if value in self._copies:
            self._copies[value].append(candidate)
            return []
        if value > self.bound:
            return [candidate]
        self._copies[value] = [candidate]
        heapq.heappush(self._largest_first, -value)
        return self._remove_largest() if len(self._copies) > _HELD_OUT else []

    def shrink(self, size: int) -> list[_Candidate]:
        """Keep so many different pairs; return those that have to leave."""
        leaving = []
        while len(self._copies) > size:
            leaving += self._remove_largest()
        return leaving

    def groups(self) -> list[list[_Candidate]]:
        """Return each pair with its copies, in the order of the corpus."""
        return sorted(self._copies.values(), key=lambda copies: copies[0].pair.number)

    def _remove_largest(self) -> list[_Candidate]:
        return self._copies.pop(-heapq.heappop(self._largest_first))


class _TrainingPass:
    """Go over the corpus once and fill the training store."""

    def __init__(
        self,
        corpus: Corpus,
        encoder: ChunkEncoder,
        writer: StoreWriter,
        known: set[int],
        *,
        hold_out: bool,
    ) -> None:
        self.report = CleaningReport()
        self._corpus = corpus
        self._encoder = encoder
        self._writer = writer
        self._known = np.array(sorted(known), np.uint64)
        self._held_out = _HeldOut() if hold_out else None
        self._seen = HashSet() if encoder.config.data.drop_duplicates else None

    def encode(self, workers: int, done: Callable[[int], None]) -> None:
        for pairs, encoded in _encode_chunks(self._corpus, self._encoder, workers):
            self._add_chunk(pairs, encoded)
            self.report.read += len(pairs)
            done(self.report.read)
        if malformed := self._corpus.malformed:
            self.report.read += len(malformed)
            self.report.drop("malformed", malformed, len(malformed))

    def _add_chunk(self, pairs: list[Pair], encoded: EncodedChunk) -> None:
        verdicts = encoded.verdicts.copy()
        rows = np.flatnonzero(verdicts == _KEPT)  # the pairs whose ids there are
        hashes = encoded.hashes[rows]
        if self._seen is not None:
            verdicts[rows[~self._seen.add(hashes)]] = REASONS.index("duplicate")
        if len(self._known):
            verdicts[rows[np.isin(hashes, self._known)]] = REASONS.index("in validation")
        keep = verdicts[rows] == _KEPT
        if self._held_out is not None:
            bound = np.uint64(self._held_out.bound)
            for row in np.flatnonzero(keep & (hashes <= bound)).tolist():
                self._offer(int(hashes[row]), pairs[rows[row]], encoded, row)
                keep[row] = False
        self.report.kept += int((verdicts == _KEPT).sum())
        for index, reason in enumerate(REASONS):
            if len(dropped := np.flatnonzero(verdicts == index)):
                places = (self._corpus.locate(pairs[i].number) for i in dropped)
                self.report.drop(reason, places, len(dropped))
        self._writer.extend(
            *_select(encoded.source, encoded.source_lengths, keep),
            *_select(encoded.target, encoded.target_lengths, keep),
        )

    def _offer(self, value: int, pair: Pair, encoded: EncodedChunk, row: int) -> None:
        assert self._held_out is not None
        source = _row(encoded.source, encoded.source_lengths, row)
        target = _row(encoded.target, encoded.target_lengths, row)
        for candidate in self._held_out.offer(value, _Candidate(pair, source, target)):
            self._writer.append(candidate.source, candidate.target)

    def write_held_out(self, writer: StoreWriter) -> None:
        """Write the validation set, and give the rest of what was held out to training."""
        assert self._held_out is not None
        size = min(_HELD_OUT, max(1, self.report.kept // 100))
        for candidate in self._held_out.shrink(size):
            self._writer.append(candidate.source, candidate.target)
        pairs = []
        tags = list(self._encoder.tokenizer.tags.values())
        for first, *copies in self._held_out.groups():
            tagged = int(np.isin(first.source[:1], tags).sum())
            writer.append(first.source[tagged:], first.target)  # as its text is translated
            pairs.append(first.pair)
            if copies:
                places = (self._corpus.locate(copy.pair.number) for copy in copies)
                self.report.drop("in validation", places, len(copies))
                self.report.kept -= len(copies)
        self.report.held_out = len(pairs)
        _write_texts(writer.directory, pairs)

    def check_not_empty(self) -> None:
        """Raise DataError if no pair is left to train on."""
        if len(self._writer):
            return
        reasons = ", ".join(f"{reason}: {count}" for reason, count in self.report.dropped.items())
        raise DataError(
            f"{self._corpus.name}: of {counted(self.report.read, 'pair')} none is left to train on "
            f"({reasons or 'one is held out for validation'}); relax the settings in [data] or "
            "add more text"
        )


def _encode_valid(
    corpus: Corpus, encoder: ChunkEncoder, writer: StoreWriter, workers: int
) -> tuple[set[int], list[str]]:
    """Encode the given validation set; only what cannot be in a batch is left out of its loss.

    Return the hashes of all its pairs, and where those that are left out stand.
    """
    data = dataclasses.replace(
        encoder.config.data,
        max_ratio=0.0,
        drop_copies=False,
        identify_languages=(),
        formality=0.0,
    )
    encoder = ChunkEncoder(encoder.tokenizer, dataclasses.replace(encoder.config, data=data))
    everything: list[Pair] = []
    hashes: set[int] = set()
    outside: list[str] = []
    for pairs, encoded in _encode_chunks(corpus, encoder, workers):
        everything += pairs
        hashes.update(encoded.hashes.tolist())
        left_out = np.flatnonzero(encoded.verdicts != _KEPT)
        outside += [corpus.locate(pairs[i].number) for i in left_out]
        writer.extend(
            encoded.source, encoded.source_lengths, encoded.target, encoded.target_lengths
        )
    if not len(writer):
        raise DataError(
            f"{corpus.name}: of {counted(len(everything), 'pair')} none can be validated on; all "
            f"are empty or longer than data.max_length = {data.max_length} pieces"
        )
    if corpus.malformed:
        raise DataError(corpus.malformed[0])  # a set that is scored must be whole
    _write_texts(writer.directory, everything)
    return hashes, outside


def _encode_chunks(
    corpus: Corpus, encoder: ChunkEncoder, workers: int
) -> Iterator[tuple[list[Pair], EncodedChunk]]:
    """Yield the corpus in chunks with their encoding, in order."""
    chunks = _cut_chunks(corpus)
    first = list(islice(chunks, 2))
    if len(first) < 2:
        workers = 0  # starting processes would take longer
    waiting: deque[list[Pair]] = deque()

    def texts() -> Iterator[list[tuple[str, str]]]:
        for chunk in chain(first, chunks):
            waiting.append(chunk)
            yield [(pair.source, pair.target) for pair in chunk]

    with closing(map_ahead(encoder, texts(), workers)) as results:
        for encoded in results:
            yield waiting.popleft(), encoded


def _cut_chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    chunk: list[Pair] = []
    characters = 0
    for pair in pairs:
        chunk.append(pair)
        characters += len(pair.source) + len(pair.target)
        if len(chunk) == _CHUNK_PAIRS or characters > _CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _open_writer(directory: Path, tokenizer: Tokenizer) -> StoreWriter:
    return StoreWriter(directory, vocabulary=len(tokenizer), tokenizer=tokenizer.fingerprint)


def _row(ids: Ids, lengths: npt.NDArray[np.int64], row: int) -> Ids:
    start = int(lengths[:row].sum())
    return ids[start : start + int(lengths[row])].copy()


def _select(
    ids: Ids, lengths: npt.NDArray[np.int64], keep: npt.NDArray[np.bool_]
) -> tuple[Ids, npt.NDArray[np.int64]]:
    if keep.all():
        return ids, lengths
    return ids[np.repeat(keep, lengths)], lengths[keep]


def _write_texts(directory: Path, pairs: list[Pair]) -> None:
    for name, side in (("source.txt", 0), ("target.txt", 1)):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (directory / name).write_bytes(text.encode("utf-8"))


def _read_lines(path: Path) -> list[str]:
    # Not splitlines, nor text mode: only LF ends a line.
    return path.read_bytes().decode("utf-8").split("\n")[:-1]
