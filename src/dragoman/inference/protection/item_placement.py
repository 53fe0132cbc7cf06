"""Items that were taken out of a text are put in their places in its translation.

With an alignment an item goes beside what its neighbours became. Without one, words that are the
same on both sides and commas say where one is, and what lies between is measured by its length.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dragoman.inference.protection.text_edits import Edit
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.scripts import WITHOUT_SPACES, has_no_spaces
from dragoman.text.word_boundaries import is_word

_OPENING: Final = "([{<\"'“„«‘‚¿¡（「『《"
_CLOSING: Final = ".,;:!?)]}>\"'”“»’…%。，、！？；：）」』》"
_SPACELESS: Final = f"{WITHOUT_SPACES}\u3000-\u303f\uff00-\uff60"  # and their marks
_TOKEN: Final = lazy_pattern(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]+")
_INLINE: Final = (
    "a|abbr|b|bdi|bdo|big|c|cite|code|del|dfn|em|font|g|i|ins|kbd|mark|mrk|q|s|samp|small|span|strike|"
    "strong|sub|sup|tt|u|v|var|x|wbr"
)
_BREAKS: Final = lazy_pattern(rf"</?(?!(?:{_INLINE})\b)[a-z]|.*/>$|\\[nrt]$", re.IGNORECASE)
"""Tags that stand between two words; those within a line do not, nor do those of numbers."""
Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class CutItem:
    """Hold what was taken out of a text, and where."""

    text: str
    at: int
    """It stood before this character of what is left."""
    touches: tuple[bool, bool]
    """These say whether something touched it before and after."""
    kind: str


def cut_span(text: str, start: int, end: int, kind: str) -> tuple[int, int, str, tuple[bool, bool]]:
    """Return what to take out for an item, what to leave there, and whether it was touched.

    Brackets around nothing else go with it, and a space that would be left over.
    """
    if kind != "tag":
        while (
            start
            and end < len(text)
            and text[start - 1] + text[end] in ("()", "[]", '""', "''", "“”", "„“", "«»")
        ):
            start, end = start - 1, end + 1
    before, after = text[start - 1 : start], text[end : end + 1]
    touches = bool(before.strip()), bool(after.strip())
    if kind == "tag":
        apart = _BREAKS.match(text[start:end]) and all(touches)
        return start, end, " " if apart else "", touches
    if before == " " and (not after.strip() or after in _CLOSING):
        return start - 1, end, "", touches
    if not before and after == " ":
        return start, end + 1, "", touches
    joins = before and after and is_word(before) and is_word(after)
    return start, end, " " if joins else "", touches


def place_items(source: str, target: str, items: Sequence[CutItem], alignment: Pairs) -> list[Edit]:
    """Return the edits of a translation that put back what was taken out of its source."""
    if not items:
        return []
    return _Placement(source, target, alignment).place(items)


class _Placement:
    """Place items in one translation."""

    def __init__(self, source: str, target: str, alignment: Pairs) -> None:
        self.source, self.target = source, target
        self.source_spans = [m.span() for m in _TOKEN.finditer(source)]
        self.starts = [start for start, _ in self.source_spans]
        letters = [place for place, character in enumerate(source) if is_word(character)]
        self.first_letter, self.last_letter = (
            (letters[0], letters[-1]) if letters else (len(source), -1)
        )
        self.target_spans = [m.span() for m in _TOKEN.finditer(target)]
        self.aligned: dict[int, list[int]] = {}
        counts = len(source.split()), len(target.split())
        if counts == (len(self.source_spans), len(self.target_spans)):
            for s, t in alignment:
                if s < counts[0] and t < counts[1]:
                    self.aligned.setdefault(s, []).append(t)
        if not self.aligned and self.target_spans:
            self.aligned = _align_by_anchors(self._cores(0), self._cores(1))
        self.known = sorted(self.aligned)

    def _cores(self, side: int) -> list[str]:
        text, spans = (
            (self.source, self.source_spans),
            (self.target, self.target_spans),
        )[side]
        return [text[start:end] for start, end in spans]

    def place(self, items: Sequence[CutItem]) -> list[Edit]:
        """Return an edit for each item, in their order."""
        if not self.target_spans:
            return [Edit(0, 0, " ".join(item.text for item in items))]
        edits: list[Edit] = []
        pairs = self._places_of_pairs(items)
        ends: dict[int, str] = {}  # what was put at a place already
        for number, item in enumerate(items):
            if item.kind == "tag" and number not in pairs and self._is_at_end(item):
                place = 0 if item.at <= self.first_letter else len(self.target)
                space = "" if item.touches[place == 0] else " "
                edit = Edit(place, place, space + item.text if place else item.text + space)
            elif item.kind == "tag":
                token, after = pairs.get(number) or self._beside(item)
                edit = self._put_tag(item, token, after)
            else:
                edit = self._put_word(item, ends)
            edits.append(edit)
            ends[edit.start] = ends.get(edit.start, "") + edit.text
        return edits

    # --- tags ---

    def _places_of_pairs(self, items: Sequence[CutItem]) -> dict[int, tuple[int, bool]]:
        places = {}
        for opening, closing in pair_tags(
            [item.text if item.kind == "tag" else "" for item in items]
        ):
            first = self._next(items[opening])
            last = self._last(items[closing])
            if targets := [t for s in range(first, last + 1) for t in self.aligned.get(s, ())]:
                places[opening], places[closing] = (min(targets), False), (max(targets), True)
        return places

    def _is_at_end(self, item: CutItem) -> bool:
        """Return whether nothing stood before a tag, or after it."""
        return not self.source[: item.at].strip() or not self.source[item.at :].strip()

    def _next(self, item: CutItem) -> int:
        """Return the word of the source that an item stood before or in."""
        if all(item.touches) and not _is_break(item):
            return max(0, bisect_right(self.starts, item.at - 1) - 1) if item.at else 0
        return bisect_left(self.starts, item.at)

    def _last(self, item: CutItem) -> int:
        """Return the word of the source that an item stood after or in."""
        inside = all(item.touches) and not _is_break(item)
        return self._next(item) if inside else self._next(item) - 1

    def _beside(self, item: CutItem) -> tuple[int, bool]:
        """Return a place before what the next word became, or after what the last one did."""
        if item.touches == (True, False) and self._last(item) in self.aligned:
            return max(self.aligned[self._last(item)]), True
        later = bisect_left(self.known, self._next(item))
        if later < len(self.known):
            return min(self.aligned[self.known[later]]), False
        return len(self.target_spans) - 1, True

    def _put_tag(self, item: CutItem, token: int, after: bool) -> Edit:
        start, end = self.target_spans[token]
        core = _core(self.target, start, end)
        if (
            _is_break(item)
            and all(item.touches)
            and not after
            and self.target[:start].endswith(" ")
        ):
            return Edit(start - 1, start, item.text)  # the space that was left for it
        # Marks that stood between a tag and its word still do, and others do not come between.
        if after:
            inside = item.touches[0] and is_word(self.source[item.at - 1 : item.at])
            place = core[1] if inside or item.touches[1] else end
            return Edit(place, place, ("" if item.touches[0] else " ") + item.text)
        inside = item.touches[1] and is_word(self.source[item.at : item.at + 1])
        place = core[0] if inside or item.touches[0] else start
        return Edit(place, place, item.text + ("" if item.touches[1] else " "))

    # --- what stands for a word, and what stands apart ---

    def _put_word(self, item: CutItem, ends: dict[int, str]) -> Edit:
        place = self._word_place(item)
        before = ends.get(place, "")[-1:] or (self.target[place - 1] if place else "")
        after = self.target[place : place + 1]
        text = item.text
        between = [c for c in (before, after) if c.strip()]
        spaced = not (between and all(map(has_no_spaces, between)))
        # A mark still touches what it touched; a word does not grow together with another.
        apart = item.kind != "mark"
        left = (
            before.strip()
            and before not in _OPENING
            and (not item.touches[0] or (apart and is_word(before) and not self._in_word(item)))
        )
        right = (
            after.strip()
            and after not in _CLOSING
            and (not item.touches[1] or (apart and is_word(after)))
        )
        if left and spaced:
            text = f" {text}"
        if right and spaced:
            text += " "
        return Edit(place, place, text)

    def _in_word(self, item: CutItem) -> bool:
        """Return whether a letter touched it before."""
        return item.touches[0] and is_word(self.source[item.at - 1 : item.at] or " ")

    def _word_place(self, item: CutItem) -> int:
        after = self.source[item.at : item.at + 1]
        if item.at > self.last_letter:
            if not self.source[item.at :].strip():
                return len(self.target)
            start, end = self.target_spans[-1]
            return _core(self.target, start, end)[1]
        if item.at <= self.first_letter:
            return 0
        previous = bisect_left(self.starts, item.at) - 1
        behind = item.kind == "emoji" or (after.strip() and after in _CLOSING)
        if behind or previous + 1 >= len(self.starts) or self._in_word(item):
            earlier = bisect_right(self.known, max(0, previous)) - 1
            token = max(self.aligned[self.known[max(0, earlier)]])
            start, end = self.target_spans[token]
            return _core(self.target, start, end)[1] if after.strip() else end
        later = min(bisect_left(self.known, previous + 1), len(self.known) - 1)
        return self.target_spans[min(self.aligned[self.known[later]])][0]


def _is_break(item: CutItem) -> bool:
    """Return whether a tag divides what stands before and after it, as <br> does."""
    return item.kind == "tag" and _BREAKS.match(item.text) is not None


def pair_tags(tags: Sequence[str]) -> list[tuple[int, int]]:
    """Return the numbers of tags that open and of those that close them."""
    found, still_open = [], []
    for n, tag in enumerate(tags):
        if match := re.match(r"<(\w[\w:.-]*)[^<>]*(?<!/)>|!?(\[)$", tag):
            still_open.append((match[1] or "]", n))
        elif match := re.match(r"</(\w[\w:.-]*)|(\])\(", tag):
            for place in range(len(still_open) - 1, -1, -1):
                if still_open[place][0] == (match[1] or match[2]):
                    found.append((still_open[place][1], n))
                    del still_open[place:]
                    break
    return found


def _core(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where a word is without the marks around it; one of nothing else is left whole."""
    first, last = start, end
    while first < last and not is_word(text[first]):
        first += 1
    if first == last:
        return start, start if text[start] in _CLOSING else end
    while not is_word(text[last - 1]):
        last -= 1
    return first, last


