"""A term's translation is placed in a finished translation, in a form that may stand there.

The words that the term is aligned with are replaced; words without content of their own (articles,
prepositions, "zu", auxiliaries) stay. What agrees with the new word changes with it: German
articles and adjectives, a and an, French elisions, Korean particles. All that may be right is
returned, and whoever asks chooses by what the model finds probable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from dragoman.inference.translation_types import Translation
from dragoman.text.inflection import Number, Phrase, is_function_word
from dragoman.text.inflection.english import indefinite_article
from dragoman.text.inflection.forms import WordForm
from dragoman.text.inflection.german import (
    CERTAIN,
    certain_gender,
    first_part,
    genders,
    is_simple_noun,
    read_noun,
)
from dragoman.text.inflection.german_agreement import (
    AGREEING_WORD,
    Agreement,
    adjective_stem,
    agreements,
    expand,
)
from dragoman.text.inflection.korean import fit_particles, likely_particles, split_particles
from dragoman.text.inflection.romance import french_article_variants
from dragoman.text.languages import primary_code

OTHER_NUMBER: Final = 10.0
"""A form of another number than the source's costs so many nats."""
OTHER_GENDER: Final = 4.5
"""A change of the words around a noun to another gender costs so many nats."""
NOT_THE_BASE: Final = 0.7
"""A form other than the one in the glossary costs so many nats, where nothing asks for it."""
RARE_CASE: Final = 3.0
"""A dative or genitive that nothing shows costs so many nats."""
MOST_DOUBT: Final = 5.0
"""What the rules doubt so much more than something else is not proposed at all."""
MOST_PLACES: Final = 4
"""A term is tried in so many places at most."""
COMPOUNDING: Final = frozenset({"da", "de", "fi", "nb", "nl", "nn", "no", "sv"})
"""These languages write compounds as one word."""
_AROUND: Final = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Edit:
    """Say that some words of a text become others."""

    start: int
    stop: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Hold a text that a term was placed in."""

    edits: tuple[Edit, ...]
    """These changed it, from left to right."""
    term: Edit
    """This one of them placed the term."""
    cost: float
    """This is how far the rules doubt it, in nats."""
    agreeing: frozenset[int] = frozenset()
    """These words of the new text were changed only to agree with the term."""

    @property
    def placed(self) -> frozenset[int]:
        """Return the words of the new text that are the term's."""
        moved = sum(
            len(one.words) - (one.stop - one.start)
            for one in self.edits
            if one.start < self.term.start
        )
        first = self.term.start + moved
        return frozenset(range(first, first + len(self.term.words)))

    def words(self, old: Sequence[str]) -> list[str]:
        """Return the words of the new text."""
        new = list(old)
        for edit in reversed(self.edits):
            new[edit.start : edit.stop] = edit.words
        return new

    def apply(self, found: Translation) -> Translation:
        """Return the translation with the new text and its alignment, and without alternatives."""
        old = found.text.split(" ")
        return replace(
            found,
            text=" ".join(self.words(old)),
            alignment=self._move_alignment(found.alignment, len(old)),
            alternatives=(),
        )

    def _move_alignment(
        self, alignment: Sequence[tuple[int, int]], count: int
    ) -> tuple[tuple[int, int], ...]:
        places: list[range] = []
        moved = 0
        edits = {edit.start: edit for edit in self.edits}
        while len(places) < count:
            edit = edits.get(len(places))
            if edit is None:
                places.append(range(moved, moved + 1))
                moved += 1
                continue
            size, old = len(edit.words), edit.stop - edit.start
            if size == old:
                places += [range(moved + n, moved + n + 1) for n in range(size)]
            else:
                places += [range(moved, moved + size)] * old
            moved += size
        return tuple(sorted({(s, new) for s, t in alignment for new in places[t]}))


class Place(NamedTuple):
    """Say which words of a translation a term may take the place of."""

    words: range
    kept: str = ""
    """This begins a compound whose end the term takes the place of."""


