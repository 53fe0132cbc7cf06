"""Find out whether a phrase occurs in the text that pieces spell, whichever pieces those are.

A deterministic automaton reads characters: the phrase counts where it stands as whole words in the
text as `Tokenizer.decode` gives it, with runs of white space as one space and without control
characters. A piece is several characters; one that spells a byte may be part of a character, and
the automaton remembers such bytes until the character is whole or broken. `PieceSpelling` holds
what every id of a vocabulary spells, `PhraseMatcher` is the automaton of one phrase.
"""

# Q states between characters, N kinds of characters, V vocabulary, L characters of a piece

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.text.normalization import SPACE_MARK, collapse_spaces
from dragoman.text.special_tokens import FIRST_PIECE
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import is_word

Ints = NDArray[np.int32]

IGNORED: Final = 0
SPACE: Final = 1
WORD: Final = 2
OTHER: Final = 3
POINT: Final = 4
"""A character of this kind closes something: a word does not begin right after it."""

_CLOSING: Final = frozenset(".,;:!?…)]}%»”、。，；：！？）」』")


def character_kind(character: str) -> int:
    """Return the kind of a character, as `Tokenizer.decode` and word boundaries see it."""
    if character.isspace():
        return SPACE
    if is_word(character):
        return WORD
    if character in _CLOSING:
        return POINT
    return OTHER if collapse_spaces(character) else IGNORED  # control characters are not decoded


class PieceSpelling:
    """Hold the characters of every piece, and the byte of those that spell a byte."""

    def __init__(self, texts: Sequence[str], bytes_: dict[int, int]) -> None:
        """Take the text of each id, empty where it has none, and the id of each byte."""
        self.texts: Sequence[str] = texts
        self.bytes: dict[int, int] = bytes_
        self.characters: list[str] = sorted({c for text in texts for c in text})
        number = {c: n for n, c in enumerate(self.characters, 1)}
        longest = max(map(len, self.texts))
        rows = [[number[c] for c in t] + [0] * (longest - len(t)) for t in self.texts]
        self.numbers_LV: Ints = np.ascontiguousarray(np.array(rows, np.int32).T)
        """These are indices in `characters`, from 1; 0 comes after a piece's last character."""
        self.kinds: list[int] = [IGNORED, *map(character_kind, self.characters)]
        """Each index has this kind."""
        self._surfaces = set(self.texts) - {""}

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer, targets: int) -> PieceSpelling:
        """Return the spelling of the ids that a search can produce, the first `targets`."""
        bytes_ = tokenizer.byte_ids
        pieces = tokenizer.pieces(range(min(targets, len(tokenizer))))
        texts = [
            "" if i < FIRST_PIECE or i in bytes_ else piece.replace(SPACE_MARK, " ")
            for i, piece in enumerate(pieces)
        ]
        numbers = {int(pieces[i][3:5], 16): i for i in sorted(bytes_)}
        return cls(texts + [""] * (targets - len(texts)), numbers)

    def fewest_pieces(self, text: str) -> list[int]:
        """Return the fewest pieces that spell the rest of a text, from every index on."""
        ends = [0] * (len(text) + 1)
        longest = len(self.numbers_LV)
        for start in range(len(text) - 1, -1, -1):
            ends[start] = len(text[start].encode()) + ends[start + 1]
            for end in range(start + 1, min(len(text), start + longest) + 1):
                if text[start:end] in self._surfaces:
                    ends[start] = min(ends[start], 1 + ends[end])
        return ends


START: Final = 0
FOUND: Final = 1
"""In this state the phrase has occurred; whatever comes, it stays."""

NAMED: Final = 5
"""This kind and those after it are each one character of the phrase."""

Matching = tuple[frozenset[int], int]
"""The text ends in so many characters of the phrase, every possibility; and in this kind."""


