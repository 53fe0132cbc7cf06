"""The translator: it turns text into text for the command line, the server and evaluation."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from dragoman.config import Config
from dragoman.errors import ConfigError, ModelError
from dragoman.inference.engine import Engine
from dragoman.inference.glossary import Glossary, GlossaryTranslator
from dragoman.inference.loading import (
    Precision,
    Predictor,
    attach_draft_model,
    attach_shortlist,
    load_for_inference,
)
from dragoman.inference.protection import find_copied_words, translate_protected
from dragoman.inference.translation_types import (
    Alternative,
    DecodingSettings,
    Request,
    ScoredTranslation,
    Segment,
    Translation,
)
from dragoman.model_directory import LoadedModel
from dragoman.search import Hypothesis, SamplingOptions, SearchOptions
from dragoman.text.languages import written_without_spaces
from dragoman.text.sentence_splitting import split_lines
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.inference.torch_engine import TorchEngine
    from dragoman.inspection.saved_page import Inspection

PhraseLists = Sequence[str] | Sequence[Sequence[str]]
"""Phrases are given for all texts; or, if they are lists themselves, for each."""


class Translator(Predictor):
    """Translate text with a loaded model, or with several that have the same pieces as one."""

    def __init__(
        self, loaded: LoadedModel, *others: LoadedModel, engine: Engine | None = None
    ) -> None:
        """Refuse parsers, and models that have not the same pieces; see Predictor."""
        for one in (loaded, *others):
            if one.config.data.task != "translation":
                raise ModelError(f"{one.path}: a parser; use it with dragoman parse")
            if one.tokenizer != loaded.tokenizer:
                raise ModelError(
                    f"{one.path}: has other pieces than {loaded.path}; an ensemble is trained on "
                    "one prepared corpus, or with one tokeniser"
                )
        super().__init__(loaded, *others, engine=engine)
        self._glossaries: dict[Glossary, GlossaryTranslator] = {}

    def use_shortlist(self) -> None:
        """Compute only the pieces that the model's shortlist has for a text, from now on."""
        attach_shortlist(self._loaded[0], self._engine)

    @overload
    def translate(self, text: str, **options: Any) -> Translation: ...

    @overload
    def translate(self, text: Sequence[str], **options: Any) -> list[Translation]: ...

    def translate(  # type: ignore[misc]  # the overloads do not repeat the options
        self,
        text: str | Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
        min_length: int | None = None,
        max_extra: int | None = None,
        prefix: str | Sequence[str] | None = None,
        must: PhraseLists = (),
        must_not: PhraseLists = (),
        diverse: int = 1,
        diversity: float | None = None,
        glossary: Glossary | None = None,
        protect: bool = False,
        sampling: SamplingOptions | None = None,
        align: bool = False,
    ) -> Translation | list[Translation]:
        """Translate a text, or several; what is not given is as the model's config says.

        `prefix` is how a translation must begin: one for all texts, or one for each. `must` and
        `must_not` are phrases it contains, and does not, as whole words. With `diverse` the beam is
        so many groups that avoid each other. A `glossary` says how terms are translated. With
        `protect` URLs, addresses, tags and placeholders stay as they are. With `sampling`
        translations are drawn instead of searched for. With `align` each translation says which
        source word a word comes from; without attention to the source there is nothing to align by.
        A text without words has an empty translation, whatever it must be.
        """
        texts = [text] if isinstance(text, str) else list(text)
        wide = max(self.config.search.beam * max(1, diverse), n_best)
        options = SearchOptions.from_config(
            self.config.search,
            beam=beam if beam is not None else wide,
            n_best=n_best,
            length_penalty=length_penalty,
            min_length=min_length,
            max_extra=max_extra,
            groups=diverse,
            diversity=diversity,
        )
        rewrites = glossary is not None or protect
        settings = DecodingSettings(options, sampling, (align or rewrites) and self.aligns)
        requests = _make_requests(texts, prefix, must, must_not)
        if sampling is not None and (diverse > 1 or glossary is not None):
            raise ConfigError("diverse beams and a glossary need search; leave out sampling")

        def run(some: Sequence[Request]) -> list[Translation]:
            return self._pipeline.translate(some, settings)

        def run_with_glossary(some: Sequence[Request]) -> list[Translation]:
            return (
                run(some)
                if glossary is None
                else self._glossary_translator(glossary).translate(some, run)
            )

        if protect:
            found = translate_protected(requests, run_with_glossary, lambda: self._copied_words)
        else:
            found = run_with_glossary(requests)
        return found[0] if isinstance(text, str) else found

    @cached_property
    def aligns(self) -> bool:
        """Return whether the model has attention to read an alignment off."""
        if self._engine is not None:  # which only Transformers have
            return True
        return self._torch_engine.aligns

    def translate_lines(
        self, lines: Iterable[str], *, window: int | None = None, **options: Any
    ) -> Iterator[Translation]:
        """Translate any number of lines, in order, holding one window of them in memory.

        By default that is 2,000 lines, and 20,000 where the GPU engine translates. Where a line
        cannot be read, those before it are translated first.
        """
        for some in self._windows(lines, window):
            yield from self.translate(some, **options)

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, length_penalty: float | None = None
    ) -> list[ScoredTranslation]:
        """Return how probable each target is as the translation of its source."""
        alpha = self.config.search.length_penalty if length_penalty is None else length_penalty
        return self._torch_engine.score(sources, targets, alpha)

    def alternatives(
        self, text: str, prefix: str = "", count: int = 5, *, beam: int | None = None
    ) -> list[Alternative]:
        """Return the likeliest next words of a translation that begins with `prefix`, best first.

        Each comes with the best translation that begins so. The prefix is whole words; a long text
        is not cut, so that it has to be a sentence.
        """
        if count < 1:
            raise ConfigError(f"{count} alternatives are too few; the least is 1")
        source = self.tokenizer.encode(text)
        if not source:
            return []
        options = SearchOptions.from_config(self.config.search, beam=beam)
        return self._torch_engine.alternatives(source, prefix, count, options)

    def inspect(self, text: str, *, translation: str | None = None) -> Inspection:
        """Return attention, search and numbers of a sentence, to show in a notebook or to save."""
        from dragoman.inspection.saved_page import inspect

        return inspect(self, text, translation=translation)

    def _glossary_translator(self, glossary: Glossary) -> GlossaryTranslator:
        """Return a glossary that is ready to be used with this translator, made once."""
        if glossary not in self._glossaries:
            source, target = self.config.data.languages or ("", "")
            self._glossaries[glossary] = GlossaryTranslator(
                glossary,
                self.tokenizer.normalize,
                source_has_spaces=not written_without_spaces(source),
                target_has_spaces=not written_without_spaces(target),
            )
        return self._glossaries[glossary]

    @cached_property
    def _copied_words(self) -> list[str]:
        """Return words that the model copies, to stand for what is not to be translated."""
        vocabulary = [piece[1:] for piece in self.tokenizer.vocabulary if piece.startswith("▁")]
        greedy = DecodingSettings(SearchOptions.from_config(self.config.search, beam=1))
        return find_copied_words(vocabulary, lambda some: self._pipeline.translate(some, greedy))

    @cached_property
    def _pipeline(self) -> TranslationPipeline:
        return TranslationPipeline(
            lambda: self._torch_engine,
            self.tokenizer,
            self.config,
            lambda message: self.warn(message),
            self._engine,
        )

    @cached_property
    def _torch_engine(self) -> TorchEngine:
        """Return what does all that the engine does not; it imports PyTorch."""
        from dragoman.inference.torch_engine import TorchEngine

        spaces = bool(self._pipeline.separator)
        return TorchEngine(self.model, self.tokenizer, self.config, target_has_spaces=spaces)


