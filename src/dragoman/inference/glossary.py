"""A glossary says how certain words and phrases of the source are to be translated.

A term is found in any of its forms: bird in birds. The text is translated as it is. Where a term's
translation is missing then, in all of its forms, the words that the term is aligned with are
replaced by it; of the forms that may be right there, with the articles and particles that go with
them, the one that the model finds most probable is taken. Where nothing can be replaced without
losing another word, the line is searched again with the translation as something that must be
there. docs/decoding.md has the measurements behind this.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from dragoman.data.readers.parallel import open_text
from dragoman.errors import DataError
from dragoman.inference.term_placement import (
    COMPOUNDING,
    RARE_CASE,
    Candidate,
    Place,
    agrees_with,
    aligned_places,
    candidates,
    content_words,
    core_of,
    has_gender_of,
    other_mentions,
    stand_ins,
    unaligned_words,
)
from dragoman.inference.translation_types import (
    Request,
    ScoredTranslation,
    TranslateFunction,
    Translation,
)
from dragoman.text.inflection import (
    Number,
    Phrase,
    function_words,
    guess_kind,
    is_function_word,
)
from dragoman.text.inflection.phrases import fold_case
from dragoman.text.languages import primary_code
from dragoman.text.word_boundaries import contains_phrase


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


ScoreFunction = Callable[[Sequence[str], Sequence[str]], list[ScoredTranslation]]
"""Such a function says how probable given translations of some texts are."""

AGREEING_WEIGHT: Final = 0.3
"""A word that only agrees with a term counts so much of its log-probability.

The model expects the article of the word that it would have said itself."""
MOST_FORM_COST: Final = 3.0
"""The form of a term costs so many nats at most more than the likeliest.

What a model has never seen is spelled out in pieces, and a letter more may cost it ten."""
LONG_WORD: Final = 12
"""A longer word that says two words of the source is taken for a compound."""
LOST_WORD: Final = 5.0
"""A word that a second search does not say any more costs so many nats."""
MOST_SEARCHED_FORMS: Final = 3
"""A term is searched for in so many forms at most."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_CHARACTER = re.compile(r"\S")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class TermMatch:
    """Hold a term that was found in a text."""

    translation: str
    words: range
    """These are the white-space words of the text that it touches."""
    number: Number | None = field(default=None, compare=False)
    """The form in which it was found has this number, where that is known."""
    partial: bool = field(default=False, compare=False)
    """A word that it touches has other content: cat in cat-like."""


@dataclass(frozen=True, slots=True)
class _Term:
    """Hold an entry with its term and its translation in all their forms."""

    term: Phrase
    translation: Phrase
    any_case: bool


