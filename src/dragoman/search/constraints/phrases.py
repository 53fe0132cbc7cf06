"""Phrases a translation must contain, and phrases it must not.

`PhraseConstraint` keeps every hypothesis within reach of a good end: EOS only where all is as it must be,
and no piece that leaves too little room for what is still missing. That alone would put off every
phrase to the last moment, so `Lexical.choose` shares the beam out between hypotheses that have
come different distances (dynamic beam allocation, Post and Vilar 2018).
"""

# B sentences, K hypotheses of each, T pieces so far, V vocabulary, C = 2 K candidates,
# G distances (banks)

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from dragoman.errors import ConfigError
from dragoman.search.allowed_outputs import Constraint
from dragoman.search.beam import stable_topk
from dragoman.search.constraints.phrase_matching import (
    FOUND,
    START,
    PhraseMatcher,
    PieceSpelling,
    contains_phrase,
)
from dragoman.text.special_tokens import EOS
from dragoman.text.tokenizer import Tokenizer

__all__ = ["PhraseAutomata", "PhraseConstraint", "PhraseRequirements"]

LONGEST: Final = 400
"""Characters of a phrase."""
REMEMBERED: Final = 1000
"""Phrases whose automata are kept."""


@dataclass(frozen=True, slots=True)
class PhraseRequirements:
    """What one sentence must and must not contain."""

    must: tuple[PhraseMatcher, ...] = ()
    must_not: tuple[PhraseMatcher, ...] = ()
    joint: str | None = None
    """What stands between this text and one that follows it; None: nothing follows."""

    @property
    def pieces(self) -> int:
        """The fewest a sentence can have, as far as can be said before."""
        return sum(phrase.pieces for phrase in self.must)

    def beams(self, beam: int) -> int:
        """How wide a beam to search with: some hypotheses more than there are distances."""
        return max(beam, self.pieces + 4) if self.must else beam


class PhraseAutomata:
    """Phrases as automata, each made once."""

    def __init__(self, tokenizer: Tokenizer, targets: int, *, whole_words: bool = True) -> None:
        self._tokenizer, self._targets, self._whole = tokenizer, targets, whole_words
        self._spelling: PieceSpelling | None = None
        self._known: dict[tuple[str, bool], PhraseMatcher] = {}

    @property
    def spelling(self) -> PieceSpelling:
        """Of the vocabulary."""
        if self._spelling is None:
            self._spelling = PieceSpelling.of(self._tokenizer, self._targets)
        return self._spelling

    def normalized(self, phrase: str, what: str) -> str:
        """The phrase as a translation can contain it, or a refusal."""
        text = self._tokenizer.normalize(phrase)
        if not text:
            raise ConfigError(f"{what}: {phrase!r} has no text; give words")
        if "\ufffd" in text:
            raise ConfigError(f"{what}: {phrase!r} holds a damaged character; write it again")
        if len(text) > LONGEST:
            raise ConfigError(
                f"{what}: '{text[:40]}…' has {len(text)} characters; {LONGEST} are the most"
            )
        return text

    def wanted(
        self, must: Iterable[str], must_not: Iterable[str], joint: str | None = None
    ) -> PhraseRequirements:
        """What a sentence is asked for, unless it contradicts itself."""
        wanted = [self.normalized(phrase, "must") for phrase in dict.fromkeys(must)]
        banned = [self.normalized(phrase, "must not") for phrase in dict.fromkeys(must_not)]
        for phrase in wanted:
            for other in banned:
                if contains_phrase(other, phrase, whole_words=self._whole):
                    raise ConfigError(
                        f"a translation cannot contain '{phrase}' and not contain '{other}'; "
                        "leave one out"
                    )
        return PhraseRequirements(
            tuple(self._automaton(phrase, apart=True) for phrase in dict.fromkeys(wanted)),
            tuple(self._automaton(phrase, apart=False) for phrase in dict.fromkeys(banned)),
            joint,
        )

    def _automaton(self, phrase: str, *, apart: bool) -> PhraseMatcher:
        key = phrase, apart
        if key not in self._known:
            if len(self._known) > REMEMBERED:
                self._known.clear()
            self._known[key] = PhraseMatcher(
                phrase, self.spelling, whole_words=self._whole, apart=apart
            )
        return self._known[key]


