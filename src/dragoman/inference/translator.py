"""The translator turns text into text for the command line, the server and evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from dragoman.errors import ConfigError, ModelError
from dragoman.inference.alternatives import Flags, find_alternatives
from dragoman.inference.confidence import Calibration
from dragoman.inference.engine import Engine, NextPieces
from dragoman.inference.letter_case import translate_cased
from dragoman.inference.loading import (
    Precision,
    Predictor,
    attach_draft_model,
    attach_shortlist,
    load_for_inference,
)
from dragoman.inference.model_chains import find_named_chain
from dragoman.inference.pipeline import TranslationPipeline
from dragoman.inference.protection import ProtectedTranslator
from dragoman.inference.scoring import score_pairs
from dragoman.inference.text_layout import TextLayout
from dragoman.inference.translation_types import (
    DEFAULT_CANDIDATES,
    Alternative,
    DecodingSettings,
    Request,
    ScoredTranslation,
    TranslateFunction,
    Translation,
)
from dragoman.model_directory import LoadedModel
from dragoman.search import Hypothesis, SamplingOptions, SearchOptions
from dragoman.search.constraints.requirements import OutputRequirements
from dragoman.system.packages import require_package
from dragoman.text.formality import choose_tag
from dragoman.text.languages import written_without_spaces

if TYPE_CHECKING:
    from dragoman.inference.glossary import Glossary, GlossaryTranslator
    from dragoman.inference.torch_engine import TorchEngine
    from dragoman.inference.translation_memory import TranslationMemory
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

    @property
    def through(self) -> str:
        """Return the code of the language in between, where two models translate."""
        return ""

    def require_one_model(self, purpose: str) -> None:
        """Raise ConfigError if two models translate; `purpose` says what needs a single one."""

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
        no_repeat_ngram: int | None = None,
        repetition_penalty: float | None = None,
        prefix: str | Sequence[str] | None = None,
        must: PhraseLists = (),
        must_not: PhraseLists = (),
        diverse: int = 1,
        diversity: float | None = None,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
        lines: bool = False,
        protect: bool = True,
        raw: bool = False,
        sampling: SamplingOptions | None = None,
        mbr: str | None = None,
        rerank: Translator | None = None,
        candidates: int | None = None,
        rerank_weight: float | None = None,
        length_reward: float | None = None,
        formality: str | None = None,
        align: bool = False,
    ) -> Translation | list[Translation]:
        """Translate a text, or several; what is not given is as the model's config says.

        A text may have any number of lines and sentences. Sentences are translated one by one, and
        put together as they were laid out; lines that only a margin ended are joined. With `lines`
        each line is translated as a whole. With `protect` numbers, URLs, addresses, tags,
        placeholders and characters that the model does not know stay as they must be. With `raw`
        each text is one sentence, and what search finds is returned unchecked: to measure a model.

        `prefix` is how a translation must begin: one for all texts, or one for each. `must` and
        `must_not` are phrases it contains, and does not, as whole words. With `diverse` the beam is
        so many groups that avoid each other. A `glossary` says how terms are translated, and a
        `memory` holds translations of whole sentences. With `sampling` translations are drawn
        instead of searched for.

        With `mbr` all that a search finds, or the samples, are candidates, and the one with the
        highest expected utility wins, chrf or bleu. With `rerank`, a translator of the other
        direction, they are ranked by score + `rerank_weight` · log p(source | candidate) / length
        penalty + `length_reward` · pieces. There are so many `candidates`, by default 16, or the
        beam or the samples that are asked for; scores stay the model's own.

        With `formality` the reader is addressed so: more, less or polite, which a model without
        tags for it refuses, or prefer_more or prefer_less, which change nothing there.

        With `align` each translation says which source word a word comes
        from; without attention to the source there is nothing to align by.
        """
        texts = [text] if isinstance(text, str) else list(text)
        chosen = sampling is None and not (mbr is None and rerank is None)
        usual = self.config.search.beam * max(1, diverse)
        wide = max(n_best, candidates or DEFAULT_CANDIDATES if chosen else usual)
        options = SearchOptions.from_config(
            self.config.search,
            beam=beam if beam is not None else wide,
            n_best=n_best,
            length_penalty=length_penalty,
            min_length=min_length,
            max_extra=max_extra,
            no_repeat_ngram=no_repeat_ngram,
            repetition_penalty=repetition_penalty,
            groups=diverse,
            diversity=diversity,
        )
        if sampling is not None and (diverse > 1 or glossary is not None):
            raise ConfigError("diverse beams and a glossary need search; leave out sampling")
        if rerank is not None:
            self.require_one_model("reranking")
        settings = DecodingSettings(
            options, sampling, align=align, checked=not raw, tag=self.find_tag(formality)
        )
        rule = (mbr, rerank, candidates, rerank_weight, length_reward)
        if any(one is not None for one in rule):
            from dragoman.inference.candidates import add_choice  # plain translations need none

            settings = add_choice(settings, self._languages, *rule)
        if raw:
            requests = _make_requests(texts, prefix, must, must_not)
            found = self._translate_unchecked(requests, settings)
            return found[0] if isinstance(text, str) else found
        settings = replace(
            settings,
            search=_at_least_one_piece(settings.search),
            sampling=None if settings.sampling is None else _at_least_one_piece(settings.sampling),
        )
        layouts = [TextLayout(one, *self._languages, lines=lines) for one in texts]
        requests = _make_sentence_requests(layouts, _make_requests(texts, prefix, must, must_not))
        sentences = iter(self._translate_sentences(requests, settings, protect, glossary, memory))
        found = [
            one.join([next(sentences) for _ in one.sentences], self.tokenizer.normalize)
            for one in layouts
        ]
        return found[0] if isinstance(text, str) else found

    def find_tag(self, formality: str | None) -> int | None:
        """Return the id before every source that asks for a formality, if one is needed."""
        tags = self.tokenizer.tags if formality is not None else {}
        tag = choose_tag(formality, tags, self.path.name)
        return None if tag is None else tags[tag]

    def _translate_unchecked(
        self, requests: Sequence[Request], settings: DecodingSettings
    ) -> list[Translation]:
        """Return what search finds for sentences, with its confidence."""
        return self._calibrate(self._pipeline.translate(requests, settings))

    def _translate_sentences(
        self,
        requests: Sequence[Request],
        settings: DecodingSettings,
        protect: bool,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
    ) -> list[Translation]:
        """Translate sentences with everything that is to be kept and checked in them."""

        def search(some: Sequence[Request]) -> list[Translation]:
            return self._pipeline.translate(some, settings)

        def use_glossary(some: Sequence[Request]) -> list[Translation]:
            if glossary is None:
                return search(some)
            return self._glossary_translator(glossary).translate(some, search)

        def change_case(some: Sequence[Request]) -> list[Translation]:
            return translate_cased(some, use_glossary, self._pipeline.count_pieces)

        def protected(some: Sequence[Request]) -> list[Translation]:
            if not protect:
                return change_case(some)
            return self._protection.translate(some, change_case, aligned=settings.align)

        def remember(some: Sequence[Request]) -> list[Translation]:
            if memory is None:
                return protected(some)
            return memory.translate(some, protected, aligned=settings.align)

        return self._calibrate(translate_distinct(requests, remember))

    def _calibrate(self, found: list[Translation]) -> list[Translation]:
        """Return translations with their confidences, where the model is calibrated."""
        if self.calibration is None:
            return found
        return list(map(self.calibration.apply, found))

    @cached_property
    def aligns(self) -> bool:
        """Return whether the model has attention to read an alignment off."""
        if self._engine is not None:  # which only Transformers have
            return True
        return self._torch_engine.aligns

    def translate_lines(
        self, texts: Iterable[str], /, *, window: int | None = None, **options: Any
    ) -> Iterator[Translation]:
        """Translate any number of lines or texts, in order, holding one window of them in memory.

        By default windows grow to 2,000 texts, and to 20,000 where the GPU engine translates, so
        that the first translations come soon. Where a line cannot be read, those before it are
        translated first.
        """
        for some in self._windows(texts, window):
            yield from self.translate(some, **options)

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, length_penalty: float | None = None
    ) -> list[ScoredTranslation]:
        """Return how probable each target is as the translation of its source."""
        search = self.config.search
        return score_pairs(
            self.tokenizer,
            sources,
            targets,
            self.log_probabilities,
            alpha=search.length_penalty if length_penalty is None else length_penalty,
            longest=search.batch_tokens,
        )

    def log_probabilities(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """Return those of each target's pieces and of its end; both sides are ids, without EOS."""
        forced = self._engine.force_decode(sources, targets) if self._engine is not None else None
        if forced is None:
            return self._torch_engine.log_probabilities(sources, targets)
        return [one.log_probs.tolist() for one in forced]

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
        begun = self._pipeline.requirements.encode_prefix(prefix)

        def predict(words: Sequence[Sequence[int]], groups_GV: Flags, wide: int) -> NextPieces:
            asked = (source, begun, words, groups_GV, wide)
            found = self._engine.predict_next(*asked) if self._engine is not None else None
            return self._torch_engine.predict_next(*asked) if found is None else found

        def complete(required: list[OutputRequirements]) -> list[list[Hypothesis]]:
            asked = ([source] * len(required), options, required)
            found = self._engine.search_constrained(*asked) if self._engine is not None else None
            return self._torch_engine.search(*asked) if found is None else found

        return find_alternatives(self.tokenizer, begun, self.word_starts, count, predict, complete)

    @cached_property
    def word_starts(self) -> Flags:
        """Return which pieces a word can begin with, V; in a language without spaces, all."""
        texts = self._pipeline.requirements.phrases.spelling.texts
        spaces = bool(self._pipeline.separator)
        return np.array([text.startswith(" ") or not spaces for text in texts])

    def inspect(self, text: str, *, translation: str | None = None) -> Inspection:
        """Return attention, search and numbers of a sentence, to show in a notebook or to save."""
        from dragoman.inspection.saved_page import inspect

        return inspect(self, text, translation=translation)

    @cached_property
    def calibration(self) -> Calibration | None:
        """Return what the model's probabilities mean, if `dragoman calibrate` has learned it."""
        return Calibration.load(self.path) if len(self._loaded) == 1 else None

    @property
    def _languages(self) -> tuple[str, str]:
        """Return the codes of the source's and the target's language, empty where not known."""
        source, target = self.config.data.languages or ("", "")
        return source, target

    def _glossary_translator(self, glossary: Glossary) -> GlossaryTranslator:
        """Return a glossary that is ready to be used with this translator, made once."""
        from dragoman.inference.glossary import GlossaryTranslator

        if glossary not in self._glossaries:
            source, target = self._languages
            self._glossaries[glossary] = GlossaryTranslator(
                glossary,
                self.tokenizer.normalize,
                source_language=source,
                target_language=target,
                source_has_spaces=not written_without_spaces(source),
                target_has_spaces=not written_without_spaces(target),
                score=self._score_sentences,
            )
        return self._glossaries[glossary]

    def _score_sentences(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[ScoredTranslation]:
        """Return what `score` does; what search would cut has 0."""
        search = self.config.search
        return score_pairs(
            self.tokenizer,
            sources,
            targets,
            self.log_probabilities,
            alpha=search.length_penalty,
            longest=self.config.data.max_length + 1,
            cut=True,
        )

    @cached_property
    def _protection(self) -> ProtectedTranslator:
        """Return what keeps numbers, items and unknown characters as they must be."""
        greedy = DecodingSettings(SearchOptions.from_config(self.config.search, beam=1))
        return ProtectedTranslator(
            self.tokenizer,
            *self._languages,
            probe=lambda some: self._pipeline.translate(some, greedy),
        )

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
        require_package("torch", "such a search (samples, diverse beams, more than 64 hypotheses)")
        from dragoman.inference.torch_engine import TorchEngine

        return TorchEngine(self.model, self.tokenizer, self.config)


_Options = TypeVar("_Options", SearchOptions, SamplingOptions)


def _at_least_one_piece(options: _Options) -> _Options:
    """Return options that never give an empty translation."""
    return replace(options, min_length=max(1, options.min_length))


def _make_sentence_requests(
    layouts: Sequence[TextLayout], requests: Sequence[Request]
) -> list[Request]:
    """Return a request for each sentence; how a text must begin is how its first sentence must."""
    return [
        replace(request, text=sentence, prefix="" if place else request.prefix, group=number)
        for number, (layout, request) in enumerate(zip(layouts, requests, strict=True))
        for place, sentence in enumerate(layout.sentences)
    ]


def translate_distinct(requests: Sequence[Request], run: TranslateFunction) -> list[Translation]:
    """Return what `run` gives; what is asked for several times is searched once."""
    keys = [request if request.must else replace(request, group=-1) for request in requests]
    distinct = list(dict.fromkeys(keys))
    found = dict(zip(distinct, run(distinct), strict=True))
    return [found[key] for key in keys]


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

    A name such as de-ko, where no model has it, is a chain of installed models: one with these
    languages, or two that are joined by a third language.
    """
    if not others and draft is None and (chain := find_named_chain(path)) is not None:
        from dragoman.inference.pivot_translator import load_chain

        return load_chain(chain, device=device, precision=precision, shortlist=shortlist)
    loaded, engine = load_for_inference((path, *others), device, precision)
    if draft is not None:
        attach_draft_model(loaded[0], engine, draft)
    translator = Translator(*loaded, engine=engine)
    if shortlist:
        translator.use_shortlist()
    return translator
