"""Translating with a glossary, and with what is to stay as it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from dragoman.config import Config
from dragoman.inference.glossary import Glossary, Terms
from dragoman.inference.pipeline import NO_SPACES
from dragoman.inference.protection import copied_words, translate_masked
from dragoman.inference.translation import Request, Run, Translation
from dragoman.text.tokenizer import Tokenizer

__all__ = ["Rewriter"]


class Rewriter:
    """What stands between the requests and the search of one translator."""

    def __init__(self, tokenizer: Tokenizer, config: Config, greedily: Run) -> None:
        """`greedily` translates some words, to see which of them the model copies."""
        self._tokenizer, self._greedily = tokenizer, greedily
        self._languages = config.data.languages or ("", "")
        self._known: dict[Glossary, Terms] = {}

    def translate(
        self, requests: Sequence[Request], run: Run, glossary: Glossary | None, protect: bool
    ) -> list[Translation]:
        """What `run` gives, with the glossary's words in it and what is protected in its place."""
        if glossary is not None:
            run = self._with(self.terms(glossary), run)
        return translate_masked(requests, run, lambda: self._copied) if protect else run(requests)

    @staticmethod
    def _with(terms: Terms, run: Run) -> Run:
        return lambda wanted: terms.translate(wanted, run)

    @cached_property
    def _copied(self) -> list[str]:
        """Words the model copies, to stand for what is not to be translated."""
        own = [piece[1:] for piece in self._tokenizer.vocabulary if piece.startswith("▁")]
        return copied_words(own, self._greedily)

    def terms(self, glossary: Glossary) -> Terms:
        """A glossary at work here, made once."""
        if glossary not in self._known:
            self._known[glossary] = Terms(
                glossary,
                self._tokenizer.normalize,
                source_words=self._languages[0] not in NO_SPACES,
                target_words=self._languages[1] not in NO_SPACES,
            )
        return self._known[glossary]
