"""The way from requests to translations: split, encode, search, align and join again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from dragoman.config import Config
from dragoman.inference.engine import Engine
from dragoman.inference.translation import DecodingSettings, Request, Segment, Translation
from dragoman.search import Hypothesis
from dragoman.text.languages import written_without_spaces
from dragoman.text.sentence_splitting import split_lines
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.inference.torch_engine import TorchEngine

__all__ = ["TranslationPipeline"]


class TranslationPipeline:
    """Translate requests with an engine, or PyTorch, and the model's tokeniser."""

    def __init__(
        self,
        torch_engine: Callable[[], TorchEngine],
        tokenizer: Tokenizer,
        config: Config,
        warn: Callable[[str], None],
        engine: Engine | None = None,
    ) -> None:
        """Use the `torch_engine` only for what the `engine` does not do."""
        languages = config.data.languages
        self.separator = "" if languages and written_without_spaces(languages[1]) else " "
        self._torch_engine, self._engine = torch_engine, engine
        self._tokenizer, self._config, self._warn = tokenizer, config, warn

    def translate(
        self, requests: Sequence[Request], settings: DecodingSettings
    ) -> list[Translation]:
        """Return the translations, in the requests' order."""
        segments = self._split(requests)
        if any(one.must for one in segments) and settings.sampling is None:
            segments = self._torch_engine().assign_phrases(
                segments, lambda some: self._translate_segments(some, settings)
            )
        parts: list[list[Translation]] = [[] for _ in requests]
        for segment, found in zip(
            segments, self._translate_segments(segments, settings), strict=True
        ):
            parts[segment.request].append(replace(found[0], alternatives=tuple(found[1:])))
        return [self._join(r.text, part) for r, part in zip(requests, parts, strict=True)]

    # --- segments ---

    def _split(self, requests: Sequence[Request]) -> list[Segment]:
        limit = self._config.data.max_length
        lines = [self._tokenizer.normalize(request.text) for request in requests]
        split = split_lines(lines, self._count_pieces, limit, self._tokenizer.longest_piece)
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
                        self.separator if place < len(texts) - 1 else None,
                    )
                )
        return segments

    def _count_pieces(self, texts: Sequence[str]) -> list[int]:
        return list(map(len, self._tokenizer.encode_normalized(texts)))

    # --- search ---

    def _translate_segments(
        self, segments: Sequence[Segment], settings: DecodingSettings
    ) -> list[list[Translation]]:
        """Return the translations of every segment, best first."""
        ids = self._tokenizer.encode_batch([one.text for one in segments]) if segments else []
        found = self._search(segments, ids, settings)
        alignments = self._torch_engine().align(ids, found) if settings.align and segments else {}
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
        self, segments: Sequence[Segment], ids: Sequence[Sequence[int]], settings: DecodingSettings
    ) -> list[list[Hypothesis]]:
        """Search with the engine where it can, whatever other segments ask for, or with PyTorch."""
        engine, rest = self._engine, list(range(len(segments)))
        found: list[list[Hypothesis]] = [[] for _ in segments]
        if engine is not None and settings.sampling is None and engine.supports(settings.search):
            quick = [i for i in rest if not segments[i].constrained]
            rest = [i for i in rest if segments[i].constrained]
            several = engine.search([ids[i] for i in quick], settings.search)
            for i, hypotheses in zip(quick, several, strict=True):
                found[i] = hypotheses
        if rest:
            asked = [segments[i] for i in rest]
            several = self._torch_engine().search(asked, [ids[i] for i in rest], settings)
            for i, hypotheses in zip(rest, several, strict=True):
                found[i] = hypotheses
        return found

    # --- joining ---

    def _join(self, text: str, parts: list[Translation]) -> Translation:
        """Join the segments of a line; alternative n joins the n-th translation of each."""
        if not parts:
            return Translation(text, "", 0.0, ())
        if len(parts) == 1:
            return replace(parts[0], source=text)
        ranked = [[part, *part.alternatives] for part in parts]
        shortest = min(map(len, ranked))
        whole = [self._concatenate(text, [row[n] for row in ranked]) for n in range(shortest)]
        return replace(whole[0], alternatives=tuple(whole[1:]))

    def _concatenate(self, text: str, parts: list[Translation]) -> Translation:
        joined = self.separator.join(part.text for part in parts)
        return Translation(
            text,
            joined,
            sum(part.score for part in parts),
            tuple(token for part in parts for token in part.tokens),
            self._join_alignments(text, joined, parts),
            log_prob=sum(part.log_prob for part in parts),
        )

    def _join_alignments(
        self, source: str, target: str, parts: Sequence[Translation]
    ) -> tuple[tuple[int, int], ...]:
        """Return the parts' alignments, by the words of the whole."""
        if not any(part.alignment for part in parts):
            return ()
        source_words = _word_numbers(
            [part.source for part in parts], self._tokenizer.normalize(source)
        )
        target_words = _word_numbers([part.text for part in parts], target)
        pairs = {
            (sources[s], targets[t])
            for part, sources, targets in zip(parts, source_words, target_words, strict=True)
            for s, t in part.alignment
        }
        return tuple(sorted(pairs))


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
