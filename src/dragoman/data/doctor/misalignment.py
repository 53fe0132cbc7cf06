"""The line where two files stop being aligned is found from the text alone.

Lines that translate each other have lengths, numbers, names and end marks in common; others have
not. `AlignmentMonitor` compares each pair with one taken at random, in blocks, and notices when the
difference goes. `locate_misalignment` then compares the neighbourhood line by line: it tries every
offset between the sides, and the words that go together tell the line.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

BLOCK: Final = 50
"""The scores of so many lines are averaged."""
REGION: Final = 400
"""`locate_misalignment` gets so many lines on either side of the suspected place."""

_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f]\d+)*")
_NAME = re.compile(r"\b[A-Z]\w{2,}")
_WORD = re.compile(r"\w+")
_MARKS = "?!:;()%"
_ENDS = str.maketrans("。？！：؟।", ".?!:?.", "\"'»«“”„’)] ")
_FAR: Final = 7
"""A line this many before another has nothing to do with it, or not much."""
_OFFSETS: Final = 60
_ALARM: Final = 30.0
""""Not aligned" must explain the blocks better by so many nats."""
_SURE: Final = 5.0
_UNSURE: Final = 40.0
"""A shift must explain a region better by so many nats, if its offset is known and if not."""
_EVERY_LINE: Final = 20_000

Read = Callable[[int, int], tuple[Sequence[str], Sequence[str]]]


class Misalignment(NamedTuple):
    """Hold the first line, from 1, that does not face its translation, and how far that is."""

    line: int
    offset: int
    """Lines in the target: -1 means that a target line is missing, 1 that a source line is."""


class _Line(NamedTuple):
    length: int
    end: str
    numbers: frozenset[str]
    names: frozenset[str]
    marks: tuple[int, ...]


def _features(text: str) -> _Line:
    digits = _NUMBER.findall(text)
    return _Line(
        length=len(text),
        end=text[-4:].translate(_ENDS)[-1:],
        numbers=frozenset("".join(filter(str.isdigit, number)) for number in digits),
        names=frozenset(_NAME.findall(text)),
        marks=tuple(map(text.count, _MARKS)),
    )


def _likeness(source: _Line, target: _Line, ratio: float) -> float:
    """Return how much two lines look like translations, in something like nats."""
    expected = ratio * source.length
    spread = 3.4 * (expected + target.length) + 4  # Gale and Church (1993): 6.8 a character
    score = -min((target.length - expected) ** 2 / spread / 2, 6.0)
    if source.numbers or target.numbers:
        common = len(source.numbers & target.numbers)
        score += min(2.0 * common, 6.0) - min(
            1.5 * (len(source.numbers) + len(target.numbers) - 2 * common), 4.0
        )
    if source.names and target.names:
        score += min(1.5 * len(source.names & target.names), 4.5)
    if source.end != target.end:
        score -= 1.5 if source.end in ".?!:" and target.end in ".?!:" else 0.5
    if source.marks != target.marks:
        different = sum(a != b for a, b in zip(source.marks, target.marks, strict=True))
        score -= min(0.5 * different, 1.5)
    return score


class AlignmentMonitor:
    """Take a corpus pair by pair, and know where its sides first stop looking like translations."""

    def __init__(self) -> None:
        self.lines = 0
        self._characters = [1, 1]
        self._before: deque[_Line] = deque(maxlen=_FAR)
        self._sum, self._compared = 0.0, 0
        self._blocks: list[float] = []

    @property
    def ratio(self) -> float:
        """Return the characters of the target for each of the source."""
        return self._characters[1] / self._characters[0]

    def add(self, source: str, target: str) -> None:
        """Take in the next pair; of a large corpus one in four is compared."""
        if self.lines < _EVERY_LINE or self.lines % 4 == 0:
            self._compare(source, target)
        self.lines += 1
        if self.lines % BLOCK == 0:
            self._blocks.append(self._sum / max(self._compared, 1))
            self._sum, self._compared = 0.0, 0

    def _compare(self, source: str, target: str) -> None:
        self._characters[0] += len(source)
        self._characters[1] += len(target)
        this, other = _features(source), _features(target)
        if len(self._before) == _FAR:
            ratio = self.ratio
            self._sum += _likeness(this, other, ratio) - _likeness(this, self._before[0], ratio)
            self._compared += 1
        self._before.append(other)

    def suspected_line(self) -> int | None:
        """Return about where alignment ends, as a line from 0 (within a block or two), or None."""
        blocks = np.array(self._blocks)
        if len(blocks) < 2:
            return None
        aligned = float(np.percentile(blocks, 75))
        spread = float(np.std(np.diff(blocks)) / math.sqrt(2)) + 1e-3
        if aligned < 2 * spread / math.sqrt(len(blocks)):
            return self.break_point()  # most of it does not look aligned
        against = np.cumsum((aligned / 2 - blocks) * aligned / spread**2)
        against = np.concatenate([[0.0], against])
        alarms = np.flatnonzero(against - np.minimum.accumulate(against) > _ALARM)
        if not len(alarms):
            return None
        upto = against[: alarms[0]]
        return int(len(upto) - 1 - np.argmin(upto[::-1])) * BLOCK

    def break_point(self) -> int:
        """Return the line, from 0, that best parts what looks aligned from what looks less so."""
        blocks = np.array(self._blocks)
        if len(blocks) < 2:
            return 0
        sizes = np.arange(1, len(blocks))
        left = np.cumsum(blocks)[:-1] / sizes
        right = (blocks.sum() - np.cumsum(blocks)[:-1]) / (len(blocks) - sizes)
        gains = np.maximum(left - right, 0) ** 2 * sizes * (len(blocks) - sizes)
        return int(1 + np.argmax(gains)) * BLOCK


def find_misalignment(
    read: Read, monitor: AlignmentMonitor, difference: int
) -> Misalignment | None:
    """Return the first misalignment of the files that `monitor` has seen, or None.

    `difference` is by how many lines the target file is longer; `read` gives a range of lines of
    either file, as far as there are any.
    """
    suspected = monitor.suspected_line()
    places = set() if suspected is None else {suspected}
    if difference:
        places |= {0, monitor.break_point(), monitor.lines}
    first = None
    for place in sorted(places):
        start = max(0, place - REGION)
        stop = place + REGION + abs(difference)
        found = locate_misalignment(
            *read(start, stop), monitor.ratio, difference, to_the_end=stop >= monitor.lines
        )
        if found is not None:
            here = Misalignment(found.line + start, found.offset)
            if start == 0 or found.line > 3:
                return here
            first = first or here  # it is shifted from its beginning: look before it
    return first


def locate_misalignment(
    sources: Sequence[str],
    targets: Sequence[str],
    ratio: float,
    difference: int = 0,
    *,
    to_the_end: bool = False,
) -> Misalignment | None:
    """Return the line of a region where its sides diverge, if they do.

    Where the region ends with the files, their difference is sure to be the last offset, and a
    few lines suffice to tell.
    """
    if min(len(sources), len(targets)) == 0:
        return None
    left, right = [_features(text) for text in sources], [_features(text) for text in targets]

    def scores(offset: int) -> npt.NDArray[np.float64]:
        return _diagonal(
            lambda i, j: _likeness(left[i], right[j], ratio), len(left), len(right), offset
        )

    straight = scores(0)
    found = []
    for offset in {*range(-_OFFSETS, _OFFSETS + 1), difference} - {0}:
        place = _best_split(straight, scores(offset))
        if place.gain > (_SURE if to_the_end and offset == difference else _UNSURE):
            found.append((place.gain, place.line, offset))
    if not found:
        return None
    _, line, offset = max(found)
    # Now that it is known what goes with what, words can tell the line more exactly.
    likeness = _lexicon(sources, targets, line, offset)
    straight = straight + _diagonal(likeness, len(left), len(right), 0)
    shifted = scores(offset) + _diagonal(likeness, len(left), len(right), offset)
    return Misalignment(_best_split(straight, shifted).line + 1, offset)


class _Split(NamedTuple):
    line: int
    gain: float


def _diagonal(
    likeness: Callable[[int, int], float], height: int, width: int, offset: int
) -> npt.NDArray[np.float64]:
    """Return the likeness of each source line with the target line `offset` further on."""
    return np.array(
        [likeness(i, i + offset) if 0 <= i + offset < width else -3.0 for i in range(height)]
    )


def _best_split(straight: npt.NDArray[np.float64], shifted: npt.NDArray[np.float64]) -> _Split:
    """Return the line until which "straight", and from which "shifted", explains the most."""
    gains = np.concatenate([np.cumsum((shifted - straight)[::-1])[::-1], [0.0]])
    line = int(np.argmax(gains))
    return _Split(line, float(gains[line]))


def _lexicon(
    sources: Sequence[str], targets: Sequence[str], line: int, offset: int
) -> Callable[[int, int], float]:
    """Return a likeness by the words that go together on either side of the suspected line."""
    left = [set(_WORD.findall(text.lower())) for text in sources]
    right = [set(_WORD.findall(text.lower())) for text in targets]
    together: Counter[tuple[str, str]] = Counter()
    alone: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for i, words in enumerate(left):
        j = i if i < line - 3 else i + offset
        if (i < line - 3 or i > line + 3) and 0 <= j < len(right):
            together.update((a, b) for a in words for b in right[j])
            alone[0].update(words)
            alone[1].update(right[j])

    def likeness(i: int, j: int) -> float:
        if not left[i] or not right[j]:
            return 0.0
        best = [
            max((together[a, b] - 1) / (alone[0][a] + alone[1][b] + 1) for b in right[j])
            for a in left[i]
        ]
        return 20.0 * sum(best) / len(best)

    return likeness
