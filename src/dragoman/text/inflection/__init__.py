"""Words change in a sentence: plurals, cases, endings of verbs and adjectives, particles.

There is no dictionary in it. Each language has a file of rules and tables of what departs from
them; a language without one has words that never change.
"""

from __future__ import annotations

from dragoman.text.inflection.forms import Kind, Number, WordForm
from dragoman.text.inflection.phrases import (
    FoundPhrase,
    Phrase,
    function_words,
    guess_kind,
    is_function_word,
)

__all__ = [
    "FoundPhrase",
    "Kind",
    "Number",
    "Phrase",
    "WordForm",
    "function_words",
    "guess_kind",
    "is_function_word",
]