def aligned_places(
    found: Translation,
    source_words: Sequence[str],
    term: range,
    phrase: Phrase,
    source_language: str,
) -> list[Place]:
    """Return where a translation says a term, by its alignment; the longest places first.

    `source_words` are the white-space words of the source; `term` says which are the term's. These
    are words that say nothing else; where there are none, those that may be aligned with something
    else by error, and the end of a German compound. Of several places most are such errors.
    """
    words = found.text.split(" ")
    sources: dict[int, set[int]] = {}
    for s, t in found.alignment:
        if s < len(source_words) and t < len(words):
            sources.setdefault(t, set()).add(s)
    own = {s for s in term if is_function_word(core_of(source_words[s]), source_language)}
    articles = set()
    for s in range(term[0] - 1, -1, -1):
        if not is_function_word(core_of(source_words[s]), source_language):
            break
        articles.add(s)

    def says_only_the_term(t: int, wanted: set[int]) -> bool:
        others = [core_of(source_words[s]) for s in sources[t] if s not in term]
        if not sources[t] & wanted or not core_of(words[t]):
            return False
        if not all(is_function_word(other, source_language) for other in others):
            return False
        # An article stays, unless the term has one itself: the Hague, Den Haag.
        return bool(sources[t] & own) or not is_function_word(core_of(words[t]), phrase.language)

    for wanted in (set(term), articles):  # some words are aligned with the noun's article
        if said := [t for t in sorted(sources) if says_only_the_term(t, wanted)]:
            break
    else:
        return _shared_words(words, sources, source_words, term, phrase, source_language)
    if phrase.language == "de" and phrase.kind == "noun" and len(term) == 1:
        nouns = [t for t in said if core_of(words[t])[:1].isupper()]
        said = nouns or said
    runs: list[range] = []
    for t in said:
        if runs and runs[-1].stop == t:
            runs[-1] = range(runs[-1].start, t + 1)
        else:
            runs.append(range(t, t + 1))
    return [Place(run) for run in sorted(runs, key=len, reverse=True)[:MOST_PLACES]]


def _shared_words(
    words: Sequence[str],
    sources: dict[int, set[int]],
    source_words: Sequence[str],
    term: range,
    phrase: Phrase,
    source_language: str,
) -> list[Place]:
    """Return words that are aligned with a term and with something else that has content."""
    found = []
    for t, linked in sorted(sources.items()):
        core = core_of(words[t])
        if not linked & set(term) or not core or is_function_word(core, phrase.language):
            continue
        if phrase.language not in COMPOUNDING or is_simple_noun(core):
            found.append(Place(range(t, t + 1)))
            continue
        others = [s for s in linked if s not in term]
        content = [
            s for s in others if not is_function_word(core_of(source_words[s]), source_language)
        ]
        kept = first_part(core) if phrase.language == "de" and phrase.kind == "noun" else ""
        if kept and all(s < term[0] for s in content):  # the term is the head
            found.append(Place(range(t, t + 1), kept))
    return found[:MOST_PLACES]


def unaligned_words(
    found: Translation, source_words: Sequence[str], phrase: Phrase, source_language: str
) -> list[Place]:
    """Return words that are aligned with nothing that has content, and could say a phrase."""
    words = found.text.split(" ")
    saying = {
        t
        for s, t in found.alignment
        if s < len(source_words) and not is_function_word(core_of(source_words[s]), source_language)
    }
    is_noun = phrase.language == "de" and phrase.kind == "noun"
    return [
        Place(range(t, t + 1))
        for t, word in enumerate(words)
        if t not in saying
        and core_of(word)
        and not is_function_word(core_of(word), phrase.language)
        and (core_of(word)[0].isupper() or not is_noun)
    ][:MOST_PLACES]


def other_mentions(
    found: Translation,
    replaced: str,
    term: range,
    source_words: Sequence[str],
    source_language: str,
    target_language: str,
) -> list[Place]:
    """Return where a Korean text says a replaced noun once more: it repeats nouns for "it".

    Such a word is aligned with nothing that has content but the term.
    """
    if primary_code(target_language) != "ko" or not core_of(replaced):
        return []
    noun = split_particles(core_of(replaced))[0][0]
    others = {
        t
        for s, t in found.alignment
        if s not in term
        and s < len(source_words)
        and not is_function_word(core_of(source_words[s]), source_language)
    }
    return [
        Place(range(t, t + 1))
        for t, word in enumerate(found.text.split(" "))
        if t not in others and core_of(word) and split_particles(core_of(word))[0][0] == noun
    ]


def core_of(word: str) -> str:
    """Return a white-space word without the punctuation around it."""
    match = _AROUND.match(word)
    assert match is not None
    return match[2]


