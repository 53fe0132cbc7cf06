"""Translations of the parts of a text become the translation of the whole."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final, NamedTuple

from dragoman.inference.translation_types import Translation
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.line_breaking import columns
from dragoman.text.sentence_splitting import ends_sentence

_GAP: Final = lazy_pattern(r" {3,}| {2,}(?=\|)|\.{4,}")
"""What is wide enough to bring the next cell into its column."""
_LINE_END: Final = lazy_pattern("[\n\r\x0b\x0c\x85\u2028\u2029]")


class Between(NamedTuple):
    """Hold what stands between two parts that are translated, in the source and in the target."""

    source: str
    target: str


Parts = Sequence[Between | Translation]
"""A text in order."""


def join_translations(
    source: str, parts: Parts, normalize: Callable[[str], str] = lambda text: text
) -> Translation:
    """Return the translation of `source`, whose parts are given in order.

    Alternative n joins the n-th translation of each part, as far as all have one; a part whose
    translation has none counts as often as needed where others have some. `normalize` is what the
    parts' sources went through before their words were counted.
    """
    translated = [part for part in parts if isinstance(part, Translation)]
    if len(parts) == 1 and translated:
        return replace(translated[0], source=source)
    several = [1 + len(part.alternatives) for part in translated if part.alternatives]
    best, *others = (
        _join_rank(source, [_alternative(part, rank) for part in parts], normalize)
        for rank in range(min(several, default=1))
    )
    return replace(best, alternatives=tuple(others))


def get_alternative(best: Translation, rank: int) -> Translation:
    """Return the alternative of a rank, 0 being the best, or the last if there are fewer."""
    ranked = (best, *best.alternatives)
    return ranked[min(rank, len(ranked) - 1)]


def _alternative(part: Between | Translation, rank: int) -> Between | Translation:
    """Return the alternative of a rank; all translate the same source, whatever the model got."""
    if isinstance(part, Between) or not rank or not part.alternatives:
        return part
    return replace(part.alternatives[rank - 1], source=part.source)


def _join_rank(source: str, parts: Parts, normalize: Callable[[str], str]) -> Translation:
    parts = _keep_columns(_keep_spaces(parts, normalize))
    translated = [part for part in parts if isinstance(part, Translation)]
    return Translation(
        source,
        "".join(map(_target, parts)),
        sum(part.score for part in translated),
        tuple(token for part in translated for token in part.tokens),
        _join_alignments(source, parts, normalize),
        log_prob=sum(part.log_prob for part in translated),
        issues=tuple(issue for part in translated for issue in part.issues),
        confidence=_mean_confidence(translated),
        words=tuple(word for part in translated for word in part.words),
    )


def _keep_spaces(parts: Parts, normalize: Callable[[str], str]) -> Parts:
    """Return the parts with the source's spaces beside those that were not translated after all."""
    kept = list(parts)
    for place, part in enumerate(parts):
        if isinstance(part, Between) and part.source and not part.target:
            beside = (*parts[max(0, place - 1) : place], *parts[place + 1 : place + 2])
            if any(
                isinstance(other, Translation) and normalize(other.text) == normalize(other.source)
                for other in beside
            ):
                kept[place] = Between(part.source, part.source)
    return kept


def _keep_columns(parts: Parts) -> Parts:
    """Return the parts with wide gaps as much wider or narrower as the cells before them changed.

    So what stands below each other, in a table or a list with leader dots, still does. A gap after
    a sentence is only spacing.
    """
    kept = list(parts)
    longer = 0
    for place, part in enumerate(parts):
        if isinstance(part, Translation):
            longer += columns(part.text) - columns(part.source)
        elif _LINE_END.search(part.target):
            longer = 0
        elif longer and (gap := _GAP.search(part.target)):
            before = parts[place - 1].source if place else ""
            if not ends_sentence(before, also=":;,"):
                size = max(2 - ("|" in part.target), len(gap[0]) - longer)
                longer -= len(gap[0]) - size
                filled = gap[0][0] * size
                text = part.target[: gap.start()] + filled + part.target[gap.end() :]
                kept[place] = Between(part.source, text)
    return kept


def _mean_confidence(parts: Sequence[Translation]) -> float | None:
    """Return the mean over all words, as far as parts have a confidence."""
    known = [(one.confidence, len(one.words)) for one in parts if one.confidence is not None]
    words = sum(count for _, count in known)
    return round(sum(one * count for one, count in known) / words, 4) if words else None


def _join_alignments(
    source: str, parts: Parts, normalize: Callable[[str], str]
) -> tuple[tuple[int, int], ...]:
    """Return the parts' alignments, by the words of the whole."""
    if not any(part.alignment for part in parts if isinstance(part, Translation)):
        return ()
    sources = _word_numbers([normalize(part.source) for part in parts], normalize(source))
    texts = list(map(_target, parts))
    targets = _word_numbers(texts, "".join(texts))
    pairs = {
        (source_words[s], target_words[t])
        for part, source_words, target_words in zip(parts, sources, targets, strict=True)
        if isinstance(part, Translation)
        for s, t in part.alignment
    }
    return tuple(sorted(pairs))


def _target(part: Between | Translation) -> str:
    return part.target if isinstance(part, Between) else part.text


def _word_numbers(parts: Sequence[str], whole: str) -> list[list[int]]:
    """Return, for each word of each part, the number of the word of the whole it begins in.

    A part may begin or end inside a word: where a word without end was cut, or where the
    language has no spaces.
    """
    ends = list(accumulate(map(len, whole.split())))
    numbers, characters = [], 0
    for part in parts:
        row = []
        for word in part.split():
            row.append(bisect_right(ends, characters))
            characters += len(word)
        numbers.append(row)
    return numbers
