"""The rules of every language return the forms of a word, each with what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["noun", "verb", "other"]
"""A word is a noun, a verb, or an adjective or anything else that is neither."""
Number = Literal["singular", "plural"]


@dataclass(frozen=True, slots=True)
class WordForm:
    """Hold one form that a word may have in a sentence."""

    text: str
    number: Number | None = None
    """The form is only of this number; None means that it says nothing of number."""
    cost: float = 0.0
    """This is how far the rules doubt that the word has such a form, in nats; 0 is no doubt."""
    cases: str = ""
    """In languages with cases these are the form's: a letter each of n, a, d, g; none means any."""


WordForms = Callable[[str, Kind | None], list[WordForm]]
"""Such a function returns the forms of a word, the word itself first."""


def distinct(forms: Iterable[WordForm]) -> list[WordForm]:
    """Return each form once, at its least cost, in the order in which they came."""
    known: dict[WordForm, WordForm] = {}
    for form in forms:
        key = replace(form, cost=0.0)
        if key not in known or form.cost < known[key].cost:
            known[key] = form
    return list(known.values())


def words(text: str) -> tuple[str, ...]:
    """Return the words of a table that is written as a text."""
    return tuple(text.split())


def word_set(text: str) -> frozenset[str]:
    """Return the words of a table that is written as a text, to look words up in."""
    return frozenset(text.split())
