"""Notice what went wrong in a search, and search again with that forbidden.

A model can say nothing at all, say the same again and again, or stop far too early or too late.
Such faults are seen in the text. What a source repeats, its translation may repeat: only what goes
beyond that counts. The few sentences concerned are searched again, with a wider beam, a least
length, no n-gram twice and a price on repetition, and what is found is checked again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from dragoman.errors import ConfigError
from dragoman.search.options import Hypothesis, SearchOptions, length_penalty, longest_output
from dragoman.text.lazy_patterns import lazy_pattern
from dragoman.text.scripts import WITHOUT_SPACES, has_no_spaces
from dragoman.text.sentence_splitting import sentence_spans

FaultKind = Literal["empty", "damaged", "looping", "length", "sentences"]
"""Nothing was said in words; a character is broken; something was said again and again; it is far
too short or too long; one sentence became several. Of these the first is the worst."""

SEVERITY: Final[tuple[FaultKind, ...]] = ("sentences", "length", "damaged", "looping", "empty")
BROKEN: Final = "\ufffd"
"""This stands for bytes that are no character."""
ROUNDS: Final = 2
"""So often a sentence is searched again."""
BEAMS: Final = (5, 12)
"""The beam of each round is at least this wide."""
PENALTIES: Final = (1.0, 1.2)
"""Repetition is penalised by this in each round."""
NGRAMS: Final = (4, 3)
"""No so many pieces occur twice in each round, unless the source repeats as much."""
MAX_NGRAM: Final = 12
"""Where a source repeats more pieces than this, a translation may repeat any number."""
MAX_PERIOD: Final = 40
"""Repetition of at most so many words is looked for."""
SCATTERED_SHARE: Final = 0.25
"""In ordinary text fewer sequences of four words than this have occurred before."""
LONG_SOURCE: Final = 80
"""A sentence of more pieces than this is searched in parts if it has a fault."""
PART_PIECES: Final = 50
"""Such a part has at most so many pieces."""
MAX_MARKS: Final = 6.0
"""Marks and numbers may come so often in a row, as in a line of dots."""
MAX_CUTS: Final = 8
"""So many loops are cut out of a text at most."""
LONG_WORD: Final = 7
"""In words of so many letters repetition is looked for."""

_TOKENS: Final = lazy_pattern(rf"[{WITHOUT_SPACES}]|[^\W{WITHOUT_SPACES}]+|[^\w\s\ufffd]")
_INSIDE_WORD: Final = lazy_pattern(r"([^\W\d_]{1,8}?)\1{3,}")
_INSIDE_TEXT: Final = lazy_pattern(r"(\S{1,8}?)\1{2,}")
_LETTERS_INSIDE: Final = lazy_pattern(r"([^\W\d_]{1,8}?)\1{2,}")


@dataclass(frozen=True, slots=True)
class Fault:
    """Say what is wrong with a hypothesis."""

    kind: FaultKind
    detail: str
    """This says it in a few words."""
    scattered_from: int | None = None
    """From this character on the same comes again and again, though not in a row."""

    @property
    def severity(self) -> int:
        """Return how bad it is; of two faults the higher is the worse."""
        return SEVERITY.index(self.kind)


DAMAGED: Final = Fault("damaged", "a character is broken")


class Repetition(NamedTuple):
    """Hold where in a row of tokens the same comes again and again."""

    times: float
    start: int
    period: int
    end: int
    has_letters: bool


# --- what is wrong ---


def check_faults(
    source_ids: Sequence[int],
    source_text: str,
    hypothesis: Hypothesis,
    text: str,
    options: SearchOptions,
    languages: tuple[str, str] = ("", ""),
) -> Fault | None:
    """Return the worst fault of a hypothesis, whose text is given; None if there is none.

    The languages are those of the source and of the target.
    """
    damaged = BROKEN in text and BROKEN not in source_text
    if not damaged and not _has_words(text) and _has_words(source_text):
        return Fault("empty", "only punctuation" if text.strip() else "nothing was said")
    fault = _find_loop(source_text, text)
    if fault is None and damaged:
        fault = DAMAGED
    return (
        fault
        or _check_length(len(source_ids), len(hypothesis.ids), options)
        or _check_sentences(source_text, text, languages)
    )


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _find_loop(source: str, text: str) -> Fault | None:
    """Return where a text repeats itself, if its source does not to the same degree."""
    matches = list(_TOKENS.finditer(_lower(text)))
    tokens = [match[0] for match in matches]
    repeated = len(tokens) - 1 - len(set(pairwise(tokens)))
    if repeated > 0:
        for found in find_repetitions(tokens):
            if found.times > 2 and _is_loop(tokens, found, source):
                first, last = matches[found.start], matches[found.start + found.period - 1]
                said = f"{_shorten(text[first.start() : last.end()])} × {found.times:.0f}"
                return Fault("looping", said)
        if repeated > SCATTERED_SHARE * len(tokens):
            place = _find_scattered(tokens, split_tokens(source))
            if place is not None:
                return Fault("looping", "the same words again and again", matches[place].start())
    for match in matches:
        if (inside := _longest_inside(match[0])) is not None:
            times, least = _times_inside(inside), 3.0 if len(inside[1]) > 1 else 5.0
            if times > max(least, 2 + 1.5 * _times_in_source(source, letters=True)):
                return Fault("looping", f"{_shorten(inside[1])} × {times:.0f}")
    return None


def _longest_inside(word: str) -> re.Match[str] | None:
    """Return where in a long word the same letters come most often in a row, if they do."""
    if len(word) < LONG_WORD:
        return None
    return max(_INSIDE_WORD.finditer(word), key=_times_inside, default=None)


def _times_inside(row: re.Match[str]) -> float:
    return len(row[0]) / len(row[1])


def _shorten(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:29]}…"


def _lower(text: str) -> str:
    """Return a text in lower case, every character in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text


