"""From requests to translations: cut, encode, search, align and join again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from dragoman.config import Config
from dragoman.inference.engine import Searcher
from dragoman.inference.translation import Request, Segment, Settings, Translation
from dragoman.search import Hypothesis
from dragoman.text.sentence_splitting import split_lines
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.inference.torch_engine import ByModel

__all__ = ["NO_SPACES", "Decoder"]

NO_SPACES = frozenset({"zh", "ja", "th", "lo", "km", "my"})
"""Languages written without spaces between words."""


class Decoder:
    """What searches and its tokeniser, put to work on text."""

    def __init__(
        self,
        by_model: Callable[[], ByModel],
        tokenizer: Tokenizer,
        config: Config,
        warn: Callable[[str], None],
        engine: Searcher | None = None,
    ) -> None:
        """What an `engine` can do is not asked of the model."""
        languages = config.data.languages
        self.space = "" if languages and languages[1] in NO_SPACES else " "
        self._by_model, self._engine = by_model, engine
        self._tokenizer, self._config, self._warn = tokenizer, config, warn

    def run(self, requests: Sequence[Request], settings: Settings) -> list[Translation]:
        """The translations, in the requests' order."""
        segments = self._cut(requests)
        if any(one.must for one in segments) and settings.sampling is None:
            segments = self._by_model().share_out(segments, lambda some: self._find(some, settings))
        parts: list[list[Translation]] = [[] for _ in requests]
        for segment, found in zip(segments, self._find(segments, settings), strict=True):
            parts[segment.owner].append(replace(found[0], alternatives=tuple(found[1:])))
        return [self._join(r.text, part) for r, part in zip(requests, parts, strict=True)]

    # --- segments ---

    def _cut(self, requests: Sequence[Request]) -> list[Segment]:
        limit = self._config.data.max_length
        lines = [self._tokenizer.normalize(request.text) for request in requests]
        split = split_lines(lines, self._count, limit, self._tokenizer.longest_piece)
        segments = []
        for number, (request, line, (texts, cut)) in enumerate(
            zip(requests, lines, split, strict=True)
        ):
            if cut:
                self._warn(
                    f"a sentence of more than {limit} pieces was cut into parts: "
                    f"{line[:60].strip()}…"
                )
            for place, text in enumerate(texts if line else ()):
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

    def _count(self, texts: Sequence[str]) -> list[int]:
        return list(map(len, self._tokenizer.encode_normalized(texts)))

    # --- search ---

    def _find(self, segments: Sequence[Segment], settings: Settings) -> list[list[Translation]]:
        """The translations of every segment, best first."""
        ids = self._tokenizer.encode_batch([one.text for one in segments]) if segments else []
        found = self._search(segments, ids, settings)
        alignments = self._by_model().align(ids, found) if settings.align and segments else {}
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

    def _search(
        self, segments: Sequence[Segment], ids: Sequence[Sequence[int]], settings: Settings
    ) -> list[list[Hypothesis]]:
        """By the engine what it can do, whatever the neighbours ask for; by the model the rest."""
        engine, rest = self._engine, list(range(len(segments)))
        found: list[list[Hypothesis]] = [[] for _ in segments]
        if engine is not None and settings.sampling is None and engine.serves(settings.search):
            quick = [i for i in rest if segments[i].free]
            rest = [i for i in rest if not segments[i].free]
            several = engine.search([ids[i] for i in quick], settings.search)
            for i, hypotheses in zip(quick, several, strict=True):
                found[i] = hypotheses
        if rest:
            asked = [segments[i] for i in rest]
            several = self._by_model().search(asked, [ids[i] for i in rest], settings)
            for i, hypotheses in zip(rest, several, strict=True):
                found[i] = hypotheses
        return found

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
        return Translation(
            text,
            joined,
            sum(part.score for part in parts),
            tuple(token for part in parts for token in part.tokens),
            self._alignment(text, joined, parts),
            log_prob=sum(part.log_prob for part in parts),
        )

    def _alignment(
        self, source: str, target: str, parts: Sequence[Translation]
    ) -> tuple[tuple[int, int], ...]:
        """The parts' alignments, by the words of the whole."""
        if not any(part.alignment for part in parts):
            return ()
        source_places = _places([part.source for part in parts], self._tokenizer.normalize(source))
        target_places = _places([part.text for part in parts], target)
        pairs = {
            (sources[s], targets[t])
            for part, sources, targets in zip(parts, source_places, target_places, strict=True)
            for s, t in part.alignment
        }
        return tuple(sorted(pairs))


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
