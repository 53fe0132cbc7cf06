"""Two translators become one: what the first says in the language between is told the second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Never

from dragoman.errors import ConfigError, ModelError
from dragoman.inference.confidence import Calibration
from dragoman.inference.model_chains import ModelChain
from dragoman.inference.translation_types import (
    DecodingSettings,
    Request,
    ScoredTranslation,
    Translation,
    Word,
)
from dragoman.inference.translator import Translator, load, translate_distinct
from dragoman.search import SearchOptions
from dragoman.text.languages import same_language

if TYPE_CHECKING:
    from dragoman.inference.glossary import Glossary
    from dragoman.inference.pipeline import TranslationPipeline
    from dragoman.inference.translation_memory import TranslationMemory


class PivotTranslator(Translator):
    """Translate sentence by sentence through a language that two translators share.

    Each of them protects and checks what it translates, in its own languages. What is asked of a
    translation (phrases, several results, samples) is asked of the second; a glossary and a memory
    have the languages of the whole. What looks into one model is refused.
    """

    def __init__(self, first: Translator, second: Translator) -> None:
        """Use two translators as they are; several pivots may share them."""
        (source, middle), (other, target) = first._languages, second._languages
        if not middle or not same_language(middle, other):
            raise ModelError(
                f"{first.path} translates to {middle or 'a language that it does not name'} and "
                f"{second.path} from {other or 'one that it does not name'}; choose two that share "
                "the language in between"
            )
        super().__init__(*second._loaded, engine=second._engine)
        self.first, self.second = first, second
        self._loaded = (*first._loaded, *second._loaded)
        data = replace(second.config.data, languages=(source, target))
        self.config = replace(second.config, data=data)
        self._middle = middle
        for one in (first, second):
            one.warn = lambda message: self.warn(message)

    @property
    def through(self) -> str:
        """Return the code of the language in between."""
        return self._middle

    def use_shortlist(self) -> None:
        """Compute only the pieces that the models' shortlists have for a text, from now on."""
        self.first.use_shortlist()
        self.second.use_shortlist()

    @cached_property
    def aligns(self) -> bool:
        """Return whether both models have attention to read an alignment off."""
        return self.first.aligns and self.second.aligns

    # --- translating ---

    def _translate_unchecked(
        self, requests: Sequence[Request], settings: DecodingSettings
    ) -> list[Translation]:
        """Return what the second search finds for what the first has found."""
        to_middle = self._settings_of_first(settings, settings.align)
        middle = self.first._translate_unchecked(_plain(requests), to_middle)
        asked = [replace(one, text=said.text) for one, said in zip(requests, middle, strict=True)]
        found = self.second._translate_unchecked(asked, settings)
        return list(map(_compose, requests, middle, found))

    def _translate_sentences(
        self,
        requests: Sequence[Request],
        settings: DecodingSettings,
        protect: bool,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
    ) -> list[Translation]:
        """Translate sentences with everything that is to be kept and checked in them."""

        def pivot(some: Sequence[Request]) -> list[Translation]:
            middle = self._translate_to_middle(some, settings, protect)
            asked = [replace(one, text=said.text) for one, said in zip(some, middle, strict=True)]
            found = self.second._translate_sentences(asked, settings, protect)
            return list(map(_compose, some, middle, found))

        def use_glossary(some: Sequence[Request]) -> list[Translation]:
            if glossary is None:
                return pivot(some)
            return self._glossary_translator(glossary).translate(some, pivot)

        def remember(some: Sequence[Request]) -> list[Translation]:
            if memory is None:
                return use_glossary(some)
            return memory.translate(some, use_glossary, aligned=settings.align)

        return translate_distinct(requests, remember)

    def _translate_to_middle(
        self, requests: Sequence[Request], settings: DecodingSettings, protect: bool
    ) -> list[Translation]:
        to_middle = self._settings_of_first(settings, settings.align)
        return self.first._translate_sentences(_plain(requests), to_middle, protect)

    def _settings_of_first(self, settings: DecodingSettings, align: bool) -> DecodingSettings:
        """Return how the first model searches: as its config says, with a beam as wide as asked."""
        asked = settings.search
        other = asked.groups > 1 or settings.sampling is not None or settings.choice is not None
        beam = None if other else asked.beam
        least = 1 if settings.checked else None
        options = SearchOptions.from_config(self.first.config.search, beam=beam, min_length=least)
        return DecodingSettings(options, align=align, checked=settings.checked)

    def _score_sentences(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[ScoredTranslation]:
        """Return how probable the second model finds each target, given what the first says."""
        settings = DecodingSettings(SearchOptions.from_config(self.config.search), checked=True)
        requests = list(map(Request, sources))
        distinct = dict.fromkeys(requests)
        said = self._translate_to_middle(list(distinct), settings, protect=True)
        middle = dict(zip(distinct, said, strict=True))
        return self.second._score_sentences([middle[one].text for one in requests], targets)

    # --- what only one model has ---

    @cached_property
    def calibration(self) -> Calibration | None:
        """Return nothing: each model gives its own confidences, and both count."""
        return None

    @cached_property
    def model(self) -> Any:
        """Refuse: there are two models."""
        self.require_one_model("a look inside")

    @cached_property
    def _pipeline(self) -> TranslationPipeline:
        self.require_one_model("this")

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, length_penalty: float | None = None
    ) -> list[ScoredTranslation]:
        """Refuse: what the first model would say is not known of a given translation."""
        self.require_one_model("a score")

    def alternatives(
        self, text: str, prefix: str = "", count: int = 5, *, beam: int | None = None
    ) -> Never:
        """Refuse: the next words depend on what the first model says."""
        self.require_one_model("a list of alternatives")

    def require_one_model(self, purpose: str) -> Never:
        """Refuse what needs one model: there are two."""
        source, target = self._languages
        raise ConfigError(
            f"{source}-{target}: translated through {self._middle} by two models, and {purpose} "
            f"needs one; name {self.first.path.name} or {self.second.path.name}"
        )


