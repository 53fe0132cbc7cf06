"""Glossaries: how certain words and phrases of the source are to be translated.

The text is translated as it is. Where a term's translation is missing then, the line is searched
again with the translation as something that must be there. A model that knows the word puts it in
its place at little cost; where the cost is greater, the words that the term is aligned with are
replaced instead. docs/decoding.md has the measurements behind this.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dragoman.data.readers.parallel import open_text
from dragoman.errors import DataError
from dragoman.inference.translation_types import Request, TranslateFunction, Translation
from dragoman.text.word_boundaries import contains_phrase, is_word


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """Hold a term, its translation, and the line of the file they stand on."""

    term: str
    translation: str
    line: int

    @property
    def any_case(self) -> bool:
        """Return whether the term is meant in any case: it is if it has no capital."""
        return self.term == self.term.lower()


class Glossary:
    """Hold terms and their translations, which have been checked."""

    def __init__(
        self, entries: Iterable[tuple[str, str, int]], *, name: str = "the glossary"
    ) -> None:
        """Take term, translation and line number of each entry; no term has two translations."""
        known: dict[str, GlossaryEntry] = {}
        for term, translation, line in entries:
            entry = GlossaryEntry(" ".join(term.split()), " ".join(translation.split()), line)
            if not entry.term or not entry.translation:
                side = "translation" if entry.term else "term"
                raise DataError(f"{name}, line {line}: the {side} is empty; fill it in")
            first = known.setdefault(entry.term, entry)
            if first.translation != entry.translation:
                raise DataError(
                    f"{name}, lines {first.line} and {line}: '{entry.term}' is to be "
                    f"'{first.translation}' and '{entry.translation}'; keep one"
                )
        self.entries: tuple[GlossaryEntry, ...] = tuple(known.values())

    @classmethod
    def read(cls, path: Path | str) -> Glossary:
        """Read a file of terms and translations: TSV, or CSV if its name ends so.

        Blank lines and lines that begin with # are left out.
        """
        comma = str(path).lower().endswith(".csv")
        return cls(_read_rows(path, "," if comma else "\t"), name=str(path))


def _read_rows(path: Path | str, separator: str) -> Iterator[tuple[str, str, int]]:
    for number, line in enumerate(open_text(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            columns = next(csv.reader([line])) if separator == "," else line.split(separator)
        except csv.Error:
            columns = []
        if len(columns) != 2:
            name = "a comma" if separator == "," else "a tab"
            raise DataError(
                f"{path}, line {number}: not a term and its translation with {name} between them"
            )
        yield columns[0], columns[1], number


MAX_TERM_COST: Final = 6.0
"""A term may cost so much log-probability before it replaces the aligned words instead."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_CHARACTER = re.compile(r"\S")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class TermMatch:
    """Hold a term that was found in a text."""

    translation: str
    words: range
    """These are the white-space words of the text that it touches."""


