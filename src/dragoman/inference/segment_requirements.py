"""What a segment's translation must be is checked, and compiled to requirements on pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from dragoman.errors import ConfigError
from dragoman.inference.translation_types import Segment, Translation
from dragoman.search.constraints.phrases import PhraseCompiler, PhraseRequirements
from dragoman.search.constraints.requirements import OutputRequirements
from dragoman.search.options import Hypothesis, SearchOptions, longest_output
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import contains_phrase

Find = Callable[
    [list[Sequence[int]], SearchOptions, list[OutputRequirements]], list[list[Hypothesis]]
]
"""Such a function searches sentences, given by their pieces, for what is required of each."""


class SegmentRequirements:
    """Compile what is asked of segments, and search for what meets it."""

    def __init__(self, tokenizer: Tokenizer, *, target_has_spaces: bool) -> None:
        """Use a model's tokeniser; `target_has_spaces` between its words."""
        self._tokenizer, self._target_has_spaces = tokenizer, target_has_spaces
        self.phrases = PhraseCompiler(tokenizer, tokenizer.sizes[1], whole_words=target_has_spaces)

    def encode_prefix(self, prefix: str) -> list[int]:
        """Return the pieces that a translation begins with."""
        if not prefix:
            return []
        return self._tokenizer.encode_targets([self._tokenizer.normalize_target(prefix)])[0]

    def search(
        self,
        segments: Sequence[Segment],
        ids: Sequence[Sequence[int]],
        options: SearchOptions,
        find: Find,
    ) -> list[list[Hypothesis]]:
        """Return what `find` finds of each segment; `ids` are its pieces.

        Segments that need the same beam are searched together, so that no result depends on others.
        """
        required = [self._compile(one) for one in segments]
        groups: dict[tuple[bool, bool, int], list[int]] = {}
        for i, one in enumerate(required):
            beam, phrases = options.beam, one.phrases
            contains = phrases is not None and len(phrases.must) > 0
            if phrases is not None and contains:
                if options.groups > 1:
                    raise ConfigError(
                        "diverse beams cannot be made to contain phrases; leave one out"
                    )
                _check_length(segments[i], len(ids[i]), phrases, options)
                beam = phrases.beam_width(beam)
            groups.setdefault((phrases is None, contains, beam), []).append(i)
        found: list[list[Hypothesis]] = [[] for _ in segments]
        for (_, _, beam), group in groups.items():
            several = find(
                [ids[i] for i in group], replace(options, beam=beam), [required[i] for i in group]
            )
            for i, hypotheses in zip(group, several, strict=True):
                if required[i].phrases is not None and hypotheses[0].score == -inf:
                    raise ConfigError(_describe_impossible(segments[i]))
                found[i] = hypotheses
        return found

    def _compile(self, segment: Segment) -> OutputRequirements:
        phrases = None
        if segment.must or segment.must_not:
            phrases = self.phrases.compile(segment.must, segment.must_not, segment.separator)
        return OutputRequirements(self.encode_prefix(segment.prefix), phrases)

    def assign_phrases(
        self,
        segments: Sequence[Segment],
        find: Callable[[Sequence[Segment]], list[list[Translation]]],
    ) -> list[Segment]:
        """Assign each phrase of a text in several segments to the one where it costs least."""
        parts: dict[int, list[int]] = {}
        for place, one in enumerate(segments):
            if one.must:
                parts.setdefault(one.group, []).append(place)
        shared = list(segments)
        for places in parts.values():
            if len(places) < 2:
                continue
            given: dict[int, list[str]] = {place: [] for place in places}
            free = [replace(segments[place], must=()) for place in places]
            plain = [found[0] for found in find(free)]
            for phrase in segments[places[0]].must:
                text = self.phrases.normalize(phrase, "must")
                there = [
                    contains_phrase(text, one.text, whole_words=self._target_has_spaces)
                    for one in plain
                ]
                if any(there):
                    given[places[there.index(True)]].append(phrase)
                    continue
                tried = find([replace(one, must=(phrase,)) for one in free])
                losses = [
                    one.log_prob - found[0].log_prob
                    for one, found in zip(plain, tried, strict=True)
                ]
                given[places[losses.index(min(losses))]].append(phrase)
            for place in places:
                shared[place] = replace(segments[place], must=tuple(given[place]))
        return shared


def _check_length(
    segment: Segment, pieces: int, wanted: PhraseRequirements, options: SearchOptions
) -> None:
    longest = longest_output(pieces, options)
    if wanted.min_pieces > longest:
        raise ConfigError(
            f"what must be in the translation of '{_shorten(segment.text)}' has "
            f"{wanted.min_pieces} pieces, and {longest} are allowed; raise max_extra"
        )


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _describe_impossible(segment: Segment) -> str:
    return (
        f"no translation of '{_shorten(segment.text)}' meets all that is asked for; ask for less, "
        "or raise max_extra"
    )