class PhraseConstraint(Constraint):
    """The constraint on a batch, for `Space`; and how a beam is shared out, for `beam_search`."""

    def __init__(
        self, wanted: Sequence[PhraseRequirements], targets: int, device: torch.device
    ) -> None:
        """`wanted` of each row of the source; `targets` is the size of the vocabulary."""
        self._wanted = wanted
        self._targets = targets
        self._device = device
        self._states: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._needs: dict[tuple[int, tuple[int, ...]], tuple[Tensor, Tensor]] = {}
        self._left_BKV = torch.empty(0)

    def shortest(self, sentence: int) -> int:
        """See Constraint; what must be there, and one piece after it."""
        wanted = self._wanted[sentence]
        return wanted.pieces + (len(wanted.must_not) > 0)

    def allowed(self, sentences_B: Tensor, ids_BKT: Tensor, room_B: Tensor) -> Tensor:
        """See Constraint."""
        sentences = sentences_B.tolist()
        left, allowed = [], []
        for sentence, hypotheses, room in zip(
            sentences, ids_BKT.tolist(), room_B.tolist(), strict=True
        ):
            for ids in hypotheses:
                left_V, may_V = self._after(sentence, self._state(sentence, ids))
                left.append(left_V)
                allowed.append(may_V & (left_V < room))
        shape = (len(sentences), ids_BKT.shape[1], -1)
        self._left_BKV = torch.stack(left).view(shape).to(self._device)
        allowed_BKV = torch.stack(allowed).view(shape).to(self._device)
        # The end is free: it needs no room.
        allowed_BKV[:, :, EOS] = self._left_BKV[:, :, EOS] == 0
        return allowed_BKV

    def choose(
        self, totals_BKV: Tensor, sentences_B: Tensor, ids_BKT: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The best of each distance in turn, the nearest first, then the second best and so on."""
        beams = totals_BKV.shape[1]
        totals_BX, left_BX = totals_BKV.flatten(1), self._left_BKV.flatten(1)
        banks = [
            stable_topk(totals_BX.masked_fill(left_BX != distance, -torch.inf), 2 * beams)
            for distance in left_BX[totals_BX > -torch.inf].unique().tolist()
        ]
        if not banks:
            return stable_topk(totals_BX, 2 * beams)
        values_BRG = torch.stack([values for values, _ in banks], dim=2)
        index_BRG = torch.stack([index for _, index in banks], dim=2)
        values_BX, index_BX = values_BRG.flatten(1), index_BRG.flatten(1)
        # A candidate that is none goes last, so that its place is another's.
        order_BX = (values_BX == -torch.inf).int().argsort(dim=1, stable=True)[:, : 2 * beams]
        return values_BX.gather(1, order_BX), index_BX.gather(1, order_BX)

    # --- inside ---

    def _state(self, sentence: int, ids: list[int]) -> tuple[int, ...]:
        """Where the automata of a sentence stand after these pieces."""
        wanted = self._wanted[sentence]
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

    def _after(self, sentence: int, states: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """For every next piece: how many must follow it, and whether it may come at all.

        At EOS the first says whether the text may end here: 0 if so.
        """
        key = sentence, states
        if key not in self._needs:
            wanted = self._wanted[sentence]
            must = list(zip(wanted.must, states, strict=False))
            banned = list(zip(wanted.must_not, states[len(must) :], strict=True))
            left_V = _left(must) if must else torch.zeros(self._targets, dtype=torch.int64)
            may_V = torch.ones(self._targets, dtype=torch.bool)
            late = not all(phrase.ends(state) for phrase, state in must)
            for phrase, state in banned:
                may_V &= phrase.row(state) != FOUND
                # Where the text must not end, another piece must come.
                left_V = torch.maximum(left_V, phrase.unfit(state, wanted.joint))
                late = late or phrase.is_unfit(state, wanted.joint)
            left_V[EOS] = int(late)
            self._needs[key] = left_V.to(torch.int16), may_V
        return self._needs[key]


def _left(must: Sequence[tuple[PhraseMatcher, int]]) -> Tensor:
    """After each next piece, how many pieces are enough for all phrases to occur.

    Either all that are missing are begun anew, one after another, or one that has begun is ended
    first; what occurs only if the text ends here is then lost in the worst case.
    """
    rows = [(phrase, phrase.row(state)) for phrase, state in must]
    needs = [phrase.needs(state) for phrase, state in must]
    lost = [phrase.pieces * (row_V != FOUND) for phrase, row_V in rows]
    best_V = sum(
        (phrase.pieces * (need_V > 0) for (phrase, _), need_V in zip(rows, needs, strict=True)),
        start=torch.zeros_like(needs[0]),
    )
    all_V = torch.stack(lost).sum(0)
    for need_V, lost_V in zip(needs, lost, strict=True):
        ended_V = all_V - lost_V + need_V
        best_V = torch.where(need_V > 0, torch.minimum(best_V, ended_V), best_V)
    return best_V
