"""The phrasebook: unlimited sentence pairs from a small grammar, with gold trees and alignments.

A meaning is drawn (`sentence`), said in English and in the other language (`english`, `german`,
`korean`), and both trees remember which part of the meaning each word expresses: hence the
alignment.

>>> [example.target for example in generate("de", "train", 2)][1]
'Der Bär hat ihre Vögel gefunden.'
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from dragoman.errors import ConfigError
from dragoman.phrasebook.annotated_tree import Tree, align, leaves_and_bracketing, text
from dragoman.phrasebook.english import sentences as english
from dragoman.phrasebook.german import sentences as german
from dragoman.phrasebook.korean import sentences as korean
from dragoman.phrasebook.meaning import Sentence
from dragoman.phrasebook.sentence_sampling import Sampler
from dragoman.phrasebook.split import SPLITS, in_validation, is_test

__all__ = ["LANGUAGES", "SPLITS", "Example", "generate"]

# the realiser of each target language; English is always the source
_REALISERS: dict[str, Callable[[Sentence], Tree]] = {"de": german.realise, "ko": korean.realise}
LANGUAGES: tuple[str, ...] = tuple(_REALISERS)


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence pair with its trees and the alignment of its words."""

    source: str  # English
    target: str
    source_tree: str  # Penn-style bracketing on one line; punctuation marks are leaves
    target_tree: str
    alignment: tuple[tuple[int, int], ...]  # (i, j): words i of source and j of target, from 0


def generate(target_language: str, split: str, count: int, *, seed: int = 0) -> Iterator[Example]:
    """`count` distinct examples of a split; the same arguments always give the same examples."""
    _check("language", target_language, LANGUAGES)
    _check("split", split, SPLITS)
    return _generate(_REALISERS[target_language], split, count, seed)


def _check(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        close = difflib.get_close_matches(str(value), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(known)}"
        raise ConfigError(f"the phrasebook has no {what} {value!r}; {hint}")


def _generate(
    realise: Callable[[Sentence], Tree], split: str, count: int, seed: int
) -> Iterator[Example]:
    sampler = Sampler(Random(f"phrasebook {split} {seed}"))
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
