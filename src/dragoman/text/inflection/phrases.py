"""A word or phrase is found in a text in all its forms, and written in each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

from dragoman.text.inflection import english, german, korean, romance
from dragoman.text.inflection.forms import Kind, Number, WordForm, WordForms
from dragoman.text.inflection.german_agreement import adjective_stem
from dragoman.text.languages import primary_code
from dragoman.text.word_boundaries import is_word

_RULES: Final[dict[str, tuple[WordForms, frozenset[str]]]] = {
    "en": (english.word_forms, english.FUNCTION_WORDS),
    "de": (german.word_forms, german.FUNCTION_WORDS),
    "fr": (romance.french_forms, romance.FRENCH_FUNCTION_WORDS),
    "es": (romance.spanish_forms, romance.SPANISH_FUNCTION_WORDS),
    "pt": (romance.portuguese_forms, romance.PORTUGUESE_FUNCTION_WORDS),
}


def function_words(language: str) -> frozenset[str]:
    """Return the words of a language that have no content of their own, in small letters."""
    code = primary_code(language)
    if code == "ko":
        return korean.FUNCTION_WORDS
    return _RULES[code][1] if code in _RULES else frozenset()


def is_function_word(word: str, language: str) -> bool:
    """Return whether a word has no content of its own; a Korean one may have particles."""
    if primary_code(language) == "ko":
        nouns = (noun for noun, _ in korean.split_particles(word))
        return any(noun in korean.FUNCTION_WORDS for noun in nouns)
    return word.lower() in function_words(language)


def guess_kind(phrase: str, language: str) -> Kind | None:
    """Return what a word or phrase is, where its language shows that; None elsewhere."""
    code = primary_code(language)
    if code == "de":
        words = phrase.split(" ")
        return "noun" if any(word[:1].isupper() for word in words) else german.guess_kind(words[-1])
    if code == "ko" and re.search(r"[가-힣]다$", phrase):
        return "verb"
    if code == "en" and phrase.startswith("to "):
        return "verb"
    return None


class FoundPhrase(NamedTuple):
    """Say where a phrase was found, and in which form."""

    start: int
    end: int
    inflected: bool
    number: Number | None


class Phrase:
    """Hold a word or phrase of a language with all the forms that its words may have."""

    def __init__(
        self,
        text: str,
        language: str,
        *,
        kind: Kind | None = None,
        any_case: bool = False,
        whole_words: bool = True,
        fixed: bool = False,
    ) -> None:
        """Take a normalised phrase; with `any_case` it is found whatever its letters' case is.

        Where words have no spaces between them it is found anywhere, as it is. So is what is
        `fixed`, as whole words.
        """
        self.text, self._any_case, self._whole_words = text, any_case, whole_words
        self.language = primary_code(language)
        self.kind = kind
        self._fixed = fixed or not whole_words
        self.words = text.split(" ")
        self._korean = self.language == "ko" and not self._fixed
        self.head = self._head()

    def _head(self) -> int:
        """Return the number of the word that has the phrase's number: Minister of State, …"""
        _, functions = _RULES.get(self.language, (None, frozenset[str]()))
        if self.language == "en" and self.kind == "verb":
            return 0
        for place, word in enumerate(self.words):
            if place and word.lower() in functions:
                return place - 1
        if self.language in ("fr", "es", "pt"):
            return 0
        return len(self.words) - 1

    @cached_property
    def forms(self) -> list[list[WordForm]]:
        """Return the forms of each word, the word itself first."""
        if self._fixed or self.language not in _RULES:
            return [[WordForm(word)] for word in self.words]
        inflect, functions = _RULES[self.language]
        found = []
        for place, word in enumerate(self.words):
            ends = next(
                (n for n, w in enumerate(self.words) if n and w.lower() in functions),
                len(self.words),
            )
            if place == self.head:
                found.append(inflect(word, self.kind))
            elif self.language == "de" and place < self.head and adjective_stem(word) != word:
                stem = adjective_stem(word)
                endings = ("e", "en", "er", "es", "em")
                found.append([WordForm(word), *(WordForm(stem + one) for one in endings)])
            elif self.language in ("fr", "es", "pt") and place < ends:
                found.append(inflect(word, self.kind))
            else:
                found.append([WordForm(word)])
        return found

    @property
    def first_tokens(self) -> Iterator[str]:
        """Yield what the first word may begin with, in small letters: a run of letters or a mark.

        In Korean more letters may follow it.
        """
        for form in self.forms[0]:
            match = re.search(r"\w+|[^\w\s]" if self._whole_words else r"\S", form.text)
            if match is not None:
                yield match.group().lower()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = []
        for forms in self.forms:
            texts = {self._fold(form.text) for form in forms}
            ordered = sorted(texts, key=lambda text: (-len(text), text))
            parts.append(f"({'|'.join(map(re.escape, ordered))})")
        return re.compile(" ".join(parts) + ("" if self._korean or not self._whole_words else _END))

    @cached_property
    def _numbers(self) -> dict[str, Number | None]:
        """Return the number that each form of the head has."""
        known: dict[str, set[Number | None]] = {}
        least: dict[str, float] = {}
        for form in sorted(self.forms[self.head], key=lambda form: form.cost):
            text = self._fold(form.text)
            if form.cost <= least.setdefault(text, form.cost) + 1:
                known.setdefault(text, set()).add(form.number)
        return {
            text: next(iter(several)) if len(several) == 1 else None
            for text, several in known.items()
        }

    def _fold(self, text: str) -> str:
        return fold_case(text) if self._any_case else text

    def match(self, line: str, folded: str, start: int) -> FoundPhrase | None:
        """Return the phrase if it begins at `start` of a line, where no word goes on.

        `folded` is the line in small letters.
        """
        text = folded if self._any_case else line
        found = self._pattern.match(text, start)
        if found is None:
            return None
        end, part = found.end(), found.group()
        number = self._numbers[found[self.head + 1]]
        if self._korean:
            return self._match_korean(line, start, end)
        if self._whole_words and end < len(line) and is_word(line[end]) and is_word(part[-1]):
            return None
        inflected = part != self._fold(self.text)
        if inflected and self._is_german_verb and start and not line[start].islower():
            return None  # Reise is no form of reisen
        return FoundPhrase(start, end, inflected, number)

    @property
    def _is_german_verb(self) -> bool:
        return self.language == "de" and self.kind == "verb"

    def _match_korean(self, line: str, start: int, end: int) -> FoundPhrase | None:
        rest = re.match(r"\w*", line[end:])
        particles = rest.group() if rest and is_word(line[end - 1]) else ""
        if not korean.are_particles(self.words[-1], particles):
            return None
        plural = particles.startswith("들")
        return FoundPhrase(
            start, end + len(particles), bool(particles), "plural" if plural else None
        )

    def find_all(self, line: str) -> list[FoundPhrase]:
        """Return everywhere that a line has the phrase, in any form.

        A phrase in small letters may begin with a capital where the line does.
        """
        found: list[FoundPhrase] = []
        folded = fold_case(line) if self._any_case else line
        places = self._pattern.finditer(folded)
        starts = [one.start() for one in places]
        if self.text[:1].islower() and not self._any_case and line[:1].isupper():
            lowered = line[0].lower() + line[1:]
            if (first := self.match(lowered, lowered, 0)) is not None:
                found.append(first)
        for start in starts:
            if self._whole_words and start and is_word(line[start - 1]) and is_word(line[start]):
                continue
            if found and start < found[-1].end:
                continue
            if (one := self.match(line, folded, start)) is not None:
                found.append(one)
        return found


_END: Final = r"(?!(?<=\w)\w)"


def fold_case(text: str) -> str:
    """Return a text in small letters with every letter where it was."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)