class GlossaryTranslator:
    """Use a glossary with one translator."""

    def __init__(
        self,
        glossary: Glossary,
        normalize: Callable[[str], str],
        *,
        source_language: str = "",
        target_language: str = "",
        source_has_spaces: bool = True,
        target_has_spaces: bool = True,
        score: ScoreFunction | None = None,
    ) -> None:
        """Normalise the terms as the translator does.

        Words of languages without a code have one form; some languages have no spaces. Without
        `score` forms are chosen by rules alone.
        """
        self._normalize, self._score = normalize, score
        self._token = _TOKEN if source_has_spaces else _CHARACTER
        self._source_language, self._target_language = source_language, target_language
        self._source_has_spaces, self._target_has_spaces = source_has_spaces, target_has_spaces
        self._terms: dict[str, list[_Term]] = {}
        self._translations: dict[str, Phrase] = {}
        for entry in glossary.entries:
            clean = replace(
                entry, term=normalize(entry.term), translation=normalize(entry.translation)
            )
            if not clean.term or not clean.translation:
                raise DataError(f"line {entry.line} of the glossary has no text; fill it in")
            self._add(clean)
        self._longest_token = max(map(len, self._terms), default=0)

    def _add(self, entry: GlossaryEntry) -> None:
        kinds = [
            guess_kind(entry.translation, self._target_language),
            guess_kind(entry.term, self._source_language),
        ]
        kind = next((one for one in kinds if one is not None), None)
        term = Phrase(
            entry.term,
            self._source_language,
            kind=kind,
            any_case=entry.any_case,
            whole_words=self._source_has_spaces,
            fixed=entry.term == entry.translation,  # a name
        )
        translation = self._translations.setdefault(
            entry.translation,
            Phrase(
                entry.translation,
                self._target_language,
                kind=kind,
                whole_words=self._target_has_spaces,
                fixed=entry.term == entry.translation and self._target_language != "ko",
            ),
        )
        for token in dict.fromkeys(term.first_tokens):
            self._terms.setdefault(token, []).append(_Term(term, translation, entry.any_case))

    def matches(self, text: str) -> list[TermMatch]:
        """Return the terms in a text, as whole words in any of their forms.

        Of several at one place the longest is returned, and what is written just so before another
        form, or another case.
        """
        line = self._normalize(text)
        folded = fold_case(line)
        spans = [match.span() for match in _WORD.finditer(line)]
        starts = [start for start, _ in spans]
        functions = function_words(self._source_language)
        found, end = [], 0
        for token in self._token.finditer(line):
            if token.start() < end:
                continue
            several = [
                (one.end - one.start, not one.inflected, not term.any_case, one, term)
                for term in self._terms_at(token.group())
                if (one := term.term.match(line, folded, token.start())) is not None
            ]
            if not several:
                continue
            *_, one, term = max(several, key=lambda each: each[:3])
            end = one.end
            first = bisect_right(starts, one.start) - 1
            last = bisect_right(starts, one.end - 1) - 1
            around = line[spans[first][0] : one.start] + " " + line[one.end : spans[last][1]]
            others = [word.lower() for word in re.findall(r"\w+", around)]
            partial = any(word not in functions for word in others)
            found.append(
                TermMatch(term.translation.text, range(first, last + 1), one.number, partial)
            )
        return found

    def _terms_at(self, token: str) -> Iterator[_Term]:
        """Yield the terms that may begin with a token; in Korean, with the beginning of one."""
        lower = token.lower()
        yield from self._terms.get(lower, ())
        if primary_code(self._source_language) == "ko":
            for size in range(1, min(len(lower), self._longest_token + 1)):
                yield from self._terms.get(lower[:size], ())

    # --- translation ---

    def translate(self, requests: Sequence[Request], run: TranslateFunction) -> list[Translation]:
        """Return what `run` gives, with the translation of every term in it, in a fitting form.

        Alternatives that lack one are left out.
        """
        terms = [self.matches(request.text) for request in requests]
        requests = [
            replace(request, align=True) if matches else request
            for request, matches in zip(requests, terms, strict=True)
        ]
        found = run(requests)
        first = list(found)
        self._place(requests, terms, found, run)
        for i, one in self._search(requests, terms, found, first, run).items():
            found[i] = one
        self._place(requests, terms, found, run)  # the terms that a second search does not say
        for i, one in self._search(requests, terms, found, found, run).items():
            found[i] = one
        return [
            replace(one, alternatives=tuple(self._with_all_terms(one.alternatives, matches)))
            for one, matches in zip(found, terms, strict=True)
        ]

    def _place(
        self,
        requests: Sequence[Request],
        terms: Sequence[Sequence[TermMatch]],
        found: list[Translation],
        run: TranslateFunction,
    ) -> None:
        """Put missing terms in place of the words they are aligned with, one a line at a time.

        All lines are searched and scored at once each time.
        """
        tried: list[set[TermMatch]] = [set() for _ in found]
        mentions: dict[int, tuple[TermMatch, list[Place]]] = {}
        while True:
            runs: dict[int, list[Place]] = {}
            placing: dict[int, TermMatch] = {}
            for i, matches in enumerate(terms):
                if i in mentions:
                    placing[i], runs[i] = mentions.pop(i)
                    continue
                source_words = self._normalize(requests[i].text).split(" ")
                for match in self._unsaid(matches, found[i], source_words):
                    if match not in tried[i]:
                        tried[i].add(match)
                        if places := self._replaceable(requests[i], found[i], match, matches):
                            runs[i], placing[i] = places, match
                            break
            if not runs:
                return
            options = {
                i: [
                    (found[i], place, one)
                    for place in places
                    for one in self._candidates(requests[i], found[i], place, placing[i])
                ]
                for i, places in runs.items()
            }
            best = self._choose(options, requests)
            taken = {i: place for i, (_, place) in best.items()}
            for i, one in self._translate_stand_ins(requests, placing, taken, found, run).items():
                # There everything agrees with the term's gender, and only the noun changes.
                agreeing = self._candidates(requests[i], *one, placing[i])
                several = [(*one, each) for each in agreeing if len(each.edits) == 1]
                best |= self._choose({i: several}, requests)
            for i, (translation, _) in best.items():
                word = found[i].text.split(" ")[taken[i].words[-1]]
                found[i] = translation
                source_words = self._normalize(requests[i].text).split(" ")
                again = other_mentions(
                    translation,
                    word,
                    placing[i].words,
                    source_words,
                    self._source_language,
                    self._target_language,
                )
                if again:
                    mentions[i] = placing[i], again[:1]

    def _replaceable(
        self,
        request: Request,
        found: Translation,
        match: TermMatch,
        matches: Sequence[TermMatch],
    ) -> list[Place]:
        """Return the places where a term takes nothing else away."""
        source_words = self._normalize(request.text).split(" ")
        phrase = self._translations[match.translation]
        words = found.text.split(" ")
        others = [self._translations[one.translation] for one in matches]
        counts = [len(other.find_all(found.text)) for other in others]
        places = aligned_places(found, source_words, match.words, phrase, self._source_language)
        if match.partial:  # one of the words that say all of it
            several = [place.words for place in places if len(place.words) > 1]
            places = [Place(range(t, t + 1)) for run in several for t in run]
        free = []
        for place in places:
            first, last = place.words[0], place.words[-1]
            without = " ".join([*words[:first], *words[last + 1 :]])
            if counts == [len(other.find_all(without)) for other in others]:  # no term stands there
                free.append(place)
        return free

    def _candidates(
        self, request: Request, found: Translation, place: Place, match: TermMatch
    ) -> list[Candidate]:
        """Return the ways to place a term that give all else that was asked for."""
        phrase = self._translations[match.translation]
        words = found.text.split(" ")
        return [
            one
            for one in candidates(words, place, phrase, match.number)
            if self._satisfies(" ".join(one.words(words)), request)
            and (place.kept or phrase.find_all(" ".join(one.words(words))))
        ]

    def _translate_stand_ins(
        self,
        requests: Sequence[Request],
        placing: dict[int, TermMatch],
        taken: dict[int, Place],
        found: Sequence[Translation],
        run: TranslateFunction,
    ) -> dict[int, tuple[Translation, Place]]:
        """Return translations in which everything agrees with the gender of a term, by line.

        The term is replaced in the source by a noun whose translation has that gender. Each comes
        with the words that are to be replaced; it says all that the first translation says.
        """
        asked = []
        for i, place in taken.items():
            match = placing[i]
            phrase = self._translations[match.translation]
            word = found[i].text.split(" ")[place.words[-1]]
            nouns = stand_ins(word, phrase, self._source_language)
            for noun in nouns if match.number == "singular" and not place.kept else ():
                text = _replace_words(self._normalize(requests[i].text), match.words, noun)
                asked.append((i, replace(requests[i], text=text)))
        results: dict[int, tuple[Translation, Place]] = {}
        translated = run([request for _, request in asked]) if asked else []
        for (i, request), one in zip(asked, translated, strict=True):
            match = placing[i]
            phrase = self._translations[match.translation]
            noun_at = range(match.words[0], match.words[0] + 1)
            source_words = request.text.split(" ")
            places = aligned_places(one, source_words, noun_at, phrase, self._source_language)
            words, before = one.text.split(" "), found[i].text.split(" ")
            there = [
                each
                for each in places
                if has_gender_of(words[each.words[-1]], phrase)
                and agrees_with(before, taken[i].words, words, each.words)
            ]
            if i in results or len(there) != 1:
                continue
            alignment = {
                (s, t)
                for new, t in one.alignment
                for s in (match.words if new in noun_at else (new,))
            }
            if len(match.words) > 1:
                more = len(match.words) - 1
                alignment = {
                    (s + more if s > match.words[-1] - more and s not in match.words else s, t)
                    for s, t in alignment
                }
            base = replace(
                found[i], text=one.text, alignment=tuple(sorted(alignment)), alternatives=()
            )
            results[i] = base, there[0]
        return results

    def _choose(
        self,
        options: dict[int, list[tuple[Translation, Place, Candidate]]],
        requests: Sequence[Request],
    ) -> dict[int, tuple[Translation, Place]]:
        """Return for each line the translation that the model finds most probable.

        An option is a translation, where a term comes in it, and how. The place comes with what
        is chosen.
        """
        if self._score is None:
            firsts = {i: several[0] for i, several in options.items() if several}
            return {i: (one.apply(base), place) for i, (base, place, one) in firsts.items()}
        keys = [(i, place, one) for i, several in options.items() for _, place, one in several]
        texts = [one.apply(base) for several in options.values() for base, _, one in several]
        scored = self._score([requests[i].text for i, *_ in keys], [one.text for one in texts])
        said = [
            _log_prob_of(score, one.placed) for (*_, one), score in zip(keys, scored, strict=True)
        ]
        highest: dict[int, float] = {}
        for (i, *_), log_prob in zip(keys, said, strict=True):
            highest[i] = max(log_prob, highest.get(i, log_prob))
        best: dict[int, tuple[float, Translation, Place]] = {}
        for (i, place, one), text, score, log_prob in zip(keys, texts, scored, said, strict=True):
            agreeing = _log_prob_of(score, one.agreeing)
            value = score.log_prob - log_prob - (1 - AGREEING_WEIGHT) * agreeing - one.cost
            value += max(log_prob - highest[i], -MOST_FORM_COST)
            if i not in best or value > best[i][0]:
                given = replace(
                    text,
                    tokens=score.tokens[:-1],
                    log_probs=score.log_probs,
                    log_prob=score.log_prob,
                    score=score.score,
                )
                best[i] = value, given, place
        return {i: (text, place) for i, (_, text, place) in best.items()}

    def _search(
        self,
        requests: Sequence[Request],
        terms: Sequence[Sequence[TermMatch]],
        found: Sequence[Translation],
        first: Sequence[Translation],
        run: TranslateFunction,
    ) -> dict[int, Translation]:
        """Search again where a term is still missing, for its likeliest forms.

        `first` are the translations that the search starts from; what was placed in `found` since
        then need not be said, for it can be placed again.
        """
        asked: list[tuple[int, Request]] = []
        for i, matches in enumerate(terms):
            missing = self._missing(matches, found[i])
            if not missing:
                continue
            said = [
                first[i].text[one.start : one.end]
                for match in matches
                if match not in missing
                for one in self._translations[match.translation].find_all(first[i].text)[:1]
            ]
            for forms in self._searched_forms(missing):
                must = tuple(dict.fromkeys((*requests[i].must, *said, *forms)))
                asked.append((i, replace(requests[i], must=must)))
        if not asked:
            return {}
        given = run([request for _, request in asked])
        several = [(i, one, 0) for (i, _), one in zip(asked, given, strict=True)]
        several += [(i, one, 1) for i, one in self._guess_places(requests, terms, found)]
        best: dict[int, tuple[float, Translation]] = {}
        for i, one, replaced in several:
            before, now = (
                content_words(each.text.split(" "), self._target_language)
                for each in (found[i] if replaced else first[i], one)
            )
            lost = (before - now).total() - replaced
            value = one.log_prob - LOST_WORD * lost
            if i not in best or value > best[i][0]:
                best[i] = value, one
        return {i: one for i, (_, one) in best.items()}

    def _guess_places(
        self,
        requests: Sequence[Request],
        terms: Sequence[Sequence[TermMatch]],
        found: Sequence[Translation],
    ) -> list[tuple[int, Translation]]:
        """Return lines with their missing term where it could be, though it is aligned nowhere.

        Any word that is aligned with nothing that has content may say it.
        """
        options: dict[int, list[tuple[Translation, Place, Candidate]]] = {}
        for i, matches in enumerate(terms):
            missing = self._missing(matches, found[i])
            if self._score is None or len(missing) != 1 or missing[0].partial:
                continue
            source_words = self._normalize(requests[i].text).split(" ")
            phrase = self._translations[missing[0].translation]
            options[i] = [
                (found[i], place, one)
                for place in unaligned_words(found[i], source_words, phrase, self._source_language)
                for one in self._candidates(requests[i], found[i], place, missing[0])
            ]
        return [(i, one) for i, (one, _) in self._choose(options, requests).items()]

    def _searched_forms(self, missing: Sequence[TermMatch]) -> list[tuple[str, ...]]:
        """Return the forms of all missing terms to search for, the first as the glossary has them.

        All take their second form together, and so on; there are few such lines.
        """
        each = []
        for match in missing:
            phrase = self._translations[match.translation]
            placed = candidates(["x"], Place(range(1)), phrase, match.number)
            likely = [one for one in placed if one.cost < RARE_CASE] or placed[:1]
            each.append([" ".join(one.words(["x"])) for one in likely][:MOST_SEARCHED_FORMS])
        count = max(map(len, each))
        return [tuple(forms[min(n, len(forms) - 1)] for forms in each) for n in range(count)]

    def _with_all_terms(
        self, several: Iterable[Translation], matches: Sequence[TermMatch]
    ) -> Iterator[Translation]:
        return (one for one in several if not self._missing(matches, one))

    def _satisfies(self, text: str, request: Request) -> bool:
        """Return whether a text is still all that was asked for."""
        return (
            text.startswith(self._normalize(request.prefix))
            and all(self._occurs(phrase, text) for phrase in request.must)
            and not any(self._occurs(phrase, text) for phrase in request.must_not)
        )

    def _occurs(self, phrase: str, text: str) -> bool:
        return contains_phrase(self._normalize(phrase), text, whole_words=self._target_has_spaces)

    def _missing(self, matches: Sequence[TermMatch], found: Translation) -> list[TermMatch]:
        """Return the terms that a translation says nowhere, in no form.

        Part of a compound may be said otherwise: cat-like need not have a cat in it.
        """
        return [
            match
            for match in matches
            if not (match.partial and self._source_has_spaces)
            and not self._translations[match.translation].find_all(found.text)
            and not self._in_compound(match, found)
        ]

    def _unsaid(
        self, matches: Sequence[TermMatch], found: Translation, source_words: Sequence[str]
    ) -> list[TermMatch]:
        """Return the terms that are missing, or said less often than they stand in the source.

        What is aligned with other words of the source alone is said for these.
        """
        sources: dict[int, set[int]] = {}
        for s, t in found.alignment:
            sources.setdefault(t, set()).add(s)
        unsaid = []
        for translation in dict.fromkeys(match.translation for match in matches):
            same = [match for match in matches if match.translation == translation]
            terms = {word for match in same for word in match.words}
            free = 0
            said: set[int] = set()
            for one in self._translations[translation].find_all(found.text):
                first, last = (found.text.count(" ", 0, at) for at in (one.start, one.end))
                linked = {s for t in range(first, last + 1) for s in sources.get(t, ())}
                said |= linked & terms
                others = [
                    s
                    for s in linked - terms
                    if s < len(source_words) and self._content(source_words[s])
                ]
                free += not linked & terms and not others
            rest = [
                match
                for match in same
                if not said & set(match.words) and not self._in_compound(match, found)
            ]
            unsaid += rest[free:]
        return unsaid

    def _content(self, word: str) -> bool:
        return not is_function_word(core_of(word), self._source_language)

    def _in_compound(self, match: TermMatch, found: Translation) -> bool:
        """Return whether a term is part of an aligned word that says more: Vogel in Vogelhaus.

        A compound that begins with the term is left as it is, whatever it calls the term.
        """
        if primary_code(self._target_language) not in COMPOUNDING:
            return False
        phrase = self._translations[match.translation]
        forms = [form.text.lower() for form in phrase.forms[phrase.head] if len(form.text) > 3]
        linked: dict[int, set[int]] = {}
        for s, t in found.alignment:
            linked.setdefault(t, set()).add(s)
        for t, word in enumerate(found.text.split(" ")):
            sources, core = linked.get(t, set()), core_of(word).lower()
            others = sources - set(match.words)
            if not sources & set(match.words) or not (others or match.partial):
                continue
            if any(form in core and form != core for form in forms):
                return True
            if others and min(others) > match.words[-1] and len(core) > LONG_WORD:
                return True
        return False


def _replace_words(line: str, words: range, noun: str) -> str:
    """Return an English or Romance line with a noun in place of some words, their marks kept."""
    old = line.split(" ")
    first, last = old[words[0]], old[words[-1]]
    before = first[: len(first) - len(first.lstrip("\"'“‘(«„"))]
    after = re.search(r"(['’]s)?[^\w\s]*$", last)
    if words[0] == 0 and first[:1].isupper():
        noun = noun.capitalize()
    if words[0] and old[words[0] - 1].lower() == "an":
        old[words[0] - 1] = old[words[0] - 1][0]
    old[words[0] : words[-1] + 1] = [f"{before}{noun}{after.group() if after else ''}"]
    return " ".join(old)


def _log_prob_of(scored: ScoredTranslation, words: frozenset[int]) -> float:
    """Return the log-probability of some white-space words of a text."""
    total, word = 0.0, -1
    for piece, log_prob in zip(scored.tokens, scored.log_probs, strict=True):
        word += piece.startswith("▁") or word < 0
        total += log_prob if word in words else 0.0
    return total