class PhraseMatcher:
    """Read the text of a hypothesis piece by piece, and say whether a phrase has occurred in it."""

    def __init__(
        self,
        phrase: str,
        spelling: PieceSpelling,
        *,
        whole_words: bool = True,
        separate: bool = False,
    ) -> None:
        """Take a normalised phrase; without `whole_words` it may be part of a longer word.

        If it must be `separate`, it does not count right after a full stop, a comma or the like.
        """
        assert phrase == phrase.strip() != ""
        self.phrase = phrase
        self._spelling = spelling
        self._before = {WORD, POINT} if separate else {WORD}
        if not (whole_words and is_word(phrase[0])):
            self._before = set()
        self._right = whole_words and is_word(phrase[-1])
        self._kinds = [IGNORED, SPACE, WORD, OTHER, POINT, *sorted(set(phrase) - {" "})]
        self._kind_of = {c: n for n, c in enumerate(self._kinds[NAMED:], NAMED)}
        self._next, self._matches = self._build()
        self._next_QN: Ints = np.array(self._next, np.int32)
        kinds = [
            self._kind_of.get(c, kind)
            for c, kind in zip(["", *spelling.characters], spelling.kinds, strict=True)
        ]
        self._kinds_LV: Ints = np.array(kinds, np.int32)[spelling.numbers_LV]
        self._pending = [b""]  # the beginnings of characters that have been seen
        self._pending_index = {b"": 0}
        self._states_after: dict[int, Ints] = {}
        self._needs: dict[int, Ints] = {}
        self._forbids_end: dict[tuple[int, str | None], Ints] = {}
        self._steps: dict[tuple[int, int], int] = {}
        rest = spelling.fewest_pieces(f" {phrase}" if whole_words else phrase)
        self.min_pieces: int = rest[0]
        """With so many pieces the phrase can be made to occur in any state."""
        self._rest = rest[1:] if whole_words else rest

    # --- what a search needs ---

    def states_after(self, state: int) -> Ints:
        """Return the state after each piece, V."""
        if (states_V := self._states_after.get(state)) is None:
            states_V = self._states_after[state] = self._compute_states_after(state)
        return states_V

    def after(self, state: int, piece: int) -> int:
        """Return the state after one piece."""
        key = state, piece
        if key not in self._steps:
            self._steps[key] = int(self.states_after(state)[piece])
        return self._steps[key]

    def matches_at_end(self, state: int) -> bool:
        """Return whether the phrase has occurred if the text ends here."""
        matching, pending = self._split_state(state)
        if pending:
            matching = self._next[matching][OTHER]
        return matching == FOUND or len(self.phrase) in self._matches[matching]

    def is_neutral(self, state: int, separator: str) -> bool:
        """Return whether nothing of the phrase has begun if a text follows after `separator`."""
        matching, pending = self._split_state(state)
        if pending:
            matching = self._next[matching][OTHER]
        for character in separator:
            matching = self._next[matching][self._kind(character)]
        return not self._matches[matching] and matching != FOUND

    def pieces_needed(self, state: int) -> int:
        """Return with how many pieces the phrase can be made to occur; 0 if it has."""
        if self.matches_at_end(state):
            return 0
        matching, pending = self._split_state(state)
        matches = self._matches[matching]
        if pending:
            longest = max(matches, default=0)
            whole = self.phrase[longest].encode() if longest < len(self.phrase) else b""
            if whole.startswith(pending) and (longest or self._may_start(matching)):
                return min(self.min_pieces, len(whole) - len(pending) + self._rest[longest + 1])
            return self.min_pieces
        best = min((self._rest[length] for length in matches), default=self.min_pieces)
        if self._may_start(matching):
            best = min(best, self._rest[0])
        return min(best, self.min_pieces)

    def pieces_needed_after(self, state: int) -> Ints:
        """Return `pieces_needed` after each piece, V."""
        if (needs_V := self._needs.get(state)) is None:
            needs_V = self._needs[state] = self._map_states(
                self.pieces_needed, self.states_after(state)
            )
        return needs_V

    def forbids_end_after(self, state: int, separator: str | None) -> Ints:
        """Return after each piece 1 if a text that must not contain the phrase must not end, V.

        With a `separator`, the phrase may also come about with the text that follows.
        """
        key = state, separator
        if (forbids_V := self._forbids_end.get(key)) is None:
            forbids_V = self._map_states(
                lambda one: self.forbids_end(one, separator), self.states_after(state)
            )
            self._forbids_end[key] = forbids_V
        return forbids_V

    def forbids_end(self, state: int, separator: str | None) -> bool:
        """Return whether a text that must not contain the phrase must not end here."""
        return self.matches_at_end(state) or (
            separator is not None and not self.is_neutral(state, separator)
        )

    def _map_states(self, function: Callable[[int], int], states_V: Ints) -> Ints:
        known, where_V = np.unique(states_V, return_inverse=True)
        values: Ints = np.array([function(state) for state in known.tolist()], np.int32)
        return values[where_V]

    # --- the automaton of characters ---

    def _build(self) -> tuple[list[list[int]], list[frozenset[int]]]:
        """Return the table Q N, and the matches of every state."""
        empty: frozenset[int] = frozenset()
        states: dict[Matching, int] = {(empty, SPACE): START, (empty, -1): FOUND}
        names = [SPACE, -1]
        matches = [empty, empty]
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
        """Return what one more character leads to; None if the phrase has occurred."""
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

    def _split_state(self, state: int) -> tuple[int, bytes]:
        pending, matching = divmod(state, len(self._next))
        return matching, self._pending[pending]

    def _join_state(self, matching: int, pending: bytes) -> int:
        if matching == FOUND:
            return FOUND
        if pending not in self._pending_index:
            self._pending_index[pending] = len(self._pending)
            self._pending.append(pending)
        return self._pending_index[pending] * len(self._next) + matching

    def _compute_states_after(self, state: int) -> Ints:
        matching, pending = self._split_state(state)
        whole = self._next[matching][OTHER] if pending else matching  # broken: U+FFFD
        states_V: Ints = np.full(len(self._spelling.texts), whole, np.int32)
        for kinds_V in self._kinds_LV:
            states_V = self._next_QN[states_V, kinds_V]
        for byte, piece in self._spelling.bytes.items():
            states_V[piece] = self._read_byte(matching, pending, byte)
        return states_V

    def _read_byte(self, matching: int, pending: bytes, byte: int) -> int:
        data = pending + bytes([byte])
        try:
            character = data.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                return self._join_state(matching, data)
            broken = self._next[matching][OTHER]
            return self._read_byte(broken, b"", byte) if pending else broken
        return self._next[matching][self._kind(character)]