def candidates(
    words: Sequence[str], where: Place, phrase: Phrase, number: Number | None
) -> list[Candidate]:
    """Return the ways to put a phrase in the place of some words, the likeliest by rules first.

    `number` is the source's, where it is known.
    """
    if where.kept:
        phrase = compound(where.kept, phrase)
    place = _Place(words, where.words, phrase, number)
    makers = {"de": _german, "ko": _korean, "en": _english, "fr": _french}
    found = list(makers.get(phrase.language, _plain)(place))
    least = min((one.cost for one in found), default=0.0)
    best: dict[tuple[str, ...], Candidate] = {}
    for one in sorted(found, key=lambda one: one.cost):
        if one.cost <= least + MOST_DOUBT:
            best.setdefault(tuple(one.words(words)), one)
    return list(best.values())


def compound(first: str, phrase: Phrase) -> Phrase:
    """Return a German noun with the first part of a compound before it."""
    words = list(phrase.words)
    head = words[phrase.head]
    words[phrase.head] = first + (head if first.endswith("-") else head[0].lower() + head[1:])
    return Phrase(" ".join(words), phrase.language, kind=phrase.kind)


class _Place:
    """Hold where a phrase goes: the text, the words that it replaces, and marks around these."""

    def __init__(
        self, words: Sequence[str], run: range, phrase: Phrase, number: Number | None
    ) -> None:
        self.words, self.run, self.phrase, self.number = words, run, phrase, number
        self.before, first, after = _split_marks(words[run[0]])
        last = first
        if len(run) > 1:
            _, last, after = _split_marks(words[run[-1]])
            if not first:
                self.before = ""
        if not last and not first:  # a mark by itself
            self.before = after = ""
        self.after, self.first, self.last = after, first, last
        # A sentence begins here, if anything before it does not say otherwise.
        self.capital = run[0] == 0 and first[:1].isupper()

    def write(self, text: str, prefix: str = "", suffix: str = "") -> tuple[str, ...]:
        """Return the words of a form of the phrase with what stood around the replaced words."""
        if self.capital:
            if prefix:
                prefix = prefix[0].upper() + prefix[1:]
            else:
                text = text[0].upper() + text[1:]
        return tuple(f"{self.before}{prefix}{text}{suffix}{self.after}".split(" "))

    def edit(self, text: str, **marks: str) -> Edit:
        """Return the replacement of the words by a form of the phrase."""
        return Edit(self.run[0], self.run[-1] + 1, self.write(text, **marks))

    def candidate(self, text: str, cost: float, **marks: str) -> Candidate:
        """Return what changes nothing but the words that are replaced."""
        edit = self.edit(text, **marks)
        return Candidate((edit,), edit, cost)

    def number_cost(self, form: WordForm) -> float:
        """Return what it costs that a form is not of the number of the source."""
        if form.number is None or self.number is None:
            return 0.0 if form.text == self.phrase.words[self.phrase.head] else NOT_THE_BASE
        return 0.0 if form.number == self.number else OTHER_NUMBER


def _split_marks(word: str) -> tuple[str, str, str]:
    match = _AROUND.match(word)
    assert match is not None
    return match[1], match[2], match[3]


def _with_head(phrase: Phrase, head: str) -> str:
    words = list(phrase.words)
    words[phrase.head] = head
    return " ".join(words)


def _plain(place: _Place) -> Iterator[Candidate]:
    """Yield the forms of a phrase whose words are all singular or all plural."""
    phrase = place.phrase
    for form in phrase.forms[phrase.head]:
        words = []
        for text, forms in zip(phrase.words, phrase.forms, strict=True):
            same = [one.text for one in forms if one.number == form.number is not None]
            words.append(same[0] if same else text)
        words[phrase.head] = form.text
        yield place.candidate(" ".join(words), form.cost + place.number_cost(form))


def _english(place: _Place) -> Iterator[Candidate]:
    """Yield singular and plural, with a possessive kept, and a or an as the word begins."""
    phrase = place.phrase
    possessive = re.search(r"['’]s?$", place.last)
    for form in phrase.forms[phrase.head]:
        text = _with_head(phrase, form.text)
        suffix = ""
        if possessive is not None:
            suffix = "’" if "’" in possessive.group() else "'"
            suffix += "" if text.endswith("s") and form.number == "plural" else "s"
        edits = [place.edit(text, suffix=suffix)]
        before = place.words[place.run[0] - 1] if place.run[0] else ""
        if before.lower() in ("a", "an"):
            article = indefinite_article(text)
            article = article.capitalize() if before[0].isupper() else article
            edits.insert(0, Edit(place.run[0] - 1, place.run[0], (article,)))
        yield Candidate(tuple(edits), edits[-1], form.cost + place.number_cost(form))