def _make_requests(
    texts: Sequence[str],
    prefix: str | Sequence[str] | None,
    must: PhraseLists,
    must_not: PhraseLists,
) -> list[Request]:
    prefixes = [prefix or ""] * len(texts) if isinstance(prefix, str | None) else list(prefix)
    if len(prefixes) != len(texts):
        raise ConfigError(f"{len(prefixes)} prefixes for {len(texts)} texts; give one for each")
    wanted, banned = (
        _phrases_of_each(p, len(texts), n) for p, n in ((must, "must"), (must_not, "must_not"))
    )
    return list(map(Request, texts, prefixes, wanted, banned))


def _phrases_of_each(phrases: PhraseLists, texts: int, name: str) -> list[tuple[str, ...]]:
    """Return the phrases of each text."""
    if isinstance(phrases, str):
        raise ConfigError(f"{name} is a list of phrases; write {name}=[{phrases!r}]")
    if all(isinstance(phrase, str) for phrase in phrases):
        return [tuple(phrase for phrase in phrases if isinstance(phrase, str))] * texts
    if len(phrases) != texts:
        raise ConfigError(
            f"{name} has lists of phrases for {len(phrases)} texts, and there are {texts}"
        )
    return [tuple(each) for each in phrases]


def load(
    path: Path | str,
    *others: Path | str,
    device: str = "auto",
    precision: Precision = "auto",
    draft: Path | str | None = None,
    shortlist: bool = False,
) -> Translator:
    """Load the translator in a model directory, or the one of a run; several are an ensemble.

    `auto` is int8 on a CPU and bf16 on a GPU wherever the engine there supports the model. On a
    CPU a `draft`, a smaller model of the same pieces, makes greedy search faster where texts come
    one by one; what is found is the same. With its `shortlist` a model computes only the pieces
    that a text may need, and some translations change.
    """
    loaded, engine = load_for_inference((path, *others), device, precision)
    if draft is not None:
        attach_draft_model(loaded[0], engine, draft)
    translator = Translator(*loaded, engine=engine)
    if shortlist:
        translator.use_shortlist()
    return translator


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
