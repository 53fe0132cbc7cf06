"""The marks of a unit are put on the words of its translation that are aligned with theirs.

Words are what white space separates, as in `Translation.alignment`; see `piece_alignment` for
languages without spaces.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dragoman.inference.documents.document import PLACEHOLDER, Mark, Unit
from dragoman.inference.documents.piece_alignment import Piece, PieceAlignment
from dragoman.text.sentence_splitting import ends_sentence

_BREAKS: Final = "\n\t"
_CLOSING: Final = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«", "）": "（", "」": "「"}
_OPENING: Final = "([{\"'“„«"
_PLACEHOLDER_WEIGHT: Final = 1000.0  # more than any words
_MAX_WEIGHT: Final = 12.0
_REACH: Final = 100
"""A line break is at most so many words from where it would be in proportion."""
_ENDS_CLAUSE: Final = re.compile(r"[.,;:!?…。，、；：！？]")
Pairs = Sequence[tuple[int, int]]


@dataclass(slots=True, eq=False)
class MarkTree:
    """Hold a mark with the marks in it; the root has no mark and holds for the whole text."""

    mark: Mark
    children: list[MarkTree] = field(default_factory=list)


def nest_marks(unit: Unit) -> MarkTree:
    """Return a unit's marks as a tree, in order; what crosses another is cut.

    An empty mark where another begins or ends is outside of it.
    """
    size = len(unit.text)
    root = MarkTree(Mark(0, size, -1))
    around = [root]
    clamped = [
        replace(mark, start=start, end=min(max(start, mark.end), size))
        for mark in unit.marks
        for start in [min(max(0, mark.start), size)]
    ]
    # Where an empty one begins, those that end there have ended and those that begin there not yet.
    for mark in sorted(clamped, key=lambda one: (one.start, one.end > one.start, -one.end)):
        while len(around) > 1 and around[-1].mark.end <= mark.start:
            around.pop()
        if mark.end > around[-1].mark.end:
            mark = replace(mark, end=around[-1].mark.end)
        node = MarkTree(mark)
        around[-1].children.append(node)
        if mark.end > mark.start:
            around.append(node)
    return root


# --- projection ---


def project_marks(source: Unit, translation: str, alignment: Pairs = ()) -> Unit:
    """Return a translation with the marks of its source on the words that are aligned with theirs.

    `alignment` has pairs (source word, target word); without any, words are aligned by place.
    Each mark occurs once, those that nested nest, and none cross. Line breaks and placeholders with
    marks that the translation has lost are put in again.
    """
    if not source.marks or translation == source.text:
        return Unit(translation, source.marks)
    text, pairs = _restore_placeholders(source, translation, alignment)
    text, pairs = _restore_breaks(source, text, pairs)
    return _Projection(source, text, pairs).project()


def _find_exact(source: Unit, text: str) -> dict[Mark, tuple[int, int]]:
    """Return where the placeholders and line breaks that have marks are in a translation."""
    there = {match[1]: match.span() for match in reversed(list(PLACEHOLDER.finditer(text)))}
    found = {
        mark: there[match[1]]
        for mark in source.marks
        if (match := PLACEHOLDER.fullmatch(source.text, mark.start, mark.end)) and match[1] in there
    }
    breaks = _find_breaks(source)
    places = [i for i, character in enumerate(text) if character in _BREAKS]
    if len(breaks) == len(places):
        for mark, place in zip(breaks, places, strict=True):
            found[mark] = place, place + 1
    return found


def _find_breaks(source: Unit) -> list[Mark]:
    breaks = [
        mark
        for mark in source.marks
        if mark.end == mark.start + 1 and source.text[mark.start] in _BREAKS
    ]
    return sorted(breaks, key=lambda mark: mark.start)


def _restore_placeholders(source: Unit, text: str, pairs: Pairs) -> tuple[str, Pairs]:
    """Return a translation in which each placeholder that has a mark occurs once."""
    there: dict[str, list[tuple[int, int]]] = {}
    for one in PLACEHOLDER.finditer(text):
        there.setdefault(one[1], []).append(one.span())
    edits: list[tuple[int, int, str]] = []
    projection: _Projection | None = None
    bounds = 0, len(text)
    put_at: set[int] = set()
    for mark in source.marks:
        match = PLACEHOLDER.fullmatch(source.text, mark.start, mark.end)
        if match is None:
            continue
        spans = there.get(match[1], [])
        # Equal ones are taken out with the space before.
        edits += [(start - text.startswith(" ", start - 1), end, "") for start, end in spans[1:]]
        if not spans:
            projection = projection or _Projection(source, text, pairs)
            place = projection.find_place(mark, bounds)
            before, after = text[max(0, place - 1) : place], text[place : place + 1]
            if place in put_at:
                before = "}"  # of another one that was lost
            put_at.add(place)
            gaps = (
                " " if before and not before.isspace() and before not in _OPENING else "",
                " " if after.isalnum() or (after and after in _OPENING) else "",
            )
            edits.append((place, place, match.group().join(gaps)))
        elif text[slice(*spans[0])] != match.group():
            edits.append((*spans[0], match.group()))
    return _edit(text, pairs, edits)


def _restore_breaks(source: Unit, text: str, pairs: Pairs) -> tuple[str, Pairs]:
    """Return a translation with the line breaks and tabs of its source, and no others."""
    breaks = _find_breaks(source)
    if not breaks:
        return text, pairs
    found = _find_exact(source, text)
    if breaks[0] in found:
        edits = [(*found[mark], source.text[mark.start]) for mark in breaks]
        return _edit(text, pairs, edits)
    text = re.sub(rf"[{_BREAKS}]", " ", text)
    places = _Projection(source, text, pairs).find_boundaries([mark.start for mark in breaks])
    edits = []
    done = 0
    for mark, place in zip(breaks, places, strict=True):
        start = max(done, len(text[:place].rstrip()))
        edits.append((start, place, source.text[mark.start]))
        done = place
    return _edit(text, pairs, edits)


def _edit(text: str, pairs: Pairs, edits: Sequence[tuple[int, int, str]]) -> tuple[str, Pairs]:
    """Return a text with some parts replaced, and the alignment with its words."""
    if not edits:
        return text, pairs
    parts: list[str] = []
    kept: list[tuple[int, int, int]] = []  # where it was, where it is, how long
    done = size = 0
    ordered = sorted(edits, key=lambda edit: edit[:2])  # those at one place stay in order
    for start, end, new in [*ordered, (len(text), len(text), "")]:
        kept.append((done, size, start - done))
        parts += [text[done:start], new]
        size += start - done + len(new)
        done = max(done, end)
    edited = "".join(parts)
    starts = [match.start() for match in re.finditer(r"\S+", edited)]
    words: dict[int, int] = {}
    for number, match in enumerate(re.finditer(r"\S+", text)):
        was, now, length = kept[bisect_left(kept, (match.start() + 1,)) - 1]
        if match.start() < was + length:
            words[number] = bisect_left(starts, match.start() - was + now + 1) - 1
    return edited, [(s, words[t]) for s, t in pairs if t in words]


class _Projection:
    """Put the marks of a source on a translation that has its placeholders and line breaks."""

    def __init__(self, source: Unit, translation: str, alignment: Pairs) -> None:
        self._source, self._target = source.text, translation
        self._marks = source.marks
        self._exact = _find_exact(source, translation)
        words = [
            ((mark.start, mark.end), span)
            for mark, span in self._exact.items()
            if source.text[mark.start] not in _BREAKS
        ]
        self._aligned = PieceAlignment(source.text, translation, alignment, words)
        self._sources, self._targets = self._aligned.source, self._aligned.target
        self._found: dict[int, tuple[int, int]] = {}
        self._source_end = len(self._source.rstrip())

    def project(self) -> Unit:
        """Return the translation with all marks, in the order of the source."""
        root = nest_marks(Unit(self._source, self._marks))
        self._project_children(root, range(len(self._targets)), (0, len(self._target)))
        marks = [
            replace(mark, start=start, end=end)
            for mark in self._marks
            for start, end in [self._found[mark.key]]
        ]
        return Unit(self._target, tuple(marks))

    def _project_children(self, parent: MarkTree, pieces: range, bounds: tuple[int, int]) -> None:
        """Put marks on some of the target pieces, and between two places of the target text."""
        wide: list[tuple[MarkTree, list[int]]] = []
        narrow: list[MarkTree] = []
        for node in parent.children:
            covered = [] if node.mark in self._exact else self._find_covered(node.mark)
            if covered:
                wide.append((node, covered))
            else:
                narrow.append(node)
        spans = self._choose_spans(parent, wide, pieces)
        extents = self._find_extents(parent, wide, spans, bounds)
        for (node, _), span, extent in zip(wide, spans, extents, strict=True):
            self._found[node.mark.key] = extent
            self._project_children(node, span, extent)
        siblings = sorted(extents)
        for node in narrow:
            self._project_narrow(node, bounds, siblings)

    def _find_covered(self, mark: Mark) -> list[int]:
        """Return the source pieces that a mark is on."""
        if mark.start == mark.end:
            return []
        first = bisect_left(self._sources, mark.start + 1, key=lambda piece: piece.end)
        end = bisect_left(self._sources, mark.end, key=lambda piece: piece.start)
        return list(range(first, end))

    # --- marks on words ---

    def _choose_spans(
        self, parent: MarkTree, nodes: Sequence[tuple[MarkTree, list[int]]], pieces: range
    ) -> list[range]:
        """Return the target pieces of each mark, those with the clearest links first."""
        if len(nodes) == 1 and nodes[0][1] == self._find_covered(parent.mark):
            return [pieces]
        windows = [self._find_window(covered, pieces) for _, covered in nodes]
        shares = [
            [self._find_share(t, covered) for t in window]
            for (_, covered), window in zip(nodes, windows, strict=True)
        ]
        scores = [
            [self._weigh(t, share) for t, share in zip(window, row, strict=True)]
            for window, row in zip(windows, shares, strict=True)
        ]
        ranked = sorted(range(len(nodes)), key=lambda n: -sum(max(0, one) for one in scores[n]))
        owners = {
            t: n
            for n, window in enumerate(windows)
            for t, score in zip(window, scores[n], strict=True)
            if score > 0
        }
        taken: set[int] = set()
        spans: dict[int, range] = {}
        for n in ranked:
            covered, window = nodes[n][1], windows[n]
            middle = (covered[0] + covered[-1] + 1) / 2 / len(self._sources)
            expected = middle * len(self._targets) - 0.5
            others = {t for t in window if owners.get(t, n) != n}  # marks that were apart stay so
            span = _find_best_run(window, scores[n], taken | others, expected)
            if not span and pieces:
                # Nothing comes from it alone: it takes the likeliest piece, a free one if any is.
                linked = dict(zip(window, shares[n], strict=True))
                if window and not taken.issuperset(window):
                    around = window
                else:
                    near = min(max(round(expected), pieces.start), pieces.stop - 1)
                    around = range(max(pieces.start, near - 50), min(pieces.stop, near + 50))
                    around = pieces if taken.issuperset(around) else around
                best = max(
                    around,
                    key=lambda t: (t not in taken, linked.get(t) or 0.0, -abs(t - expected)),
                )
                span = range(best, best + 1)
            spans[n] = span
            taken.update(span)
        return [spans[n] for n in range(len(nodes))]

    def _find_window(self, covered: Sequence[int], pieces: range) -> range:
        """Return the target pieces from the first to the last that come from some source pieces."""
        there = [t for s in covered for _, t in self._aligned.places[s] if t in pieces]
        return range(min(there), max(there) + 1) if there else range(pieces.start, pieces.start)

    def _find_share(self, t: int, covered: Sequence[int]) -> float | None:
        """Return how much of a target piece comes from some source pieces; None if unknown."""
        links = self._aligned.links[t]
        if not links:
            return None
        first, last = covered[0], covered[-1]
        return sum(weight for s, weight in links.items() if first <= s <= last)

    def _weigh(self, t: int, share: float | None) -> float:
        """Return how much is won if a mark is on a target piece, and lost if less than nothing."""
        piece = self._targets[t]
        weight = _PLACEHOLDER_WEIGHT if piece.exact else min(piece.end - piece.start, _MAX_WEIGHT)
        return 0.0 if share is None else weight * (2 * share - 1)

    def _find_extents(
        self,
        parent: MarkTree,
        nodes: Sequence[tuple[MarkTree, list[int]]],
        spans: Sequence[range],
        bounds: tuple[int, int],
    ) -> list[tuple[int, int]]:
        """Return the characters that each mark is on, with punctuation as the source has it."""
        found: dict[int, tuple[int, int]] = {}
        ranked = sorted(range(len(nodes)), key=lambda n: (spans[n].start, -spans[n].stop))
        low, stop = bounds[0], 0
        for place, n in enumerate(ranked):
            node, covered = nodes[n]
            span = spans[n]
            if not span:
                found[n] = bounds[0], bounds[0]
                continue
            following = spans[ranked[place + 1]] if place + 1 < len(ranked) else None
            if span.start < stop or (following and following.start < span.stop):
                found[n] = self._targets[span.start].start, self._targets[span.stop - 1].end
            else:
                high = self._targets[following.start].start if following else bounds[1]
                limits = low, min(high, bounds[1])
                found[n] = self._extend(parent.mark, node.mark, covered, span, limits, bounds)
            stop = max(stop, span.stop)
            low = max(low, found[n][1])
        return [found[n] for n in range(len(nodes))]

    def _extend(
        self,
        parent: Mark,
        mark: Mark,
        covered: Sequence[int],
        span: range,
        limits: tuple[int, int],
        bounds: tuple[int, int],
    ) -> tuple[int, int]:
        """Return the characters of target pieces that a mark is on, between two limits."""
        source, target = self._source, self._target
        first, last = self._sources[covered[0]], self._sources[covered[-1]]
        start, end = self._targets[span.start].start, self._targets[span.stop - 1].end
        if len(covered) == len(span) == 1 and (part := self._find_part(mark, first, start, end)):
            return part
        lead, trail = limits
        lead = max(lead, start - _count_punctuation(target, start, -1))
        trail = min(trail, end + _count_punctuation(target, end))
        if mark.start <= parent.start and lead <= bounds[0]:
            start = lead
        elif source[mark.start : first.start].strip():
            start = min(start, lead + _count_punctuation(source, mark.start, -1))
        if mark.end >= parent.end and trail >= bounds[1]:
            end = trail
        elif inside := source[last.end : mark.end].strip():
            trail = max(end, trail - _count_punctuation(source, mark.end))
            if not _ENDS_CLAUSE.search(inside):  # a sign of percent, a bracket
                trail = end + len(_ENDS_CLAUSE.split(target[end:trail])[0])
            end = trail
        else:
            while end < trail and self._closes_inside(start, end):
                end += 1
        return start, end

    def _closes_inside(self, start: int, end: int) -> bool:
        """Return whether the next character closes a bracket that was opened in a span."""
        opening = _CLOSING.get(self._target[end], "")
        inside = self._target[start:end]
        return bool(opening) and inside.count(opening) > inside.count(self._target[end])

    def _find_part(self, mark: Mark, piece: Piece, start: int, end: int) -> tuple[int, int] | None:
        """Return the part of a target word that a mark on part of a source word is on.

        None means that it is on the whole word.
        """
        word = self._target[start:end]
        marked = self._source[max(mark.start, piece.start) : min(mark.end, piece.end)]
        if mark.start <= piece.start and mark.end >= piece.end:
            rest = word[len(marked) :]
            # A Korean particle after a name or a number is no part of it.
            if word.startswith(marked) and rest and _is_hangul(rest) and not _is_hangul(marked):
                return start, start + len(marked)
            return None
        if self._source[piece.start : piece.end] == word:
            shift = start - piece.start
            return max(mark.start, piece.start) + shift, min(mark.end, piece.end) + shift
        if word.count(marked) == 1:
            place = start + word.index(marked)
            return place, place + len(marked)
        if mark.start <= piece.start and len(marked) == 1 and marked.isalpha():
            return start, start + 1  # a large first letter
        return None

    # --- marks between words ---

    def _project_narrow(
        self, node: MarkTree, bounds: tuple[int, int], siblings: Sequence[tuple[int, int]]
    ) -> None:
        """Put a mark that is on no word at its place, with those in it, and in no sibling."""
        mark = node.mark
        if mark in self._exact:
            start, end = self._exact[mark]
        else:
            start = self.find_place(mark, bounds)
            near = bisect_left(siblings, (start,))
            for low, high in siblings[max(0, near - 1) : near]:
                if low < start < high:
                    start = low if start - low < high - start else high
            text = self._source[mark.start : mark.end]
            there = text.strip() and self._target.startswith(text, start, bounds[1])
            end = start + len(text) if there else start
            near = bisect_left(siblings, (start,))
            if any(
                low < end and start < high for low, high in siblings[max(0, near - 1) : near + 2]
            ):
                end = start
        self._found[mark.key] = start, end
        for child in node.children:
            self._project_narrow(child, (start, end), ())

    def find_place(self, mark: Mark, bounds: tuple[int, int]) -> int:
        """Return where something goes that stood between two words, or at one."""
        source, sources = self._source, self._sources
        following = bisect_left(sources, mark.start, key=lambda piece: piece.start)
        before = following - 1
        if before < 0:
            return bounds[0]
        gap = source[sources[before].end : mark.start]  # nothing, if it stood in a word
        if following == len(sources) and mark.end >= self._source_end:
            return bounds[1]
        place: int | None = None
        if gap and not any(map(str.isspace, gap)) and ends_sentence(gap):
            place = self._find_sentence_end(mark.start)
        if place is None and not any(map(str.isspace, gap)):
            run = self._aligned.find_run(before)
            if run:
                place = self._targets[run[-1]].end
                place += _count_punctuation(self._target, place) if gap else 0
        if place is None and following < len(sources):
            run = self._aligned.find_run(following)
            if run:
                place = self._targets[run[0]].start
                if source[mark.end : sources[following].start].strip():
                    place -= _count_punctuation(self._target, place, -1)
        if place is None:
            (place,) = self.find_boundaries([mark.start])
        return min(max(place, bounds[0]), bounds[1])

    def _find_sentence_end(self, at: int) -> int | None:
        """Return where the sentence ends that ends in the source at a place; None if unknown."""
        ends, others = self._aligned.sentence_ends
        number = bisect_left(ends, at)
        if number == len(ends) or len(ends) != len(others):
            return None
        # What closes after it, such as a quotation mark, does so in the translation, too.
        closing, place = self._source[at : ends[number]], others[number]
        if any(map(str.isalnum, closing)):
            return None  # a point of an abbreviation
        return place - min(len(closing), max(0, _count_punctuation(self._target, place, -1) - 1))

    def find_boundaries(self, places: Sequence[int]) -> list[int]:
        """Return places between target words that divide them best as places divide the source.

        They are in order.
        """
        targets, found = self._targets, []
        last = 0
        for place in places:
            end = bisect_left(self._sources, place, key=lambda piece: piece.start)
            share = end / max(1, len(self._sources)) * len(targets)
            near = max(last + 1, round(share))
            candidates: list[tuple[float, float, int]] = []
            wrong = 0.0
            for t in range(max(last + 1, near - _REACH), min(len(targets), near + _REACH)):
                if self._may_divide(t):
                    candidates.append((round(wrong, 6), abs(t - share), t))
                # A piece is on the wrong side of a boundary if most of it comes from the other.
                wrong -= sum(w if s < end else -w for s, w in self._aligned.links[t].items())
            t = min(candidates)[2] if candidates else len(targets)
            last = t
            if t == len(targets):
                found.append(len(self._target))
                continue
            gap = self._target[targets[t - 1].end : targets[t].start]
            inside = (
                len(gap.rstrip(_OPENING))
                if gap.strip() == gap
                else len(gap) - len(re.split(r"\s", gap)[-1])
            )
            found.append(targets[t - 1].end + inside)
        return found

    def _may_divide(self, t: int) -> bool:
        """Return whether a line may begin with a target piece; words are not divided."""
        piece, before = self._targets[t], self._targets[t - 1]
        size = max(piece.end - piece.start, before.end - before.start)
        return piece.word != before.word or size < 3


def _is_hangul(text: str) -> bool:
    return all("가" <= character <= "힣" for character in text)


def _is_placeholder(text: str, at: int) -> bool:
    """Return whether a placeholder begins or ends with the character at a place."""
    if text[at] == "}":
        return PLACEHOLDER.fullmatch(text, max(0, text.rfind("{", 0, at)), at + 1) is not None
    return text[at] == "{" and PLACEHOLDER.match(text, at) is not None


def _count_punctuation(text: str, place: int, step: int = 1) -> int:
    """Return how many characters from a place on, or before it, are no spaces and of no words."""
    count = 0
    while 0 <= (at := place + count * step - (step < 0)) < len(text):
        if text[at].isspace() or text[at].isalnum() or _is_placeholder(text, at):
            break
        count += 1
    return count


def _find_best_run(
    window: range, scores: Sequence[float], taken: Collection[int], expected: float
) -> range:
    """Return the free pieces in a row with the greatest sum; of equals the nearest."""
    best, found = (0.0, 0.0), range(0)
    total, start = 0.0, window.start
    for t, score in zip(window, scores, strict=True):
        if t in taken:
            total = 0.0
            continue
        if total <= 0:
            total, start = 0.0, t
        total += score
        rank = round(total, 6), -abs((start + t) / 2 - expected)
        if score > 0 and rank[0] > 0 and (rank > best or not found):
            best, found = rank, range(start, t + 1)
    return found
