"""The phrasebook makes unlimited sentence pairs, with gold trees and alignments, from a grammar.

A meaning is drawn (`sampling`), said in English and in the other language (`english`,
`german`, `korean`), and both trees remember which part of the meaning each word expresses: hence
the alignment.

>>> [example.target for example in generate("de", "train", 2)][1]
'Der Bär hat ihre Vögel gefunden.'

A new language brings a folder with a function ``realise(sentence: Sentence) -> Tree``, and adds it
to `LANGUAGES` under its ISO code; beside that table only the help of ``dragoman demo`` names the
languages. The function must say every meaning that can be drawn:

- each noun, verb, adjective, name, time, frequency, manner and modal of `lexicon`, each pronoun,
  determiner, relation, mood and conjunction of `meaning` (German: ``words.py``, ``inflection.py``);
- statements, questions, negation, three tenses, relative clauses, clauses as objects, and two
  clauses joined (German: ``noun_phrases.py``, ``sentences.py``).

Its tree (`annotated_tree`) has the words as leaves in their order, the first with a capital where
the language has them, and "." or "?" as the last leaf; words are written with spaces between them.
Each leaf carries the keys ``(id(node), part)`` of what it expresses. The parts are those of
`english.sentences`: noun, determiner, adjective, verb, finite, predicate, negation, preposition,
conjunction, complementiser, relative, wh, frequency, manner, and time 0, 1, … for each English word
of a time. What has no word of its own, such as an article in Korean, a neighbouring word carries.
Meanings that read the same in English must read the same in the new language.
tests/phrasebook/test_phrasebook.py tests every language of the table; beside it stands a file of
gold sentences a language.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from dragoman.errors import ConfigError
from dragoman.phrasebook.annotated_tree import Tree, align, leaves_and_bracketing, text
from dragoman.phrasebook.english import sentences as english
from dragoman.phrasebook.german import sentences as german
from dragoman.phrasebook.korean import sentences as korean
from dragoman.phrasebook.meaning import Sentence
from dragoman.phrasebook.sampling import SentenceSampler
from dragoman.phrasebook.split import SPLITS, in_validation, is_test

__all__ = ["LANGUAGES", "SPLITS", "Example", "generate"]

LANGUAGES: Final[Mapping[str, Callable[[Sentence], Tree]]] = {
    "de": german.realise,
    "ko": korean.realise,
}
"""What says a meaning in each target language; English is always the source."""


@dataclass(frozen=True, slots=True)
class Example:
    """Hold a sentence pair with its trees and the alignment of its words."""

    source: str  # English
    target: str
    source_tree: str  # Penn-style bracketing on one line; punctuation marks are leaves
    target_tree: str
    alignment: tuple[tuple[int, int], ...]  # (i, j): words i of source and j of target, from 0


def generate(target_language: str, split: str, count: int, *, seed: int = 0) -> Iterator[Example]:
    """Yield `count` distinct examples of a split; the same arguments always give the same ones."""
    _check("language", target_language, LANGUAGES)
    _check("split", split, SPLITS)
    return _generate(LANGUAGES[target_language], split, count, seed)


def _check(what: str, value: str, choices: Iterable[str]) -> None:
    known = list(choices)
    if value not in known:
        close = difflib.get_close_matches(str(value), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(known)}"
        raise ConfigError(f"the phrasebook has no {what} {value!r}; {hint}")


def _generate(
    realise: Callable[[Sentence], Tree], split: str, count: int, seed: int
) -> Iterator[Example]:
    sampler = SentenceSampler(Random(f"phrasebook {split} {seed}"))
    seen: set[str] = set()
    while len(seen) < count:
        sentence = sampler.sentence()
        if is_test(sentence) != (split == "test"):
            continue
        source_leaves, source_tree = leaves_and_bracketing(english.realise(sentence))
        source = text(source_leaves)
        if not 2 <= source.count(" ") < 25:
            continue
        if source in seen or (split != "test" and in_validation(source) != (split == "valid")):
            continue
        seen.add(source)
        target_leaves, target_tree = leaves_and_bracketing(realise(sentence))
        yield Example(
            source,
            text(target_leaves),
            source_tree,
            target_tree,
            align(source_leaves, target_leaves),
        )