def load_chain(chain: ModelChain, *, shortlist: bool = False, **options: Any) -> Translator:
    """Load the translator of a chain; the options are those of `dragoman.load`."""
    first, *rest = (load(one.path, **options) for one in chain.models)
    translator = PivotTranslator(first, *rest) if rest else first
    if shortlist:
        translator.use_shortlist()
    return translator


def _plain(requests: Sequence[Request]) -> list[Request]:
    """Return what the first model is asked: nothing is required of what it says."""
    return [Request(one.text, align=one.align) for one in requests]


def _compose(request: Request, middle: Translation, found: Translation) -> Translation:
    """Return the translation of a sentence, given what both models said of it."""
    best, *others = (
        replace(
            one,
            source=request.text,
            score=middle.score + one.score,
            log_prob=middle.log_prob + one.log_prob,
            alignment=_compose_alignments(middle, one),
            confidence=_product(middle.confidence, one.confidence),
            words=_compose_words(middle, one),
            issues=(*middle.issues, *one.issues),
            alternatives=(),
        )
        for one in (found, *found.alternatives)
    )
    return replace(best, alternatives=tuple(others))


def _compose_alignments(middle: Translation, found: Translation) -> tuple[tuple[int, int], ...]:
    """Return which word of the source each word comes from, by the words in between."""
    pairs = {
        (source, target)
        for source, through in middle.alignment
        for word, target in found.alignment
        if word == through
    }
    return tuple(sorted(pairs))


def _compose_words(middle: Translation, found: Translation) -> tuple[Word, ...]:
    """Return each word with the probability that it is right: what it comes from has to be, too."""
    if middle.confidence is None or found.confidence is None:
        return ()
    share = middle.confidence
    return tuple(Word(word.text, round(share * word.confidence, 4)) for word in found.words)


def _product(first: float | None, second: float | None) -> float | None:
    """Return how much is probably right after both; it is not known if one of them is not."""
    return None if first is None or second is None else round(first * second, 4)