def _align_by_anchors(source: Sequence[str], target: Sequence[str]) -> dict[int, list[int]]:
    """Return for each source word a target word: equal ones, and others by their place between."""
    anchors = _anchors(source, target)
    points = [(-1, -1), *anchors, (len(source), len(target))]
    aligned: dict[int, list[int]] = {}
    for (s, t), (next_s, next_t) in pairwise(points):
        if 0 <= s < len(source):
            aligned[s] = [t]
        share = (next_t - t) / (next_s - s)
        for between in range(s + 1, next_s):
            place = t + (between - s) * share
            aligned[between] = [min(len(target) - 1, max(0, round(place)))]
    return aligned


def _anchors(source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of words that certainly belong together, in ascending order on both sides."""
    pairs: dict[int, int] = {}
    for key in (_name_key, _comma_key):
        keys = [key(word) for word in source], [key(word) for word in target]
        places = _places_by_key(keys[0]), _places_by_key(keys[1])
        for word, here in places[0].items():
            there = places[1].get(word, [])
            if len(here) == len(there):
                for s, t in zip(here, there, strict=True):
                    pairs.setdefault(s, t)
    return _longest_rising(sorted(pairs.items()))


def _places_by_key(keys: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        if key:
            places.setdefault(key, []).append(place)
    return places


def _longest_rising(pairs: Pairs) -> list[tuple[int, int]]:
    """Return the longest part of the pairs, in order, whose second numbers rise."""
    ends: list[int] = []  # the least second number that a rising part of each length ends with
    numbers: list[int] = []  # which pair that is
    before: list[int] = []  # for each pair, the one before it
    for number, (_, t) in enumerate(pairs):
        length = bisect_left(ends, t)
        before.append(numbers[length - 1] if length else -1)
        ends[length : length + 1], numbers[length : length + 1] = [t], [number]
    found = []
    number = numbers[-1] if numbers else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _name_key(word: str) -> str:
    """Return a word without its marks if it may be the same in two languages."""
    core = word.strip(_OPENING + _CLOSING + "-–—")
    telling = any(map(str.isdigit, core)) or (len(core) > 2 and core[:1].isupper())
    return core if telling else ""


def _comma_key(word: str) -> str:
    return word[-1] if word[-1] in ",;:—–" else ""