def split_tokens(text: str) -> list[str]:
    """Return the words of a text in lower case, and its marks; of some scripts the characters."""
    return _TOKENS.findall(_lower(text))


def find_repetitions(tokens: Sequence[str]) -> list[Repetition]:
    """Return the words that come most often in a row, and the marks or numbers; or neither."""
    best: dict[bool, Repetition] = {}
    size = len(tokens)
    for period in sorted(_possible_periods(tokens)):
        run = 0
        for place in range(period, size + 1):
            if place < size and tokens[place] == tokens[place - period]:
                run += 1
                continue
            if 2 * run >= period:
                start, times = place - run - period, (run + period) / period
                letters = any(token.isalpha() for token in tokens[start : start + period])
                if letters not in best or times > best[letters].times:
                    best[letters] = Repetition(times, start, period, place, letters)
            run = 0
    return [best[letters] for letters in (True, False) if letters in best]


def _possible_periods(tokens: Sequence[str]) -> set[int]:
    """Return the distances at which two tokens come again: what is repeated has one of them."""
    last: dict[tuple[str, str], int] = {}
    periods = {1} if any(a == b for a, b in pairwise(tokens)) else set()
    for place, pair in enumerate(pairwise(tokens)):
        if (before := last.get(pair)) is not None and place - before <= MAX_PERIOD:
            periods.add(place - before)
        last[pair] = place
    return periods


def _is_loop(tokens: Sequence[str], found: Repetition, source: str) -> bool:
    """Return whether the same comes more often in a row than its source explains."""
    in_source = _times_in_source(source, letters=found.has_letters)
    if not found.has_letters:
        return found.times > max(MAX_MARKS, 1.5 * in_source + 4)
    # A word of a script without spaces may double a character, and be said twice.
    single = found.period == 1 and has_no_spaces(tokens[found.start])
    return found.times > max(4.0 if single else 2.0, 1.5 * in_source + 1)


@lru_cache(64)
def _times_in_source(source: str, *, letters: bool) -> float:
    """Return how often a source says something in a row; without `letters`, any marks too."""
    pattern = _LETTERS_INSIDE if letters else _INSIDE_TEXT
    inside = [_times_inside(row) for row in pattern.finditer(_lower(source))]
    rows = find_repetitions(split_tokens(source))
    words = [row.times for row in rows if row.has_letters or not letters]
    return max([1.0, *inside, *words])


def _find_scattered(tokens: Sequence[str], source_tokens: Sequence[str]) -> int | None:
    """Return where the same words come a third time, if most of a text is such repetition."""
    if len(tokens) < 20:
        return None
    allowed = SCATTERED_SHARE + 1.5 * _repeated_share(source_tokens, 2)
    if _repeated_share(tokens, 4) <= allowed:
        return None
    seen: Counter[tuple[str, ...]] = Counter()
    for place in range(len(tokens) - 3):
        ngram = tuple(tokens[place : place + 4])
        seen[ngram] += 1
        if seen[ngram] == 3:
            return place
    return None


