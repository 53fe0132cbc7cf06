"""PyTorch searches for outputs that contain some phrases, and others not."""

# B sentences, K hypotheses of each, T pieces so far, V vocabulary, C = 2 K candidates,
# G numbers of missing pieces (banks)

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.search.allowed_outputs import Constraint
from dragoman.search.beam import stable_topk
from dragoman.search.constraints.phrases import PhraseRequirements, PhraseTracker, States
from dragoman.text.special_tokens import EOS


class PhraseConstraint(Constraint):
    """Constrain a batch to outputs with and without certain phrases, and divide its beams."""

    def __init__(
        self, requirements: Sequence[PhraseRequirements], targets: int, device: torch.device
    ) -> None:
        """Take the requirements of each row of the source, and the size of the vocabulary."""
        self._requirements, self._device = requirements, device
        self._trackers = [PhraseTracker(one, targets) for one in requirements]
        self._states: dict[tuple[int, ...], States] = {}
        self._left_BKV = torch.empty(0)

    def shortest(self, sentence: int) -> int:
        """Return the fewest pieces an output may have: see Constraint."""
        return self._requirements[sentence].shortest

    def allowed(self, sentences_B: Tensor, ids_BKT: Tensor, room_B: Tensor) -> Tensor:
        """Return which pieces may come next, as `Constraint.allowed` says."""
        sentences = sentences_B.tolist()
        left, allowed = [], []
        for sentence, hypotheses, room in zip(
            sentences, ids_BKT.tolist(), room_B.tolist(), strict=True
        ):
            for ids in hypotheses:
                states = self._automaton_states(sentence, ids)
                left_V, may_V = self._trackers[sentence].next_pieces(states)
                left.append(torch.from_numpy(left_V))
                allowed.append(torch.from_numpy(may_V & (left_V < room)))
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

    def _automaton_states(self, sentence: int, ids: list[int]) -> States:
        """Return the states of a sentence's automata after these pieces."""
        tracker = self._trackers[sentence]
        key = (sentence, *ids)
        known = len(ids)
        while known and key[: known + 1] not in self._states:
            known -= 1
        states = self._states.get(key[: known + 1], tracker.start)
        for piece in ids[known:]:
            states = tracker.after(states, piece)
        self._states[key] = states
        return states