def _french(place: _Place) -> Iterator[Candidate]:
    """Yield singular and plural, after the article in each form that it may have there."""
    phrase = place.phrase
    elided = re.match(r"\w+['’]", place.first)
    for one in _plain(_Place(place.words, place.run, phrase, place.number)):
        text = core_of(" ".join(one.edits[0].words))
        if elided is not None:
            for n, variant in enumerate(french_article_variants(elided.group(), text)):
                edit = place.edit(text, prefix=variant)
                yield Candidate((edit,), edit, one.cost + n * 0.1)
            continue
        before = place.words[place.run[0] - 1] if place.run[0] and not place.before else ""
        variants = french_article_variants(before, text) if before else []
        if not variants or before in [variant.strip() for variant in variants]:
            yield one
        for n, variant in enumerate(variants):
            if variant.strip() == before:
                continue
            written = place.write(text)
            if variant.endswith(" "):
                new = (*variant.split(), *written)
            else:
                *full, short = variant.split(" ")
                new = (*full, short + written[0], *written[1:])
            edit = Edit(place.run[0] - 1, place.run[-1] + 1, tuple(new))
            yield Candidate((edit,), edit, one.cost + OTHER_GENDER * (n > 0))


def _korean(place: _Place) -> Iterator[Candidate]:
    """Yield the phrase with the particles that the last replaced word may have, made to fit."""
    text = place.phrase.text
    for particles, doubt in likely_particles(place.last) if place.last else [("", 0.0)]:
        if text.endswith("들"):
            particles = particles.removeprefix("들")
        yield place.candidate(text, doubt, suffix=fit_particles(text, particles))


# --- German ---

_STAND_INS: Final = {
    "en": {"m": "man dog table", "f": "woman cat lamp", "n": "child animal book"},
    "fr": {"m": "homme chien", "f": "femme vache lampe", "n": "enfant cheval livre"},
    "es": {"m": "hombre perro", "f": "mujer gato lámpara", "n": "niño caballo libro"},
}
"""These nouns of a source language are of this gender when most models say them in German."""


def stand_ins(place_word: str, phrase: Phrase, source_language: str) -> list[str]:
    """Return source nouns whose translations have the gender of a phrase, where that is needed.

    `place_word` is what the phrase replaces. Nothing is returned where both have one gender, where
    the phrase's is not known, or where the source language has no such nouns here.
    """
    if phrase.language != "de" or phrase.kind != "noun":
        return []
    gender = certain_gender(phrase.words[phrase.head])
    old = {one for each in read_noun(core_of(place_word)) for one in each.genders}
    if gender is None or old == {gender}:
        return []
    return _STAND_INS.get(primary_code(source_language), {}).get(gender, "").split()


def has_gender_of(word: str, phrase: Phrase) -> bool:
    """Return whether a German noun in a sentence may have the gender of a phrase."""
    gender = certain_gender(phrase.words[phrase.head])
    return any(gender in each.genders for each in read_noun(core_of(word)))


def agrees_with(words: Sequence[str], run: range, others: Sequence[str], other_run: range) -> bool:
    """Return whether two German texts differ only in some words and in what agrees with them."""
    each = [
        [w for n, word in enumerate(several) for w in (("",) if n in run_ else expand(word))]
        for several, run_ in ((words, run), (others, other_run))
    ]
    if len(each[0]) != len(each[1]):
        return False
    return all(
        one == other
        or (AGREEING_WORD.fullmatch(one) and AGREEING_WORD.fullmatch(other))
        or (one[:1].islower() and adjective_stem(one) == adjective_stem(other) != "")
        for one, other in zip(*each, strict=True)
    )


def content_words(words: Sequence[str], language: str) -> Counter[str]:
    """Return the words of a text that have content, without the endings that often change."""
    cores = [core_of(word) for word in words]
    kept = [core for core in cores if core and not is_function_word(core, language)]
    if primary_code(language) == "ko":
        return Counter(split_particles(word)[0][0] for word in kept)
    return Counter(adjective_stem(word) for word in kept)


