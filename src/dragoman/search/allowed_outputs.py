"""A search may return only some sequences, so only some pieces may come next."""

# B sentences, K hypotheses of each, T pieces so far, P longest prefix, V vocabulary

from __future__ import annotations

from typing import Final, Protocol

import torch
from torch import Tensor

from dragoman.errors import DataError
from dragoman.models.api import Rows
from dragoman.search.options import Limits, longest_output
from dragoman.search.repeated_ngrams import repeating_pieces
from dragoman.text.special_tokens import BOS, EOS, PAD, UNK

NEVER: Final = (PAD, BOS, UNK)
"""No search produces these, but a prefix may hold UNK."""


class Constraint(Protocol):
    """Forbid some sequences, as a grammar does."""

    free: range = range(0)
    """These ids leave no choice where they come: they cost nothing, whatever the model says."""

    def allowed(self, sentences_B: Tensor, ids_BKT: Tensor, room_B: Tensor) -> Tensor:
        """Return which pieces, EOS among them, may follow each hypothesis: booleans, B K V.

        This is a function of its arguments alone, and answers for any ids: some hypotheses are no
        longer of interest. `sentences` are rows of the source, `room` is how many pieces may still
        follow. A forced piece comes whatever the answer.
        """

    def shortest(self, sentence: int) -> int:
        """Return the fewest pieces of an output for a row of the source; its limit is no lower."""


class AllowedOutputs:
    """Allow sequences of `min_lengths` to `max_lengths` pieces that begin with a prefix.

    A minimum or a prefix longer than the maximum raises it, and so does a constraint.
    """

    def __init__(
        self,
        source: Rows,
        vocabulary: int,
        limits: Limits,
        prefixes: list[list[int]] | None = None,
        constraint: Constraint | None = None,
    ) -> None:
        # The one time the host asks for lengths; afterwards both sides count by themselves.
        lengths: list[int] = (source.segments_RL > 0).sum(1).tolist()
        self.prefixes = [[] for _ in lengths] if prefixes is None else prefixes
        _check_prefixes(self.prefixes, len(lengths), vocabulary)
        self.sentences = list(range(len(lengths)))
        self.min_lengths = [limits.min_length] * len(lengths)
        self.max_lengths = [
            longest_output(
                length - 1,
                limits,
                max(len(prefix), constraint.shortest(row) if constraint is not None else 0),
            )
            for row, (length, prefix) in enumerate(zip(lengths, self.prefixes, strict=True))
        ]
        self._constraint, self._limits = constraint, limits
        self._device = source.ids_RL.device
        self._never = torch.tensor(NEVER, device=self._device)
        self._to_device()

    def _to_device(self) -> None:
        def ints(values: list[int] | list[list[int]]) -> Tensor:
            return torch.tensor(values, dtype=torch.int64, device=self._device)

        self.sentences_B = ints(self.sentences)
        self.max_lengths_B = ints(self.max_lengths)
        self._min_lengths_B = ints(self.min_lengths)
        self._forced_B = ints([len(prefix) for prefix in self.prefixes])
        self._forced = max(map(len, self.prefixes), default=0)
        self._prefixes_BP = ints([p + [PAD] * (self._forced - len(p)) for p in self.prefixes])

    def keep(self, rows: list[int]) -> None:
        """Keep only the sentences of these rows."""
        for name in ("sentences", "prefixes", "min_lengths", "max_lengths"):
            setattr(self, name, [getattr(self, name)[row] for row in rows])
        self._to_device()

    def score_extensions(self, sums_BK: Tensor, log_probs_BKV: Tensor, ids_BKT: Tensor) -> Tensor:
        """Return the log-probability of every hypothesis one piece longer; −∞ where forbidden."""
        length, limits = ids_BKT.shape[2], self._limits
        weighted_BKV = log_probs_BKV
        if limits.repetition_penalty != 1.0:
            weighted_BKV = penalize_repetition(log_probs_BKV, ids_BKT, limits.repetition_penalty)
        totals_BKV = sums_BK[:, :, None] + weighted_BKV
        if limits.no_repeat_ngram > 0:
            repeating_BKW = self._repeating(ids_BKT, limits.no_repeat_ngram)
            totals_BKV.scatter_(2, repeating_BKW, -torch.inf)
        totals_BKV.index_fill_(2, self._never, -torch.inf)
        ends_BK = totals_BKV[:, :, EOS]
        if length < max(self.min_lengths):
            ends_BK.masked_fill_((length < self._min_lengths_B)[:, None], -torch.inf)
        if length >= min(self.max_lengths):
            full_B11 = (length >= self.max_lengths_B)[:, None, None]
            ended_BK = ends_BK.clone()
            totals_BKV.masked_fill_(full_B11, -torch.inf)
            ends_BK.copy_(ended_BK)
        if self._constraint is not None:
            if free := self._constraint.free:
                totals_BKV[:, :, free.start : free.stop] = sums_BK[:, :, None]
            room_B = self.max_lengths_B - length
            allowed_BKV = self._constraint.allowed(self.sentences_B, ids_BKT, room_B)
            totals_BKV.masked_fill_(~allowed_BKV, -torch.inf)
        if length < self._forced:
            self._force(totals_BKV, sums_BK, log_probs_BKV, length)
        return totals_BKV

    def _repeating(self, ids_BKT: Tensor, size: int) -> Tensor:
        """Return the pieces that must not follow, and PAD, which never does, B K W."""
        ids_XT, length = ids_BKT.flatten(0, 1), ids_BKT.shape[2]
        lengths_X = torch.full((len(ids_XT),), length, device=self._device)
        positions_T = torch.arange(length, device=self._device)
        found_XW: Tensor = repeating_pieces(ids_XT, lengths_X, positions_T, size)
        return found_XW.view(*ids_BKT.shape[:2], found_XW.shape[1])

    def _force(
        self, totals_BKV: Tensor, sums_BK: Tensor, log_probs_BKV: Tensor, length: int
    ) -> None:
        """Allow only the prefix's next piece; it costs nothing where the model rules it out."""
        forced_B11 = (length < self._forced_B)[:, None, None]
        piece_BK1 = self._prefixes_BP[:, length, None, None].expand(-1, totals_BKV.shape[1], 1)
        cost_BK1 = log_probs_BKV.gather(2, piece_BK1)
        cost_BK1 = cost_BK1.masked_fill(cost_BK1 == -torch.inf, 0.0)
        forced_BK1 = torch.where(
            forced_B11, sums_BK[:, :, None] + cost_BK1, totals_BKV.gather(2, piece_BK1)
        )
        totals_BKV.masked_fill_(forced_B11, -torch.inf)
        totals_BKV.scatter_(2, piece_BK1, forced_BK1)


def penalize_repetition(log_probs_V: Tensor, held_T: Tensor, penalty: float) -> Tensor:
    """Return the log-probabilities, those of the pieces that a hypothesis holds times the penalty.

    Both may have dimensions before the last.
    """
    return log_probs_V.scatter(-1, held_T, log_probs_V.gather(-1, held_T) * penalty)


def _check_prefixes(prefixes: list[list[int]], sentences: int, vocabulary: int) -> None:
    if len(prefixes) != sentences:
        raise DataError(
            f"{len(prefixes)} prefixes for {sentences} sentences; give one a sentence, [] for none"
        )
    for number, prefix in enumerate(prefixes, start=1):
        for piece in prefix:
            if piece in (PAD, BOS, EOS) or not 0 <= piece < vocabulary:
                raise DataError(
                    f"prefix {number} holds id {piece}, which no piece of text has; "
                    f"ids of pieces are {UNK} to {vocabulary - 1}"
                )
