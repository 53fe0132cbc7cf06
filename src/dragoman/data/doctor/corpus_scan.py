"""One pass over a corpus finds what is odd, repeated, misaligned or also in the test set."""

from __future__ import annotations

import heapq
import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from dragoman.config import Config
from dragoman.data import Progress
from dragoman.data.cleaning import HashSet, pair_hash
from dragoman.data.doctor.diagnosis import Diagnosis, Severity, describe_percentiles, percentiles
from dragoman.data.doctor.misalignment import AlignmentMonitor, find_misalignment
from dragoman.data.readers.parallel import Corpus, Pair, ParallelFiles, UnequalLinesError, open_text
from dragoman.errors import DataError
from dragoman.messages import counted
from dragoman.text.normalization import normalize

LONG_TEXT: Final = 20_000
"""So many characters of a text are kept; whatever has more is too long in pieces too."""

_SHOWN: Final = 20
"""So many errors of one kind are listed one by one."""
_LONGEST_KEPT: Final = 500
_MOST_WORDS: Final = 10_000
_BATCH: Final = 5_000

# UTF-8 that was read as Latin-1 or Windows-1252 and written as UTF-8 again: "Ã¼", "â€œ", "Â ".
_MOJIBAKE = re.compile(
    "Ã[\u0080-\u00bfŒœŠšŸŽžƒˆ˜–—‘’‚“”„†‡•…‰‹›€™]|â€[\u0080-\u00bf™œž“”˜¦¢]|Â[\u00a0-\u00bf]"
)


class SampledPair(NamedTuple):
    """Hold a normalised pair of the sample; pairs compare by their length in characters."""

    size: int
    order: int
    place: str
    source: str
    target: str


