"""A translator's pipeline cuts sentences where needed, searches, checks and decodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.inference.alignment import word_alignment
from dragoman.inference.engine import Engine
from dragoman.inference.fault_detection import DivideSource, Repair, repair
from dragoman.inference.join_translations import Between, Parts, join_translations
from dragoman.inference.segment_requirements import SegmentRequirements
from dragoman.inference.translation_types import (
    DecodingSettings,
    Issue,
    Request,
    Segment,
    Translation,
)
from dragoman.search import Hypothesis, SearchOptions
from dragoman.search.constraints.requirements import OutputRequirements
from dragoman.text.languages import written_without_spaces
from dragoman.text.long_sentences import split_lines
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.inference.torch_engine import TorchEngine


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
        language = config.data.target_language
        self.separator = "" if language and written_without_spaces(language) else " "
        self._torch_engine, self._engine = torch_engine, engine
        self.requirements = SegmentRequirements(tokenizer, target_has_spaces=bool(self.separator))
        """It says what is required of pieces where something is asked of a translation."""
        self._tokenizer, self._config, self._warn = tokenizer, config, warn

    def translate(
        self, requests: Sequence[Request], settings: DecodingSettings
    ) -> list[Translation]:
        """Return the translations, in the requests' order."""
        segments = self._split(requests, settings)
        if any(one.must for one in segments) and settings.sampling is None:
            segments = self.requirements.assign_phrases(
                segments, lambda some: self._translate_segments(some, settings.without_choice())
            )
        parts: list[list[Between | Translation]] = [[] for _ in requests]
        for segment, found in zip(
            segments, self._translate_segments(segments, settings), strict=True
        ):
            best = replace(found[0], alternatives=tuple(found[1:]))
            parts[segment.request].append(best)
            if segment.separator is not None:
                parts[segment.request].append(Between("", segment.separator))
        return [self._join(r.text, part) for r, part in zip(requests, parts, strict=True)]

    def _join(self, text: str, parts: Parts) -> Translation:
        """Join the segments of a sentence; one without words has none."""
        if not parts:
            return Translation(text, "", 0.0, ())
        joined = join_translations(text, parts, self._tokenizer.normalize)
        if len(parts) == 1:
            return joined
        cut = Issue("cut", f"{len(parts) // 2 + 1} parts")
        return replace(joined, issues=(*joined.issues, cut))

    # --- segments ---

    def _split(self, requests: Sequence[Request], settings: DecodingSettings) -> list[Segment]:
        limit = self._config.data.max_length - (settings.tag is not None)
        lines = [self._tokenizer.normalize(request.text) for request in requests]
        split = split_lines(lines, self.count_pieces, limit, self._longest_piece)
        segments = []
        for number, (request, line, (texts, cut)) in enumerate(
            zip(requests, lines, split, strict=True)
        ):
            if cut:
                self._warn(
                    f"a sentence of more than {limit} pieces was cut into parts: "
                    f"{line[:60].strip()}…"
                )
            separators = self._separators(line, texts)
            for place, text in enumerate(texts if line else ()):
                segments.append(
                    Segment(
                        number,
                        text,
                        request.prefix if place == 0 else "",
                        request.must,
                        request.must_not,
                        separators[place],
                        request.group if request.group >= 0 else ~number,
                        request.align or settings.align,
                    )
                )
        return segments

    def _separators(self, line: str, texts: Sequence[str]) -> list[str | None]:
        """Return what joins the translations of the texts that a line was cut into.

        A word without end was cut within, and is joined again without a space.
        """
        languages = self._config.data.languages
        if len(texts) < 2 or (languages and written_without_spaces(languages[0])):
            return [*[self.separator] * (len(texts) - 1), None]
        places = [place for place, character in enumerate(line) if character != " "]
        ends = accumulate(len(text.replace(" ", "")) for text in texts)
        after = [line[places[end - 1] + 1 :][:1] for end in ends]
        return [*(self.separator if one == " " else "" for one in after[:-1]), None]

    def _longest_piece(self) -> int:
        return self._tokenizer.longest_piece

    def count_pieces(self, texts: Sequence[str]) -> list[int]:
        """Return how many pieces each normalised text has."""
        return list(map(len, self._tokenizer.encode_normalized(texts)))

    def _encode(self, texts: Sequence[str], settings: DecodingSettings) -> list[list[int]]:
        """Return the ids of sources, with the tag that is asked for before them."""
        ids = self._tokenizer.encode_batch(texts)
        return ids if settings.tag is None else [[settings.tag, *one] for one in ids]

    # --- search ---

    def _translate_segments(
        self, segments: Sequence[Segment], settings: DecodingSettings
    ) -> list[list[Translation]]:
        """Return the translations of every segment, best first."""
        ids = self._encode([one.text for one in segments], settings) if segments else []
        found = self._find(segments, ids, settings)
        repairs = self._repair(segments, ids, found, settings)
        for i, one in repairs.items():
            others = [other for other in found[i] if other.ids and other not in one.found]
            found[i] = [*one.found, *others][: settings.search.n_best]
        alignments = self._align(segments, ids, found)
        translations = [
            [
                Translation(
                    segment.text,
                    self._tokenizer.decode(hypothesis.ids),
                    hypothesis.score,
                    tuple(self._tokenizer.pieces(hypothesis.ids)),
                    tuple(alignments.get((i, n), ())),
                    log_prob=hypothesis.log_prob,
                    log_probs=tuple(hypothesis.log_probs),
                )
                for n, hypothesis in enumerate(found[i])
            ]
            for i, segment in enumerate(segments)
        ]
        for i, one in repairs.items():
            rest = [other for other in translations[i][1:] if other.text.strip()]
            translations[i] = [_without_fault(translations[i][0], one), *rest]
        return translations

    def _repair(
        self,
        segments: Sequence[Segment],
        ids: Sequence[Sequence[int]],
        found: Sequence[list[Hypothesis]],
        settings: DecodingSettings,
    ) -> dict[int, Repair]:
        """Search segments again whose translations are empty, loop or are far too short or long.

        What must be said is said as it was asked for; such segments are left alone.
        """
        settings = settings.without_choice()
        if not settings.checked or settings.sampling is not None:
            return {}
        checked = [i for i, one in enumerate(segments) if not one.constrained]
        texts = [segments[i].text for i in checked]
        source_language, target_language = self._config.data.languages or ("", "")

        def search_again(numbers: Sequence[int], options: SearchOptions) -> list[list[Hypothesis]]:
            asked = [checked[number] for number in numbers]
            some, changed = [segments[i] for i in asked], replace(settings, search=options)
            return self._search(some, [ids[i] for i in asked], changed)

        def divide(number: int, pieces: int) -> list[str]:
            [(parts, _)] = split_lines(
                [texts[number]], self.count_pieces, pieces, self._longest_piece
            )
            return parts

        def search_parts(
            sources: Sequence[Sequence[int]], options: SearchOptions
        ) -> list[list[Hypothesis]]:
            some = [segments[checked[0]]] * len(sources)
            return self._search(some, sources, replace(settings, search=options))

        repairs, _ = repair(
            [ids[i] for i in checked],
            texts,
            [found[i] for i in checked],
            [self._tokenizer.decode(found[i][0].ids) for i in checked],
            settings.search,
            search_again,
            self._tokenizer.decode,
            DivideSource(divide, lambda parts: self._encode(parts, settings), search_parts),
            (source_language, target_language),
        )
        return {checked[number]: one for number, one in repairs.items()}

    def _align(
        self,
        segments: Sequence[Segment],
        ids: Sequence[Sequence[int]],
        found: Sequence[Sequence[Hypothesis]],
    ) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Return the word alignments that are asked for, by (segment, rank)."""
        asked = [i for i, one in enumerate(segments) if one.align]
        if not asked:
            return {}
        if self._engine is not None:
            keys = [(i, rank) for i in asked for rank in range(len(found[i]))]
            sources = [ids[i] for i, _ in keys]
            targets = [found[i][rank].ids for i, rank in keys]
            forced = self._engine.force_decode(sources, targets)
            if forced is not None:
                several = zip(keys, forced, sources, targets, strict=True)
                return {
                    key: word_alignment(one.attention, self._tokenizer, source, target)
                    for key, one, source, target in several
                }
        if not self._torch_engine().aligns:
            return {}
        aligned = self._torch_engine().align([ids[i] for i in asked], [found[i] for i in asked])
        return {(asked[i], rank): pairs for (i, rank), pairs in aligned.items()}

    def _find(
        self, segments: Sequence[Segment], ids: Sequence[Sequence[int]], settings: DecodingSettings
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of segments: what search finds, or what is chosen of it."""
        if settings.choice is None:
            return self._search(segments, ids, settings)
        from dragoman.inference.candidates import choose_candidates  # plain translations need none

        wide = settings
        if settings.sampling is None:
            search = replace(settings.search, n_best=settings.candidates)
            wide = replace(settings, search=search)
        found = self._search(segments, ids, wide)
        texts = [one.text for one in segments]
        return choose_candidates(settings, texts, found, self._tokenizer.decode)

    def _search(
        self, segments: Sequence[Segment], ids: Sequence[Sequence[int]], settings: DecodingSettings
    ) -> list[list[Hypothesis]]:
        """Search with the engine where it can, whatever other segments ask for, or with PyTorch."""
        options, engine = settings.search, self._engine
        if settings.sampling is not None and any(one.must for one in segments):
            raise ConfigError("what a translation must contain needs search; leave out sampling")
        sampling = settings.sampling
        if engine is not None and not (
            engine.supports(options) if sampling is None else engine.supports_sampling(sampling)
        ):
            engine = None

        def search_required(
            some: Sequence[Sequence[int]],
            options: SearchOptions,
            requirements: Sequence[OutputRequirements],
        ) -> list[list[Hypothesis]]:
            several = None
            if engine is not None and sampling is not None:
                several = engine.sample(some, sampling, requirements)
            elif engine is not None:
                several = engine.search_constrained(some, options, requirements)
            if several is None:
                return self._torch_engine().search(some, sampling or options, requirements)
            return several

        found: list[list[Hypothesis]] = [[] for _ in segments]
        free = [i for i, one in enumerate(segments) if not one.constrained]
        if free:
            some = [ids[i] for i in free]
            several = (
                engine.search(some, options)
                if engine is not None and sampling is None
                else search_required(some, options, [OutputRequirements()] * len(some))
            )
            for i, hypotheses in zip(free, several, strict=True):
                found[i] = hypotheses
        if bound := [i for i, one in enumerate(segments) if one.constrained]:
            several = self.requirements.search(
                [segments[i] for i in bound], [ids[i] for i in bound], options, search_required
            )
            for i, hypotheses in zip(bound, several, strict=True):
                found[i] = hypotheses
        return found


def _without_fault(found: Translation, repaired: Repair) -> Translation:
    """Return a translation that says what was wrong; one without words is the source instead."""
    left = repaired.left
    issue = Issue(repaired.fault.kind, repaired.fault.detail, repaired=left is None)
    text, alignment = found.text, found.alignment
    if left is not None and "\ufffd" not in found.source and "\ufffd" in text:
        text = " ".join(text.replace("\ufffd", "").split())
        alignment = alignment if len(text.split()) == len(found.text.split()) else ()
    if left is not None and not any(map(str.isalnum, text)):
        text = found.source
        alignment = tuple((n, n) for n in range(len(text.split())))
    return replace(found, text=text, alignment=alignment, issues=(*found.issues, issue))
