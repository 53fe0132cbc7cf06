"""From requests to translations: cut, encode, search, align and join again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf

import torch

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.models import Model, Rows
from dragoman.search import (
    Constraint,
    Hypothesis,
    SamplingOptions,
    SearchOptions,
    banked_search,
    sample,
    search,
)
from dragoman.search.lexical import Lexical, Phrases, Wanted
from dragoman.search.many import Find, by_length, search_many
from dragoman.search.occurrence import occurs
from dragoman.text.tokenizer import Tokenizer
from dragoman.translate.alignment import source_attention, word_alignment
from dragoman.translate.engine import Engine
from dragoman.translate.segments import split_line
from dragoman.translate.translation import Request, Translation

__all__ = ["NO_SPACES", "Decoder", "Settings"]

NO_SPACES = frozenset({"zh", "ja", "th", "lo", "km", "my"})
"""Languages written without spaces between words."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to search, and whether to align."""

    search: SearchOptions
    sampling: SamplingOptions | None = None
    align: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text that is searched at once."""

    owner: int
    text: str
    prefix: str
    must: tuple[str, ...]
    must_not: tuple[str, ...]
    joint: str | None
    """What joins its translation with the next segment's; None: it is the last."""


class Decoder:
    """A model and its tokeniser, put to work on text."""

    def __init__(
        self,
        model: Callable[[], Model],
        tokenizer: Tokenizer,
        config: Config,
        warn: Callable[[str], None],
        engine: Engine | None = None,
    ) -> None:
        """What an `engine` can do needs no `model`."""
        languages = config.data.languages
        self.space = "" if languages and languages[1] in NO_SPACES else " "
        self.phrases = Phrases(tokenizer, tokenizer.sizes[1], whole_words=bool(self.space))
        self._read, self._tokenizer, self._config, self._warn = model, tokenizer, config, warn
        self._engine = engine

    @property
    def _model(self) -> Model:
        return self._read()

    def run(self, requests: Sequence[Request], settings: Settings) -> list[Translation]:
        """The translations, in the requests' order."""
        segments = self._cut(requests)
        if settings.sampling is not None and any(one.must for one in segments):
            raise ConfigError("what a translation must contain is searched for, not sampled")
        segments = self._share_out(segments, settings)
        parts: list[list[Translation]] = [[] for _ in requests]
        for segment, found in zip(segments, self._find(segments, settings), strict=True):
            parts[segment.owner].append(replace(found[0], alternatives=tuple(found[1:])))
        return [self._join(r.text, part) for r, part in zip(requests, parts, strict=True)]

    # --- segments ---

    def _cut(self, requests: Sequence[Request]) -> list[Segment]:
        segments = []
        for number, request in enumerate(requests):
            texts = self._segments(request.text)
            for place, text in enumerate(texts):
                segments.append(
                    Segment(
                        number,
                        text,
                        request.prefix if place == 0 else "",
                        request.must,
                        request.must_not,
                        self.space if place < len(texts) - 1 else None,
                    )
                )
        return segments

    def _segments(self, text: str) -> list[str]:
        line = self._tokenizer.normalize(text)
        if not line:
            return []
        limit = self._config.data.max_length
        segments, cut = split_line(line, lambda part: len(self._tokenizer.encode(part)), limit)
        if cut:
            self._warn(
                f"a sentence of more than {limit} pieces was cut into parts: {line[:60].strip()}…"
            )
        return segments

    def _share_out(self, segments: list[Segment], settings: Settings) -> list[Segment]:
        """Of a line in several segments, each phrase goes where it costs least."""
        parts: dict[int, list[int]] = {}
        for place, one in enumerate(segments):
            if one.must:
                parts.setdefault(one.owner, []).append(place)
        shared = list(segments)
        for places in parts.values():
            if len(places) < 2:
                continue
            given: dict[int, list[str]] = {place: [] for place in places}
            free = [replace(segments[place], must=()) for place in places]
            plain = [found[0] for found in self._find(free, settings)]
            for phrase in segments[places[0]].must:
                text = self.phrases.normalized(phrase, "must")
                there = [occurs(text, one.text, whole_words=bool(self.space)) for one in plain]
                if any(there):
                    given[places[there.index(True)]].append(phrase)
                    continue
                tried = self._find([replace(one, must=(phrase,)) for one in free], settings)
                losses = [
                    one.log_prob - found[0].log_prob
                    for one, found in zip(plain, tried, strict=True)
                ]
                given[places[losses.index(min(losses))]].append(phrase)
            for place in places:
                shared[place] = replace(segments[place], must=tuple(given[place]))
        return shared

    # --- search ---

    def _find(self, segments: Sequence[Segment], settings: Settings) -> list[list[Translation]]:
        """The translations of every segment, best first."""
        ids = self._tokenizer.encode_batch([one.text for one in segments]) if segments else []
        forced = [self._forced(one.prefix) for one in segments]
        wanted = [
            self.phrases.wanted(one.must, one.must_not, one.joint)
            if one.must or one.must_not
            else None
            for one in segments
        ]
        found: list[list[Hypothesis]] = [[] for _ in segments]
        for beam, group in self._groups(segments, wanted, settings):
            sentences = [ids[i] for i in group]
            asked = [w for i in group if (w := wanted[i]) is not None]
            prefixes = [forced[i] for i in group] if any(forced[i] for i in group) else None
            plain = not asked and prefixes is None and settings.sampling is None
            if plain and self._engine is not None and self._engine.serves(settings.search):
                several = self._engine.search(sentences, settings.search)
            else:
                several = search_many(
                    self._model,
                    sentences,
                    self._finder(beam, settings),
                    batch_tokens=self._config.search.batch_tokens,
                    prefixes=prefixes,
                    constrain=self._constrain(asked),
                )
            for i, hypotheses in zip(group, several, strict=True):
                if wanted[i] is not None and hypotheses[0].score == -inf:
                    raise ConfigError(_impossible(segments[i]))
                found[i] = hypotheses
        alignments = self._align(ids, found) if settings.align else {}
        return [
            [
                Translation(
                    segment.text,
                    self._tokenizer.decode(hypothesis.ids),
                    hypothesis.score,
                    tuple(self._tokenizer.pieces(hypothesis.ids)),
                    tuple(alignments.get((i, n), ())),
                    log_prob=hypothesis.log_prob,
                )
                for n, hypothesis in enumerate(found[i])
            ]
            for i, segment in enumerate(segments)
        ]

    def _forced(self, prefix: str) -> list[int]:
        if not prefix:
            return []
        return self._tokenizer.encode_targets([self._tokenizer.normalize_target(prefix)])[0]

    def _groups(
        self, segments: Sequence[Segment], wanted: Sequence[Wanted | None], settings: Settings
    ) -> Iterable[tuple[int | None, list[int]]]:
        """Segments by the beam they need, so that no line's result depends on its neighbours."""
        groups: dict[tuple[bool, int | None], list[int]] = {}
        for i, one in enumerate(wanted):
            beam = one.beams(settings.search.beam) if one is not None and one.must else None
            groups.setdefault((one is None, beam), []).append(i)
            if one is not None and beam is not None:
                self._check_room(segments[i], one, settings.search)
        return [(beam, group) for (_, beam), group in groups.items()]

    def _check_room(self, segment: Segment, wanted: Wanted, options: SearchOptions) -> None:
        longest = len(self._tokenizer.encode(segment.text)) + options.max_extra
        if wanted.pieces > longest:
            raise ConfigError(
                f"what must be in the translation of '{_brief(segment.text)}' has "
                f"{wanted.pieces} pieces, and {longest} are allowed; raise max_extra"
            )

    def _finder(self, beam: int | None, settings: Settings) -> Find:
        """Of one group; `beam` is None where nothing must be contained."""

        def find(
            rows: Rows, forced: list[list[int]] | None, constraint: Constraint | None
        ) -> list[list[Hypothesis]]:
            model, options = self._model, settings.search
            if beam is not None:
                if options.groups > 1:
                    raise ConfigError("diverse beams cannot contain certain phrases; leave one out")
                assert isinstance(constraint, Lexical)
                wide = replace(options, beam=beam)
                return banked_search(model, rows, wide, constraint, prefixes=forced)
            if settings.sampling is not None:
                return sample(
                    model, rows, settings.sampling, prefixes=forced, constraint=constraint
                )
            return search(model, rows, options, prefixes=forced, constraint=constraint)

        return find

    def _constrain(self, wanted: Sequence[Wanted]) -> Callable[[Sequence[int]], Constraint] | None:
        if not wanted:
            return None
        device: torch.device = next(self._model.parameters()).device
        return lambda rows: Lexical([wanted[i] for i in rows], self._model.targets, device)

    def _align(
        self, sources: Sequence[Sequence[int]], found: Sequence[Sequence[Hypothesis]]
    ) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """The word alignment of every hypothesis, by (sentence, rank)."""
        keys = [(i, n) for i, row in enumerate(found) for n in range(len(row))]
        lengths = [len(sources[i]) + len(found[i][n].ids) for i, n in keys]
        alignments = {}
        for batch in by_length(lengths, self._config.search.batch_tokens):
            pairs = [keys[k] for k in batch]
            source = [sources[i] for i, _ in pairs]
            target = [found[i][n].ids for i, n in pairs]
            seen = source_attention(self._model, source, target)
            for key, weights, s, t in zip(pairs, seen, source, target, strict=True):
                alignments[key] = word_alignment(weights, self._tokenizer, s, t)
        return alignments

    # --- joining ---

    def _join(self, text: str, parts: list[Translation]) -> Translation:
        """The segments of a line as one translation; alternative n joins the n-th of each."""
        if not parts:
            return Translation(text, "", 0.0, ())
        if len(parts) == 1:
            return replace(parts[0], source=text)
        ranked = [[part, *part.alternatives] for part in parts]
        shortest = min(map(len, ranked))
        whole = [self._joined(text, [row[n] for row in ranked]) for n in range(shortest)]
        return replace(whole[0], alternatives=tuple(whole[1:]))

    def _joined(self, text: str, parts: list[Translation]) -> Translation:
        joined = self.space.join(part.text for part in parts)
        source_places = _places([part.source for part in parts], self._tokenizer.normalize(text))
        target_places = _places([part.text for part in parts], joined)
        pairs = {
            (sources[s], targets[t])
            for part, sources, targets in zip(parts, source_places, target_places, strict=True)
            for s, t in part.alignment
        }
        return Translation(
            text,
            joined,
            sum(part.score for part in parts),
            tuple(token for part in parts for token in part.tokens),
            tuple(sorted(pairs)),
            log_prob=sum(part.log_prob for part in parts),
        )


def _places(parts: Sequence[str], whole: str) -> list[list[int]]:
    """For each word of each part, the word of the whole it begins in.

    A part may begin or end inside a word: where a word without end was cut, or where the
    language has no spaces.
    """
    ends = list(accumulate(map(len, whole.split())))
    places, characters = [], 0
    for part in parts:
        row = []
        for word in part.split():
            row.append(bisect_right(ends, characters))
            characters += len(word)
        places.append(row)
    return places


def _brief(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _impossible(segment: Segment) -> str:
    return (
        f"no translation of '{_brief(segment.text)}' contains and does not contain what it must; "
        "ask for less, or raise max_extra"
    )
