"""Text in, text out: what the command line, the server and evaluation call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.inference.engine import Searcher, best_window
from dragoman.inference.glossary import Glossary
from dragoman.inference.loading import Loaded, Precision, add_draft, add_shortlist, open_models
from dragoman.inference.pipeline import Decoder
from dragoman.inference.translation import Alternative, Request, Scored, Settings, Translation
from dragoman.model_directory import LoadedModel
from dragoman.search import SamplingOptions, SearchOptions

if TYPE_CHECKING:
    from dragoman.inference.rewriting import Rewriter
    from dragoman.inference.torch_engine import ByModel
    from dragoman.inspection.saved_page import Inspection

__all__ = ["Translator", "load"]

Wishes = Sequence[str] | Sequence[Sequence[str]]
"""Phrases for all texts; or, if they are lists themselves, those for each."""


class Translator(Loaded):
    """A loaded model that translates text; or several as one, that have the same pieces."""

    def __init__(
        self, loaded: LoadedModel, *others: LoadedModel, engine: Searcher | None = None
    ) -> None:
        """See Loaded."""
        for one in (loaded, *others):
            if one.config.data.task != "translation":
                raise ModelError(f"{one.path}: a parser; use it with dragoman parse")
            if one.tokenizer != loaded.tokenizer:
                raise ModelError(
                    f"{one.path}: has other pieces than {loaded.path}; an ensemble is trained on "
                    "one prepared corpus, or with one tokeniser"
                )
        super().__init__(loaded, *others, engine=engine)

    def use_shortlist(self) -> None:
        """Look only at the pieces that the model's shortlist has for a text, from now on."""
        add_shortlist(self._loaded[0], self._engine)

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
        must: Wishes = (),
        must_not: Wishes = (),
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
        changes = {
            "beam": beam if beam is not None else wide,
            "n_best": n_best,
            "length_penalty": length_penalty,
            "min_length": min_length,
            "max_extra": max_extra,
            "groups": diverse,
            "diversity": diversity,
        }
        options = SearchOptions.from_config(
            self.config.search, **{k: v for k, v in changes.items() if v is not None}
        )
        rewrites = glossary is not None or protect
        settings = Settings(options, sampling, (align or rewrites) and self.aligns)
        requests = _requests(texts, prefix, must, must_not)
        if sampling is not None and (diverse > 1 or glossary is not None):
            raise ConfigError("diverse beams and a glossary are of search; leave out sampling")

        def run(wanted: Sequence[Request]) -> list[Translation]:
            return self._decoder.run(wanted, settings)

        if rewrites:
            found = self._rewriter.translate(requests, run, glossary, protect)
        else:
            found = run(requests)
        return found[0] if isinstance(text, str) else found

    @cached_property
    def aligns(self) -> bool:
        """Whether the model has attention to read an alignment off."""
        if self._engine is not None:  # which only Transformers have
            return True
        return self._by_model.aligns

    def translate_lines(
        self, lines: Iterable[str], *, window: int | None = None, **options: Any
    ) -> Iterator[Translation]:
        """Translate any number of lines, in order, holding one window of them in memory.

        By default that is 2,000 lines, and 20,000 where a GPU's engine translates. Where a line
        cannot be read, those before it are translated first.
        """
        coming = iter(lines)
        window = best_window(self._engine) if window is None else window
        while True:
            waiting, trouble = _window(coming, window)
            yield from self.translate(waiting, **options)
            if trouble is not None:
                raise trouble
            if not waiting:
                return

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, length_penalty: float | None = None
    ) -> list[Scored]:
        """How probable each target is as the translation of its source."""
        alpha = self.config.search.length_penalty if length_penalty is None else length_penalty
        return self._by_model.score(sources, targets, alpha)

    def alternatives(
        self, text: str, prefix: str = "", count: int = 5, *, beam: int | None = None
    ) -> list[Alternative]:
        """The likeliest next words of a translation that begins with `prefix`, most likely first.

        Each comes with the best translation that begins so. The prefix is whole words; a long text
        is not cut, so that it has to be a sentence.
        """
        if count < 1:
            raise ConfigError(f"{count} alternatives are too few; the least is 1")
        source = self.tokenizer.encode(text)
        if not source:
            return []
        options = SearchOptions.from_config(
            self.config.search, **({} if beam is None else {"beam": beam})
        )
        return self._by_model.alternatives(source, prefix, count, options)

    def inspect(self, text: str, *, translation: str | None = None) -> Inspection:
        """Attention, search and numbers of a sentence: shown in a notebook, or saved as a page."""
        from dragoman.inspection.saved_page import inspect

        return inspect(self, text, translation=translation)

    # --- inside ---

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(
            lambda: self._by_model,
            self.tokenizer,
            self.config,
            lambda message: self.warn(message),
            self._engine,
        )

    @cached_property
    def _by_model(self) -> ByModel:
        """What the engine does not do, and what imports PyTorch."""
        from dragoman.inference.torch_engine import ByModel

        spaces = bool(self._decoder.space)
        return ByModel(self.model, self.tokenizer, self.config, spaces=spaces)

    @cached_property
    def _rewriter(self) -> Rewriter:
        from dragoman.inference.rewriting import Rewriter

        settings = Settings(SearchOptions.from_config(self.config.search, beam=1))
        return Rewriter(
            self.tokenizer, self.config, lambda wanted: self._decoder.run(wanted, settings)
        )


def _window(lines: Iterator[str], count: int) -> tuple[list[str], DragomanError | None]:
    """The next lines, about 500 characters each at most; and what went wrong after them."""
    most = max(1_000_000, 500 * count)
    waiting: list[str] = []
    size = 0
    try:
        for line in lines:
            waiting.append(line)
            size += len(line)
            if len(waiting) >= count or size > most:
                break
    except DragomanError as error:
        return waiting, error
    return waiting, None


def _requests(
    texts: Sequence[str],
    prefix: str | Sequence[str] | None,
    must: Wishes,
    must_not: Wishes,
) -> list[Request]:
    prefixes = [prefix or ""] * len(texts) if isinstance(prefix, str | None) else list(prefix)
    if len(prefixes) != len(texts):
        raise ConfigError(f"{len(prefixes)} prefixes for {len(texts)} texts; give one for each")
    wanted, banned = (
        _for_each(p, len(texts), n) for p, n in ((must, "must"), (must_not, "must_not"))
    )
    return list(map(Request, texts, prefixes, wanted, banned))


def _for_each(phrases: Wishes, texts: int, name: str) -> list[tuple[str, ...]]:
    """The phrases of each text."""
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
    """The translator in a model directory, or the one of a run; of several, their ensemble.

    `auto` is int8 on a CPU and bf16 on a GPU wherever the engine there can compute the model. On a
    CPU a `draft`, a smaller model of the same pieces, makes greedy search faster where texts come
    one by one; what is found is the same. With its `shortlist` a model looks only at the pieces
    that a text may need, and some translations change.
    """
    loaded, engine = open_models((path, *others), device, precision)
    if draft is not None:
        add_draft(loaded[0], engine, draft)
    translator = Translator(*loaded, engine=engine)
    if shortlist:
        translator.use_shortlist()
    return translator
