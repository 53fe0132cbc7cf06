"""A translation must contain some phrases, and must not contain others.

`PhraseConstraint` keeps every hypothesis within reach of a good end: EOS only where everything is
as required, and no piece that leaves too little room for what is still missing. That alone would
put off every phrase to the last moment, so `PhraseConstraint.choose` divides the beam among
hypotheses that lack different numbers of pieces (dynamic beam allocation, Post and Vilar 2018).
"""

# B sentences, K hypotheses of each, T pieces so far, V vocabulary, C = 2 K candidates,
# G numbers of missing pieces (banks)

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from dragoman.errors import ConfigError
from dragoman.search.allowed_outputs import Constraint
from dragoman.search.beam import stable_topk
from dragoman.search.constraints.phrase_matching import FOUND, START, PhraseMatcher, PieceSpelling
from dragoman.text.special_tokens import EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import contains_phrase

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


class PhraseConstraint(Constraint):
    """Constrain a batch to outputs with and without certain phrases, and divide its beams."""

    def __init__(
        self, requirements: Sequence[PhraseRequirements], targets: int, device: torch.device
    ) -> None:
        """Take the requirements of each row of the source, and the size of the vocabulary."""
        self._requirements = requirements
        self._targets = targets
        self._device = device
        self._states: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._needs: dict[tuple[int, tuple[int, ...]], tuple[Tensor, Tensor]] = {}
        self._left_BKV = torch.empty(0)

    def shortest(self, sentence: int) -> int:
        """See Constraint: what must be there, and one piece after it."""
        wanted = self._requirements[sentence]
        return wanted.min_pieces + (len(wanted.must_not) > 0)

    def allowed(self, sentences_B: Tensor, ids_BKT: Tensor, room_B: Tensor) -> Tensor:
        """Return which pieces may come next, as `Constraint.allowed` says."""
        sentences = sentences_B.tolist()
        left, allowed = [], []
        for sentence, hypotheses, room in zip(
            sentences, ids_BKT.tolist(), room_B.tolist(), strict=True
        ):
            for ids in hypotheses:
                left_V, may_V = self._next_pieces(sentence, self._automaton_states(sentence, ids))
                left.append(left_V)
                allowed.append(may_V & (left_V < room))
        shape = (len(sentences), ids_BKT.shape[1], -1)
        self._left_BKV = torch.stack(left).view(shape).to(self._device)
        allowed_BKV = torch.stack(allowed).view(shape).to(self._device)
        # The end needs no room.
        allowed_BKV[:, :, EOS] = self._left_BKV[:, :, EOS] == 0
        return allowed_BKV

    def choose(
        self, totals_BKV: Tensor, sentences_B: Tensor, ids_BKT: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the best of each bank in turn, nearest to the end first, then the second best."""
        beams = totals_BKV.shape[1]
        totals_BX, left_BX = totals_BKV.flatten(1), self._left_BKV.flatten(1)
        banks = [
            stable_topk(totals_BX.masked_fill(left_BX != missing, -torch.inf), 2 * beams)
            for missing in left_BX[totals_BX > -torch.inf].unique().tolist()
        ]
        if not banks:
            return stable_topk(totals_BX, 2 * beams)
        values_BRG = torch.stack([values for values, _ in banks], dim=2)
        index_BRG = torch.stack([index for _, index in banks], dim=2)
        values_BX, index_BX = values_BRG.flatten(1), index_BRG.flatten(1)
        # What is no candidate goes last.
        order_BX = (values_BX == -torch.inf).int().argsort(dim=1, stable=True)[:, : 2 * beams]
        return values_BX.gather(1, order_BX), index_BX.gather(1, order_BX)

    def _automaton_states(self, sentence: int, ids: list[int]) -> tuple[int, ...]:
        """Return the states of a sentence's automata after these pieces."""
        wanted = self._requirements[sentence]
        phrases = (*wanted.must, *wanted.must_not)
        key = (sentence, *ids)
        known = len(ids)
        while known and key[: known + 1] not in self._states:
            known -= 1
        states = self._states.get(key[: known + 1], (START,) * len(phrases))
        for piece in ids[known:]:
            states = tuple(p.after(s, piece) for p, s in zip(phrases, states, strict=True))
        self._states[key] = states
        return states

    def _next_pieces(self, sentence: int, states: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Return for every next piece how many must follow it, and whether it may come at all.

        At EOS the first is 0 if the text may end here, and else 1.
        """
        key = sentence, states
        if key not in self._needs:
            wanted = self._requirements[sentence]
            must = list(zip(wanted.must, states, strict=False))
            banned = list(zip(wanted.must_not, states[len(must) :], strict=True))
            left_V = _pieces_left(must) if must else torch.zeros(self._targets, dtype=torch.int64)
            may_V = torch.ones(self._targets, dtype=torch.bool)
            must_continue = not all(phrase.matches_at_end(state) for phrase, state in must)
            for phrase, state in banned:
                may_V &= phrase.states_after(state) != FOUND
                # Where the text must not end, another piece must come.
                left_V = torch.maximum(left_V, phrase.forbids_end_after(state, wanted.separator))
                must_continue = must_continue or phrase.forbids_end(state, wanted.separator)
            left_V[EOS] = int(must_continue)
            self._needs[key] = left_V.to(torch.int16), may_V
        return self._needs[key]


def _pieces_left(must: Sequence[tuple[PhraseMatcher, int]]) -> Tensor:
    """Return after each next piece how many pieces are enough for all phrases to occur.

    Either all that are missing are begun anew, one after another, or one that has begun is ended
    first; what occurs only if the text ends here is then lost in the worst case.
    """
    rows = [(phrase, phrase.states_after(state)) for phrase, state in must]
    needs = [phrase.pieces_needed_after(state) for phrase, state in must]
    lost = [phrase.min_pieces * (row_V != FOUND) for phrase, row_V in rows]
    best_V = sum(
        (phrase.min_pieces * (need_V > 0) for (phrase, _), need_V in zip(rows, needs, strict=True)),
        start=torch.zeros_like(needs[0]),
    )
    all_V = torch.stack(lost).sum(0)
    for need_V, lost_V in zip(needs, lost, strict=True):
        ended_V = all_V - lost_V + need_V
        best_V = torch.where(need_V > 0, torch.minimum(best_V, ended_V), best_V)
    return best_V
