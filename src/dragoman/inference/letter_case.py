"""Capitals, single words and titles look unlike a sentence, and are translated like one.

A text in capitals is unknown to most models, which have seen its words in ordinary case. It is
translated so, and put back into capitals. A title or a single word is often given the full stop
of a sentence, which is taken off again; a sentence keeps the capital that it begins with and the
mark that it ends with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from dragoman.inference.translation_types import Request, TranslateFunction, Translation
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.scripts import has_no_spaces

MIN_CAPITALS: Final = 4
"""A text with fewer capitals may be an abbreviation, and is left as it is."""
LONGEST_TITLE: Final = 6
"""A text of at most so many words that ends without a mark is taken for a title."""

CountPieces = Callable[[Sequence[str]], list[int]]
_CLOSING: Final = "\"'”’“»)]"
_SENTENCE_ENDS: Final = (".", "!", "?", "。", "！", "？")
_UNFINISHED: Final = ":;,"
"""A sentence whose source ends in a point, "!" or "?" does not end in one of these."""
_WORD: Final = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def translate_cased(
    requests: Sequence[Request], run: TranslateFunction, count_pieces: CountPieces
) -> list[Translation]:
    """Return what `run` gives for the texts in ordinary case, in the case that they had.

    What a translation must begin with or contain is written as it was given, so that such requests
    are left alone.
    """
    shouted = [is_in_capitals(one.text) and not (one.prefix or one.must) for one in requests]
    asked = [
        replace(one, text=to_ordinary_case(one.text, count_pieces)) if loud else one
        for one, loud in zip(requests, shouted, strict=True)
    ]
    results = []
    for one, loud, found in zip(requests, shouted, run(asked), strict=True):
        result = found
        if loud:
            kept = frozenset(word for word in _WORD.findall(one.text) if not word.isupper())
            result = _change_text(result, partial(to_capitals, kept=kept))
        if is_title(one.text) and not one.prefix:
            result = _change_text(result, _drop_full_stop)
        else:
            result = _change_text(result, partial(_begin_and_end_like, one.text))
        results.append(replace(result, source=one.text))
    return results


def is_in_capitals(text: str) -> bool:
    """Return whether a text is written in capitals, but for a few words at most.

    Where a word has letters without case, as Korean's are, capitals are those of abbreviations.
    """
    words = _WORD.findall(text)
    if any(_has_no_case(letter) for word in words for letter in word if letter.isalpha()):
        return False
    loud = [word for word in words if word.isupper() and len(word) > 1]
    others = [word for word in words if not word.isupper() and word.lower() != word.upper()]
    if any(map(str.islower, others)):
        return False
    return sum(map(len, loud)) >= MIN_CAPITALS and 4 * len(others) <= len(loud)


def to_ordinary_case(text: str, count_pieces: CountPieces) -> str:
    """Return a text in capitals as it is written otherwise.

    Each word is written in the case in which the model has it in the fewest pieces, so that names,
    German nouns and abbreviations keep their capitals: NATO, Berlin, table.
    """
    words = list(dict.fromkeys(word for word in _WORD.findall(text) if word.isupper()))
    forms = [(word.lower(), word[:1] + word[1:].lower(), word) for word in words]
    counts = iter(count_pieces([form for several in forms for form in several]))
    best = {}
    for word, several in zip(words, forms, strict=True):
        pieces = [next(counts) for _ in several]
        best[word] = several[pieces.index(min(pieces))]
    ordinary = _WORD.sub(lambda match: best.get(match.group(), match.group()), text)
    first = _WORD.search(ordinary)
    if first is None or first.group() not in best.values():
        return ordinary
    start = first.start()
    return ordinary[:start] + ordinary[start].upper() + ordinary[start + 1 :]


def to_capitals(text: str, kept: frozenset[str]) -> str:
    """Return the text in capitals, but for the words that are `kept`."""
    return _WORD.sub(lambda m: m.group() if m.group() in kept else m.group().upper(), text)


def is_title(text: str) -> bool:
    """Return whether a text is a word or a title: short, and without a mark at its end."""
    return text[-1:].isalnum() and len(text.split()) <= LONGEST_TITLE


def _drop_full_stop(text: str) -> str:
    """Return the translation of a title without the full stop that only a sentence has."""
    if text.endswith(("。", ".")) and not text.endswith("..") and text[:-1].strip():
        return text[:-1].rstrip()
    return text


def _begin_and_end_like(source: str, text: str) -> str:
    """Return a sentence with the capital and the final mark of its source, if it has neither.

    The next sentence would be taken for a part of it otherwise. A source without capitals stands
    for one with them if it ends like a sentence. A first word with a capital within stays as it is.
    """
    first = text.split(" ", 1)[0]
    wants_capital = source[:1].isupper() or (
        _has_no_case(source[:1]) and source.rstrip(_CLOSING).endswith(_SENTENCE_ENDS)
    )
    if wants_capital and first.islower() and first.isalpha():
        text = text[:1].upper() + text[1:]
    said, core = source.rstrip(_CLOSING), text.rstrip(_CLOSING)
    mark, last = said[-1:], core[-1:]
    ends = mark in ("!", "?") or (mark == "." and " " in source)  # not one abbreviation
    if not ends or has_no_spaces(last):
        return text
    if last in _UNFINISHED:  # as before another sentence
        return core.rstrip(_UNFINISHED + " ") + mark + text[len(core) :]
    if not last.isalnum():
        return text
    return core + mark + text[len(core) :] if said != source else text + mark


def _has_no_case(letter: str) -> bool:
    """Return whether this is a letter of a script without capitals, such as Korean."""
    return letter.isalpha() and letter.lower() == letter.upper()


def _change_text(found: Translation, change: Callable[[str], str]) -> Translation:
    """Return a translation and its alternatives with changed texts of as many words."""
    others = tuple(replace(other, text=change(other.text)) for other in found.alternatives)
    return replace(found, text=change(found.text), alternatives=others)
