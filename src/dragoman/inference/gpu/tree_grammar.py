"""The grammar of trees on the device remembers how far each hypothesis has come with its tree.

The rules are those of `dragoman.trees.grammar`. A step masks what they do not allow before the
choice, and afterwards notes what was chosen. It is PyTorch alone, asks the host for nothing and can
be recorded.
"""

# A active slots, K beams, R = A K rows, S slots, X what is known of a hypothesis, W last actions,
# C kinds of action and, last, the end; V targets

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.inference.gpu.batch_state import (
    DONE,
    INFO_FIELDS,
    LENGTH,
    MAX_LENGTH,
    WORDS,
    BatchState,
)
from dragoman.inference.gpu.weights import GpuWeights
from dragoman.text.special_tokens import EOS, FIRST_PIECE, PAD
from dragoman.trees.grammar import (
    ACTION_GRAMMARS,
    NO_ACTION,
    GrammarState,
    SentencesToParse,
    announcements_left,
)
from dragoman.trees.linearization import WORD

LEFT: Final = 0
"""This counts the words still to come."""
DEPTH: Final = 1
DUE: Final = 2
"""This says whether a word has to be announced next."""
RECENT: Final = 3
"""The kinds of the last actions are from here on."""


class TreeGrammar:
    """Allow only actions that make a tree over the words of their sentence."""

    def __init__(self, to_parse: SentencesToParse, weights: GpuWeights, state: BatchState) -> None:
        """Keep what is the same for all sentences that are to be parsed."""
        actions, device = to_parse.actions, weights.device
        self.actions, self.announcements = actions, to_parse.announcements
        self._state, self._bias, self._targets = state, weights.output_bias, weights.targets
        self._rules = ACTION_GRAMMARS[actions.order.name](
            actions.bounds, state.words, torch, device=device
        )
        end = actions.bounds.kinds[-1] + 1
        kinds = [end + 1] * len(weights.projection.matrix.weight)  # what no rule allows
        kinds[FIRST_PIECE : FIRST_PIECE + len(actions)] = actions.kinds
        kinds[EOS] = end
        deeper = [*(self._rules.depth_change(kind) for kind in range(end)), 0, 0]
        self._end, self._kinds_V = end, torch.tensor(kinds, device=device)
        self._deeper_C = torch.tensor(deeper, device=device)
        known = RECENT + self._rules.window
        shape = (state.count + 1, state.beams, known)
        self._known_SKX = torch.zeros(shape, dtype=torch.int64, device=device)
        begin = [0, 0, len(self.announcements) > 0, *[NO_ACTION] * self._rules.window]
        self._begin_X = torch.tensor(begin, device=device)
        self._beams_K = torch.arange(state.beams, device=device)

    def is_for(self, to_parse: SentencesToParse) -> bool:
        """Return whether these sentences are to become the same kind of tree."""
        return (to_parse.actions, to_parse.announcements) == (self.actions, self.announcements)

    def admit(self, slots_B: Tensor, words_B: Tensor) -> None:
        """Begin sentences of so many words in these slots."""
        begin_BX = self._begin_X.repeat(len(slots_B), 1)
        begin_BX[:, LEFT] = words_B
        self._known_SKX[slots_B] = begin_BX[:, None]

    def mask_scores(self, scores: Tensor, batch_size: int) -> Tensor:
        """Return the scores of what may follow, R V; a piece never chosen has the others' share.

        So the probabilities stay what they are. What announces a word costs nothing.
        """
        state, (slots_A, info_FA) = self._state, self._active(batch_size)
        known_AKX = self._known_SKX[slots_A]
        left_AK, depth_AK, due_AK = known_AKX[..., :RECENT].unbind(-1)
        due_AK = due_AK > 0
        room_AK = (info_FA[MAX_LENGTH] - info_FA[LENGTH])[:, None]
        if self.announcements:
            room_AK = room_AK - announcements_left(left_AK, due_AK.long())
        grammar_state = GrammarState(left_AK, depth_AK, room_AK, known_AKX[..., RECENT:])
        allowed_AKC = self._rules.allowed(grammar_state)
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
        next_AK = (info_FA[WORDS][:, None] - left_AK).clamp(0, state.words - 1)
        announced_AK = state.info_FS[INFO_FIELDS + next_AK, slots_A[:, None]].long()
        # Alone it is certain, whatever its score; where none is due the same is written again.
        piece_R1 = announced_AK.flatten().masked_fill(~due_R, PAD)[:, None]
        return scores.scatter_(1, piece_R1, hidden_R.masked_fill(due_R, 0.0)[:, None])

    def extend(self, batch_size: int) -> None:
        """Note that each hypothesis is now its parent, and the piece that was chosen."""
        state, (slots_A, info_FA) = self._state, self._active(batch_size)
        length_A = info_FA[LENGTH]
        last_A = (length_A - 1).clamp(min=0)
        before_AKX = self._known_SKX[slots_A]
        if state.beams > 1:
            where = (length_A % 2)[:, None], slots_A[:, None], self._beams_K, last_A[:, None]
            parents_AK1 = state.tables_2SKT[where].long()[..., None]
            before_AKX = before_AKX.gather(1, parents_AK1.expand_as(before_AKX))
        pieces_AK = state.pieces_STK[slots_A, length_A].long()
        kinds_AK = self._kinds_V[pieces_AK]
        word_AK = kinds_AK == WORD
        left_AK = before_AKX[..., LEFT] - word_AK.long()
        depth_AK = before_AKX[..., DEPTH] + self._deeper_C[kinds_AK]
        due_AK = word_AK & (left_AK > 0) if self.announcements else torch.zeros_like(word_AK)
        recent_AKW = before_AKX[..., RECENT:]
        later_AKW = torch.cat([recent_AKW[..., 1:], kinds_AK[..., None]], -1)
        recent_AKW = torch.where((kinds_AK < self._end)[..., None], later_AKW, recent_AKW)
        after_AKX = torch.cat([torch.stack([left_AK, depth_AK, due_AK.long()], -1), recent_AKW], -1)
        done_A11 = info_FA[DONE][:, None, None] > 0  # the idle slot may be active several times
        self._known_SKX[slots_A] = torch.where(done_A11, self._known_SKX[slots_A], after_AKX)

    def _active(self, batch_size: int) -> tuple[Tensor, Tensor]:
        """Return the active slots, and their info."""
        slots_A = self._state.active_slots[:batch_size].long()
        return slots_A, self._state.info_FS[:INFO_FIELDS].index_select(1, slots_A).long()