def _repeated_share(tokens: Sequence[str], size: int) -> float:
    """Return the share of n-grams that have occurred before."""
    ngrams = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def _check_length(source: int, pieces: int, options: SearchOptions) -> Fault | None:
    """Return whether an output has far fewer or far more pieces than its source suggests."""
    limit = longest_output(source, options)
    if pieces >= limit and limit == source + options.max_extra > options.min_length:
        return Fault("length", f"no end after {pieces} pieces")
    if pieces > most_pieces(source):
        return Fault("length", f"{pieces} pieces for {source}")
    if pieces < least_pieces(source):
        return Fault("length", f"only {pieces} pieces for {source}")
    return None


def _check_sentences(source: str, text: str, languages: tuple[str, str]) -> Fault | None:
    """Return whether a translation has more sentences than its source."""
    there, found = map(len, map(sentence_spans, (source, text), languages))
    return Fault("sentences", f"{found} sentences for {there}") if found > there else None


def most_pieces(source: int) -> int:
    """Return how many pieces a plausible translation of so many has at most."""
    return 3 * source + 10


def least_pieces(source: int) -> int:
    """Return how many pieces a plausible translation of so many has at least."""
    return max(0, source - 8) // 3


# --- searching again ---

SearchAgain = Callable[[Sequence[int], SearchOptions], list[list[Hypothesis]]]
"""Such a function searches some sentences, given by their numbers, with other options."""
Decode = Callable[[Sequence[int]], str]
"""Such a function returns the text of pieces."""


@dataclass(frozen=True, slots=True)
class DivideSource:
    """Say how a long sentence is searched in parts, where as a whole it is too much."""

    divide: Callable[[int, int], Sequence[str]]
    """This returns a sentence, given by its number, in parts of at most so many pieces each; fewer
    than two if it has to stay whole."""
    encode: Callable[[Sequence[str]], list[list[int]]]
    """This returns the pieces of texts."""
    search: Callable[[Sequence[Sequence[int]], SearchOptions], list[list[Hypothesis]]]
    """This searches any sources."""


@dataclass(slots=True)
class FaultCounts:
    """Count faults by their kinds."""

    noticed: Counter[FaultKind] = field(default_factory=Counter)
    repaired: Counter[FaultKind] = field(default_factory=Counter)
    """Of those that were noticed so many could be repaired by another search."""

    def __iadd__(self, other: FaultCounts) -> FaultCounts:
        """Add what was counted elsewhere."""
        self.noticed += other.noticed
        self.repaired += other.repaired
        return self


@dataclass(frozen=True, slots=True)
class Repair:
    """Hold what became of a sentence with a fault."""

    fault: Fault
    """This was noticed at first."""
    found: list[Hypothesis]
    """These are its hypotheses now, best first; they may be the first ones."""
    text: str
    """This is the text of the best."""
    left: Fault | None
    """This is still wrong with it; the caller decides what is said instead."""


def repair(
    sources: Sequence[Sequence[int]],
    source_texts: Sequence[str],
    found: Sequence[list[Hypothesis]],
    texts: Sequence[str],
    options: SearchOptions,
    search: SearchAgain,
    decode: Decode,
    parts: DivideSource | None = None,
    languages: tuple[str, str] = ("", ""),
) -> tuple[dict[int, Repair], FaultCounts]:
    """Check what was found, and search again where it has a fault.

    `texts` are those of the best hypotheses, the languages those of sources and targets. Return
    what became of the sentences that had a fault, by their numbers; all others stay as they are. A
    long sentence is searched in parts, if that is possible. What still loops after the last round
    is cut.
    """
    counts = FaultCounts()
    repairs: dict[int, Repair] = {}
    for number, hypotheses in enumerate(found):
        found_here = (sources[number], source_texts[number], hypotheses[0], texts[number])
        if (fault := check_faults(*found_here, options, languages)) is not None:
            counts.noticed[fault.kind] += 1
            repairs[number] = Repair(fault, hypotheses, texts[number], fault)
    divided: set[int] = set()
    if parts is not None:
        long = [
            number
            for number, one in repairs.items()
            if len(sources[number]) > LONG_SOURCE and one.fault.kind in ("looping", "length")
        ]
        for number, best, left in _search_in_parts(long, options, decode, parts):
            divided.add(number)
            repairs[number] = Repair(repairs[number].fault, [best], decode(best.ids), left)
    for round_ in range(ROUNDS):
        groups: dict[SearchOptions, list[int]] = {}
        for number, one in repairs.items():
            if one.left is not None and number not in divided:
                changed = options_without_fault(one.left, sources[number], options, round_)
                groups.setdefault(changed, []).append(number)
        for changed, numbers in groups.items():
            for number, hypotheses in _search_each(numbers, changed, search):
                given = (sources[number], source_texts[number])
                better = _choose(repairs[number], *given, hypotheses, changed, decode, languages)
                repairs[number] = replace(better, found=better.found[: options.n_best])
    for number, one in list(repairs.items()):
        if one.left is None:
            counts.repaired[one.fault.kind] += 1
        elif one.left.kind == "sentences":  # some sentences are two in the other language
            if one.fault.kind == "sentences":
                del repairs[number]
            else:
                repairs[number] = replace(one, left=None)
        elif number not in divided:  # or its parts have been cut
            repairs[number] = _cut(one, source_texts[number], options, decode)
    return repairs, counts