class _Errors:
    """Collect what could not be read: the first errors, and how many there are."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[DataError] = []
        self.difference = 0  # by how many lines the target is longer

    def __call__(self, error: DataError) -> None:
        self.count += 1
        if isinstance(error, UnequalLinesError):
            self.difference = error.difference
            error = DataError(str(error).partition(":")[0])  # the advice was to come here
        if len(self.first) < _SHOWN:
            self.first.append(error)

    def report(self, diagnosis: Diagnosis, name: str) -> None:
        for error in self.first:
            diagnosis.add("error", "reading", str(error))
        if self.count > len(self.first):
            more = self.count - len(self.first)
            diagnosis.add("error", "reading", f"{name}: {counted(more, 'more error')} like these")


def _read_pairs(corpus: Corpus, errors: _Errors) -> Iterator[Pair]:
    """Yield the pairs as far as they can be read."""
    try:
        yield from corpus.read(errors)
    except DataError as error:
        errors(error)


class _Longest:
    """Remember the longest side seen."""

    def __init__(self) -> None:
        self.size = 0
        self.where: str | None = None

    def update(self, size: int, corpus: Corpus, number: int, side: int) -> None:
        if size > self.size:
            self.size, self.where = size, corpus.locate(number, target=side == 1)


class OverlapCheck:
    """Find which pairs of a test or validation set also occur in training."""

    def __init__(self, name: str, corpus: Corpus, config: Config, diagnosis: Diagnosis) -> None:
        self._name = name
        self._corpus = corpus
        self._pairs: dict[int, int] = {}  # hash to the number of the pair
        self._sources: dict[int, int] = {}
        self._seen: dict[int, str] = {}  # number to where it stands in training
        self._seen_sources: dict[int, str] = {}
        errors = _Errors()
        form = config.tokenizer.normalization
        for pair in _read_pairs(corpus, errors):
            source, target = normalize(pair.source, form), normalize(pair.target, form)
            self._pairs.setdefault(pair_hash(source, target), pair.number)
            self._sources.setdefault(pair_hash(source, ""), pair.number)
        errors.report(diagnosis, corpus.name)

    def look_up(self, pair: int, source: int, corpus: Corpus, place: int) -> None:
        """Look up the hashes of a training pair."""
        if (number := self._pairs.get(pair)) is not None:
            self._seen.setdefault(number, corpus.locate(place))
        elif (number := self._sources.get(source)) is not None:
            self._seen_sources.setdefault(number, corpus.locate(place))

    def report(self, diagnosis: Diagnosis) -> None:
        """Add what was found to the diagnosis."""
        total = len(self._pairs)
        diagnosis.figures[f"{self._name}_overlap"] = {
            "pairs": total,
            "in_training": len(self._seen),
            "source_in_training": len(self._seen_sources),
        }
        severity: Severity = "error" if self._name == "test" else "warning"
        if self._seen:
            number, place = min(self._seen.items())
            advice = "remove them there" if severity == "error" else "prepare drops them"
            diagnosis.add(
                severity,
                "overlap",
                f"{len(self._seen):,} of {total:,} {self._name} pairs found in training; {advice}",
                f"{self._corpus.locate(number)} = {place}",
            )
        only = {n: place for n, place in self._seen_sources.items() if n not in self._seen}
        if only:
            number, place = min(only.items())
            diagnosis.add(
                "warning",
                "overlap",
                f"{len(only):,} of {total:,} {self._name} sources found in training with another "
                "translation",
                f"{self._corpus.locate(number)} = {place}",
            )
        if not self._seen and not only:
            message = f"none of the {total:,} {self._name} pairs is in training"
            diagnosis.add("ok", "overlap", message)


class CorpusScan:
    """Go over the corpus once, and remember what the checks need of it."""

    def __init__(
        self,
        config: Config,
        overlaps: Sequence[OverlapCheck],
        sample: int,
        corpus: Corpus,
        progress: Progress,
    ) -> None:
        self.corpus = corpus
        self.pairs = 0
        self.sample: list[SampledPair] = []
        self.longest: list[SampledPair] = []  # a heap
        self._form = config.tokenizer.normalization
        self._overlaps = overlaps
        self._sample_size = sample
        self._progress = progress
        self._draw = random.Random(1)
        self._words = [np.zeros(_MOST_WORDS + 1, np.int64) for _ in range(2)]
        self._most_words = [_Longest(), _Longest()]
        self._known = HashSet()
        self._waiting: list[tuple[int, int, int]] = []  # pair hash, source hash, number
        self._part: Corpus = corpus
        names = ("mojibake", "replacement", "form", "empty", "copy", "duplicate")
        self._counts = dict.fromkeys(names, 0)
        self._first: dict[str, str] = {}

    @property
    def sampled_all(self) -> bool:
        """Return whether the sample is the whole corpus."""
        return self.pairs <= self._sample_size

    def scan(self, part: Corpus, diagnosis: Diagnosis) -> None:
        """Read one corpus, and report where it cannot be read or is not aligned."""
        errors = _Errors()
        monitor = AlignmentMonitor()
        self._part = part
        for pair in _read_pairs(part, errors):
            monitor.add(pair.source, pair.target)
            self._add(pair)
        self._look_up()
        errors.report(diagnosis, part.name)
        _report_alignment(part, monitor, errors.difference, diagnosis)

    def _add(self, pair: Pair) -> None:
        self.pairs += 1
        if self.pairs % 10_000 == 0:
            self._progress("examining", self.pairs, None)
        source, target = normalize(pair.source, self._form), normalize(pair.target, self._form)
        for side, text in enumerate((source, target)):
            words = text.count(" ") + 1 if text else 0
            self._words[side][min(words, _MOST_WORDS)] += 1
            self._most_words[side].update(words, self._part, pair.number, side)
        self._count_odd_characters(pair)
        if not source or not target:
            self._count("empty", pair.number)
            return
        if source == target:
            self._count("copy", pair.number)
        self._waiting.append((pair_hash(source, target), pair_hash(source, ""), pair.number))
        if len(self._waiting) == _BATCH:
            self._look_up()
        self._keep(source, target, pair.number)

    def _count(self, name: str, number: int, side: int = 0) -> None:
        self._counts[name] += 1
        if name not in self._first:
            self._first[name] = self._part.locate(number, target=side == 1)

    def _count_odd_characters(self, pair: Pair) -> None:
        for side, text in enumerate(pair[:2]):
            if text.isascii():
                continue
            if _MOJIBAKE.search(text):
                self._count("mojibake", pair.number, side)
            if "\ufffd" in text:
                self._count("replacement", pair.number, side)
            if not unicodedata.is_normalized("NFC", text):
                self._count("form", pair.number, side)

    def _look_up(self) -> None:
        """Find duplicates and overlaps among the pairs since the last time."""
        new = self._known.add(np.array([pair for pair, _, _ in self._waiting], np.uint64))
        for is_new, (pair, source, number) in zip(new.tolist(), self._waiting, strict=True):
            if not is_new:
                self._count("duplicate", number)
            for overlap in self._overlaps:
                overlap.look_up(pair, source, self._part, number)
        self._waiting.clear()

    def _keep(self, source: str, target: str, number: int) -> None:
        """Draw the sample, and keep the longest pairs."""
        size = max(len(source), len(target))
        drawn = self._draw.randrange(self.pairs) if self.pairs > self._sample_size else None
        is_long = len(self.longest) < _LONGEST_KEPT or size > self.longest[0].size
        if drawn is not None and drawn >= self._sample_size and not is_long:
            return
        place = self._part.locate(number)
        kept = SampledPair(size, -self.pairs, place, source[:LONG_TEXT], target[:LONG_TEXT])
        if drawn is None or len(self.sample) < self._sample_size:
            self.sample.append(kept)
        elif drawn < self._sample_size:
            self.sample[drawn] = kept
        if is_long:
            heapq.heappush(self.longest, kept)
            if len(self.longest) > _LONGEST_KEPT:
                heapq.heappop(self.longest)

    def report(self, diagnosis: Diagnosis) -> None:
        """Add what was seen to the diagnosis."""
        diagnosis.figures["pairs"] = self.pairs
        diagnosis.figures |= self._counts
        if not self.pairs:
            diagnosis.add("error", "pairs", "the corpus has no pairs", self.corpus.name)
            return
        diagnosis.add("ok", "pairs", counted(self.pairs, "pair"))
        self._report_counts(diagnosis)
        for side, name in enumerate(("source", "target")):
            shares = percentiles(self._words[side])
            longest = self._most_words[side]
            diagnosis.figures[f"{name}_words"] = [*shares, longest.size]
            diagnosis.add(
                "ok",
                "length",
                f"{name} words: {describe_percentiles(shares, longest.size)}",
                longest.where,
            )

    def _report_counts(self, diagnosis: Diagnosis) -> None:
        form = self._form
        texts: list[tuple[str, Severity, str]] = [
            (
                "mojibake",
                "warning",
                "line with UTF-8 read as Latin-1 (as in “Ã¼”); repair the text",
            ),
            (
                "replacement",
                "warning",
                "line with U+FFFD, which stands for an unreadable character",
            ),
            (
                "form",
                "warning" if form == "none" else "ok",
                "line not in NFC; "
                + (
                    'set tokenizer.normalization="nfc"'
                    if form == "none"
                    else "prepare normalises the text"
                ),
            ),
            ("empty", "warning", "pair with an empty side; prepare drops such pairs"),
            ("copy", "warning", "pair with the same text on both sides"),
            ("duplicate", "warning", "pair that occurred before"),
        ]
        for name, severity, text in texts:
            if count := self._counts[name]:
                noun, rest = text.split(" ", 1)
                share = f"({100 * count / self.pairs:.1f}%)"
                message = f"{counted(count, noun)} {share} {rest}"
                diagnosis.add(severity, name, message, self._first[name])
        if not any(self._counts.values()):
            diagnosis.add("ok", "text", "no empty line, copy, duplicate or odd character")


def _report_alignment(
    part: Corpus, monitor: AlignmentMonitor, difference: int, diagnosis: Diagnosis
) -> None:
    found = find_misalignment(
        lambda start, stop: _read_lines(part, start, stop), monitor, difference
    )
    if found is not None:
        side, lines = ("target" if found.offset < 0 else "source"), abs(found.offset)
        diagnosis.add(
            "error",
            "alignment",
            f"the sides diverge near this line: {counted(lines, f'{side} line')} probably missing; "
            "compare them from here",
            part.locate(found.line),
        )
    elif difference:
        diagnosis.add("error", "alignment", "no line could be found where the sides diverge")
    elif monitor.lines:
        diagnosis.add("ok", "alignment", "the sides look aligned throughout", part.name)


def _read_lines(part: Corpus, start: int, stop: int) -> tuple[list[str], list[str]]:
    if isinstance(part, ParallelFiles):
        sources, targets = (
            list(islice(open_text(path, lambda error: None), start, stop))
            for path in (part.source, part.target)
        )
        return sources, targets
    pairs = list(islice(part.read(lambda error: None), start, stop))
    return [pair.source for pair in pairs], [pair.target for pair in pairs]