class GlossaryTranslator:
    """Use a glossary with one translator."""

    def __init__(
        self,
        glossary: Glossary,
        normalize: Callable[[str], str],
        *,
        source_has_spaces: bool = True,
        target_has_spaces: bool = True,
    ) -> None:
        """Normalise the terms as the translator does; some languages have no spaces."""
        self._normalize = normalize
        self._token = _TOKEN if source_has_spaces else _CHARACTER
        self._source_has_spaces, self._target_has_spaces = source_has_spaces, target_has_spaces
        self._entries: dict[str, list[GlossaryEntry]] = {}
        for entry in glossary.entries:
            clean = replace(
                entry, term=normalize(entry.term), translation=normalize(entry.translation)
            )
            if not clean.term or not clean.translation:
                raise DataError(f"line {entry.line} of the glossary has no text; fill it in")
            match = self._token.search(clean.term)
            assert match is not None
            self._entries.setdefault(match.group().lower(), []).append(clean)
        for several in self._entries.values():  # the longest first, and exact before any case
            several.sort(key=lambda entry: (-len(entry.term), entry.any_case))

    def matches(self, text: str) -> list[TermMatch]:
        """Return the terms in a text, as whole words; of several at one place the longest."""
        line = self._normalize(text)
        starts = [match.start() for match in _WORD.finditer(line)]
        found, end = [], 0
        for token in self._token.finditer(line):
            if token.start() < end:
                continue
            for entry in self._entries.get(token.group().lower(), ()):
                if self._matches_at(entry, line, token.start()):
                    end = token.start() + len(entry.term)
                    first = bisect_right(starts, token.start()) - 1
                    words = range(first, first + entry.term.count(" ") + 1)
                    found.append(TermMatch(entry.translation, words))
                    break
        return found

    def _matches_at(self, entry: GlossaryEntry, line: str, start: int) -> bool:
        end = start + len(entry.term)
        part = line[start:end]
        if part != entry.term and not (entry.any_case and part.lower() == entry.term):
            return False
        after = line[end : end + 1]
        return not (self._source_has_spaces and after and is_word(after) and is_word(part[-1]))

    def translate(self, requests: Sequence[Request], run: TranslateFunction) -> list[Translation]:
        """Return what `run` gives, with the translation of every term in it.

        Alternatives that lack one are left out.
        """
        terms = [self.matches(request.text) for request in requests]
        requests = [
            replace(request, align=True) if matches else request
            for request, matches in zip(requests, terms, strict=True)
        ]
        found = run(requests)
        missing = {
            i: wanted
            for i, (one, matches) in enumerate(zip(found, terms, strict=True))
            if (wanted := self._missing(matches, one.text))
        }
        again = [
            replace(requests[i], must=(*requests[i].must, *(m.translation for m in wanted)))
            for i, wanted in missing.items()
        ]
        for (i, wanted), forced in zip(missing.items(), run(again), strict=True):
            before = found[i]
            loss = before.log_prob - forced.log_prob
            found[i] = forced
            if loss > MAX_TERM_COST * len(wanted):
                replaced = self._replace_aligned(before, wanted)
                if replaced is not None and self._satisfies(replaced.text, requests[i]):
                    found[i] = replaced
        return [
            replace(one, alternatives=tuple(self._with_all_terms(one.alternatives, matches)))
            for one, matches in zip(found, terms, strict=True)
        ]

    def _with_all_terms(
        self, several: Iterable[Translation], matches: Sequence[TermMatch]
    ) -> Iterator[Translation]:
        return (one for one in several if not self._missing(matches, one.text))

    def _satisfies(self, text: str, request: Request) -> bool:
        """Return whether a text is still all that was asked for."""
        return (
            text.startswith(self._normalize(request.prefix))
            and all(self._occurs(phrase, text) for phrase in request.must)
            and not any(self._occurs(phrase, text) for phrase in request.must_not)
        )

    def _occurs(self, phrase: str, text: str) -> bool:
        return contains_phrase(self._normalize(phrase), text, whole_words=self._target_has_spaces)

    def _missing(self, matches: Sequence[TermMatch], text: str) -> list[TermMatch]:
        return [match for match in matches if not self._occurs(match.translation, text)]

    def _replace_aligned(
        self, found: Translation, wanted: Sequence[TermMatch]
    ) -> Translation | None:
        """Return the translation with each term in place of the words it is aligned with.

        Return None where a term is aligned with nothing. The alternatives are left out.
        """
        words = found.text.split(" ")
        taken: dict[int, str] = {}
        aligned: dict[int, list[int]] = {}
        for s, t in found.alignment:
            aligned.setdefault(s, []).append(t)
        for match in wanted:
            targets = {t for word in match.words for t in aligned.get(word, ())}
            run = _longest_run(sorted(t for t in targets if t not in taken))
            if not run:
                return None
            before, after = _punctuation(words[run[0]], words[run[-1]])
            taken |= dict.fromkeys(run, "")
            taken[run[0]] = f"{before}{match.translation}{after}"
        text = " ".join(taken.get(n, word) for n, word in enumerate(words) if taken.get(n) != "")
        if self._missing(wanted, text):
            return None
        return replace(found, text=text, alignment=_move_alignment(found, taken), alternatives=())


def _longest_run(numbers: Sequence[int]) -> list[int]:
    """Return the longest run of consecutive numbers among ascending ones, the first such."""
    best: list[int] = []
    run: list[int] = []
    for number in numbers:
        run = [*run, number] if run and number == run[-1] + 1 else [number]
        if len(run) > len(best):
            best = run
    return best


def _punctuation(first: str, last: str) -> tuple[str, str]:
    """Return the punctuation before a word and after another."""
    before = re.match(r"[^\w\s]*", first)
    after = re.search(r"[^\w\s]*$", last)
    assert before is not None
    assert after is not None
    return ("", "") if before.group() == first else (before.group(), after.group())


def _move_alignment(found: Translation, taken: dict[int, str]) -> tuple[tuple[int, int], ...]:
    """Return the alignment when some words were replaced by a term of one word or several."""
    places: list[list[int]] = []
    count = 0
    for n in range(len(found.text.split(" "))):
        if (text := taken.get(n)) == "":
            places.append(places[-1])
            continue
        size = 1 if text is None else len(text.split(" "))
        places.append(list(range(count, count + size)))
        count += size
    return tuple(sorted({(s, place) for s, t in found.alignment for place in places[t]}))