def _search_in_parts(
    numbers: Sequence[int], options: SearchOptions, decode: Decode, parts: DivideSource
) -> Iterable[tuple[int, Hypothesis, Fault | None]]:
    """Yield sentences of which parts were searched, and repaired, with the worst fault left."""
    texts = {n: list(parts.divide(n, PART_PIECES)) for n in numbers}
    texts = {n: several for n, several in texts.items() if len(several) > 1}
    flat = [text for several in texts.values() for text in several]
    if not flat:
        return
    single = replace(options, n_best=1)
    sources = parts.encode(flat)
    found = parts.search(sources, single)

    def search(some: Sequence[int], changed: SearchOptions) -> list[list[Hypothesis]]:
        return parts.search([sources[i] for i in some], changed)

    said = [decode(row[0].ids) for row in found]
    repairs, _ = repair(sources, flat, found, said, single, search, decode)
    first = 0
    for number, several in texts.items():
        places = range(first, first + len(several))
        first += len(several)
        best = [repairs[i].found[0] if i in repairs else found[i][0] for i in places]
        left = [one for i in places if i in repairs and (one := repairs[i].left) is not None]
        worst = max(left, key=lambda one: one.severity, default=None)
        yield number, _concatenate(best, options), worst


def _concatenate(several: Sequence[Hypothesis], options: SearchOptions) -> Hypothesis:
    """Return hypotheses as one; only the last one's end counts."""
    ids = [id_ for one in several for id_ in one.ids]
    log_probs = [p for one in several for p in one.log_probs[:-1]] + several[-1].log_probs[-1:]
    log_prob = sum(one.log_prob for one in several)
    if len(log_probs) == len(ids) + 1:
        log_prob = sum(log_probs)
    else:  # of a part nothing was possible
        log_probs = []
    score = log_prob / length_penalty(len(ids), options.length_penalty)
    return Hypothesis(ids, score, log_prob, log_probs)


