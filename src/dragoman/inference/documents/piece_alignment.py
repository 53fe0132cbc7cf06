"""Each word of a translation is aligned with words of its source, also where there are no spaces.

A piece is a word, or in languages that are written without spaces a character. The alignment of
white-space words is spread over their pieces; without one, pieces are aligned by their places.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from math import sqrt
from typing import Final, NamedTuple

from dragoman.text.scripts import SOUTHEAST_ASIAN, WITHOUT_SPACES, characters_of
from dragoman.text.sentence_splitting import sentence_spans

_SIGNS: Final = (  # of these scripts: vowels and tones on letters
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84\u0f90-\u0fbc"
    r"\u102b-\u103e\u17b4-\u17d3"
)
_LETTER: Final = rf"[^\W{WITHOUT_SPACES}]"
_PIECE: Final = re.compile(
    # Chinese by the character, Japanese kana by the script, all else by the word.
    rf"[{characters_of('Han')}]|[\u3040-\u309f]+|(?:(?![\u3040-\u309f])[{characters_of('Kana')}])+"
    rf"|[{SOUTHEAST_ASIAN}][{_SIGNS}]*"
    rf"|{_LETTER}(?:{_LETTER}|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff]"
    rf"|['’·.\-\u2010\u2011\xad](?={_LETTER}))*"
)
_WORD: Final = re.compile(r"\S+")


class Piece(NamedTuple):
    """Hold where a word, or a character of a language without spaces, is in a text."""

    start: int
    end: int
    word: int
    """It is in this white-space word."""
    exact: bool = False
    """It is a placeholder."""


def split_pieces(text: str, exact: Iterable[tuple[int, int]] = ()) -> list[Piece]:
    """Return the words of a text and the characters of languages without spaces.

    Each of the spans in `exact` is one piece.
    """
    spans = sorted(exact)
    bounds = [0, *(place for span in spans for place in span), len(text)]
    found = [
        (match.start(), match.end(), False)
        for start, end in zip(bounds[::2], bounds[1::2], strict=True)
        for match in _PIECE.finditer(text, start, end)
    ]
    found = sorted([*found, *((start, end, True) for start, end in spans)])
    starts = [match.start() for match in _WORD.finditer(text)]
    return [
        Piece(start, end, bisect_left(starts, start + 1) - 1, exact) for start, end, exact in found
    ]


def find_sentence_ends(text: str) -> list[int]:
    """Return where the sentences of a text end; a line ends one, too."""
    return [
        line.start() + end
        for line in re.finditer(r"[^\n]+", text)
        for _, end in sentence_spans(line[0])
    ]


class PieceAlignment:
    """Say which pieces of a source each piece of its translation comes from."""

    def __init__(
        self,
        source: str,
        target: str,
        pairs: Sequence[tuple[int, int]],
        exact: Sequence[tuple[tuple[int, int], tuple[int, int]]],
    ) -> None:
        self.source_text, self.target_text = source, target
        self.source = split_pieces(source, [one for one, _ in exact])
        self.target = split_pieces(target, [other for _, other in exact])
        self.links: list[dict[int, float]] = [{} for _ in self.target]
        """For each target piece, how much of it comes from which source piece."""
        if not self._link_words(pairs):
            self._link_sentences(range(len(self.source)), range(len(self.target)))
        self._link_equal(exact)
        self.places: list[list[tuple[float, int]]] = [[] for _ in self.source]
        """For each source piece, which target pieces come from it, and how much."""
        for t, links in enumerate(self.links):
            total = sum(links.values())
            for s in links:
                links[s] /= total
                self.places[s].append((links[s], t))

    @cached_property
    def sentence_ends(self) -> tuple[list[int], list[int]]:
        """Return where sentences end in the source and in the target."""
        return find_sentence_ends(self.source_text), find_sentence_ends(self.target_text)

    def _link_words(self, pairs: Sequence[tuple[int, int]]) -> bool:
        """Link the pieces of aligned words; return whether there were any."""
        sources, targets = _by_word(self.source), _by_word(self.target)
        valid = sorted({(s, t) for s, t in pairs if s in sources and t in targets})
        of_target: dict[int, list[int]] = {}
        of_source: dict[int, list[int]] = {}
        for s, t in valid:
            of_target.setdefault(t, []).append(s)
            of_source.setdefault(s, []).append(t)
        for t, words in of_target.items():
            if len(targets[t]) > 1:
                self._link_sentences([p for s in words for p in sources[s]], targets[t])
                continue
            for s in words:
                # A source word of several pieces shares them among the words it became.
                part, count = of_source[s].index(t), len(of_source[s])
                pieces = sources[s]
                first = part * len(pieces) // count
                last = max(first + 1, (part + 1) * len(pieces) // count)
                for p in pieces[first:last]:
                    self.links[targets[t][0]][p] = 1.0
        return bool(valid)

    def _link_sentences(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Link pieces in order, in proportion, sentence by sentence if there are as many."""
        some = _split_at(self.sentence_ends[0], self.source, sources)
        others = _split_at(self.sentence_ends[1], self.target, targets)
        if len(some) != len(others):
            some, others = [list(sources)], [list(targets)]
        for part, other in zip(some, others, strict=True):
            self._link_in_proportion(part, other)

    def _link_in_proportion(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        some, others = _shares(self.source, sources), _shares(self.target, targets)
        first = 0
        for t, (start, end) in zip(targets, others, strict=True):
            while first < len(some) and some[first][1] <= start:
                first += 1
            for s, (begin, stop) in zip(sources[first:], some[first:], strict=True):
                if begin >= end:
                    break
                if (shared := min(end, stop) - max(start, begin)) > 1e-9:
                    self.links[t][s] = shared

    def _link_equal(self, exact: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> None:
        """Link placeholders, and names and numbers that occur once in each text."""
        sources, targets = {p[:2]: i for i, p in enumerate(self.source)}, self.target
        places = {p[:2]: i for i, p in enumerate(targets)}
        equal = [(sources[one], places[other]) for one, other in exact]
        known: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {})
        for text, pieces, table in (
            (self.source_text, self.source, known[0]),
            (self.target_text, targets, known[1]),
        ):
            for i, piece in enumerate(pieces):
                if not piece.exact:
                    table.setdefault(text[piece.start : piece.end], []).append(i)
        equal += [
            (found[0], known[1][text][0])
            for text, found in known[0].items()
            if len(found) == 1 and len(known[1].get(text, ())) == 1 and _is_name(text)
        ]
        alone = dict(equal)
        for t, links in enumerate(self.links):
            for s in [s for s in links if alone.get(s, t) != t]:
                if len(links) > 1:
                    del links[s]
        for s, t in equal:
            self.links[t] = {s: 1.0}

    def find_run(self, s: int) -> range:
        """Return the target pieces in a row that come most from a source piece."""
        best, found = 0.0, range(0)
        weight, start, last = 0.0, 0, -2
        for share, t in self.places[s]:
            if t != last + 1:
                weight, start = 0.0, t
            weight += share * sqrt(self.target[t].end - self.target[t].start)
            last = t
            if weight > best:
                best, found = weight, range(start, t + 1)
        return found


def _by_word(pieces: Sequence[Piece]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        found.setdefault(piece.word, []).append(i)
    return found


def _split_at(
    ends: Sequence[int], pieces: Sequence[Piece], chosen: Sequence[int]
) -> list[list[int]]:
    """Return pieces sentence by sentence."""
    found: dict[int, list[int]] = {}
    for i in chosen:
        found.setdefault(bisect_left(ends, pieces[i].end), []).append(i)
    return list(found.values())


def _shares(pieces: Sequence[Piece], chosen: Sequence[int]) -> list[tuple[float, float]]:
    """Return where each of some pieces begins and ends, if all of them together go from 0 to 1.

    Long words count for less than their letters: one character of Chinese is "I" as well as "love".
    """
    sizes = [sqrt(pieces[i].end - pieces[i].start) for i in chosen]
    ends = list(accumulate(sizes, initial=0.0))
    return [(start / ends[-1], end / ends[-1]) for start, end in pairwise(ends)]


def _is_name(text: str) -> bool:
    """Return whether a word that is in both texts must be the same one: a number, a name."""
    return any(map(str.isdigit, text)) or (len(text) > 1 and any(map(str.isupper, text)))
