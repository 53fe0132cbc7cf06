"""What every id of a vocabulary spells, so that a text can be followed piece by piece."""

# V vocabulary, L characters of the longest piece

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

import torch

from dragoman.text.normalization import SPACE_MARK, single_spaced
from dragoman.text.special_tokens import FIRST
from dragoman.text.tokenizer import Tokenizer

__all__ = ["IGNORED", "OTHER", "POINT", "SPACE", "WORD", "Spelling", "is_word", "kind_of"]

IGNORED: Final = 0
SPACE: Final = 1
WORD: Final = 2
OTHER: Final = 3
POINT: Final = 4
"""What closes: a word does not begin right after it."""

_CLOSING: Final = frozenset(".,;:!?…)]}%»”、。，；：！？）」』")


def is_word(character: str) -> bool:
    """Whether it continues a word: letters, digits, the low line, and marks put on letters."""
    return (
        character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")
    )


def kind_of(character: str) -> int:
    """What `Tokenizer.decode` and word boundaries make of a character."""
    if character.isspace():
        return SPACE
    if is_word(character):
        return WORD
    if character in _CLOSING:
        return POINT
    return OTHER if single_spaced(character) else IGNORED  # control characters are not decoded


class Spelling:
    """The characters of every piece, and the byte of those that spell a byte."""

    def __init__(self, texts: Sequence[str], bytes_: dict[int, int]) -> None:
        """The text of each id, empty where it has none, and the id of each byte."""
        self.texts: Sequence[str] = texts
        self.bytes: dict[int, int] = bytes_
        self.characters: list[str] = sorted({c for text in texts for c in text})
        number = {c: n for n, c in enumerate(self.characters, 1)}
        longest = max(map(len, self.texts))
        rows = [[number[c] for c in t] + [0] * (longest - len(t)) for t in self.texts]
        self.numbers_LV = torch.tensor(rows).T.contiguous()
        """Place in `characters`, from 1, of each character; 0 after the last."""
        self.kinds: list[int] = [IGNORED, *map(kind_of, self.characters)]
        """Of each number."""
        self._surfaces = set(self.texts) - {""}

    @classmethod
    def of(cls, tokenizer: Tokenizer, targets: int) -> Spelling:
        """Of the ids a search can produce: so many, from the first on."""
        bytes_ = tokenizer.byte_ids
        pieces = tokenizer.pieces(range(min(targets, len(tokenizer))))
        texts = [
            "" if i < FIRST or i in bytes_ else piece.replace(SPACE_MARK, " ")
            for i, piece in enumerate(pieces)
        ]
        numbers = {int(pieces[i][3:5], 16): i for i in sorted(bytes_)}
        return cls(texts + [""] * (targets - len(texts)), numbers)

    def fewest(self, text: str) -> list[int]:
        """For every place of a text, its end included: the fewest pieces that spell the rest."""
        ends = [0] * (len(text) + 1)
        longest = len(self.numbers_LV)
        for start in range(len(text) - 1, -1, -1):
            ends[start] = len(text[start].encode()) + ends[start + 1]
            for end in range(start + 1, min(len(text), start + longest) + 1):
                if text[start:end] in self._surfaces:
                    ends[start] = min(ends[start], 1 + ends[end])
        return ends