def options_without_fault(
    fault: Fault, source: Sequence[int], options: SearchOptions, round_: int
) -> SearchOptions:
    """Return how to search again so that a fault cannot come again.

    There are few such options, so that sentences with the same fault can be searched together.
    """
    beam = max(options.beam, BEAMS[round_])
    changes = replace(options, beam=beam, n_best=beam, groups=1)
    if fault.kind == "empty":
        return replace(changes, min_length=max(options.min_length, 2 + round_))
    if fault.kind in ("damaged", "sentences"):
        return changes
    if fault.kind == "length" and fault.detail.startswith("only"):
        wanted = max(2, len(source) * (1 + round_) // 3)
        least = 1 << (wanted.bit_length() - 1)  # a power of two: few different options
        return replace(changes, min_length=max(options.min_length, least))
    size = max(NGRAMS[round_], longest_repeated_ngram(source) + 1)
    return replace(
        changes,
        no_repeat_ngram=size if size <= MAX_NGRAM else options.no_repeat_ngram,
        repetition_penalty=max(options.repetition_penalty, PENALTIES[round_]),
        max_extra=max(options.max_extra // (1 + round_), min(options.max_extra, 10)),
    )


def longest_repeated_ngram(ids: Sequence[int]) -> int:
    """Return the size of the longest n-gram that occurs twice; more than MAX_NGRAM is not told."""
    for size in range(1, MAX_NGRAM + 1):
        ngrams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]
        if len(set(ngrams)) == len(ngrams):
            return size - 1
    return MAX_NGRAM


def _search_each(
    numbers: list[int], options: SearchOptions, search: SearchAgain
) -> Iterable[tuple[int, list[Hypothesis]]]:
    """Search sentences together; where something that must be said becomes impossible, alone."""
    try:
        return list(zip(numbers, search(numbers, options), strict=True))
    except ConfigError:
        if len(numbers) == 1:
            return []
        return [pair for one in numbers for pair in _search_each([one], options, search)]


def _choose(
    before: Repair,
    source: Sequence[int],
    source_text: str,
    hypotheses: list[Hypothesis],
    options: SearchOptions,
    decode: Decode,
    languages: tuple[str, str],
) -> Repair:
    """Return the best hypothesis without a fault, or else the least faulty, the older of equals."""
    best, others = before, []
    assert before.left is not None
    worst = before.left.severity
    for hypothesis in hypotheses:
        if not hypothesis.log_probs:  # none was possible
            continue
        text = decode(hypothesis.ids)
        fault = check_faults(source, source_text, hypothesis, text, options, languages)
        if best.left is not None and (fault is None or fault.severity < worst):
            best = Repair(before.fault, [hypothesis], text, fault)
            worst = -1 if fault is None else fault.severity
        elif fault is None:
            others.append(hypothesis)
    if best is before:
        return before
    return replace(best, found=[*best.found, *others])


def _cut(one: Repair, source: str, options: SearchOptions, decode: Decode) -> Repair:
    """Return a hypothesis without what it repeats more often than its source."""
    assert one.left is not None
    best, text = one.found[0], one.text
    start = one.left.scattered_from
    span = _surplus(text, source) if start is None else (start, len(text))
    for _ in range(MAX_CUTS):
        if span is None:
            break
        shorter, cut = _drop(best, span, options, decode)
        if not options.min_length <= len(shorter.ids) < len(best.ids):
            break  # one piece spells all of it, or so much is asked for
        best, text = shorter, cut
        span = _surplus(text, source)
    left = DAMAGED if BROKEN in text and BROKEN not in source else one.left
    return Repair(one.fault, [best, *one.found[1:]], text, left)


def _surplus(text: str, source: str) -> tuple[int, int] | None:
    """Return from where to where a text repeats something more often than its source does."""
    matches = list(_TOKENS.finditer(_lower(text)))
    for found in find_repetitions([match[0] for match in matches]):
        in_source = _times_in_source(source, letters=found.has_letters)
        if found.times <= max(2.0 if found.has_letters else MAX_MARKS, in_source):
            continue
        keep = found.start + found.period * int(in_source)
        last = found.end - (found.end - found.start) % found.period
        # At the end of a text nothing follows that a part of it could belong to.
        last = found.end if found.end >= len(matches) - 1 else last
        return matches[keep - 1].end(), matches[last - 1].end()
    for match in matches:
        if (inside := _longest_inside(match[0])) is not None:
            keep = len(inside[1]) * int(_times_in_source(source, letters=True))
            if keep < len(inside[0]):
                start = match.start() + inside.start()
                return start + keep, start + len(inside[0])
    return None


def _drop(
    hypothesis: Hypothesis, span: tuple[int, int], options: SearchOptions, decode: Decode
) -> tuple[Hypothesis, str]:
    """Return a hypothesis without the pieces of a part of its text, and its text."""
    start, end = (_pieces_until(hypothesis.ids, place, decode) for place in span)
    kept = [*range(start), *range(end, len(hypothesis.ids))]
    ids = [hypothesis.ids[i] for i in kept]
    log_probs = [hypothesis.log_probs[i] for i in (*kept, -1)] if hypothesis.log_probs else []
    log_prob = sum(log_probs) if log_probs else hypothesis.log_prob
    score = log_prob / length_penalty(len(ids), options.length_penalty)
    return Hypothesis(ids, score, log_prob, log_probs), decode(ids)


def _pieces_until(ids: Sequence[int], place: int, decode: Decode) -> int:
    """Return how many pieces spell the text until a place, or a little more."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if len(decode(ids[:middle])) < place:
            low = middle + 1
        else:
            high = middle
    return low
