"""The grammar of actions on the device: how far each hypothesis has come with its tree.

The rules are those of `dragoman.trees.grammar`. A step hides what they do not allow before the
choice, and afterwards notes what was chosen; it is PyTorch alone, asks the host for nothing and can
be recorded.
"""

# A lanes, K beams, R = A K rows, S slots, X what is known of a hypothesis, W last actions,
# C kinds of action and, last, the end; V targets

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.inference.gpu.batch_state import CEILING, DONE, LENGTH, MARKS, WORDS, Slots
from dragoman.inference.gpu.weights import Weights
from dragoman.text.special_tokens import EOS, FIRST, PAD
from dragoman.trees.grammar import NOTHING, RULES, Here, Yields, to_announce
from dragoman.trees.linearization import WORD

__all__ = ["Trees"]

LEFT: Final = 0
"""Words still to come."""
DEPTH: Final = 1
DUE: Final = 2
"""Whether a word is announced next."""
RECENT: Final = 3
"""The kinds of the last actions, from here on."""


class Trees:
    """Actions that make a tree over the words of their sentence."""

    def __init__(self, yields: Yields, weights: Weights, slots: Slots) -> None:
        """Of `yields` all that is not of single sentences."""
        actions, device = yields.actions, weights.device
        self.actions, self.announcements = actions, yields.announcements
        self._slots, self._bias, self._targets = slots, weights.output_bias, weights.targets
        self._rules = RULES[actions.order.name](actions.bounds, slots.words, torch, device=device)
        end = actions.bounds.kinds[-1] + 1
        kinds = [end + 1] * len(weights.projection.matrix.weight)  # what no rule allows
        kinds[FIRST : FIRST + len(actions)] = actions.kinds
        kinds[EOS] = end
        deeper = [*(self._rules.deeper(kind) for kind in range(end)), 0, 0]
        self._end, self._kinds_V = end, torch.tensor(kinds, device=device)
        self._deeper_C = torch.tensor(deeper, device=device)
        known = RECENT + self._rules.window
        shape = (slots.count + 1, slots.beams, known)
        self._known_SKX = torch.zeros(shape, dtype=torch.int64, device=device)
        begin = [0, 0, len(self.announcements) > 0, *[NOTHING] * self._rules.window]
        self._begin_X = torch.tensor(begin, device=device)
        self._beams_K = torch.arange(slots.beams, device=device)

    def suits(self, yields: Yields) -> bool:
        """Whether these sentences are to be made into the same kind of tree."""
        return (yields.actions, yields.announcements) == (self.actions, self.announcements)

    def begin(self, slots_B: Tensor, words_B: Tensor) -> None:
        """Sentences of so many words move into these slots."""
        begin_BX = self._begin_X.repeat(len(slots_B), 1)
        begin_BX[:, LEFT] = words_B
        self._known_SKX[slots_B] = begin_BX[:, None]

    def allow(self, scores: Tensor, lanes: int) -> Tensor:
        """The scores, R V, of what may follow; all others' share goes to a piece never chosen.

        So the probabilities stay what they are. What announces a word costs nothing.
        """
        slots, (chosen_A, marks_MA) = self._slots, self._where(lanes)
        known_AKX = self._known_SKX[chosen_A]
        left_AK, depth_AK, due_AK = known_AKX[..., :RECENT].unbind(-1)
        due_AK = due_AK > 0
        room_AK = (marks_MA[CEILING] - marks_MA[LENGTH])[:, None]
        if self.announcements:
            room_AK = room_AK - to_announce(left_AK, due_AK.long())
        here = Here(left_AK, depth_AK, room_AK, known_AKX[..., RECENT:])
        allowed_AKC = self._rules.allowed(here)
        allowed_AKC = allowed_AKC & ~due_AK[..., None]
        allowed_RV = functional.pad(allowed_AKC, (0, 1)).flatten(0, 1)[:, self._kinds_V]

        V, bias = self._targets, self._bias
        real_RV = scores[:, :V] if bias is None else scores[:, :V] + bias
        hidden_R = real_RV.masked_fill(allowed_RV[:, :V], -torch.inf).logsumexp(1)
        hidden_R = hidden_R if bias is None else hidden_R - bias[PAD]
        scores = scores.masked_fill(~allowed_RV, -torch.inf)
        if not self.announcements:
            scores[:, PAD] = hidden_R
            return scores
        due_R = due_AK.flatten()
        scores[:, PAD] = hidden_R.masked_fill(due_R, -torch.inf)
        next_AK = (marks_MA[WORDS][:, None] - left_AK).clamp(0, slots.words - 1)
        announced_AK = slots.marks[MARKS + next_AK, chosen_A[:, None]].long()
        # Alone it is certain, whatever its score; where none is due the same is written again.
        piece_R1 = announced_AK.flatten().masked_fill(~due_R, PAD)[:, None]
        return scores.scatter_(1, piece_R1, hidden_R.masked_fill(due_R, 0.0)[:, None])

    def grow(self, lanes: int) -> None:
        """Note what was chosen; each hypothesis is now its parent, and one piece more."""
        slots, (chosen_A, marks_MA) = self._slots, self._where(lanes)
        length_A = marks_MA[LENGTH]
        last_A = (length_A - 1).clamp(min=0)
        before_AKX = self._known_SKX[chosen_A]
        if slots.beams > 1:
            where = (length_A % 2)[:, None], chosen_A[:, None], self._beams_K, last_A[:, None]
            parents_AK1 = slots.tables_2SKT[where].long()[..., None]
            before_AKX = before_AKX.gather(1, parents_AK1.expand_as(before_AKX))
        pieces_AK = slots.pieces_STK[chosen_A, length_A].long()
        kinds_AK = self._kinds_V[pieces_AK]
        word_AK = kinds_AK == WORD
        left_AK = before_AKX[..., LEFT] - word_AK.long()
        depth_AK = before_AKX[..., DEPTH] + self._deeper_C[kinds_AK]
        due_AK = word_AK & (left_AK > 0) if self.announcements else torch.zeros_like(word_AK)
        recent_AKW = before_AKX[..., RECENT:]
        later_AKW = torch.cat([recent_AKW[..., 1:], kinds_AK[..., None]], -1)
        recent_AKW = torch.where((kinds_AK < self._end)[..., None], later_AKW, recent_AKW)
        after_AKX = torch.cat([torch.stack([left_AK, depth_AK, due_AK.long()], -1), recent_AKW], -1)
        done_A11 = marks_MA[DONE][:, None, None] > 0  # lanes for nothing all name one slot
        self._known_SKX[chosen_A] = torch.where(done_A11, self._known_SKX[chosen_A], after_AKX)

    def _where(self, lanes: int) -> tuple[Tensor, Tensor]:
        """The slots of the lanes, and their marks."""
        chosen_A = self._slots.lanes[:lanes].long()
        return chosen_A, self._slots.marks[:MARKS].index_select(1, chosen_A).long()
