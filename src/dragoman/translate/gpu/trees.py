"""The grammar of actions on the device: how far each hypothesis has come with its tree.

The rules are those of `dragoman.search.rules`. A step hides what they do not allow before the
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

from dragoman.search.rules import NOTHING, RULES, Here, Yields, to_announce
from dragoman.text.symbols import EOS, FIRST, PAD
from dragoman.text.trees.linear import WORD
from dragoman.translate.gpu.slots import CEILING, DONE, LENGTH, MARKS, WORDS, Slots
from dragoman.translate.gpu.weights import Weights

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

    def allow(self, scores: Tensor, lanes: int) -> Tensor:
        """The scores, R V, of what may follow; all others' share goes to a piece never chosen.

        So the probabilities stay what they are. What announces a word costs nothing.
        """
        slots = self._slots
        chosen_A = slots.lanes[:lanes].long()
        length_A, ceiling_A, words_A = (
            slots.marks[mark].index_select(0, chosen_A).long() for mark in (LENGTH, CEILING, WORDS)
        )
        known_AKX = self._known(chosen_A, length_A, words_A)
        left_AK, depth_AK, due_AK = known_AKX[..., :RECENT].unbind(-1)
        due_AK = due_AK > 0
        room_AK = (ceiling_A - length_A)[:, None]
        if self.announcements:
            room_AK = room_AK - to_announce(left_AK, due_AK.long())
        here = Here(left_AK, depth_AK, room_AK, known_AKX[..., RECENT:])
        allowed_AKC = self._rules.allowed(here)
        fits_AK = allowed_AKC[..., :-1].any(-1)
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
        settled_R = (due_AK & fits_AK).flatten()
        scores[:, PAD] = hidden_R.masked_fill(settled_R, -torch.inf)
        next_AK = (words_A[:, None] - left_AK).clamp(0, slots.words - 1)
        announced_AK = slots.marks[MARKS + next_AK, chosen_A[:, None]].long()
        piece_R = announced_AK.flatten().masked_fill(~settled_R, PAD)
        free_R = torch.zeros_like(hidden_R) if bias is None else -bias[piece_R]
        price_R = torch.where(settled_R, free_R, hidden_R)
        return scores.scatter_(1, piece_R[:, None], price_R[:, None])

    def grow(self, lanes: int) -> None:
        """Note what was chosen; each hypothesis is now its parent, and one piece more."""
        slots = self._slots
        chosen_A = slots.lanes[:lanes].long()
        done_A, length_A, words_A = (
            slots.marks[mark].index_select(0, chosen_A).long() for mark in (DONE, LENGTH, WORDS)
        )
        last_A = (length_A - 1).clamp(min=0)
        before_AKX = self._known(chosen_A, last_A, words_A)
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
        # Done now or long ago, nobody will ask; and lanes for nothing all name one slot.
        kept_AKX = self._known_SKX[chosen_A]
        self._known_SKX[chosen_A] = torch.where(done_A[:, None, None] > 0, kept_AKX, after_AKX)

    def _known(self, chosen_A: Tensor, length_A: Tensor, words_A: Tensor) -> Tensor:
        """Of each hypothesis of some slots when it had so many pieces, A K X."""
        begin_AX = self._begin_X.repeat(len(chosen_A), 1)
        begin_AX[:, LEFT] = words_A
        fresh_A11 = (length_A == 0)[:, None, None]
        return torch.where(fresh_A11, begin_AX[:, None], self._known_SKX[chosen_A])
