"""A translation must contain some phrases, and must not contain others.

Every hypothesis is kept within reach of a good end: EOS only where everything is as required, and
no piece that leaves too little room for what is still missing. That alone would put off every
phrase to the last moment, so searches divide the beam among hypotheses that lack different numbers
of pieces (dynamic beam allocation, Post and Vilar 2018). What is here is without PyTorch;
`phrase_constraint` and the CPU engine search by it.
"""

# V vocabulary

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError
from dragoman.search.constraints.phrase_matching import FOUND, START, PhraseMatcher, PieceSpelling
from dragoman.text.special_tokens import EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import contains_phrase

States = tuple[int, ...]
"""These are the states of a sentence's automata."""

MAX_CHARACTERS: Final = 400
"""A phrase has at most so many characters."""
MAX_KEPT_PHRASES: Final = 1000
"""At most so many phrases keep their automata."""


@dataclass(frozen=True, slots=True)
class PhraseRequirements:
    """Say what one sentence must and must not contain."""

    must: tuple[PhraseMatcher, ...] = ()
    must_not: tuple[PhraseMatcher, ...] = ()
    separator: str | None = None
    """It stands between this text and one that follows; None means that nothing follows."""

    @property
    def min_pieces(self) -> int:
        """Return with how many pieces all phrases can be made to occur."""
        return sum(phrase.min_pieces for phrase in self.must)

    @property
    def shortest(self) -> int:
        """Return the fewest pieces of an output: what must be there, and one piece after it."""
        return self.min_pieces + (len(self.must_not) > 0)

    def beam_width(self, beam: int) -> int:
        """Return how wide a beam to search with: some hypotheses more than there are banks."""
        return max(beam, self.min_pieces + 4) if self.must else beam


class PhraseCompiler:
    """Compile phrases to automata, each once."""

    def __init__(self, tokenizer: Tokenizer, targets: int, *, whole_words: bool = True) -> None:
        self._tokenizer, self._targets, self._whole = tokenizer, targets, whole_words
        self._spelling: PieceSpelling | None = None
        self._known: dict[tuple[str, bool], PhraseMatcher] = {}

    @property
    def spelling(self) -> PieceSpelling:
        """Return what the pieces of the vocabulary spell."""
        if self._spelling is None:
            self._spelling = PieceSpelling.from_tokenizer(self._tokenizer, self._targets)
        return self._spelling

    def normalize(self, phrase: str, option: str) -> str:
        """Return the phrase as a translation can contain it, or raise ConfigError."""
        text = self._tokenizer.normalize(phrase)
        if not text:
            raise ConfigError(f"{option}: {phrase!r} has no text; give words")
        if "\ufffd" in text:
            raise ConfigError(f"{option}: {phrase!r} holds a damaged character; write it again")
        if len(text) > MAX_CHARACTERS:
            raise ConfigError(
                f"{option}: '{text[:40]}…' has {len(text)} characters; "
                f"at most {MAX_CHARACTERS} are allowed"
            )
        return text

    def compile(
        self, must: Iterable[str], must_not: Iterable[str], separator: str | None = None
    ) -> PhraseRequirements:
        """Return the requirements on a sentence, or raise ConfigError if they contradict."""
        required = [self.normalize(phrase, "must") for phrase in dict.fromkeys(must)]
        banned = [self.normalize(phrase, "must not") for phrase in dict.fromkeys(must_not)]
        for phrase in required:
            for other in banned:
                if contains_phrase(other, phrase, whole_words=self._whole):
                    raise ConfigError(
                        f"a translation cannot contain '{phrase}' and not contain '{other}'; "
                        "leave one out"
                    )
        return PhraseRequirements(
            tuple(self._automaton(phrase, separate=True) for phrase in dict.fromkeys(required)),
            tuple(self._automaton(phrase, separate=False) for phrase in dict.fromkeys(banned)),
            separator,
        )

    def _automaton(self, phrase: str, *, separate: bool) -> PhraseMatcher:
        key = phrase, separate
        if key not in self._known:
            if len(self._known) > MAX_KEPT_PHRASES:
                self._known.clear()
            self._known[key] = PhraseMatcher(
                phrase, self.spelling, whole_words=self._whole, separate=separate
            )
        return self._known[key]


class PhraseTracker:
    """Say which pieces may follow the hypotheses of one sentence."""

    def __init__(self, wanted: PhraseRequirements, targets: int) -> None:
        """Take what is required of the sentence, and the size of the vocabulary."""
        self._wanted, self._targets = wanted, targets
        self._phrases = (*wanted.must, *wanted.must_not)
        self.start: States = (START,) * len(self._phrases)
        """A hypothesis without pieces is in these states."""
        self._next: dict[States, tuple[NDArray[np.int32], NDArray[np.bool_]]] = {}

    def after(self, states: States, piece: int) -> States:
        """Return the states after one piece more."""
        return tuple(p.after(s, piece) for p, s in zip(self._phrases, states, strict=True))

    def next_pieces(self, states: States) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return for every next piece how many must follow it, and whether it may come at all, V.

        At EOS the first is 0 if the text may end here, and else 1.
        """
        if states not in self._next:
            self._next[states] = self._compute_next(states)
        return self._next[states]

    def _compute_next(self, states: States) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        wanted = self._wanted
        must = list(zip(wanted.must, states, strict=False))
        banned = list(zip(wanted.must_not, states[len(must) :], strict=True))
        left_V = _pieces_left(must) if must else np.zeros(self._targets, np.int32)
        may_V = np.ones(self._targets, np.bool_)
        must_continue = not all(phrase.matches_at_end(state) for phrase, state in must)
        for phrase, state in banned:
            may_V &= phrase.states_after(state) != FOUND
            # Where the text must not end, another piece must come.
            left_V = np.maximum(left_V, phrase.forbids_end_after(state, wanted.separator))
            must_continue = must_continue or phrase.forbids_end(state, wanted.separator)
        left_V[EOS] = int(must_continue)
        may_V[EOS] = not must_continue
        return left_V, may_V


def _pieces_left(must: Sequence[tuple[PhraseMatcher, int]]) -> NDArray[np.int32]:
    """Return after each next piece how many pieces are enough for all phrases to occur.

    Either all that are missing are begun anew, one after another, or one that has begun is ended
    first; what occurs only if the text ends here is then lost in the worst case.
    """
    needs = [phrase.pieces_needed_after(state) for phrase, state in must]
    lost = [
        phrase.min_pieces * (phrase.states_after(state) != FOUND).astype(np.int32)
        for phrase, state in must
    ]
    best_V = np.zeros_like(needs[0])
    for (phrase, _), need_V in zip(must, needs, strict=True):
        best_V += phrase.min_pieces * (need_V > 0)
    all_V = np.sum(lost, axis=0, dtype=np.int32)
    for need_V, lost_V in zip(needs, lost, strict=True):
        ended_V = all_V - lost_V + need_V
        best_V = np.where(need_V > 0, np.minimum(best_V, ended_V), best_V)
    return best_V