def _german(place: _Place) -> Iterator[Candidate]:
    phrase = place.phrase
    if phrase.kind != "noun":
        yield from _german_other(place)
        return
    forms = phrase.forms[phrase.head]
    noun = phrase.words[phrase.head]
    inner = [word for word in phrase.words[: phrase.head] if adjective_stem(word) != word]
    fitting = _german_agreements(place, inner)
    if not fitting:
        cases = {case for each in read_noun(place.last) for case in each.cases or "nadg"}
        for form in forms:
            for ending in (None, "e", "en", "er", "es", "em") if inner else (None,):
                text = _german_text(phrase, form.text, ending)
                cost = form.cost + place.number_cost(form) + (0.0 if form.text == noun else 0.3)
                if form.cases in ("d", "g") and (not cases or cases - set(form.cases)):
                    cost += RARE_CASE
                yield place.candidate(text, cost)
        return
    costs = genders(noun)
    for one in fitting:
        number: Number = "plural" if one.gender == "p" else "singular"
        doubt = _misreading(place.last, one, number)
        if one.gender != "p":
            doubt += costs[one.gender] + OTHER_GENDER * (one.gender != one.old_gender)
        doubt += 0.0 if place.number in (None, number) else OTHER_NUMBER
        if (
            one.gender == "p" and place.number != "plural"
        ):  # the glossary's form may be a plural: Leute, Kosten
            dative = one.case == "d" and not noun.endswith(("n", "s"))
            itself = WordForm(noun + "n" * dative, "plural")
            yield _german_candidate(place, one, itself, doubt + NOT_THE_BASE)
        for form in forms:
            if form.number not in (None, number) or (form.cases and one.case not in form.cases):
                continue
            if (
                one.case == "g"
                and number == "singular"
                and (form.text == noun) != (one.gender == "f")
            ):
                continue
            yield _german_candidate(place, one, form, form.cost + doubt)
    yield place.candidate(phrase.text, 2 * OTHER_NUMBER)


def _misreading(old: str, one: Agreement, number: Number) -> float:
    """Return what it costs that the noun which was there cannot have had that gender or case."""
    readings = read_noun(old)
    fits = any(
        each.number in (None, number)
        and one.case in (each.cases or one.case)
        and (one.old_gender == "p" or one.old_gender in each.genders)
        for each in readings
    )
    return 0.0 if fits or not readings else CERTAIN


def _german_agreements(place: _Place, inner: Sequence[str]) -> list[Agreement]:
    """Return how the words around a noun may be, in any number."""
    start, stop = place.run[0], place.run[-1] + 1
    if place.before:
        return []
    before = place.words[max(0, start - 4) : start]
    after = place.words[stop : stop + 2] if place.after == "," else ()
    return agreements(before, inner, after)


def _german_candidate(place: _Place, one: Agreement, form: WordForm, cost: float) -> Candidate:
    start, stop = place.run[0], place.run[-1] + 1
    phrase = place.phrase
    words = list(phrase.words)
    words[phrase.head] = form.text
    adjectives = iter(one.inner)
    for n, word in enumerate(phrase.words[: phrase.head]):
        if adjective_stem(word) != word:
            words[n] = next(adjectives)
    old = place.words[start - one.taken : start]
    edits = []
    agreeing: set[int] = set()
    if tuple(old) != one.before:
        edits.append(Edit(start - one.taken, start, one.before))
        same = len(old) == len(one.before)
        first = start - one.taken
        agreeing |= {first + n for n, text in enumerate(one.before) if not same or text != old[n]}
    moved = len(one.before) - one.taken
    noun = place.edit(" ".join(words))
    edits.append(noun)
    if one.after and tuple(place.words[stop : stop + len(one.after)]) != one.after:
        edits.append(Edit(stop, stop + len(one.after), one.after))
        agreeing.add(start + moved + len(noun.words) + len(one.after) - 1)
    return Candidate(tuple(edits), noun, cost, frozenset(agreeing))


def _german_text(phrase: Phrase, head: str, ending: str | None) -> str:
    words = list(phrase.words)
    words[phrase.head] = head
    if ending is not None:
        for n, word in enumerate(phrase.words[: phrase.head]):
            if adjective_stem(word) != word:
                words[n] = adjective_stem(word) + ending
    return " ".join(words)


def _german_other(place: _Place) -> Iterator[Candidate]:
    """Yield the forms of an adjective, best with the ending that was there, or those of a verb."""
    phrase = place.phrase
    base = phrase.words[phrase.head]
    old = re.search(r"(en|er|es|em|e|)$", place.last)
    for form in phrase.forms[phrase.head]:
        same = phrase.kind == "other" and form.text == adjective_stem(base) + (
            old[0] if old else ""
        )
        cost = 0.0 if same else NOT_THE_BASE * (form.text != base) + (phrase.kind == "other")
        yield place.candidate(_with_head(phrase, form.text), form.cost + cost)
