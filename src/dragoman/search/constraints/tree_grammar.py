"""This constraint makes every output a tree, whatever the model prefers.

`dragoman.trees.grammar` has the rules of what may follow; `dragoman.trees.linearization` has the
same in plain Python, and is the better introduction.
"""

# B sentences, K hypotheses of each, X = B K, T actions so far, W last actions, A actions,
# C kinds of action and, last, the end; V vocabulary

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.models.api import Model
from dragoman.search.allowed_outputs import Constraint
from dragoman.search.batching import MakeConstraint
from dragoman.text.special_tokens import EOS, FIRST_PIECE, PAD, UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.trees.grammar import (
    ACTION_GRAMMARS,
    NO_ACTION,
    GrammarState,
    SentencesToParse,
    announcements_left,
)
from dragoman.trees.linearization import WORD, Actions

ANNOUNCEMENT: Final = -2
"""Ids that announce a word are of this kind: see `TreeTokenizer`."""


class TreeConstraint(Constraint):
    """Allow only sequences that make a tree over all words of their sentence in the room left.

    With less room than `Actions.fewest_actions` nothing is allowed, nor after an id that is no
    action.
    """

    def __init__(
        self,
        actions: Actions,
        words: Sequence[int],
        *,
        first: int,
        vocabulary: int,
        announced: Sequence[Sequence[int]] = (),
        device: torch.device | str = "cpu",
    ) -> None:
        """Take the number of words of each row of the source, and the id of the first action.

        The ids after the actions are those that announce words: `announced` in each row, if any.
        """
        assert UNK < first <= vocabulary - len(actions)
        rules = ACTION_GRAMMARS[actions.order.name](
            actions.bounds, max(words, default=0), torch, device=device
        )
        kinds = [NO_ACTION] * vocabulary
        sums = [(0, 0, 1)] * vocabulary  # what an id adds to words, depth and ids not of actions
        for id_, kind in enumerate(actions.kinds, start=first):
            kinds[id_] = kind
            sums[id_] = (int(kind == WORD), rules.depth_change(kind), 0)
        if any(announced):
            self.free = range(first + len(actions), vocabulary)
            for id_ in self.free:
                kinds[id_], sums[id_] = ANNOUNCEMENT, (0, 0, 0)
            longest = max(map(len, announced))
            padded = [[*ids, *[PAD] * (longest + 1 - len(ids))] for ids in announced]
            self._announced_BN = torch.tensor(padded, device=device)
        self._rules = rules
        self._kinds_V = torch.tensor(kinds, device=device)
        self._sums_V3 = torch.tensor(sums, dtype=torch.float32, device=device)
        self._words = words
        self._words_B = torch.tensor(words, dtype=torch.int64, device=device)
        self._all = actions
        self._actions = slice(first, first + len(actions))
        self._kinds_A = self._kinds_V[self._actions]

    def allowed(self, sentences_B: Tensor, ids_BKT: Tensor, room_B: Tensor) -> Tensor:
        """See Constraint; room counts actions and announcements, and the end takes none."""
        sums_BK3 = self._sum(ids_BKT)
        words_B1 = self._words_B[sentences_B][:, None]
        left_BK = words_B1 - sums_BK3[:, :, 0]
        good_BK = sums_BK3[:, :, 2] == 0
        room_BK = room_B[:, None]
        if self.free:
            due_BK = self._due(ids_BKT) & (left_BK > 0)
            room_BK = room_BK - announcements_left(left_BK, due_BK)
        here = GrammarState(left_BK, sums_BK3[:, :, 1], room_BK, self._recent(ids_BKT))
        allowed_BKC = self._rules.allowed(here) & good_BK[:, :, None]
        # Most of a vocabulary is never allowed, so the answer is by kinds until here.
        allowed_BKV: Tensor = allowed_BKC.new_zeros(*ids_BKT.shape[:2], len(self._kinds_V))
        allowed_BKV[:, :, self._actions] = allowed_BKC[:, :, self._kinds_A]
        allowed_BKV[:, :, EOS] = allowed_BKC[:, :, -1]
        if self.free:
            allowed_BKV &= ~due_BK[:, :, None]
            next_BK = (words_B1 - left_BK).clamp(0, self._announced_BN.shape[1] - 1)
            announced_BK = self._announced_BN[sentences_B].gather(1, next_BK)
            fits_BK = due_BK & good_BK & allowed_BKC[:, :, :-1].any(dim=2)
            allowed_BKV.scatter_(2, announced_BK[:, :, None], fits_BK[:, :, None])
        return allowed_BKV

    def shortest(self, sentence: int) -> int:
        """Return the fewest actions that make a tree of its words."""
        words = self._words[sentence]
        return self._all.fewest_actions(words) + (words if self.free else 0)

    def _due(self, ids_BKT: Tensor) -> Tensor:
        """Return whether a word is announced next, if one is left: at first, and after a word."""
        if not ids_BKT.shape[2]:
            return ids_BKT.new_ones(ids_BKT.shape[:2], dtype=torch.bool)
        return self._kinds_V[ids_BKT[:, :, -1]] == WORD

    def _sum(self, ids_BKT: Tensor) -> Tensor:
        """Sum what the actions so far add; single precision holds these integers exactly."""
        if not ids_BKT.shape[2]:  # embedding_bag refuses empty bags
            return ids_BKT.new_zeros(*ids_BKT.shape[:2], 3)
        sums_X3 = functional.embedding_bag(ids_BKT.flatten(0, 1), self._sums_V3, mode="sum")
        return sums_X3.view(*ids_BKT.shape[:2], 3).long()

    def _recent(self, ids_BKT: Tensor) -> Tensor:
        window = self._rules.window
        recent_BKW = self._kinds_V[ids_BKT[:, :, -(2 * window if self.free else window) :]]
        if self.free:  # at least every second one is an action
            action_BKW = recent_BKW != ANNOUNCEMENT
            order_BKW = action_BKW.byte().argsort(dim=2, stable=True)
            recent_BKW = recent_BKW.masked_fill(~action_BKW, NO_ACTION).gather(2, order_BKW)
            recent_BKW = recent_BKW[:, :, -window:]
        return functional.pad(recent_BKW, (window - recent_BKW.shape[2], 0), value=NO_ACTION)


def tree_constraints(
    tokenizer: Tokenizer, sources: Sequence[str], model: Model
) -> MakeConstraint | None:
    """Return what constrains batches of sources to trees; None if the target is plain text."""
    to_parse = SentencesToParse.from_sources(tokenizer, sources)
    if to_parse is None:
        return None
    device = next(model.parameters()).device

    def grammar(rows: Sequence[int]) -> TreeConstraint:
        return TreeConstraint(
            to_parse.actions,
            [to_parse.words[row] for row in rows],
            first=FIRST_PIECE,
            vocabulary=model.targets,
            announced=[to_parse.announced[row] for row in rows],
            device=device,
        )

    return grammar
