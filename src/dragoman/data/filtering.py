"""Filtering keeps those pairs of a crawl that a translator should learn from, and finds the best.

Pairs from the web are often no translations: one side was changed later, has other numbers or
markup, is broken text, or repeats one template a thousand times. Each pair is judged by itself and
by those before it. Of the pairs that are kept, those most like a sample of text can be repeated,
and those least like it left out: the sample is text of the kind that will be translated.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from dragoman.data import Progress
from dragoman.data.cleaning import CleaningReport, Reason, pair_hash
from dragoman.data.readers.parallel import Corpus, Pair, ParallelFiles, open_text
from dragoman.errors import ConfigError, DataError
from dragoman.system.atomic_files import atomic_directory, write_synced

_MOST_BYTES: Final = 1500
"""A longer text is no sentence."""
_MOST_ALIKE: Final = 4
"""So often a text may occur with other translations, or a template with other numbers."""
_BROKEN: Final = re.compile("[\ufffd\x00-\x08\x0b-\x1f\x7f-\x9f]|Ã[\x80-¿]|â€|Â[ «»°]")
_MARKUP: Final = re.compile(
    r"</?[a-z][^<>]*>|%(?:\(\w+\)|\d+\$)?[-+#0-9.]*[a-z@]|%\d|\$?\{\{?[^{}]*\}\}?|&#?\w+;"
    r"|\\[ntr\"\\]|https?://[^\s)>,]+|[\w.+-]{1,40}@[\w-]{1,40}\.\w+",
    re.IGNORECASE,
)
_MARKUP_CHARACTER: Final = re.compile(r"[<%{&\\@]|://")
"""Text without any of these has no markup, and is not searched for it."""
_NO_LETTER: Final = re.compile(r"[\W\d_]+")
_NUMBER: Final = re.compile(
    r"\d{1,3}(?:[.,'’]\d{3}(?!\d))+(?:[.,]\d+)?|(?<![\d.,])\d+[.,]\d+(?![.,]?\d)|\d+"
)
"""A number with its separators; a date is several."""
_SENTENCE_BREAK: Final = re.compile(
    r"(?<=\w\w)(?:(?<=\w\w\w)|(?<=[가-힣]))(?<!\d)[.!?][\"'”“»)]* (?=[\"'„“«(]?[A-ZÄÖÜÀ-ÝА-Я가-힣])"
)
_VARIABLE: Final = re.compile(r"\d+|\"[^\"]*\"|“[^”]*”|„[^“]*“|'[^']*'")
_CHUNK: Final = re.compile(r"[가-힣]{1,2}|[^\W\d가-힣_]{1,6}")
"""Words are compared by their beginnings, so that their forms count as one."""
_VOCABULARY: Final = 60_000


def reason_to_filter(source: str, target: str) -> Reason | None:
    """Return why a pair is no translation to learn from, judged by itself, or None to keep it."""
    if not source or not target:
        return "empty"
    if source.casefold() == target.casefold():
        return "copy"
    if _BROKEN.search(source) or _BROKEN.search(target):
        return "broken text"
    shorter, longer = sorted((len(source.encode()), len(target.encode())))
    if longer > _MOST_BYTES or longer > 2.5 * shorter + 20:
        return "length ratio"
    if not (_is_mostly_letters(source) and _is_mostly_letters(target)):
        return "few letters"
    if _markup(source) != _markup(target):
        return "markup"
    if _digits(source) != _digits(target):
        return "numbers"
    if len(_SENTENCE_BREAK.findall(source)) != len(_SENTENCE_BREAK.findall(target)):
        return "sentences"
    return None


def _markup(text: str) -> list[str]:
    return sorted(_MARKUP.findall(text)) if _MARKUP_CHARACTER.search(text) else []


def _is_mostly_letters(text: str) -> bool:
    return 3 * len(_NO_LETTER.sub("", text)) >= len(text) - text.count(" ")


def _digits(text: str) -> list[str]:
    """Return the digits of a text's numbers, sorted, to be compared across languages.

    Numbers below 13 may be words on the other side, 5 million is 500만, and dates change their
    order, so that small numbers and zeros do not count.
    """
    numbers = ("".join(filter(str.isdigit, found)) for found in _NUMBER.findall(text))
    significant = (digits.replace("0", "") for digits in numbers)
    return sorted("".join(digits for digits in significant if int(digits or 0) > 12))


class RepetitionCounter:
    """Count what pairs have in common with those before them."""

    def __init__(self) -> None:
        self._pairs: set[int] = set()
        self._seen: Counter[int] = Counter()

    def reason_to_filter(self, source: str, target: str) -> Reason | None:
        """Return why a pair says nothing new, or None to keep it."""
        pair = pair_hash(_letters(source), _letters(target))
        if pair in self._pairs:
            return "duplicate"
        self._pairs.add(pair)
        for key in (source.casefold(), "\n" + target.casefold()):
            if not self._is_rare(key):
                return "repeated text"
        template = _VARIABLE.sub("#", source)
        if template != source and not self._is_rare("#" + template):
            return "template"
        return None

    def _is_rare(self, key: str) -> bool:
        number = hash(key)
        self._seen[number] += 1
        return self._seen[number] <= _MOST_ALIKE


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


class LikenessScorer:
    """Score texts by how much more they are like a sample than like a corpus.

    The score is the difference of the two cross-entropies a word (Moore and Lewis, 2010), with
    words by their beginnings and without their order; above 0 is more like the sample.
    """

    def __init__(self, sample: Iterable[str], corpus: Iterable[str]) -> None:
        counts = [Counter[str](), Counter[str]()]
        for counter, texts in zip(counts, (sample, corpus), strict=True):
            for text in texts:
                counter.update(_chunks(text))
        if not all(counts):
            raise DataError("the sample of text, or the corpus, has no words to compare")
        totals = [sum(counter.values()) for counter in counts]
        frequent = dict((counts[0] + counts[1]).most_common(_VOCABULARY))
        self._weights = {
            word: math.log((counts[0][word] + 1) / totals[0])
            - math.log((counts[1][word] + 1) / totals[1])
            for word in frequent
        }

    def score(self, text: str) -> float:
        """Return the score of a text; one without known words gets 0."""
        weights = [self._weights[word] for word in _chunks(text) if word in self._weights]
        return sum(weights) / (len(weights) + 2)  # short texts prove little


def _chunks(text: str) -> list[str]:
    return _CHUNK.findall(text.lower())


@dataclass(frozen=True, slots=True)
class Selection:
    """Say which of the pairs that are kept are repeated or left out, by likeness to a sample."""

    like: Path
    """A file of text like that to be translated, in either language, one sentence a line."""
    repeat: float = 0.25
    """This share of the pairs, the most alike, is written twice."""
    leave_out: float = 0.0
    """This share of the pairs, the least alike, is left out."""

    def __post_init__(self) -> None:
        if not (0 <= self.repeat <= 1 and 0 <= self.leave_out < 1):
            raise ConfigError("shares of pairs to repeat or to leave out are between 0 and 1")


def filter_corpus(
    corpus: Corpus,
    out: Path,
    names: tuple[str, str],
    *,
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> CleaningReport:
    """Make a directory of the pairs that are worth keeping, in two files of these names."""
    report = CleaningReport()
    with atomic_directory(out) as directory:
        kept = ParallelFiles(directory / names[0], directory / names[1])
        numbers = array("Q")
        with _PairWriter(kept) as writer:
            for pair in _keep(corpus, report, progress):
                writer.write(pair)
                numbers.append(pair.number)
        if not numbers:
            raise DataError(f"{corpus.name}: no pair is worth keeping; see dragoman doctor")
        if selection is not None:
            times = _select(kept, selection, progress)
            left_out = np.flatnonzero(times == 0)
            places = (corpus.locate(numbers[i]) for i in left_out)
            report.drop("unlike the sample", places, len(left_out))
            chosen = ParallelFiles(directory / "chosen-source", directory / "chosen-target")
            with _PairWriter(chosen) as writer:
                for pair, count in zip(kept, times, strict=True):
                    for _ in range(count):
                        writer.write(pair)
            chosen.source.replace(kept.source)
            chosen.target.replace(kept.target)
        report.kept = report.read - sum(report.dropped.values())
        write_synced(directory / "report.json", json.dumps(report.to_json(), indent=1))
    return report


class _PairWriter:
    """Write pairs to two aligned files."""

    def __init__(self, files: ParallelFiles) -> None:
        self._files = [path.open("w", encoding="utf-8") for path in (files.source, files.target)]

    def write(self, pair: Pair) -> None:
        self._files[0].write(f"{pair.source}\n")
        self._files[1].write(f"{pair.target}\n")

    def __enter__(self) -> _PairWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()


def _keep(corpus: Corpus, report: CleaningReport, progress: Progress | None) -> Iterator[Pair]:
    repetitions = RepetitionCounter()
    for pair in corpus:
        report.read += 1
        if progress is not None and report.read % 10_000 == 0:
            progress("filtering", report.read, None)
        source, target = " ".join(pair.source.split()), " ".join(pair.target.split())
        reason = reason_to_filter(source, target)
        reason = reason or repetitions.reason_to_filter(source, target)
        if reason is None:
            yield Pair(source, target, pair.number)
        else:
            report.drop(reason, [corpus.locate(pair.number)])


def _select(
    kept: ParallelFiles, selection: Selection, progress: Progress | None
) -> npt.NDArray[np.uint8]:
    """Return how often each pair is written, by the scores of the side in the sample's language."""
    common = Counter(word for text in open_text(selection.like) for word in _chunks(text))
    frequent = {word for word, _ in common.most_common(200)}

    def coverage(side: Path) -> int:
        texts = islice(open_text(side), 5000)
        return sum(word in frequent for text in texts for word in _chunks(text))

    side = max((kept.source, kept.target), key=coverage)
    scorer = LikenessScorer(open_text(selection.like), open_text(side))
    scores = np.fromiter(map(scorer.score, open_text(side)), np.float32)
    if progress is not None:
        progress("comparing with the sample", len(scores), len(scores))
    order = np.argsort(scores, kind="stable")
    times = np.ones(len(scores), np.uint8)
    times[order[: int(selection.leave_out * len(scores))]] = 0
    if best := int(selection.repeat * len(scores)):
        times[order[-best:]] += 1
    return times
