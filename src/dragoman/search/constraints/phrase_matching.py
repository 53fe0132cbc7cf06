"""Whether a phrase occurs in the text that pieces spell, whichever pieces those are.

A deterministic automaton reads characters: the phrase counts where it stands as whole words in the
text as `Tokenizer.decode` gives it, with runs of white space as one space and without control
characters. A piece is several characters; one that spells a byte may be part of a character, and
the automaton remembers such bytes until the character is whole or broken.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

import torch
from torch import Tensor

from dragoman.text.normalization import SPACE_MARK, collapse_spaces
from dragoman.text.special_tokens import FIRST_PIECE
from dragoman.text.tokenizer import Tokenizer

__all__ = [
    "FOUND",
    "IGNORED",
    "OTHER",
    "POINT",
    "SPACE",
    "START",
    "WORD",
    "PhraseMatcher",
    "PieceSpelling",
    "character_kind",
    "contains_phrase",
    "is_word",
]


# PART dragoman.search.constraints.spelling: What every id of a vocabulary spells, so that a
# text can be followed piece by piece.


# V vocabulary, L characters of the longest piece


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


def character_kind(character: str) -> int:
    """What `Tokenizer.decode` and word boundaries make of a character."""
    if character.isspace():
        return SPACE
    if is_word(character):
        return WORD
    if character in _CLOSING:
        return POINT
    return OTHER if collapse_spaces(character) else IGNORED  # control characters are not decoded


class PieceSpelling:
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
        self.kinds: list[int] = [IGNORED, *map(character_kind, self.characters)]
        """Of each number."""
        self._surfaces = set(self.texts) - {""}

    @classmethod
    def of(cls, tokenizer: Tokenizer, targets: int) -> PieceSpelling:
        """Of the ids a search can produce: so many, from the first on."""
        bytes_ = tokenizer.byte_ids
        pieces = tokenizer.pieces(range(min(targets, len(tokenizer))))
        texts = [
            "" if i < FIRST_PIECE or i in bytes_ else piece.replace(SPACE_MARK, " ")
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


# Q states between characters, N kinds of characters, V vocabulary, L characters of a piece


START: Final = 0
FOUND: Final = 1
"""The phrase has occurred: whatever comes, this state stays."""

NAMED: Final = 5
"""The first kind that is one character of the phrase."""

Matching = tuple[frozenset[int], int]
"""How many characters of the phrase the text ends in, every possibility; and the last kind."""


class PhraseMatcher:
    """Follows the text of a hypothesis and says whether a phrase has occurred in it."""

    def __init__(
        self, phrase: str, spelling: PieceSpelling, *, whole_words: bool = True, apart: bool = False
    ) -> None:
        """`phrase` is normalised; without `whole_words` it may be part of a longer word.

        If it must stand `apart`, it does not count right after a full stop, a comma or the like.
        """
        assert phrase == phrase.strip() != ""
        self.phrase = phrase
        self._spelling = spelling
        self._before = {WORD, POINT} if apart else {WORD}
        if not (whole_words and is_word(phrase[0])):
            self._before = set()
        self._right = whole_words and is_word(phrase[-1])
        self._kinds = [IGNORED, SPACE, WORD, OTHER, POINT, *sorted(set(phrase) - {" "})]
        self._kind_of = {c: n for n, c in enumerate(self._kinds[NAMED:], NAMED)}
        self._next, self._matches = self._build()
        self._next_QN = torch.tensor(self._next)
        kinds = [
            self._kind_of.get(c, kind)
            for c, kind in zip(["", *spelling.characters], spelling.kinds, strict=True)
        ]
        self._kinds_LV = torch.tensor(kinds)[spelling.numbers_LV]
        self._pending = [b""]  # the beginnings of characters that have been seen
        self._places = {b"": 0}
        self._rows: dict[int, Tensor] = {}
        self._needs: dict[int, Tensor] = {}
        self._unfit: dict[tuple[int, str | None], Tensor] = {}
        self._steps: dict[tuple[int, int], int] = {}
        rest = spelling.fewest(f" {phrase}" if whole_words else phrase)
        self.pieces: int = rest[0]
        """The fewest that make the phrase occur, wherever a hypothesis stands."""
        self._rest = rest[1:] if whole_words else rest

    # --- what search asks ---

    def row(self, state: int) -> Tensor:
        """The state after each piece, V."""
        if (row_V := self._rows.get(state)) is None:
            row_V = self._rows[state] = self._make_row(state)
        return row_V

    def after(self, state: int, piece: int) -> int:
        """The state after a piece."""
        key = state, piece
        if key not in self._steps:
            self._steps[key] = int(self.row(state)[piece])
        return self._steps[key]

    def ends(self, state: int) -> bool:
        """Whether the phrase has occurred if the text ends here."""
        matching, pending = self._parts(state)
        if pending:
            matching = self._next[matching][OTHER]
        return matching == FOUND or len(self.phrase) in self._matches[matching]

    def neutral(self, state: int, joint: str) -> bool:
        """Whether nothing of the phrase has begun if the text goes on after `joint`."""
        matching, pending = self._parts(state)
        if pending:
            matching = self._next[matching][OTHER]
        for character in joint:
            matching = self._next[matching][self._kind(character)]
        return not self._matches[matching] and matching != FOUND

    def need(self, state: int) -> int:
        """With this many pieces the phrase can be made to occur, 0 where it does at an end."""
        if self.ends(state):
            return 0
        matching, pending = self._parts(state)
        matches = self._matches[matching]
        if pending:
            longest = max(matches, default=0)
            whole = self.phrase[longest].encode() if longest < len(self.phrase) else b""
            if whole.startswith(pending) and (longest or self._may_start(matching)):
                return min(self.pieces, len(whole) - len(pending) + self._rest[longest + 1])
            return self.pieces
        best = min((self._rest[length] for length in matches), default=self.pieces)
        if self._may_start(matching):
            best = min(best, self._rest[0])
        return min(best, self.pieces)

    def needs(self, state: int) -> Tensor:
        """`need` after each piece, V."""
        if (needs_V := self._needs.get(state)) is None:
            needs_V = self._needs[state] = self._of_each(self.need, self.row(state))
        return needs_V

    def unfit(self, state: int, joint: str | None) -> Tensor:
        """After each piece: 1 if a text without the phrase must not end there, V.

        With a `joint`, because the phrase may come about with what follows it.
        """
        key = state, joint
        if (unfit_V := self._unfit.get(key)) is None:
            unfit_V = self._of_each(lambda one: self.is_unfit(one, joint), self.row(state))
            self._unfit[key] = unfit_V
        return unfit_V

    def is_unfit(self, state: int, joint: str | None) -> bool:
        """Whether a text that must not contain the phrase must not end here."""
        return self.ends(state) or (joint is not None and not self.neutral(state, joint))

    def _of_each(self, function: Callable[[int], int], states_V: Tensor) -> Tensor:
        known, where_V = states_V.unique(return_inverse=True)
        return torch.tensor([function(state) for state in known.tolist()]).long()[where_V]

    # --- the automaton of characters ---

    def _build(self) -> tuple[list[list[int]], list[frozenset[int]]]:
        """The table Q N, and the matches of every state."""
        nothing: frozenset[int] = frozenset()
        states: dict[Matching, int] = {(nothing, SPACE): START, (nothing, -1): FOUND}
        names = [SPACE, -1]
        matches = [nothing, nothing]
        table: list[list[int]] = []
        done = 0
        while done < len(matches):
            row = [done]
            for kind in range(1, len(self._kinds)):
                reached = self._step(matches[done], names[done], kind)
                if reached is None or done == FOUND:
                    row.append(FOUND)
                    continue
                if reached not in states:
                    states[reached] = len(matches)
                    matches.append(reached[0])
                    names.append(reached[1])
                row.append(states[reached])
            table.append(row)
            done += 1
        self._last = names
        return table, matches

    def _step(self, matches: frozenset[int], last: int, kind: int) -> Matching | None:
        """What one more character leads to; None: the phrase has occurred."""
        if kind == SPACE and last == SPACE:
            return matches, last
        size = len(self.phrase)
        named = self._kinds[kind] if kind >= NAMED else None
        coarse = character_kind(named) if isinstance(named, str) else kind
        if size in matches and not (self._right and coarse == WORD):
            return None
        text = named if isinstance(named, str) else " " if kind == SPACE else ""
        longer = {n + 1 for n in matches if n < size and self.phrase[n] == text}
        if text == self.phrase[0] and last not in self._before:
            longer.add(1)
        if size in longer and not self._right:
            return None
        return frozenset(longer), coarse

    def _may_start(self, matching: int) -> bool:
        return self._last[matching] not in self._before

    def _kind(self, character: str) -> int:
        return self._kind_of.get(character, character_kind(character))

    # --- pieces ---

    def _parts(self, state: int) -> tuple[int, bytes]:
        pending, matching = divmod(state, len(self._next))
        return matching, self._pending[pending]

    def _state(self, matching: int, pending: bytes) -> int:
        if matching == FOUND:
            return FOUND
        if pending not in self._places:
            self._places[pending] = len(self._pending)
            self._pending.append(pending)
        return self._places[pending] * len(self._next) + matching

    def _make_row(self, state: int) -> Tensor:
        matching, pending = self._parts(state)
        whole = self._next[matching][OTHER] if pending else matching  # broken: U+FFFD
        row_V = torch.full((len(self._spelling.texts),), whole)
        for kinds_V in self._kinds_LV:
            row_V = self._next_QN[row_V, kinds_V]
        for byte, piece in self._spelling.bytes.items():
            row_V[piece] = self._byte(matching, pending, byte)
        return row_V

    def _byte(self, matching: int, pending: bytes, byte: int) -> int:
        data = pending + bytes([byte])
        try:
            character = data.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                return self._state(matching, data)
            broken = self._next[matching][OTHER]
            return self._byte(broken, b"", byte) if pending else broken
        return self._next[matching][self._kind(character)]


def contains_phrase(phrase: str, text: str, *, whole_words: bool = True) -> bool:
    """Whether a phrase stands in a text, with no word going on at either end of it."""
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        before, after = text[start - 1 : start] if start else "", text[end : end + 1]
        if not whole_words or not (
            (before and is_word(before) and is_word(phrase[0]))
            or (after and is_word(after) and is_word(phrase[-1]))
        ):
            return True
        start = text.find(phrase, start + 1)
    return False
